import { setTimeout as pause } from 'node:timers/promises';
import { createGovernor, isGovernorClosedError, type LimitsOptions } from 'flyball';
import { type Kind, kinds, taskOf } from './caller/tasks.ts';
import { onStop, report, reportAndExit, startWhenTold } from './process/lifecycle.ts';
import { createLog } from './process/log.ts';
import type { Counters } from './process/messages.ts';
import { type CostRange, choice, command, limitsJson, range, wholeNumber } from './process/options.ts';
import { ServiceClient } from './process/service-client.ts';

interface CallerOptions {
  redis: string;
  service: string;
  governor: string;
  limits: LimitsOptions;
  loops: number;
  kind: Kind;
  workMs: CostRange;
  tokens: CostRange;
  estimate: number;
}

const REPORT_MS = 250;
// After an error, so that a service that is gone is not asked a thousand times a second.
const PAUSE_MS = 100;

const options = command(
  'caller',
  'One process without a queue: loops that each make one governed call after another.',
)
  .option('--redis <url>', 'Redis of the governor', process.env.REDIS_URL ?? 'redis://127.0.0.1:6379')
  .option('--service <url>', 'the service that is called', 'http://127.0.0.1:8080')
  .option('--governor <name>', 'processes that name the same governor share its limits', 'calls')
  .requiredOption('--limits <json>', 'its limits', limitsJson)
  .option('--loops <number>', 'calls at once, including those that wait', wholeNumber(1), 10)
  .option('--kind <kind>', `what a call does: ${kinds.join(', ')}`, choice(kinds), 'call')
  .option('--work-ms <ms>', 'hold: for how long the service is held', range, { min: 100, max: 200 })
  .option('--tokens <number>', 'complete: tokens that an answer uses', range, { min: 200, max: 800 })
  .option('--estimate <tokens>', 'complete: tokens taken before the answer', wholeNumber(1), 500)
  .parse()
  .opts<CallerOptions>();

const log = createLog('caller');
const service = new ServiceClient(options.service, options.loops);
const governor = createGovernor({
  name: options.governor,
  connection: options.redis,
  limits: options.limits,
});
const counts = { served: 0, refused: 0, failed: 0, running: 0 };
const task = taskOf(options, service, counts);
const START_WITHIN_MS = 1_000;
let stopping = false;
let loops: Promise<void>[] = [];
let timer: NodeJS.Timeout | undefined;

onStop(log, async () => {
  stopping = true;
  clearInterval(timer);
  // Ends the waits; calls that run are finished.
  await governor.close();
  await Promise.all(loops);
  service.close();
  reportAndExit({ type: 'closed', ...counters() });
});

const first = await Promise.allSettled([service.warmUp(), governor.peek()]);
for (const one of first) if (one.status === 'rejected') log.warn({ err: one.reason }, 'no answer yet');
startWhenTold(() => {
  // Not all at once, or they would stay together in every queue.
  loops = Array.from({ length: options.loops }, async () => {
    await pause(Math.random() * START_WITHIN_MS);
    await loop();
  });
  timer = setInterval(() => report({ type: 'counters', ...counters() }), REPORT_MS);
});

async function loop(): Promise<void> {
  while (!stopping) {
    try {
      await task(governor);
    } catch (error) {
      if (isGovernorClosedError(error)) return;
      counts.failed++;
      log.warn({ err: error }, 'call failed');
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

function counters(): Counters {
  return { ...counts, held: governor.waiting, deferrals: 0, returned: 0 };
}
