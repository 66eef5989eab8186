import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type History, histories } from '../support/histories.ts';
import type { Kind } from '../support/limits.ts';
import { connect, uniqueName } from '../support/redis.ts';
import { Both } from './support/both.ts';
import { kept } from './support/kept.ts';

/*
 * The scripts decide as the pure core does: random histories in both, verdict for verdict and state for state. For a longer run
 * by hand: FLYBALL_PARITY_RUNS=8000 npx vitest run --project integration parity; FLYBALL_PARITY_SEED plays one run again, and
 * FLYBALL_PARITY_SHRINK=1 makes a history that fails small, which takes its time.
 */
const numRuns = Number(process.env.FLYBALL_PARITY_RUNS ?? 120);
const { FLYBALL_PARITY_SEED: seed, FLYBALL_PARITY_SHRINK: shrinks } = process.env;
const redis = connect();
const listener = connect();

async function play(history: History): Promise<number> {
  const both = await Both.begin(redis, listener, uniqueName('parity'), history);
  try {
    for (const batch of history.batches) await both.play(batch);
  } finally {
    await both.end();
  }
  return both.played;
}

test.for<[string, Kind[]]>([
  ['rates', ['rate']],
  ['windows', ['window']],
  ['slots', ['concurrency']],
  ['limits of all kinds', ['rate', 'rate', 'window', 'concurrency']],
])(
  'Lua and TypeScript agree on %s, decision for decision and state for state',
  {
    timeout: 3_600_000,
  },
  async ([, kinds]) => {
    let played = 0;
    await fc.assert(
      fc.asyncProperty(histories(kinds), async (history) => {
        played += await play(history);
      }),
      {
        numRuns,
        ...(shrinks === undefined ? { endOnFailure: true } : { interruptAfterTimeLimit: 20_000 }),
        ...(seed === undefined ? {} : { seed: Number(seed) }),
      },
    );
    expect(played).toBeGreaterThan(numRuns * 20);
  },
);

test.for(Object.entries(kept))(
  'Lua and TypeScript agree where they once did not: %s',
  async ([, history]) => {
    await play(history);
  },
);
