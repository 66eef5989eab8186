import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_MS = 20;

/** Waits; throws the signal's reason if the run must end before. */
export async function pause(signal: AbortSignal, ms: number): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {});
  signal.throwIfAborted();
}

/** Waits until something is true. @throws Error naming it, if it is not within `maxMs`. */
export async function until(
  signal: AbortSignal,
  what: string,
  maxMs: number,
  isSo: () => Promise<boolean>,
): Promise<void> {
  const giveUpAtMs = performance.now() + maxMs;
  while (!(await isSo())) {
    if (performance.now() > giveUpAtMs) throw new Error(`${what}: not within ${maxMs} ms`);
    await pause(signal, LOOK_MS);
  }
}
