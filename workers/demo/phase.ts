import type { Trace } from '../downstream/arrivals.ts';
import type { Child } from '../parent/children.ts';
import { Fleet } from '../parent/fleet.ts';
import { orAbort } from '../parent/or-abort.ts';
import { RedisView } from '../parent/redis-view.ts';
import type { Counters, Message } from '../process/messages.ts';
import type { PhasePlan, Stage } from './stage.ts';
import { KILL_LOCK_MS, untilDone } from './until-done.ts';

/** The time in which jobs were added, on the wall clock. */
interface Offered {
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}

/** What a phase leaves behind. */
export interface Outcome {
  readonly trace: Trace;
  readonly counters: Counters;
  readonly offered: Offered;
  readonly redisCommands: number;
  readonly failedEvents: number;
  /** Jobs that were still in a queue at the end. */
  readonly backlog: number;
}

/** Runs one phase: puts jobs into the queues, runs workers until all are done, then counts and cleans up. */
export async function runPhase(stage: Stage, plan: PhasePlan): Promise<Outcome> {
  const { options, service, children, redisUrl, signal } = stage;
  const redis = new RedisView(redisUrl, plan.queueNames);
  await service.reset();

  const paced = plan.governed && options.keys !== undefined;
  let producer: { child: Child; offered: Promise<Offered> } | undefined;
  if (!paced) {
    // All jobs are there before the first worker starts: the hardest case, and the same for both phases.
    stage.say(`adding ${plan.jobs} jobs`);
    producer = startProducer(stage, plan);
    await orAbort(signal, producer.child.ended);
  }
  stage.say(`starting ${options.processes} worker processes`);
  const fleet = new Fleet(children, 'consumer', consumerArgs(stage, plan));
  await orAbort(signal, fleet.start(options.processes));
  const commandsBefore = await redis.commandsProcessed();
  producer ??= startProducer(stage, plan);
  fleet.go();
  await untilDone(stage, plan, { redis, fleet, producer: producer.child });

  const redisCommands = (await redis.commandsProcessed()) - commandsBefore;
  await orAbort(signal, fleet.stop());
  const outcome: Outcome = {
    trace: await service.trace(),
    counters: fleet.counters(),
    offered: await producer.offered,
    redisCommands,
    failedEvents: await orAbort(signal, redis.failedEvents()),
    backlog: (await redis.counts()).all,
  };
  await redis.obliterate();
  await redis.close();
  return outcome;
}

function startProducer(stage: Stage, plan: PhasePlan): { child: Child; offered: Promise<Offered> } {
  const { cost, seed, keys, rate } = stage.options;
  const args = ['--redis', stage.redisUrl, '--queues', plan.queueNames.join(','), '--jobs', `${plan.jobs}`];
  args.push('--cost', `${cost.min}-${cost.max}`, '--seed', `${seed}`);
  if (keys && plan.governed)
    args.push('--keys', `${keys.keys}`, '--rate', `${rate}`, '--key-rate', `${keys.keyRate}`);
  let child!: Child;
  const offered = new Promise<Offered>((resolve) => {
    const onMessage = (message: Message) => {
      if (message.type === 'produced') resolve(message);
    };
    child = stage.children.start('producer', args, { onMessage });
  });
  return { child, offered };
}

function consumerArgs({ options, redisUrl, service }: Stage, plan: PhasePlan): string[] {
  const args = ['--redis', redisUrl, '--queues', plan.queueNames.join(','), '--service', service.url];
  args.push('--concurrency', `${options.concurrency}`);
  if (!plan.governed) return [...args, '--ungoverned'];
  // The queues and the governor have names of this run: nothing is left from an earlier one.
  args.push('--governor', plan.queueNames[0]!, '--rate', `${options.rate}`, '--burst', `${options.burst}`);
  args.push('--max-hold-ms', `${options.maxHoldMs}`);
  if (options.keys) args.push('--key-rate', `${options.keys.keyRate}`);
  if (options.kill) args.push('--lock-ms', `${KILL_LOCK_MS}`);
  return args;
}
