import { setTimeout as sleep } from 'node:timers/promises';
import type { Stats } from '../downstream/arrivals.ts';
import type { Child } from '../parent/children.ts';
import type { Fleet } from '../parent/fleet.ts';
import { orAbort } from '../parent/or-abort.ts';
import type { RedisView } from '../parent/redis-view.ts';
import { FLOODING_KEY } from '../traffic.ts';
import type { DemoOptions } from './options.ts';
import type { PhasePlan, Stage } from './stage.ts';

const LOOK_MS = 250;
// How long a job's lock outlives its dead process with --kill; BullMQ's default of 30 s would only be a longer wait.
export const KILL_LOCK_MS = 5_000;

interface Cast {
  readonly redis: RedisView;
  readonly fleet: Fleet;
  readonly producer: Child;
}

/** Watches the phase, kills a process if asked to, and resolves when nothing is left to see. */
export async function untilDone(
  stage: Stage,
  plan: PhasePlan,
  { redis, fleet, producer }: Cast,
): Promise<void> {
  const { options, service, signal } = stage;
  const startedMs = performance.now();
  let toKill = plan.governed && options.kill;
  let producing = true;
  let producedMs = startedMs;
  let replacing: Promise<void> = Promise.resolve();
  let calls = 0;
  let lastCallMs = startedMs;
  let looks = 0;
  let left = { all: plan.jobs, delayed: 0 };
  producer.ended.then(() => {
    producing = false;
    producedMs = performance.now();
  });

  while (true) {
    await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
    signal.throwIfAborted();
    const stats = await service.stats();
    const nowMs = performance.now();
    if (stats.calls > calls) lastCallMs = nowMs;
    calls = stats.calls;
    const quietMs = nowMs - lastCallMs;
    const counters = fleet.counters();
    // Counting costs Redis commands, which the result counts: so only with a reason.
    const reason = quietMs > 2_000 || counters.deferrals > 0;
    if (calls >= plan.jobs || (reason && looks++ % 4 === 0)) left = await redis.counts();
    stage.show({
      governed: plan.governed,
      jobs: plan.jobs,
      elapsedMs: nowMs - startedMs,
      stats,
      counters,
      delayed: left.delayed,
    });

    if (toKill && calls >= plan.jobs / 2) {
      toKill = false;
      replacing = fleet.killAndReplace();
    }
    if (plan.maxMs !== undefined && nowMs - startedMs >= plan.maxMs) break;
    if (producing) continue;
    if (left.all === 0) break;
    // The flooding key's backlog would take minutes at its own rate, and show nothing new.
    if (plan.jobsOfOthers !== undefined) {
      if (answeredOfOthers(stats) >= plan.jobsOfOthers) break;
      if (nowMs - producedMs > giveUpMs(options)) break;
    }
    if (quietMs > giveUpMs(options)) break;
  }
  await orAbort(signal, replacing);
}

/** After this long without any call, the remaining jobs count as lost. */
function giveUpMs({ maxHoldMs, serviceMs, cost, rate, kill }: DemoOptions): number {
  return 10_000 + maxHoldMs + serviceMs + (5_000 * cost.max) / rate + (kill ? 3 * KILL_LOCK_MS : 0);
}

function answeredOfOthers({ answeredOfKey }: Stats): number {
  return Object.entries(answeredOfKey).reduce(
    (sum, [key, calls]) => sum + (key === FLOODING_KEY ? 0 : calls),
    0,
  );
}
