import { describe, expect, test, vi } from 'vitest';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { governed, outcome, startsOf } from '../support/governed.ts';
import { processes, seenAs } from '../support/processes.ts';

const range = (count: number) => Array.from({ length: count }, (_, index) => index);
const slots = (max: number, leaseMs = 3_000) => ({ work: { kind: 'concurrency' as const, max, leaseMs } });

type Parts = ReturnType<typeof governed>;

/** Waits for a slot, holds it for so long, and gives it back. */
async function hold({ governor, clock }: Pick<Parts, 'governor' | 'clock'>, ms: number, cost = 1) {
  const grant = await governor.waitN({ work: cost });
  clock.timer(ms, () => void grant.release());
  return grant;
}

describe('who waits for a slot', () => {
  test('gets it when it is given back, in the order in which they came', async () => {
    const parts = governed(slots(2));
    const { starts, done } = startsOf(parts.clock, range(10), () => hold(parts, 100));
    await parts.clock.advance(500);
    await done;
    expect(starts.map(({ item }) => item)).toEqual(range(10));
    expect(starts.map(({ atMs }) => atMs)).toEqual(range(10).map((n) => Math.floor(n / 2) * 100));
  });

  test('is told how long it waited, and its fencing number is higher than that of all before', async () => {
    const parts = governed(slots(1));
    const grants = Promise.all(range(5).map(() => hold(parts, 250)));
    await parts.clock.advance(5 * 250);
    const all = await grants;
    expect(all.map(({ waitedMs }) => waitedMs)).toEqual([0, 250, 500, 750, 1_000]);
    const fences = all.map(({ fence }) => fence!);
    expect(fences).toEqual([...fences].sort((a, b) => a - b));
    expect(new Set(fences).size).toBe(5);
  });

  test('for many is not starved by those who wait for one', async () => {
    const parts = governed(slots(4));
    const costs = [1, 1, 1, 4, 1, 1, 1];
    const { starts, done } = startsOf(parts.clock, costs, (cost) => hold(parts, 100, cost));
    await parts.clock.advance(1_000);
    await done;
    expect(starts.map(({ item }) => item)).toEqual(costs);
    expect(starts.map(({ atMs }) => atMs)).toEqual([0, 0, 0, 100, 200, 200, 200]);
  });

  test('of one key waits for nobody of another', async () => {
    const { governor, clock } = governed({ work: { ...slots(1).work, by: 'shop' } });
    const first = await governor.wait({ keys: { shop: 'a' } });
    const waits = outcome(governor.wait({ keys: { shop: 'a' } }));
    const other = outcome(governor.wait({ keys: { shop: 'b' } }));
    await clock.advance(10);
    expect([waits.state, other.state]).toEqual(['pending', 'resolved']);
    await first.release();
    await clock.advance(0);
    expect(waits.state).toBe('resolved');
    await governor.close();
  });

  test('and is aborted leaves the queue: whoever is behind it does not wait for it', async () => {
    const { governor, clock } = governed(slots(1));
    const holder = await governor.wait();
    const abort = new AbortController();
    const first = outcome(governor.wait({ signal: abort.signal }));
    await clock.advance(0);
    const second = outcome(governor.wait());
    await clock.advance(0);
    abort.abort('enough');
    await clock.advance(0);
    expect(first).toEqual({ state: 'rejected', value: 'enough' });
    expect(await holder.release()).toBe(true);
    await clock.advance(0);
    expect(second.state).toBe('resolved');
    await governor.close();
  });

  test('no longer than maxWaitMs: then it leaves the queue, and takes no slot that comes free later', async () => {
    const { governor, clock } = governed(slots(1, 60_000));
    const holder = await governor.wait();
    const late = outcome(governor.wait({ maxWaitMs: 2_500 }));
    await clock.advance(2_499);
    expect(late.state).toBe('pending');
    await clock.advance(1);
    expect(late).toMatchObject({ state: 'rejected', value: { code: 'FLYBALL_WAIT_TOO_LONG' } });
    await holder.release();
    await clock.advance(0);
    expect(await governor.allow()).toMatchObject({ allowed: true });
    await governor.close();
  });

  test('with maxWaitMs of 0 does not wait', async () => {
    const { governor, clock } = governed(slots(1));
    const holder = await governor.wait({ maxWaitMs: 0 });
    await expect(governor.wait({ maxWaitMs: 0 })).rejects.toMatchObject({ code: 'FLYBALL_WAIT_TOO_LONG' });
    await holder.release();
    expect(clock.pending).toBe(0);
  });

  test('gets that of a holder that died, one lease after its last renewal', async () => {
    const { clock, store, start } = processes(slots(1, 3_000));
    const dead = start();
    const alive = start();
    await dead.wait();
    const { starts } = startsOf(clock, [0], () => alive.wait());
    await clock.advance(4_000);
    expect(starts).toEqual([]);
    // It ends without a word: its store's door is shut, not the store.
    vi.spyOn(store, 'close').mockResolvedValueOnce();
    await dead.close();
    await clock.advance(3_000);
    expect(starts).toHaveLength(1);
    expect(starts[0]!.atMs).toBeLessThanOrEqual(7_000);
  });

  test('is woken in another process too', async () => {
    const { clock, start } = processes(slots(1));
    const [first, second] = [start(), start()];
    const grant = await first.wait();
    const waits = outcome(second.wait());
    await clock.advance(10);
    await grant.release();
    await clock.advance(0);
    expect(waits.state).toBe('resolved');
  });

  // A message that is lost costs a second at the most.
  test('asks again within a second if nothing wakes it', async () => {
    const { clock, store, start } = processes(slots(1));
    const deaf = start(seenAs(store, { subscribe: () => () => {} }));
    const grant = await start().wait();
    const waits = outcome(deaf.wait());
    await clock.advance(10);
    await grant.release();
    await clock.advance(1_000);
    expect(waits.state).toBe('resolved');
  });

  // The message may come while the call that it concerns asks once more.
  test('and is woken while it asks does not sleep over it', async () => {
    const { clock, store, start } = processes(slots(1, 60_000));
    const first = await start().wait();
    let asks = 0;
    let meanwhile: (() => Promise<unknown>) | undefined;
    const slow = start(
      seenAs(store, {
        acquire: async (request, terms) => {
          asks += 1;
          const verdict = await store.acquire(request, terms);
          await meanwhile?.();
          meanwhile = undefined;
          return verdict;
        },
      }),
    );
    const { starts } = startsOf(clock, [0], () => slow.wait());
    await clock.advance(1_500);
    const asked = asks;
    // At its next question: refused, and the slot comes free before it knows.
    meanwhile = () => first.release();
    await clock.advance(600);
    expect(asks).toBeGreaterThan(asked);
    expect(starts).toEqual([{ item: 0, atMs: 2_000 }]);
  });

  test('and for a token too waits for the token outside of the queue', async () => {
    const { governor, clock } = governed({ calls: perSecond(1, { burst: 1 }), ...slots(1) });
    await governor.waitN({ calls: 1, work: 0 });
    const waits = outcome(governor.wait());
    await clock.advance(10);
    expect(await governor.waitN({ calls: 0, work: 1 })).toMatchObject({ waitedMs: 0 });
    await governor.close();
    await clock.advance(0);
    expect(waits.state).toBe('rejected');
  });
});

describe('a grant with a slot', () => {
  test('is given back once', async () => {
    const { governor, clock } = governed(slots(1));
    const grant = await governor.wait();
    expect([await grant.release(), await grant.release()]).toEqual([true, true]);
    const second = await governor.wait();
    expect(await grant.release()).toBe(true);
    expect(await governor.allow()).toMatchObject({ allowed: false });
    await second.release();
    expect(clock.pending).toBe(0);
  });

  test('of the same holder takes the slot over; the earlier grant has lost it', async () => {
    const { governor, clock } = governed(slots(1));
    const [first, second] = [await governor.wait({ holder: 'job' }), await governor.wait({ holder: 'job' })];
    expect(second.fence!).toBeGreaterThan(first.fence!);
    const { signal } = first;
    await clock.advance(1_000);
    expect([signal.aborted, second.signal.aborted]).toEqual([true, false]);
    expect(await first.release()).toBe(false);
    expect(await governor.allow()).toMatchObject({ allowed: false });
    expect(await second.release()).toBe(true);
  });

  test('has no fencing number where no limit is one of slots', async () => {
    const { governor } = governed({ calls: perSecond(10) });
    const grant = await governor.wait();
    expect(grant.fence).toBeNull();
    expect([await grant.release(), grant.signal.aborted]).toEqual([true, false]);
  });

  test('that is granted while the governor closes is kept by nobody', async () => {
    const { governor, clock } = governed(slots(1, 20_000));
    const asked = outcome(governor.allow());
    await governor.close();
    await clock.advance(0);
    expect(asked.state).not.toBe('pending');
  });
});
