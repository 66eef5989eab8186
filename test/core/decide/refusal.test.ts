import { describe, expect, it } from 'vitest';
import { perDay, perMinute, perSecond } from '../../../src/core/limits/rate.ts';
import { S, World } from '../../support/world.ts';

const tenant = (name: string) => ({ keys: { tenant: name } });

describe('a refusal', () => {
  // https://github.com/animir/node-rate-limiter-flexible/issues/286: of ten, eight were refused and counted all the same.
  // https://github.com/upstash/ratelimit-js/issues/95: so was a cost that could not pass.
  it('takes nothing, however often it comes and however much it asks for', () => {
    const world = new World({ calls: perSecond(1, { burst: 10 }) });
    world.acquire(0, { cost: 4 });
    for (let n = 0; n < 1_000; n++) expect(world.allows(0, { cost: 7 })).toBe(false);
    for (let n = 0; n < 1_000; n++) expect(() => world.acquire(0, { cost: 11 })).toThrow();
    expect(world.peek(0)).toMatchObject([{ remaining: 6, refused: 1_000 }]);
    expect(world.allows(0, { cost: 6 })).toBe(true);
  });

  // https://github.com/golang/go/issues/52584: a reservation that failed made the next one wait longer.
  it('makes nobody wait longer who asks after it', () => {
    const world = new World({ calls: perSecond(10, { burst: 2 }) });
    world.acquire(0, { cost: 2 });
    for (let n = 0; n < 100; n++) expect(world.allows(0, { cost: 2, maxWaitUs: 0.1 * S })).toBe(false);
    expect(world.reserve(0).startUs).toBe(0.1 * S);
  });

  // https://github.com/envoyproxy/envoy/issues/43113: it could not be told which of several had refused.
  it('names its limit, and the time after which all of them have room', () => {
    const world = new World({
      calls: perSecond(10, { burst: 5 }),
      tenant: perMinute(60, { burst: 2, by: 'tenant' }),
      daily: perDay(100, { burst: 100 }),
    });
    for (let n = 0; n < 2; n++) world.acquire(0, tenant('a'));
    expect(world.acquire(0, tenant('a'))).toMatchObject({ limit: { name: 'tenant' }, waitUs: 1 * S });
    for (let n = 0; n < 3; n++) world.acquire(0, tenant(`b${n}`));
    // `calls` is short of a token too, but only for a tenth of the time.
    expect(world.acquire(0, tenant('a'))).toMatchObject({ limit: { name: 'tenant' }, waitUs: 1 * S });
    expect(world.acquire(0, tenant('c'))).toMatchObject({ limit: { name: 'calls' }, waitUs: 0.1 * S });
    expect(world.allows(1 * S, tenant('a'))).toBe(true);
  });
});

// https://github.com/laravel/framework/pull/61449: the global limit was charged, then the tenant's refused; one tenant drained
// it for all. https://github.com/animir/node-rate-limiter-flexible/issues/280: one admitted, twenty refused, all counted.
it('charges no limit when another of the same request refuses: one tenant cannot drain the rest', () => {
  for (const order of ['global first', 'tenant first']) {
    const global = { global: perMinute(100, { burst: 100 }) };
    const perTenant = { tenant: perSecond(1, { burst: 1, by: 'tenant' }) };
    const world = new World(
      order === 'global first' ? { ...global, ...perTenant } : { ...perTenant, ...global },
    );
    expect(world.allows(0, tenant('greedy'))).toBe(true);
    for (let n = 0; n < 10_000; n++) expect(world.allows(0, tenant('greedy'))).toBe(false);
    for (let n = 0; n < 1_000; n++) world.takeTurn(0, tenant('greedy'));
    expect(world.buckets.get('global')).toMatchObject({ granted: 1 });
    for (let n = 0; n < 99; n++) expect(world.allows(0, tenant(`other-${n}`))).toBe(true);
    expect(world.acquire(0, tenant('last'))).toMatchObject({ granted: false, limit: { name: 'global' } });
  }
});

// https://github.com/OptimalBits/bull/issues/1035: a job of n calls counted as one.
it('takes a cost from each job’s own data', () => {
  const world = new World({ calls: perSecond(250, { burst: 250 }) });
  let granted = 0;
  for (const calls of [100, 100, 100, 50, 1]) if (world.allows(0, { cost: calls })) granted += calls;
  expect(granted).toBe(250);
  expect(() => world.acquire(0, { cost: 251 })).toThrow('cost 251 exceeds the burst 250 of limit "calls"');
});

// https://github.com/upstash/ratelimit-js/issues/39: a limit of one never let anything pass.
it('lets one pass where one may', () => {
  const world = new World({ calls: { rate: 1, periodMs: 1, burst: 1 } });
  expect([0, 1, 999, 1_000].map((atUs) => world.allows(atUs))).toEqual([true, false, false, true]);
});
