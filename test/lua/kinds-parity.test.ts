import fc from 'fast-check';
import { expect, test } from 'vitest';
import { connect, uniqueName } from '../support/redis.ts';
import { Both } from './support/kinds-both.ts';
import { type History, histories } from './support/kinds-histories.ts';
import { kept } from './support/kinds-kept.ts';

const RUNS = Number(process.env.FLYBALL_KINDS_PARITY_RUNS ?? 300);
const SEED = process.env.FLYBALL_KINDS_PARITY_SEED;
const redis = connect();
const listener = connect();

async function play(history: History): Promise<number> {
  const both = await Both.begin(redis, listener, uniqueName('kinds'), history);
  try {
    for (const batch of history.batches) await both.play(batch);
  } finally {
    await both.end();
  }
  return both.played;
}

test('Lua and TypeScript agree on all kinds of limits, verdict for verdict', {
  timeout: 600_000,
}, async () => {
  let played = 0;
  await fc.assert(
    fc.asyncProperty(histories, async (history) => {
      played += await play(history);
    }),
    {
      numRuns: RUNS,
      // To make a failing history small takes its time.
      ...(process.env.FLYBALL_KINDS_PARITY_SHRINK === undefined
        ? { endOnFailure: true }
        : { interruptAfterTimeLimit: 20_000 }),
      ...(SEED === undefined ? {} : { seed: Number(SEED) }),
    },
  );
  expect(played).toBeGreaterThan(RUNS * 20);
});

test.for(Object.entries(kept))(
  'Lua and TypeScript agree where they once did not: %s',
  async ([, history]) => {
    await play(history);
  },
);
