import { describe, expect, test } from 'vitest';
import { GovernorClosedError } from '../../../src/core/errors.ts';
import { perDay, perSecond } from '../../../src/core/limits/rate.ts';
import { calls, type Make, MS, shops, started } from '../support/made.ts';
import { AT_ONCE, ask, NORMAL } from '../support/terms.ts';
import { slotsContract } from './concurrency.ts';
import { configurationContract } from './configuration.ts';
import { deferralsContract } from './deferrals.ts';
import { lineContract } from './line.ts';
import { mixturesContract } from './mixtures.ts';
import { pausesContract } from './pauses.ts';
import { ratesContract } from './rates.ts';
import { reservationsContract } from './reservations.ts';
import { tokensContract } from './tokens.ts';
import { windowsContract } from './windows.ts';
import { wrongRequestsContract } from './wrong-requests.ts';

/** What every store does, whatever it is made of. `make` gives one that nothing has happened to yet. */
export function storeContract(make: Make): void {
  tokensContract(make);
  reservationsContract(make);
  lineContract(make);
  ratesContract(make);
  windowsContract(make);
  slotsContract(make);
  pausesContract(make);
  mixturesContract(make);
  wrongRequestsContract(make);
  configurationContract(make);
  deferralsContract(make);

  describe('force', () => {
    test('takes what is not there, and whoever comes after waits for it', async () => {
      const { store, refusal, reserve } = await started(make, calls);
      for (let forced = 0; forced < 3; forced++)
        expect(await store.force(ask(5))).toMatchObject({ ahead: false });
      expect(await refusal(1)).toMatchObject({ waitUs: 1_100 * MS });
      expect(await reserve(5)).toMatchObject({ waitUs: 1_500 * MS });
    });

    test('is refused, and takes nothing from any limit, where the debt would no longer be exact', async () => {
      const { store, peek } = await started(make, {
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
      const { peek } = await started(make, { limits: { ...calls.limits, ...shops.limits } });
      const seen = await peek({ keys: { shop: 'a' } });
      expect(seen.map(({ demand }) => [demand.limit.name, demand.bucket])).toEqual([
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
      const { acquire, peek } = await started(make, shops);
      await acquire(1);
      const first = await peek();
      for (let looked = 0; looked < 50; looked++) expect(await peek()).toEqual(first);
    });

    test('answers for the cost asked about', async () => {
      const { acquire, peek } = await started(make, calls);
      await acquire(3);
      expect((await peek({ cost: 5 }))[0]).toMatchObject({ sight: { remaining: 2, waitUs: 300 * MS } });
    });
  });

  test('calls are decided, and answered, in the order in which they were made', async () => {
    const { store, acquire, peek } = await started(make, calls);
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
    const { store } = await started(make, { limits: { ...shops.limits, ...calls.limits } });
    expect(await store.limits()).toMatchObject([
      { name: 'shop', kind: 'rate', by: 'shop', rate: 1, periodUs: 1_000_000, burst: 1 },
      { name: 'calls', kind: 'rate', by: null, rate: 1, periodUs: 100_000, burst: 5 },
    ]);
  });

  describe('after close', () => {
    test('every call rejects with a GovernorClosedError', async () => {
      const { store, reserve } = await started(make, calls);
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
      const { store } = await started(make, calls);
      await Promise.all([store.close(), store.close()]);
      await store.close();
    });
  });
}
