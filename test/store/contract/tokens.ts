import { describe, expect, test } from 'vitest';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { calls, type Make, MS, SECOND, started } from '../support/made.ts';
import { AT_ONCE } from '../support/terms.ts';

/** What a request takes, in any store: from one limit, from several, from the bucket of its key, and from buckets that are new. */
export function tokensContract(make: Make): void {
  describe('tokens', () => {
    test('grants up to the burst at one instant, then says when the next token comes', async () => {
      const { acquire, refusal } = await started(make, calls);
      for (let taken = 0; taken < 5; taken++)
        expect(await acquire(1)).toMatchObject({ granted: true, waitUs: 0 });
      expect(await refusal(1)).toEqual({ limit: 'calls', reason: 'rate', waitUs: 100 * MS, hasTurn: false });
      expect(await refusal(3)).toMatchObject({ waitUs: 300 * MS });
    });

    test('a cost of the whole burst passes, and again when all of it has come back', async () => {
      const { acquire, refusal, advanceUs } = await started(make, calls);
      expect(await acquire(5)).toMatchObject({ granted: true });
      advanceUs(499 * MS);
      expect(await refusal(5)).toMatchObject({ waitUs: MS });
      advanceUs(MS);
      expect(await acquire(5)).toMatchObject({ granted: true, waitUs: 0 });
    });

    test('an idle time, however long, gives no more than the burst', async () => {
      const { acquire, remaining, advanceUs } = await started(make, calls);
      await acquire(5);
      advanceUs(30 * 86_400 * SECOND);
      expect(await remaining()).toEqual([5]);
    });

    test('a refusal takes nothing: whoever asks for less passes', async () => {
      const { acquire, refusal, remaining } = await started(make, calls);
      await acquire(3);
      for (let asked = 0; asked < 20; asked++) await refusal(3);
      expect(await remaining()).toEqual([2]);
      expect(await acquire(2)).toMatchObject({ granted: true });
    });

    test('a clock that steps back gives no token twice, and takes none away', async () => {
      const { acquire, refusal, advanceUs } = await started(make, calls);
      await acquire(5);
      advanceUs(100 * MS);
      expect(await acquire(1)).toMatchObject({ granted: true });
      advanceUs(-500 * MS);
      expect(await refusal(1)).toMatchObject({ waitUs: 600 * MS });
      advanceUs(600 * MS);
      expect(await acquire(1)).toMatchObject({ granted: true });
    });

    test('a clock that had run far ahead stops nobody once it is put right', async () => {
      const { acquire, refusal, advanceUs } = await started(make, calls);
      advanceUs(3_600 * SECOND);
      await acquire(5);
      advanceUs(-3_600 * SECOND);
      expect(await refusal(1)).toMatchObject({ waitUs: 100 * MS });
    });
  });

  describe('several limits', () => {
    const two = { limits: { wide: perSecond(10, { burst: 9 }), narrow: perSecond(10, { burst: 2 }) } };

    test('all of them are charged or none is, and the refusal names the one that refused', async () => {
      const { acquire, refusal, remaining } = await started(make, two);
      await acquire(2);
      expect(await remaining()).toEqual([7, 0]);
      expect(await refusal(1)).toMatchObject({ limit: 'narrow', reason: 'rate', waitUs: 100 * MS });
      expect(await remaining()).toEqual([7, 0]);
    });

    test('each takes its own cost; one with cost 0 is left out', async () => {
      const { acquire, remaining } = await started(make, two);
      await acquire({ wide: 4, narrow: 0 });
      expect(await remaining()).toEqual([5, 2]);
      await acquire({ narrow: 2 });
      expect(await remaining()).toEqual([4, 0]);
      expect(await acquire({ wide: 4, narrow: 0 })).toMatchObject({ granted: true, waitUs: 0 });
    });

    test('a request starts when the last of them lets it', async () => {
      const { reserve, remaining, advanceUs } = await started(make, two);
      await reserve({ wide: 9, narrow: 1 });
      expect(await reserve({ wide: 5, narrow: 2 })).toMatchObject({ waitUs: 500 * MS });
      advanceUs(500 * MS);
      // The narrow one is charged as of that start: it cannot use the time until then a second time.
      expect(await remaining()).toEqual([0, 0]);
    });
  });

  describe('keys', () => {
    const keyed = { limits: { shop: perSecond(10, { burst: 3, by: 'shop' }) } };

    test('each value has a bucket of its own', async () => {
      const { acquire, refusal, remaining } = await started(make, keyed);
      await acquire(3, AT_ONCE, { shop: 'acme' });
      expect(await refusal(1, AT_ONCE, { shop: 'acme' })).toMatchObject({ limit: 'shop' });
      expect(await remaining({ keys: { shop: 'other' } })).toEqual([3]);
      expect(await remaining({ keys: { shop: 'Acme' } })).toEqual([3]);
      expect(await acquire(3, AT_ONCE, { shop: 'other' })).toMatchObject({ granted: true });
    });

    test('no value is a bucket of its own, which no value shares', async () => {
      const { acquire, remaining } = await started(make, keyed);
      await acquire(3);
      for (const none of [undefined, {}, { shop: undefined }, { shop: null }])
        expect(await remaining({ keys: none })).toEqual([0]);
      for (const shop of ['undefined', 'null', ' ', ':', '0'])
        expect(await remaining({ keys: { shop } })).toEqual([3]);
    });

    test('a number and its text are the same key', async () => {
      const { acquire, remaining } = await started(make, keyed);
      await acquire(2, AT_ONCE, { shop: 7 });
      expect(await remaining({ keys: { shop: '7' } })).toEqual([1]);
    });

    test('text of any script and with the characters of key names is a key like any other', async () => {
      const { acquire, remaining } = await started(make, keyed);
      const values = [
        '{a}',
        '}b{',
        'a:b',
        'a b',
        '*',
        'é',
        'e\u0301',
        '店',
        '\n',
        '\0',
        '__proto__',
        'x'.repeat(256),
      ];
      for (const shop of values) expect(await acquire(3, AT_ONCE, { shop })).toMatchObject({ granted: true });
      for (const shop of values) expect(await remaining({ keys: { shop } })).toEqual([0]);
    });

    test('attributes do not share buckets, though limits by the same attribute and value are charged together', async () => {
      const { acquire, remaining } = await started(make, {
        limits: {
          shop: perSecond(10, { burst: 4, by: 'shop' }),
          user: perSecond(10, { burst: 6, by: 'user' }),
          shopToo: perSecond(10, { burst: 8, by: 'shop' }),
        },
      });
      await acquire(3, AT_ONCE, { shop: 'a', user: 'a' });
      expect(await remaining({ keys: { shop: 'a', user: 'b' } })).toEqual([1, 6, 5]);
      expect(await remaining({ keys: { shop: 'b', user: 'a' } })).toEqual([4, 3, 8]);
    });
  });

  describe('a cold start', () => {
    test('with full buckets lets the burst pass', async () => {
      const { acquire } = await started(make, { ...calls, coldStart: 'full' });
      expect(await acquire(5)).toMatchObject({ granted: true, waitUs: 0 });
    });

    test('with empty buckets lets nothing pass until tokens have come', async () => {
      const { acquire, refusal, advanceUs } = await started(make, { ...calls, coldStart: 'empty' });
      expect(await refusal(1)).toMatchObject({ reason: 'rate', waitUs: 100 * MS });
      advanceUs(200 * MS);
      expect(await acquire(2)).toMatchObject({ granted: true });
      expect(await refusal(1)).toMatchObject({ waitUs: 100 * MS });
    });

    test('counts from the start, not from the first use of a key', async () => {
      const { remaining, advanceUs } = await started(make, {
        limits: { shop: perSecond(10, { burst: 5, by: 'shop' }) },
        coldStart: 'empty',
      });
      advanceUs(300 * MS);
      expect(await remaining({ keys: { shop: 'late' } })).toEqual([3]);
      advanceUs(10 * SECOND);
      expect(await remaining({ keys: { shop: 'later' } })).toEqual([5]);
    });
  });
}
