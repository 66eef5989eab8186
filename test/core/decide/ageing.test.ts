import { expect, test } from 'vitest';
import type { Priority } from '../../../src/core/calls/options.ts';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { governed, startsOf } from '../support/governed.ts';

const reserve = { high: 0.4, normal: 0.4 };
const calls = perSecond(10, { burst: 5, reserve });

type Parts = ReturnType<typeof governed>;

/** Takes all there is for high work, until the clock has moved on by so much. */
async function busy({ governor, clock }: Parts, ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 100) {
    await governor.allowAtMost(5, { priority: 'high' });
    await clock.advance(100);
  }
}

test('the more urgent take what comes, while the less urgent wait', async () => {
  const parts = governed({ calls });
  await parts.governor.allowN(5, { priority: 'high' });
  const priorities: Priority[] = ['low', 'normal', 'high'];
  const { starts, done } = startsOf(parts.clock, priorities, (priority) => parts.governor.wait({ priority }));
  await parts.clock.advance(3_000);
  await done;
  expect(starts.map(({ item }) => item)).toEqual(['high', 'normal', 'low']);
});

// Only what is of high priority passes those who wait already.
test.for<[Priority, number]>([
  ['normal', 10_000],
  ['low', 20_000],
])('%s work under a flood of high work is let in once it has waited for %i ms', async ([waiting, ms]) => {
  const parts = governed({ calls });
  await parts.governor.allowN(5, { priority: 'high' });
  const { starts, done } = startsOf(parts.clock, [0], () => parts.governor.wait({ priority: waiting }));
  await busy(parts, ms - 200);
  expect(starts).toEqual([]);
  await busy(parts, 3_000);
  await parts.clock.advance(20_000);
  await done;
  expect(starts[0]!.atMs).toBeGreaterThanOrEqual(ms - 200);
  expect(starts[0]!.atMs).toBeLessThanOrEqual(ms + 2_800);
});

test('high work passes those who wait for their slot of a key', async () => {
  const parts = governed({ all: perSecond(1_000), shop: perSecond(10, { burst: 5, by: 'shop', reserve }) });
  const keys = { shop: 'acme' };
  await parts.governor.allowN(5, { priority: 'high', keys });
  const { starts } = startsOf(parts.clock, Array.from({ length: 50 }), () =>
    parts.governor.wait({ keys }).catch(() => {}),
  );
  await parts.clock.advance(1_000);
  const before = starts.length;
  expect(before).toBeLessThan(50);
  const urgent = startsOf(parts.clock, [0], () => parts.governor.wait({ keys, priority: 'high' }));
  await parts.clock.advance(300);
  await urgent.done;
  expect(starts.length).toBeLessThan(50);
  await parts.governor.close();
  await parts.clock.advance(0);
});
