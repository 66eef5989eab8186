import { perSecond } from 'flyball';
import { describe, expect } from 'vitest';
import { wallClock } from '../../support/wall-clock.ts';
import { addJobs, expectBound, expectNoError, test, until } from './fixture.ts';

describe('a hot key', wallClock, () => {
  // https://github.com/timgit/pg-boss/pull/756: a saturated group filled the front, and idle workers never reached others.
  // https://github.com/OptimalBits/bull/issues/2131: refused jobs came back in front of fresh ones and were refused again.
  test.for([
    { concurrency: 1, keyRate: 2, governorWide: false },
    { concurrency: 1, keyRate: 2, governorWide: true },
    { concurrency: 10, keyRate: 2, governorWide: false },
    { concurrency: 10, keyRate: 2, governorWide: true },
    // Within maxHoldMs the hot key could reserve for more jobs than the worker has room for.
    { concurrency: 10, keyRate: 20, governorWide: false },
    { concurrency: 10, keyRate: 20, governorWide: true },
  ])(
    'does not keep another key waiting for more than 2 s: %o',
    async ({ concurrency, keyRate, governorWide }, { bench, queue }) => {
      const governor = bench.governor({
        ...(governorWide ? { calls: perSecond(500, { burst: 50 }) } : {}),
        shop: perSecond(keyRate, { burst: 2, by: 'shop' }),
      });
      await addJobs(queue, 300, { name: 'hot' });
      await addJobs(queue, 5, { name: 'other' });
      const beganMs = performance.now();
      bench.worker(queue, { governor, keys: (job) => ({ shop: job.name }) }, { concurrency });

      await until(() => bench.startsOf('other').length >= 2, 'the other key within its burst', 10_000);
      expect(bench.startsOf('other')[1]!.atMs - beganMs).toBeLessThan(2_000);
      // A job that comes while the hot key's are deferred does not wait for them either.
      await addJobs(queue, 1, { name: 'third' });
      const addedMs = performance.now();
      await until(() => bench.startsOf('third').length > 0, 'a third key', 10_000);
      expect(bench.startsOf('third')[0]!.atMs - addedMs).toBeLessThan(2_000);

      expectBound(bench.startsOf('hot'), keyRate, 2);
      expectNoError(bench);
    },
  );
});
