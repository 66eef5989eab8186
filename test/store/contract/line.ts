import { describe, expect, test } from 'vitest';
import type { Terms } from '../../../src/core/decide/ask.ts';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { type Make, MS, SECOND, shops, started } from '../support/made.ts';
import { AT_ONCE, OR_TURN, RETURNING } from '../support/terms.ts';

/** The line of a key, in any store. */
export function lineContract(make: Make): void {
  describe('the line', () => {
    const a = { shop: 'a' };

    test('refused requests get slots one after the other, and charge nothing', async () => {
      const { acquire, refusal, peek } = await started(make, shops);
      await acquire(1, AT_ONCE, a);
      for (const seconds of [1, 2, 3]) {
        const refusedWith = await refusal(1, OR_TURN, a);
        expect(refusedWith).toMatchObject({ hasTurn: true, waitUs: seconds * SECOND });
      }
      const [{ sight } = { sight: undefined }] = await peek({ keys: a });
      expect(sight).toMatchObject({
        remaining: 0,
        waitUs: SECOND,
        lineUs: 4 * SECOND,
        granted: 1,
        refused: 3,
      });
    });

    test('who returns at its slot passes; who is new goes behind the line', async () => {
      const { acquire, refusal, advanceUs } = await started(make, shops);
      await acquire(1, AT_ONCE, a);
      await refusal(1, OR_TURN, a);
      await refusal(1, OR_TURN, a);
      advanceUs(SECOND);
      expect(await refusal(1, OR_TURN, a)).toMatchObject({
        reason: 'line',
        hasTurn: true,
        waitUs: 2 * SECOND,
      });
      expect(await acquire(1, RETURNING, a)).toMatchObject({ granted: true, waitUs: 0 });
      advanceUs(SECOND);
      expect(await acquire(1, RETURNING, a)).toMatchObject({ granted: true, waitUs: 0 });
      advanceUs(SECOND);
      expect(await acquire(1, RETURNING, a)).toMatchObject({ granted: true, waitUs: 0 });
    });

    test('who returns early keeps its place, or gets a new one at the end if that is too long', async () => {
      const { acquire, refusal, advanceUs } = await started(make, shops);
      await acquire(1, AT_ONCE, a);
      await refusal(1, OR_TURN, a);
      advanceUs(700 * MS);
      expect(await refusal(1, RETURNING, a)).toMatchObject({ hasTurn: false, waitUs: 300 * MS });
      const hasty: Terms = { ...RETURNING, patienceUs: 299 * MS };
      expect(await refusal(1, hasty, a)).toMatchObject({ hasTurn: true, waitUs: 1_300 * MS });
    });

    test('is forgotten once its bucket was full for a second: that work is not coming', async () => {
      const { acquire, refusal, advanceUs } = await started(make, shops);
      await acquire(1, AT_ONCE, a);
      for (let deferred = 0; deferred < 10; deferred++) await refusal(1, OR_TURN, a);
      advanceUs(1_999 * MS);
      expect(await refusal(1, AT_ONCE, a)).toMatchObject({ reason: 'line' });
      advanceUs(MS);
      expect(await acquire(1, AT_ONCE, a)).toMatchObject({ granted: true, waitUs: 0 });
    });

    test('no place is kept for a slot further ahead than asked for', async () => {
      const { acquire, refusal, peek } = await started(make, shops);
      await acquire(1, AT_ONCE, a);
      const soon: Terms = { ...OR_TURN, maxTurnUs: SECOND - 1 };
      expect(await refusal(1, soon, a)).toMatchObject({ hasTurn: false, waitUs: SECOND });
      expect((await peek({ keys: a }))[0]).toMatchObject({ sight: { lineUs: 0 } });
    });

    test('limits for all give slots only if asked to', async () => {
      const { acquire, refusal } = await started(make, { limits: { calls: perSecond(1, { burst: 1 }) } });
      await acquire(1);
      expect(await refusal(1, OR_TURN)).toMatchObject({ hasTurn: false, waitUs: SECOND });
      const all: Terms = { ...OR_TURN, turns: 'all' };
      expect(await refusal(1, all)).toMatchObject({ hasTurn: true, waitUs: SECOND });
      expect(await refusal(1, all)).toMatchObject({ hasTurn: true, waitUs: 2 * SECOND });
    });

    test('of one key holds up no other', async () => {
      const { acquire, refusal } = await started(make, shops);
      await acquire(1, AT_ONCE, a);
      for (let deferred = 0; deferred < 10; deferred++) await refusal(1, OR_TURN, a);
      expect(await acquire(1, AT_ONCE, { shop: 'b' })).toMatchObject({ granted: true, waitUs: 0 });
    });
  });
}
