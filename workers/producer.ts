import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { onStop, reportAndExit } from './process/lifecycle.ts';
import { createLog } from './process/log.ts';
import {
  badOption,
  type CostRange,
  command,
  costOption,
  numbersByName,
  queueNames,
  wholeNumber,
} from './process/options.ts';
import {
  type JobData,
  jobId,
  type PlannedJob,
  planBacklog,
  planBacklogOfKeys,
  planPaced,
  planTraffic,
} from './traffic.ts';

interface ProducerOptions {
  redis: string;
  queues: string[];
  jobs: number;
  cost: CostRange;
  seed: number;
  keys?: number;
  rate: number;
  keyRate: number;
  backlog?: [key: string, jobs: number][];
  paced?: [key: string, rate: number][];
  seconds: number;
  source?: string;
}

// Jobs in one round trip; more would keep Redis from its other callers for too long.
const BULK = 1_000;
// How often paced traffic is sent. Short compared with any wait that is measured.
const TICK_MS = 20;

const program = command('producer', 'Adds jobs: a backlog at once, or, with --keys, traffic over time.')
  .option('--redis <url>', 'Redis of the queues', process.env.REDIS_URL ?? 'redis://127.0.0.1:6379')
  .option('--queues <names>', 'queues, separated by commas; jobs go to them by turns', queueNames, ['calls'])
  .option('--jobs <number>', 'how many', wholeNumber(1), 3_000)
  .addOption(costOption())
  .option('--seed <number>', 'the same seed gives the same jobs', wholeNumber(0, 2 ** 32 - 1), 1)
  .option(
    '--keys <number>',
    'how many keys the jobs have, which then come over time; the first key floods',
    wholeNumber(2),
  )
  .option('--rate <tokens>', 'with --keys: the governor-wide limit, per second', wholeNumber(1), 200)
  .option('--key-rate <tokens>', 'with --keys: the limit of each key, per second', wholeNumber(1), 20)
  .option(
    '--backlog <key=jobs,…>',
    'in place of --jobs: how many of each key, in this order, at once',
    numbersByName,
  )
  .option('--paced <key=rate,…>', 'in place of --jobs: how many a second of each key, evenly', numbersByName)
  .option('--seconds <number>', 'with --paced: for how long', wholeNumber(1), 10)
  .option('--source <name>', 'begins the ids of these jobs: producers of one queue need different names')
  .parse();
const options = program.opts<ProducerOptions>();
if (options.keys !== undefined && options.keyRate >= options.rate) {
  badOption(program, '--key-rate <tokens>', `less than --rate (${options.rate})`, String(options.keyRate));
}

const log = createLog('producer');
const plan = planOf(options);
const queues = options.queues.map(
  (name) =>
    new Queue<JobData>(name, {
      connection: { url: options.redis },
      // Kept whole, not cut to the last 10,000: failures are counted from it at the end.
      streams: { events: { maxLen: 10 * plan.length + 10_000 } },
    }),
);
for (const queue of queues)
  queue.on('error', (error) => log.warn({ err: error, queue: queue.name }, 'queue'));
onStop(log, async () => {
  await Promise.all(queues.map((queue) => queue.close()));
});

const startedAtMs = Date.now();
let added = 0;
while (added < plan.length) {
  let end = added;
  const dueMs = Date.now() - startedAtMs;
  while (end < plan.length && end - added < BULK && plan[end]!.atMs <= dueMs) end++;
  await add(plan.slice(added, end));
  if (Math.floor(end / BULK) > Math.floor(added / BULK)) log.info({ added: end, of: plan.length }, 'adding');
  added = end;
  if (plan[added] && plan[added]!.atMs > dueMs) await sleep(TICK_MS);
}
await Promise.all(queues.map((queue) => queue.close()));
log.info({ jobs: added, ms: Date.now() - startedAtMs }, 'done');
reportAndExit({ type: 'produced', jobs: added, startedAtMs, endedAtMs: Date.now() });

async function add(jobs: readonly PlannedJob[]): Promise<void> {
  await Promise.all(
    queues.map((queue, turn) => {
      const mine = jobs.filter((job) => job.n % queues.length === turn);
      if (mine.length === 0) return undefined;
      return queue.addBulk(
        mine.map(({ n, key, cost }) => ({
          name: 'call',
          data: { cost, key },
          opts: { jobId: jobId(n, options.source) },
        })),
      );
    }),
  );
}

function planOf({
  jobs,
  cost,
  seed,
  keys,
  rate,
  keyRate,
  backlog,
  paced,
  seconds,
}: ProducerOptions): PlannedJob[] {
  if (backlog) return planBacklogOfKeys(backlog);
  if (paced) return planPaced(paced, seconds);
  return keys ? planTraffic(jobs, cost, seed, { keys, rate, keyRate }) : planBacklog(jobs, cost, seed);
}
