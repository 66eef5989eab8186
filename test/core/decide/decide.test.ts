import { describe, expect, it } from 'vitest';
import { MAX_DEBT_UNITS } from '../../../src/core/buckets/constants.ts';
import type { RateState } from '../../../src/core/buckets/rate/index.ts';
import { perDay, perHour, perSecond } from '../../../src/core/limits/rate.ts';
import { S, World, ZERO_US } from '../../support/world.ts';

const FOR_EVER = Number.MAX_SAFE_INTEGER;
const acme = { keys: { shop: 'acme' } };

describe('several limits at once', () => {
  it('grant only together, and the refusal names the one that has longest to wait', () => {
    const world = new World({
      second: perSecond(10, { burst: 2 }),
      minute: { rate: 3, periodMs: 60_000, burst: 3 },
    });
    const table: [atUs: number, refusedBy: string | null, waitUs: number][] = [
      [0, null, 0],
      [0, null, 0],
      [0, 'second', 0.1 * S],
      [0.1 * S, null, 0],
      [0.2 * S, 'minute', 19.8 * S],
      [20 * S - 1, 'minute', 1],
      [20 * S, null, 0],
      // Both are short of a token: the minute's for longer.
      [20 * S, 'minute', 20 * S],
    ];
    for (const [atUs, refusedBy, waitUs] of table) {
      const verdict = world.acquire(atUs);
      const by = verdict.granted ? null : verdict.limit.name;
      expect({ atUs, by, waitUs: verdict.waitUs }).toEqual({ atUs, by: refusedBy, waitUs });
    }
  });

  it('are each charged their own cost, and not at all where it is 0', () => {
    const world = new World({ calls: perSecond(10), bytes: perSecond(1_000), daily: perDay(100) });
    world.acquire(0, { cost: { calls: 1, bytes: 250, daily: 0 } });
    expect(world.peek(0).map(({ remaining }) => remaining)).toEqual([9, 750, 1]);
  });

  it('start together, when the last of them has room', () => {
    const world = new World({ slow: perSecond(1, { burst: 1 }), fast: perSecond(100, { burst: 1 }) });
    expect([0, 1, 2, 3].map(() => world.reserve(0).startUs)).toEqual([0, 1 * S, 2 * S, 3 * S]);
    // The fast one was moved forward to the start at 3 s: nobody may use the time before it twice.
    expect(world.acquire(0, { cost: { slow: 0, fast: 1 } })).toMatchObject({
      granted: false,
      waitUs: 3.01 * S,
    });
  });

  it('leave no state where a refused request found none', () => {
    const world = new World({ one: perSecond(10, { burst: 1 }), two: perSecond(10, { burst: 2 }) });
    world.acquire(0, { cost: { one: 1, two: 0 } });
    expect(world.allows(0)).toBe(false);
    expect([...world.buckets.keys()]).toEqual(['one']);
  });
});

describe('who may reserve', () => {
  const keyed = () =>
    new World({ all: perSecond(100, { burst: 100 }), shop: perSecond(1, { burst: 1, by: 'shop' }) });

  it('is not who waits for a key while a governor-wide limit is in the request', () => {
    const world = keyed();
    world.acquire(0, acme);
    expect(world.acquire(0, { ...acme, maxWaitUs: FOR_EVER })).toMatchObject({
      granted: false,
      reason: 'rate',
      limit: { name: 'shop' },
      waitUs: 1 * S,
    });
    expect(world.buckets.get('all')).toMatchObject({ granted: 1 });
  });

  it('is who waits for the governor-wide limit, whatever the key holds', () => {
    const world = new World({
      all: perSecond(1, { burst: 1 }),
      shop: perSecond(100, { burst: 1, by: 'shop' }),
    });
    world.acquire(0, acme);
    expect(world.reserve(0, acme).startUs).toBe(1 * S);
  });

  it('is who waits for both alike: of equals, the governor-wide one binds', () => {
    for (const limits of [
      { all: perSecond(2, { burst: 1 }), shop: perSecond(2, { burst: 1, by: 'shop' }) },
      { shop: perSecond(2, { burst: 1, by: 'shop' }), all: perSecond(2, { burst: 1 }) },
    ]) {
      const world = new World(limits);
      world.acquire(0, acme);
      expect(world.acquire(0, acme)).toMatchObject({ granted: false, limit: { name: 'all' } });
      expect(world.reserve(0, acme).startUs).toBe(0.5 * S);
    }
  });

  it('is who leaves the governor-wide limit out', () => {
    const world = keyed();
    world.acquire(0, acme);
    expect(world.reserve(0, { ...acme, cost: { all: 0 } }).startUs).toBe(1 * S);
  });

  it('is who waits for one of several limits of the same attribute', () => {
    const world = new World({
      shop: perSecond(1, { burst: 1, by: 'shop' }),
      daily: perDay(1_000, { burst: 1_000, by: 'shop' }),
    });
    world.acquire(0, acme);
    expect(world.reserve(0, acme).startUs).toBe(1 * S);
  });

  it('is not who waits for one attribute while another is in the request: either may be the wider', () => {
    const world = new World({
      shop: perSecond(1, { burst: 1, by: 'shop' }),
      user: perSecond(100, { burst: 100, by: 'user' }),
    });
    const keys = { shop: 'acme', user: 'x' };
    world.acquire(0, { keys });
    expect(world.acquire(0, { keys, maxWaitUs: FOR_EVER })).toMatchObject({
      granted: false,
      limit: { name: 'shop' },
    });
  });
});

describe('the longest wait', () => {
  it('is met to the microsecond', () => {
    const world = new World({ calls: perSecond(10, { burst: 1 }) });
    world.acquire(0);
    expect(world.acquire(0, { maxWaitUs: 100_000 - 1 })).toMatchObject({ granted: false, waitUs: 100_000 });
    expect(world.acquire(0, { maxWaitUs: 100_000 })).toMatchObject({ granted: true, waitUs: 100_000 });
  });

  it('is counted from the store’s now, with the time for which a stepped clock stands still', () => {
    const world = new World({ calls: perSecond(10, { burst: 1 }) });
    world.acquire(5 * S);
    expect(world.acquire(4.5 * S)).toMatchObject({ granted: false, waitUs: 0.6 * S });
    expect(world.allows(5.1 * S - 1)).toBe(false);
    expect(world.allows(5.1 * S)).toBe(true);
  });
});

describe('a start too far ahead to be exact', () => {
  it('is refused with the time after which it can be asked for, and nothing is charged', () => {
    const world = new World({
      slow: perHour(1, { burst: 1 }),
      fast: { rate: 10_000_000, periodMs: 0.001, burst: 1 },
    });
    world.reserve(0);
    const verdict = world.acquire(0, { maxWaitUs: FOR_EVER });
    expect(verdict).toMatchObject({ granted: false, reason: 'horizon', waitUs: 3_600 * S, hasTurn: false });
    expect(world.allows(3_600 * S)).toBe(true);
    for (const bucket of world.buckets.values())
      expect((bucket as RateState).debt).toBeLessThan(MAX_DEBT_UNITS);
  });
});

describe('force', () => {
  it('charges at once, and who comes after waits until it has drained', () => {
    const world = new World({ calls: perSecond(10, { burst: 2 }) });
    for (let n = 0; n < 5; n++) expect(world.force(0, { cost: 2 })).not.toBeNull();
    expect(world.acquire(0)).toMatchObject({ granted: false, waitUs: 0.9 * S });
    expect(world.allows(0.9 * S)).toBe(true);
  });

  it('charges all limits or none', () => {
    const world = new World({ calls: perSecond(10, { burst: 10 }), daily: perDay(1, { burst: 1 }) });
    let forced = 0;
    while (world.force(0)) forced += 1;
    // A token a day is 86,400,000,000 units: this many fit into what a double holds exactly.
    expect(forced).toBe(Math.floor(MAX_DEBT_UNITS / 86_400_000_000));
    expect(world.peek(0).map(({ granted }) => granted)).toEqual([forced, forced]);
  });
});

describe('cancel', () => {
  it('does nothing once the start has come', () => {
    const world = new World({ calls: perSecond(10, { burst: 1 }) });
    world.acquire(0);
    const { receipt } = world.reserve(0);
    expect(world.cancel(0.1 * S, receipt)).toBe(false);
    expect(world.acquire(0.1 * S)).toMatchObject({ granted: false, waitUs: 0.1 * S });
    const at = world.reserve(0.1 * S).receipt;
    expect(world.cancel(0.2 * S - 1, at)).toBe(true);
    expect(world.allows(0.2 * S)).toBe(true);
  });

  it('gives back what can be, bucket by bucket, and tells whether that was all', () => {
    const world = new World({
      all: perSecond(1, { burst: 1 }),
      shop: perSecond(1, { burst: 1, by: 'shop' }),
    });
    world.acquire(0, acme);
    const first = world.reserve(0, acme).receipt;
    const other = world.reserve(0, { keys: { shop: 'other' } }).receipt;
    // Since then something was granted from `all`, nothing from acme's own bucket.
    expect(world.cancel(0, first)).toBe(false);
    expect(world.peek(0, acme).map(({ granted }) => granted)).toEqual([3, 1]);
    expect(world.cancel(0, other)).toBe(true);
    expect(world.peek(0, acme).map(({ granted }) => granted)).toEqual([2, 1]);
  });

  it('leaves a batch that is cancelled newest first as if it had never been', () => {
    const world = new World({ slow: perSecond(1, { burst: 1 }), fast: perSecond(1_000, { burst: 1_000 }) });
    world.acquire(0);
    const before = structuredClone([...world.buckets]);
    const batch = Array.from({ length: 100 }, () => world.reserve(0).receipt);
    for (const receipt of batch.reverse()) expect(world.cancel(0, receipt)).toBe(true);
    // But for the latest start that was ever promised: nothing is given back by `settle` before it.
    const lastUs = ZERO_US + 100 * S;
    expect([...world.buckets]).toEqual(before.map(([name, bucket]) => [name, { ...bucket, lastUs }]));
  });

  it('finds nothing to give back when the state has gone', () => {
    const world = new World({ calls: perSecond(10, { burst: 1 }) });
    world.acquire(0);
    const { receipt } = world.reserve(0);
    world.buckets.clear();
    expect(world.cancel(0, receipt)).toBe(false);
    expect(world.buckets.size).toBe(0);
  });
});

describe('peek', () => {
  it('sees what a request would meet, and takes nothing', () => {
    const world = new World({
      all: perSecond(10, { burst: 3 }),
      shop: perSecond(2, { burst: 1, by: 'shop' }),
    });
    world.acquire(0, acme);
    world.takeTurn(0, acme);
    const before = structuredClone([...world.buckets]);
    expect(world.peek(0.1 * S, acme)).toEqual([
      { remaining: 3, waitUs: 0, lineUs: 0, pausedUs: 0, granted: 1, refused: 0, effective: 1 },
      { remaining: 0, waitUs: 0.4 * S, lineUs: 0.9 * S, pausedUs: 0, granted: 1, refused: 1, effective: 1 },
    ]);
    expect([...world.buckets]).toEqual(before);
    expect(world.peek(0, { keys: { shop: 'new' } })[1]).toMatchObject({ remaining: 1, granted: 0 });
    expect(world.buckets.size).toBe(2);
  });
});
