import { type Job, Worker, type WorkerOptions } from 'bullmq';
import { type Cost, createGovernor, type Governor, type LimitsOptions, perSecond } from 'flyball';
import { GovernedWorker, Throttled } from 'flyball/bullmq';
import { onStop, report, reportAndExit, startWhenTold } from './process/lifecycle.ts';
import { createLog } from './process/log.ts';
import type { Counters } from './process/messages.ts';
import { command, limitsJson, queueNames, wholeNumber } from './process/options.ts';
import { ServiceClient } from './process/service-client.ts';
import { FLOODING_KEY, type JobData } from './traffic.ts';

interface ConsumerOptions {
  redis: string;
  queues: string[];
  service: string;
  concurrency: number;
  governor: string;
  rate: number;
  burst: number;
  keyRate?: number;
  limits?: LimitsOptions;
  revision?: number;
  maxHoldMs: number;
  lockMs: number;
  heed?: true;
  ungoverned?: true;
}

const REPORT_MS = 250;

const options = command(
  'consumer',
  'One process: a governor, and a worker for each queue that calls the service.',
)
  .option('--redis <url>', 'Redis of queues and governor', process.env.REDIS_URL ?? 'redis://127.0.0.1:6379')
  .option('--queues <names>', 'queues to work on, separated by commas', queueNames, ['calls'])
  .option('--service <url>', 'the service each job calls', 'http://127.0.0.1:8080')
  .option('--concurrency <jobs>', 'the most jobs a worker has at once', wholeNumber(1), 50)
  .option('--governor <name>', 'processes that name the same governor share its limits', 'demo')
  .option('--rate <tokens>', 'tokens a second, all processes together', wholeNumber(1), 200)
  .option('--burst <tokens>', 'tokens at once', wholeNumber(1), 20)
  .option('--key-rate <tokens>', 'tokens a second for each key; left out, keys have no limit', wholeNumber(1))
  .option('--limits <json>', "limits in place of those, keyed ones by 'key'", limitsJson)
  .option('--revision <number>', 'of these limits: a higher one wins over a lower', wholeNumber(0))
  .option('--max-hold-ms <ms>', 'longest wait for tokens inside a worker', wholeNumber(0), 1_000)
  .option(
    '--lock-ms <ms>',
    "BullMQ's lock on a job: how soon a dead process's jobs are taken over",
    wholeNumber(1_000),
    30_000,
  )
  .option('--heed', 'a 429 pauses the key that got it for as long as the service says, and the job goes back')
  .option('--ungoverned', "BullMQ's own Worker and no governor, to see what happens")
  .parse()
  .opts<ConsumerOptions>();

const log = createLog('consumer');
const service = new ServiceClient(options.service, options.concurrency * options.queues.length);
const limits = limitsOf(options);
const keyed = Object.values(limits).some(({ by }) => by !== undefined);
const governor = options.ungoverned ? undefined : governorOf(options);
const counts = { served: 0, refused: 0, failed: 0, running: 0 };
let workers: Worker<JobData>[] = [];
let timer: NodeJS.Timeout | undefined;

onStop(log, async () => {
  clearInterval(timer);
  await Promise.all(workers.map((worker) => worker.close()));
  await governor?.close();
  service.close();
  reportAndExit({ type: 'closed', ...counters() });
});

await warmUp();
startWhenTold(start);

function start(): void {
  workers = options.queues.map((queue) => workerOf(queue));
  timer = setInterval(() => report({ type: 'counters', ...counters() }), REPORT_MS);
}

/** Does what is slow the first time, before it counts. If something does not answer yet, the first job meets it again. */
async function warmUp(): Promise<void> {
  const keys = keyed ? { keys: { key: FLOODING_KEY } } : {};
  const first = await Promise.allSettled([service.warmUp(), governor?.peek(keys)]);
  for (const one of first) if (one.status === 'rejected') log.warn({ err: one.reason }, 'no answer yet');
}

function limitsOf({ limits, rate, burst, keyRate }: ConsumerOptions): LimitsOptions {
  if (limits !== undefined) return limits;
  const calls = perSecond(rate, { burst });
  return keyRate === undefined ? { calls } : { calls, key: perSecond(keyRate, { by: 'key' }) };
}

function governorOf({ governor: name, redis, revision }: ConsumerOptions): Governor {
  return createGovernor({
    name,
    connection: redis,
    limits,
    ...(revision === undefined ? {} : { revision }),
  });
}

/** A job without a key meets only the limits without keys. */
function costOf({ cost, key }: JobData): Cost {
  if (key !== '' || !keyed) return cost;
  return Object.fromEntries(
    Object.entries(limits).map(([name, { by }]) => [name, by === undefined ? cost : 0]),
  );
}

function workerOf(queue: string): Worker<JobData> {
  const { concurrency, maxHoldMs, lockMs, redis } = options;
  const workerOptions: WorkerOptions = {
    connection: { url: redis },
    concurrency,
    lockDuration: lockMs,
    stalledInterval: lockMs,
    // The service's own record tells how each job ended, so Redis need not keep it.
    removeOnComplete: { count: 0 },
    removeOnFail: { count: 0 },
  };
  const worker = governor
    ? new GovernedWorker<JobData>(queue, callService, {
        ...workerOptions,
        govern: {
          governor,
          cost: (job) => costOf(job.data),
          ...(keyed ? { keys: (job) => (job.data.key === '' ? {} : { key: job.data.key }) } : {}),
          maxHoldMs,
          onRefused: 'delay',
        },
      })
    : new Worker<JobData>(queue, callService, workerOptions);
  worker.on('failed', (job, error) => {
    counts.failed++;
    log.warn({ err: error, queue, job: job?.id }, 'job failed');
  });
  worker.on('error', (error) => log.warn({ err: error, queue }, 'worker'));
  return worker;
}

async function callService(job: Job<JobData>): Promise<void> {
  counts.running++;
  try {
    const { status, retryAfterMs } = await service.call({
      cost: job.data.cost,
      key: job.data.key,
      job: `${job.queueName}:${job.id}`,
      attempt: job.attemptsStarted,
      ageMs: Date.now() - job.timestamp,
    });
    if (status === 200) counts.served++;
    else if (status === 429 && options.heed) {
      counts.refused++;
      throw new Throttled({
        retryAfterMs: retryAfterMs ?? 0,
        ...(job.data.key === '' ? {} : { keys: { key: job.data.key } }),
      });
    }
    // The job still ends: the refusal stays visible as a number, and the run comes to an end.
    else if (status === 429) counts.refused++;
    else throw new Error(`the service answered ${status}, expected 200 or 429`);
  } finally {
    counts.running--;
  }
}

function counters(): Counters {
  let held = 0;
  let deferrals = 0;
  let returned = 0;
  for (const worker of workers) {
    if (!(worker instanceof GovernedWorker)) continue;
    held += worker.governing.held + worker.governing.nearby;
    deferrals += worker.governing.deferrals;
    returned += worker.governing.returned;
  }
  return { ...counts, held, deferrals, returned };
}
