// Run by BullMQ in a process of its own.
export default async function sandboxed(job) {
  return { pid: process.pid, n: job.data.n, atMs: Date.now() };
}
