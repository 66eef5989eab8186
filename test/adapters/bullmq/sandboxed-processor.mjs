// Run by BullMQ in a process of its own.
export default async function sandboxed(job) {
  if (job.data.throttles && job.attemptsStarted === 1) {
    // What Throttled is made of, as this file has no build of the package to import it from.
    throw Object.assign(new Error('429'), {
      flyballThrottled: true,
      retryAfterMs: 50,
      keys: { shop: 'acme' },
    });
  }
  return { pid: process.pid, n: job.data.n, atMs: Date.now() };
}
