import { createGovernor, perSecond } from 'flyball';
import { GovernedWorker } from 'flyball/bullmq';
import { Redis } from 'ioredis';

// A consumer to be killed: tells each start, and what it holds, a JSON object a line.
const [url, queue, name, rate] = process.argv.slice(2) as [string, string, string, string];
const connection = new Redis(url, { maxRetriesPerRequest: null });
const governor = createGovernor({
  name,
  connection: url,
  limits: { calls: perSecond(Number(rate), { burst: 5 }) },
});
const tell = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

const worker = new GovernedWorker(
  queue,
  async (job) => {
    tell({ start: job.id, atMs: Date.now() });
    await new Promise((resolve) => setTimeout(resolve, 50));
  },
  {
    connection,
    concurrency: 10,
    drainDelay: 1,
    lockDuration: 1_000,
    stalledInterval: 300,
    govern: { governor },
  },
);
worker.on('error', (error) => tell({ error: error.message }));
worker.on('failed', (job, error) => tell({ failed: job?.id, error: error.message }));
setInterval(() => {
  const { held, running } = worker.governing;
  tell({ held, running });
}, 10);
