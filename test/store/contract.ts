import { describe, expect, test } from 'vitest';
import { CostExceedsBurstError, GovernorClosedError, InvalidOptionError } from '../../src/core/errors.ts';
import type { ColdStart } from '../../src/core/governor-options.ts';
import type { LimitsOptions } from '../../src/core/limit.ts';
import { perDay, perSecond } from '../../src/core/rate-limit.ts';
import type { Cost, Keys } from '../../src/core/request.ts';
import type { Store } from '../../src/core/store.ts';
import type { Receipt, Terms, Verdict } from '../../src/core/verdict.ts';
import { AT_ONCE, ask, NORMAL, OR_SLOT, RETURNING, WHENEVER } from './support/terms.ts';

export interface Made {
  readonly store: Store;
  /** Moves the store's own clock on by whole microseconds, or back. */
  advanceUs(us: number): void;
}

export interface StoreOptions {
  readonly limits: LimitsOptions;
  readonly coldStart?: ColdStart;
}

const MS = 1_000;
const SECOND = 1_000_000;

/** What every store does, whatever it is made of. `make` gives one that nothing has happened to yet. */
export function storeContract(make: (options: StoreOptions) => Made): void {
  // Made and met once, so that a store that starts with its first call has started.
  async function started(options: StoreOptions) {
    const { store, advanceUs } = make(options);
    await store.limits();
    const acquire = (cost: Cost, terms: Terms = AT_ONCE, keys?: Keys) =>
      store.acquire(ask(cost, keys), terms);
    const peek = (keys?: Keys, cost: Cost = 1) => store.peek(ask(cost, keys), NORMAL);
    return {
      store,
      advanceUs,
      acquire,
      peek,
      reserve: async (cost: Cost, keys?: Keys) => granted(await acquire(cost, WHENEVER, keys)),
      refusal: async (cost: Cost, terms?: Terms, keys?: Keys) => refused(await acquire(cost, terms, keys)),
      remaining: async (keys?: Keys) => (await peek(keys)).map(({ sight }) => sight.remaining),
    };
  }

  const calls = { limits: { calls: perSecond(10, { burst: 5 }) } };
  const shops = { limits: { shop: perSecond(1, { burst: 1, by: 'shop' }) } };

  describe('tokens', () => {
    test('grants up to the burst at one instant, then says when the next token comes', async () => {
      const { acquire, refusal } = await started(calls);
      for (let taken = 0; taken < 5; taken++)
        expect(await acquire(1)).toMatchObject({ granted: true, waitUs: 0 });
      expect(await refusal(1)).toEqual({ limit: 'calls', reason: 'rate', waitUs: 100 * MS, slotted: false });
      expect(await refusal(3)).toMatchObject({ waitUs: 300 * MS });
    });

    test('a cost of the whole burst passes, and again when all of it has come back', async () => {
      const { acquire, refusal, advanceUs } = await started(calls);
      expect(await acquire(5)).toMatchObject({ granted: true });
      advanceUs(499 * MS);
      expect(await refusal(5)).toMatchObject({ waitUs: MS });
      advanceUs(MS);
      expect(await acquire(5)).toMatchObject({ granted: true, waitUs: 0 });
    });

    test('an idle time, however long, gives no more than the burst', async () => {
      const { acquire, remaining, advanceUs } = await started(calls);
      await acquire(5);
      advanceUs(30 * 86_400 * SECOND);
      expect(await remaining()).toEqual([5]);
    });

    test('a refusal takes nothing: whoever asks for less passes', async () => {
      const { acquire, refusal, remaining } = await started(calls);
      await acquire(3);
      for (let asked = 0; asked < 20; asked++) await refusal(3);
      expect(await remaining()).toEqual([2]);
      expect(await acquire(2)).toMatchObject({ granted: true });
    });

    test('a clock that steps back gives no token twice, and takes none away', async () => {
      const { acquire, refusal, advanceUs } = await started(calls);
      await acquire(5);
      advanceUs(100 * MS);
      expect(await acquire(1)).toMatchObject({ granted: true });
      advanceUs(-500 * MS);
      expect(await refusal(1)).toMatchObject({ waitUs: 600 * MS });
      advanceUs(600 * MS);
      expect(await acquire(1)).toMatchObject({ granted: true });
    });

    test('a clock that had run far ahead stops nobody once it is put right', async () => {
      const { acquire, refusal, advanceUs } = await started(calls);
      advanceUs(3_600 * SECOND);
      await acquire(5);
      advanceUs(-3_600 * SECOND);
      expect(await refusal(1)).toMatchObject({ waitUs: 100 * MS });
    });
  });

  describe('several limits', () => {
    const two = { limits: { wide: perSecond(10, { burst: 9 }), narrow: perSecond(10, { burst: 2 }) } };

    test('all of them are charged or none is, and the refusal names the one that refused', async () => {
      const { acquire, refusal, remaining } = await started(two);
      await acquire(2);
      expect(await remaining()).toEqual([7, 0]);
      expect(await refusal(1)).toMatchObject({ limit: 'narrow', reason: 'rate', waitUs: 100 * MS });
      expect(await remaining()).toEqual([7, 0]);
    });

    test('each takes its own cost; one with cost 0 is left out', async () => {
      const { acquire, remaining } = await started(two);
      await acquire({ wide: 4, narrow: 0 });
      expect(await remaining()).toEqual([5, 2]);
      await acquire({ narrow: 2 });
      expect(await remaining()).toEqual([4, 0]);
      expect(await acquire({ wide: 4, narrow: 0 })).toMatchObject({ granted: true, waitUs: 0 });
    });

    test('a request starts when the last of them lets it', async () => {
      const { reserve, remaining, advanceUs } = await started(two);
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
      const { acquire, refusal, remaining } = await started(keyed);
      await acquire(3, AT_ONCE, { shop: 'acme' });
      expect(await refusal(1, AT_ONCE, { shop: 'acme' })).toMatchObject({ limit: 'shop' });
      expect(await remaining({ shop: 'other' })).toEqual([3]);
      expect(await remaining({ shop: 'Acme' })).toEqual([3]);
      expect(await acquire(3, AT_ONCE, { shop: 'other' })).toMatchObject({ granted: true });
    });

    test('no value is a bucket of its own, which no value shares', async () => {
      const { acquire, remaining } = await started(keyed);
      await acquire(3);
      for (const none of [undefined, {}, { shop: undefined }, { shop: null }])
        expect(await remaining(none)).toEqual([0]);
      for (const shop of ['undefined', 'null', ' ', ':', '0']) expect(await remaining({ shop })).toEqual([3]);
    });

    test('a number and its text are the same key', async () => {
      const { acquire, remaining } = await started(keyed);
      await acquire(2, AT_ONCE, { shop: 7 });
      expect(await remaining({ shop: '7' })).toEqual([1]);
    });

    test('text of any script and with the characters of key names is a key like any other', async () => {
      const { acquire, remaining } = await started(keyed);
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
      for (const shop of values) expect(await remaining({ shop })).toEqual([0]);
    });

    test('attributes do not share buckets, though limits by the same attribute and value are charged together', async () => {
      const { acquire, remaining } = await started({
        limits: {
          shop: perSecond(10, { burst: 4, by: 'shop' }),
          user: perSecond(10, { burst: 6, by: 'user' }),
          shopToo: perSecond(10, { burst: 8, by: 'shop' }),
        },
      });
      await acquire(3, AT_ONCE, { shop: 'a', user: 'a' });
      expect(await remaining({ shop: 'a', user: 'b' })).toEqual([1, 6, 5]);
      expect(await remaining({ shop: 'b', user: 'a' })).toEqual([4, 3, 8]);
    });
  });

  describe('reservations', () => {
    test('start one after the other at the rate', async () => {
      const { reserve } = await started(calls);
      const waits: number[] = [];
      for (let made = 0; made < 8; made++) waits.push((await reserve(1)).waitUs);
      expect(waits).toEqual([0, 0, 0, 0, 0, 100 * MS, 200 * MS, 300 * MS]);
    });

    test('a wait as long as allowed passes, and one that would be longer takes nothing', async () => {
      const { acquire, refusal } = await started(calls);
      await acquire(5);
      const within = (maxWaitUs: number): Terms => ({ ...AT_ONCE, maxWaitUs });
      expect(await refusal(1, within(100 * MS - 1))).toMatchObject({ reason: 'rate', waitUs: 100 * MS });
      expect(await acquire(1, within(100 * MS))).toMatchObject({ granted: true, waitUs: 100 * MS });
    });

    test('a receipt says when its grant starts, on the clock of all receipts', async () => {
      const { reserve, advanceUs } = await started(calls);
      const first = await reserve(5);
      const second = await reserve(1);
      advanceUs(50 * MS);
      const third = await reserve(1);
      expect(second.receipt.startUs - first.receipt.startUs).toBe(100 * MS);
      expect(third.receipt.startUs - first.receipt.startUs).toBe(200 * MS);
    });

    test('a key that makes a request wait reserves nothing from a limit for all', async () => {
      const { acquire, refusal, remaining } = await started({
        limits: { calls: perSecond(10, { burst: 5 }), shop: perSecond(1, { burst: 1, by: 'shop' }) },
      });
      await acquire(1, AT_ONCE, { shop: 'a' });
      expect(await refusal(1, WHENEVER, { shop: 'a' })).toMatchObject({ limit: 'shop', waitUs: SECOND });
      expect(await remaining({ shop: 'b' })).toEqual([4, 1]);
    });

    test('limits by the same key reserve together', async () => {
      const { acquire, reserve } = await started({
        limits: {
          second: perSecond(1, { burst: 1, by: 'shop' }),
          half: perSecond(2, { burst: 1, by: 'shop' }),
        },
      });
      await acquire(1, AT_ONCE, { shop: 'a' });
      expect(await reserve(1, { shop: 'a' })).toMatchObject({ waitUs: SECOND });
    });
  });

  describe('cancel', () => {
    test('newest first, a batch is given back whole', async () => {
      const { store, acquire, reserve } = await started(calls);
      await acquire(5);
      const batch: Receipt[] = [];
      for (const cost of [1, 3, 2, 1]) batch.push((await reserve(cost)).receipt);
      for (const receipt of batch.reverse()) expect(await store.cancel(receipt)).toBe(true);
      expect(await reserve(1)).toMatchObject({ waitUs: 100 * MS });
    });

    test('after a later grant nothing is given back', async () => {
      const { store, acquire, reserve } = await started(calls);
      await acquire(5);
      const early = await reserve(2);
      await reserve(1);
      expect(await store.cancel(early.receipt)).toBe(false);
      expect(await reserve(1)).toMatchObject({ waitUs: 400 * MS });
    });

    test('at its start and after it a grant is spent', async () => {
      const { store, acquire, reserve, advanceUs } = await started(calls);
      const atOnce = await reserve(1);
      expect(await store.cancel(atOnce.receipt)).toBe(false);
      await acquire(4);
      const later = await reserve(1);
      advanceUs(100 * MS);
      expect(await store.cancel(later.receipt)).toBe(false);
      expect(await reserve(1)).toMatchObject({ waitUs: 100 * MS });
    });

    test('a second cancel of the same grant gives back nothing', async () => {
      const { store, acquire, reserve } = await started(calls);
      await acquire(5);
      const { receipt } = await reserve(2);
      expect(await store.cancel(receipt)).toBe(true);
      expect(await store.cancel(receipt)).toBe(false);
      expect(await reserve(1)).toMatchObject({ waitUs: 100 * MS });
    });

    test('a bucket that was moved forward to a start is moved back', async () => {
      const { store, reserve, remaining } = await started({
        limits: { slow: perSecond(1, { burst: 1 }), fast: perSecond(10, { burst: 5 }) },
      });
      await reserve(1);
      const { receipt } = await reserve(1);
      expect(await remaining()).toEqual([0, 0]);
      expect(await store.cancel(receipt)).toBe(true);
      expect(await remaining()).toEqual([0, 4]);
    });

    test('each bucket answers for itself: where something was granted since, its part is lost', async () => {
      const { store, acquire, reserve, peek } = await started({
        limits: { one: perSecond(10, { burst: 5 }), two: perSecond(10, { burst: 5 }) },
      });
      await acquire(5);
      const { receipt } = await reserve(1);
      await reserve({ one: 1, two: 0 });
      expect(await store.cancel(receipt)).toBe(false);
      expect((await peek()).map(({ sight }) => sight.waitUs)).toEqual([300 * MS, 100 * MS]);
    });
  });

  describe('the line', () => {
    const a = { shop: 'a' };

    test('refused requests get slots one after the other, and charge nothing', async () => {
      const { acquire, refusal, peek } = await started(shops);
      await acquire(1, AT_ONCE, a);
      for (const seconds of [1, 2, 3]) {
        const refusedWith = await refusal(1, OR_SLOT, a);
        expect(refusedWith).toMatchObject({ slotted: true, waitUs: seconds * SECOND });
      }
      const [{ sight } = { sight: undefined }] = await peek(a);
      expect(sight).toMatchObject({
        remaining: 0,
        waitUs: SECOND,
        lineUs: 4 * SECOND,
        granted: 1,
        refused: 3,
      });
    });

    test('who returns at its slot passes; who is new goes behind the line', async () => {
      const { acquire, refusal, advanceUs } = await started(shops);
      await acquire(1, AT_ONCE, a);
      await refusal(1, OR_SLOT, a);
      await refusal(1, OR_SLOT, a);
      advanceUs(SECOND);
      expect(await refusal(1, OR_SLOT, a)).toMatchObject({
        reason: 'line',
        slotted: true,
        waitUs: 2 * SECOND,
      });
      expect(await acquire(1, RETURNING, a)).toMatchObject({ granted: true, waitUs: 0 });
      advanceUs(SECOND);
      expect(await acquire(1, RETURNING, a)).toMatchObject({ granted: true, waitUs: 0 });
      advanceUs(SECOND);
      expect(await acquire(1, RETURNING, a)).toMatchObject({ granted: true, waitUs: 0 });
    });

    test('who returns early keeps its place, or gets a new one at the end if that is too long', async () => {
      const { acquire, refusal, advanceUs } = await started(shops);
      await acquire(1, AT_ONCE, a);
      await refusal(1, OR_SLOT, a);
      advanceUs(700 * MS);
      expect(await refusal(1, RETURNING, a)).toMatchObject({ slotted: false, waitUs: 300 * MS });
      const hasty: Terms = { ...RETURNING, patienceUs: 299 * MS };
      expect(await refusal(1, hasty, a)).toMatchObject({ slotted: true, waitUs: 1_300 * MS });
    });

    test('is forgotten once its bucket was full for a second: that work is not coming', async () => {
      const { acquire, refusal, advanceUs } = await started(shops);
      await acquire(1, AT_ONCE, a);
      for (let deferred = 0; deferred < 10; deferred++) await refusal(1, OR_SLOT, a);
      advanceUs(1_999 * MS);
      expect(await refusal(1, AT_ONCE, a)).toMatchObject({ reason: 'line' });
      advanceUs(MS);
      expect(await acquire(1, AT_ONCE, a)).toMatchObject({ granted: true, waitUs: 0 });
    });

    test('no place is kept for a slot further ahead than asked for', async () => {
      const { acquire, refusal, peek } = await started(shops);
      await acquire(1, AT_ONCE, a);
      const soon: Terms = { ...OR_SLOT, maxSlotUs: SECOND - 1 };
      expect(await refusal(1, soon, a)).toMatchObject({ slotted: false, waitUs: SECOND });
      expect((await peek(a))[0]).toMatchObject({ sight: { lineUs: 0 } });
    });

    test('limits for all give slots only if asked to', async () => {
      const { acquire, refusal } = await started({ limits: { calls: perSecond(1, { burst: 1 }) } });
      await acquire(1);
      expect(await refusal(1, OR_SLOT)).toMatchObject({ slotted: false, waitUs: SECOND });
      const all: Terms = { ...OR_SLOT, slots: 'all' };
      expect(await refusal(1, all)).toMatchObject({ slotted: true, waitUs: SECOND });
      expect(await refusal(1, all)).toMatchObject({ slotted: true, waitUs: 2 * SECOND });
    });

    test('of one key holds up no other', async () => {
      const { acquire, refusal } = await started(shops);
      await acquire(1, AT_ONCE, a);
      for (let deferred = 0; deferred < 10; deferred++) await refusal(1, OR_SLOT, a);
      expect(await acquire(1, AT_ONCE, { shop: 'b' })).toMatchObject({ granted: true, waitUs: 0 });
    });
  });

  describe('force', () => {
    test('takes what is not there, and whoever comes after waits for it', async () => {
      const { store, refusal, reserve } = await started(calls);
      for (let forced = 0; forced < 3; forced++)
        expect(await store.force(ask(5))).toMatchObject({ ahead: false });
      expect(await refusal(1)).toMatchObject({ waitUs: 1_100 * MS });
      expect(await reserve(5)).toMatchObject({ waitUs: 1_500 * MS });
    });

    test('is refused, and takes nothing from any limit, where the debt would no longer be exact', async () => {
      const { store, peek } = await started({
        limits: { calls: perSecond(10, { burst: 26_000 }), day: perDay(1, { burst: 26_000 }) },
      });
      const force = () => store.force(ask(26_000));
      expect(await force()).not.toBeNull();
      expect(await force()).not.toBeNull();
      const before = await peek();
      expect(await force()).toBeNull();
      expect(await peek()).toEqual(before);
    });
  });

  describe('peek', () => {
    test('shows a bucket that was never used as full, and names its limit and bucket', async () => {
      const { peek } = await started({ limits: { ...calls.limits, ...shops.limits } });
      const seen = await peek({ shop: 'a' });
      expect(seen.map(({ leg }) => [leg.limit.name, leg.bucket])).toEqual([
        ['calls', 'calls'],
        ['shop', 'shop:a'],
      ]);
      const untouched = { waitUs: 0, lineUs: 0, pausedUs: 0, granted: 0, refused: 0, effective: 1 };
      expect(seen.map(({ sight }) => sight)).toEqual([
        { remaining: 5, ...untouched },
        { remaining: 1, ...untouched },
      ]);
    });

    test('takes nothing, and no place in a line', async () => {
      const { acquire, peek } = await started(shops);
      await acquire(1);
      const first = await peek();
      for (let looked = 0; looked < 50; looked++) expect(await peek()).toEqual(first);
    });

    test('answers for the cost asked about', async () => {
      const { acquire, peek } = await started(calls);
      await acquire(3);
      expect((await peek(undefined, 5))[0]).toMatchObject({ sight: { remaining: 2, waitUs: 300 * MS } });
    });
  });

  describe('a wrong request', () => {
    const options = { limits: { ...calls.limits, shop: perSecond(1, { burst: 3, by: 'shop' }) } };

    async function expectRejected(cost: unknown, keys: unknown, error: unknown) {
      const { store, remaining } = await started(options);
      const request = { ...ask(), cost: cost as Cost, keys: keys as Keys };
      await expect(store.acquire(request, WHENEVER)).rejects.toThrow(error as Error);
      await expect(store.force(request)).rejects.toThrow(error as Error);
      await expect(store.peek(request, NORMAL)).rejects.toThrow(error as Error);
      expect(await remaining()).toEqual([5, 3]);
    }

    test('with a cost above a burst is told both numbers', async () => {
      const { store } = await started(options);
      const asked = store.acquire(ask(4), WHENEVER);
      await expect(asked).rejects.toMatchObject({ limit: 'shop', cost: 4, burst: 3 });
      await expectRejected(4, undefined, CostExceedsBurstError);
      await expectRejected({ calls: 6, shop: 1 }, undefined, CostExceedsBurstError);
    });

    test.for<[string, unknown]>([
      ['zero', 0],
      ['negative', -1],
      ['a fraction', 0.5],
      ['NaN', Number.NaN],
      ['infinite', Number.POSITIVE_INFINITY],
      ['beyond the exact numbers', 2 ** 53],
      ['text', '1'],
      ['a bigint', 1n],
      ['null', null],
      ['missing', undefined],
      ['a list', [1]],
      ['for a limit that is not there', { callz: 1 }],
      ['negative for one limit', { calls: -1 }],
      ['a fraction for one limit', { calls: 0.5 }],
      ['text for one limit', { calls: '1' }],
      ['zero for every limit', { calls: 0, shop: 0 }],
    ])('whose cost is %s takes nothing', async ([, cost]) =>
      expectRejected(cost, undefined, InvalidOptionError),
    );

    test.for<[string, unknown]>([
      ['an empty text', { shop: '' }],
      ['a text of 257 characters', { shop: 'x'.repeat(257) }],
      ['NaN', { shop: Number.NaN }],
      ['a boolean', { shop: true }],
      ['an object', { shop: {} }],
      ['a list', { shop: ['a'] }],
    ])('with a key that is %s takes nothing', async ([, keys]) =>
      expectRejected(1, keys, InvalidOptionError),
    );

    test.for<[string, unknown]>([
      ['name an unknown attribute', { shpo: 'a' }],
      ['are a text', 'a'],
      ['are a list', ['a']],
      ['are null', null],
      ['are a promise', Promise.resolve({ shop: 'a' })],
    ])('whose keys %s takes nothing', async ([, keys]) => expectRejected(1, keys, InvalidOptionError));

    test('fails alone: those made at the same time are decided', async () => {
      const { store, remaining } = await started(calls);
      const results = await Promise.allSettled([2, 6, 0, 3].map((cost) => store.acquire(ask(cost), AT_ONCE)));
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
      expect(await remaining()).toEqual([0]);
    });
  });

  test('calls are decided, and answered, in the order in which they were made', async () => {
    const { store, acquire, peek } = await started(calls);
    const answered: string[] = [];
    const log =
      (name: string) =>
      <T>(value: T): T => {
        answered.push(name);
        return value;
      };
    const [first, seen, second, third, forced, after] = await Promise.all([
      acquire(2).then(log('first')),
      peek().then(log('seen')),
      acquire(3).then(log('second')),
      acquire(1).then(log('third')),
      store.force(ask()).then(log('forced')),
      peek().then(log('after')),
    ]);
    expect(first).toMatchObject({ granted: true });
    expect(seen[0]).toMatchObject({ sight: { remaining: 3, granted: 2 } });
    expect(second).toMatchObject({ granted: true });
    expect(third).toMatchObject({ granted: false, waitUs: 100 * MS });
    expect(forced).not.toBeNull();
    expect(after[0]).toMatchObject({ sight: { remaining: 0, waitUs: 200 * MS, granted: 6, refused: 1 } });
    // Acquires among themselves and peeks among themselves: how many promises lie behind each kind is a store's own.
    const order = (names: string[]) => answered.filter((name) => names.includes(name));
    expect(order(['first', 'second', 'third'])).toEqual(['first', 'second', 'third']);
    expect(order(['seen', 'after'])).toEqual(['seen', 'after']);
  });

  test('the limits in force are those it was made with, in their order', async () => {
    const { store } = await started({ limits: { ...shops.limits, ...calls.limits } });
    expect(await store.limits()).toMatchObject([
      { name: 'shop', kind: 'rate', by: 'shop', rate: 1, periodUs: 1_000_000, burst: 1 },
      { name: 'calls', kind: 'rate', by: null, rate: 1, periodUs: 100_000, burst: 5 },
    ]);
  });

  describe('a cold start', () => {
    test('with full buckets lets the burst pass', async () => {
      const { acquire } = await started({ ...calls, coldStart: 'full' });
      expect(await acquire(5)).toMatchObject({ granted: true, waitUs: 0 });
    });

    test('with empty buckets lets nothing pass until tokens have come', async () => {
      const { acquire, refusal, advanceUs } = await started({ ...calls, coldStart: 'empty' });
      expect(await refusal(1)).toMatchObject({ reason: 'rate', waitUs: 100 * MS });
      advanceUs(200 * MS);
      expect(await acquire(2)).toMatchObject({ granted: true });
      expect(await refusal(1)).toMatchObject({ waitUs: 100 * MS });
    });

    test('counts from the start, not from the first use of a key', async () => {
      const { remaining, advanceUs } = await started({
        limits: { shop: perSecond(10, { burst: 5, by: 'shop' }) },
        coldStart: 'empty',
      });
      advanceUs(300 * MS);
      expect(await remaining({ shop: 'late' })).toEqual([3]);
      advanceUs(10 * SECOND);
      expect(await remaining({ shop: 'later' })).toEqual([5]);
    });
  });

  describe('after close', () => {
    test('every call rejects with a GovernorClosedError', async () => {
      const { store, reserve } = await started(calls);
      await reserve(5);
      const { receipt } = await reserve(1);
      await store.close();
      const request = ask();
      const all = [
        store.acquire(request, AT_ONCE),
        store.force(request),
        store.cancel(receipt),
        store.peek(request, NORMAL),
        store.limits(),
      ];
      for (const call of await Promise.allSettled(all)) {
        expect(call).toMatchObject({ status: 'rejected', reason: expect.any(GovernorClosedError) });
      }
    });

    test('closing once more is harmless', async () => {
      const { store } = await started(calls);
      await Promise.all([store.close(), store.close()]);
      await store.close();
    });
  });
}

function granted(verdict: Verdict) {
  if (verdict.granted) return verdict;
  throw new Error(`expected a grant, was refused by "${verdict.limit.name}" for ${verdict.waitUs} µs`);
}

function refused(verdict: Verdict) {
  if (verdict.granted) throw new Error(`expected a refusal, was granted with a wait of ${verdict.waitUs} µs`);
  const { limit, reason, waitUs, slotted } = verdict;
  return { limit: limit.name, reason, waitUs, slotted };
}
