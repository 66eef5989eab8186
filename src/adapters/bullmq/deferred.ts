import type { Queue } from 'bullmq';
import type { Deferrals } from '../../core/ports/deferrals.ts';
import type { Deferred } from './state.ts';

const GONE = ['completed', 'failed', 'unknown'];
// Jobs that a user removed in their hundreds: the figure may then be one of them for once.
const MAX_LOOKS = 50;

/** The jobs of a queue that are put aside. A job that was removed, and is the oldest therefore, is forgotten first. */
export async function deferredOf(
  deferrals: Deferrals,
  queue: Pick<Queue, 'qualifiedName' | 'getJobState'>,
): Promise<Deferred> {
  const { qualifiedName } = queue;
  for (let looks = 1; ; looks++) {
    const { count, oldest } = await deferrals.oldest(qualifiedName);
    if (oldest === undefined) return { count: 0, oldestMs: 0 };
    if (looks === MAX_LOOKS || !GONE.includes(await queue.getJobState(oldest.job))) {
      return { count, oldestMs: Math.floor(oldest.ageUs / 1_000) };
    }
    await deferrals.forget(qualifiedName, oldest.job);
  }
}
