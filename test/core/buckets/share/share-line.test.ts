import { describe, expect, it } from 'vitest';
import { perSecond } from '../../../../src/core/limits/rate.ts';
import { World } from '../../../support/world.ts';

const MS = 1_000;
/** Ten a second for all tenants. */
const tenants = (burst: number): World =>
  new World({ calls: perSecond(10, { by: 'tenant', fair: true, burst }) });
const flood = { keys: { tenant: 'flood' } };
const other = { keys: { tenant: 'other' } };
/** As a worker asks that reserves for 0.2 s at the most, and takes a slot otherwise. */
const worker = { maxWaitUs: 200 * MS, maxTurnUs: Number.MAX_SAFE_INTEGER };

describe('who would wait for too long to reserve at a fair limit', () => {
  it('has slots in the line of its own key, one after the other, and nobody else waits for those', () => {
    const world = tenants(1);
    expect(world.acquire(0, { ...worker, ...flood })).toMatchObject({ granted: true, waitUs: 0 });
    expect(world.acquire(0, { ...worker, ...flood })).toMatchObject({ granted: true, waitUs: 100 * MS });
    for (let n = 2; n < 6; n++) {
      const verdict = world.acquire(0, { ...worker, ...flood });
      expect(verdict).toMatchObject({ granted: false, by: 'tenant', hasTurn: true });
      expect(verdict.waitUs).toBeGreaterThanOrEqual(n * 100 * MS);
    }
    expect(world.acquire(0, { ...worker, ...other })).toMatchObject({ granted: true, waitUs: 200 * MS });
  });

  it('is not told of its share if the limit itself is empty and it takes no slot', () => {
    const world = tenants(1);
    world.acquire(0, flood);
    expect(world.acquire(0, flood)).toMatchObject({
      granted: false,
      by: null,
      reason: 'rate',
      waitUs: 100 * MS,
    });
  });
});

describe('who comes back from a slot that was given when its share was larger', () => {
  /** The flood has had some tokens alone; then another tenant comes and has its half. */
  const crowded = (): World => {
    const world = tenants(1);
    for (let n = 0; n < 6; n++) world.acquire(0, { ...worker, ...flood });
    for (const atMs of [150, 300]) world.acquire(atMs * MS, { ...worker, ...other });
    for (const atMs of [300, 350]) world.acquire(atMs * MS, back);
    return world;
  };
  const back = { ...worker, ...flood, returning: true };

  it('has a new slot at the end of the line if it is not the next', () => {
    const world = crowded();
    const first = world.acquire(400 * MS, back);
    const second = world.acquire(400 * MS, back);
    expect(first).toMatchObject({ granted: false, reason: 'share', hasTurn: true });
    expect(second).toMatchObject({ granted: false, reason: 'share', hasTurn: true });
    // At the pace that its share has now.
    expect(second.waitUs - first.waitUs).toBeGreaterThanOrEqual(180 * MS);
  });

  it('keeps its place if it is', () => {
    const verdict = crowded().acquire(510 * MS, back);
    expect(verdict).toMatchObject({ granted: false, reason: 'share', hasTurn: false, waitUs: 90 * MS });
  });
});

it('a fresh request passes the line of a share that owes nothing, since those of the line have not come for it', () => {
  const world = tenants(1);
  for (let n = 0; n < 6; n++) world.acquire(0, { ...worker, ...flood });
  world.acquire(150 * MS, { ...worker, ...other });
  expect(world.acquire(160 * MS, { ...worker, ...flood })).toMatchObject({ granted: false, reason: 'line' });
  world.acquire(300 * MS, { ...worker, ...other });
  expect(world.acquire(450 * MS, { ...worker, ...flood })).toMatchObject({ granted: true });
  expect(world.acquire(450 * MS, { ...worker, ...flood })).toMatchObject({ granted: false, reason: 'line' });
});

it('a share keeps the token of one that comes late from its slot', () => {
  const world = tenants(3);
  const startsAt = (atMs: number, keys: object) => world.allows(atMs * MS, { ...keys, returning: true });
  // Both use their half, and leave nothing to spare.
  for (let n = 0; n < 2; n++) startsAt(0, n % 2 === 0 ? flood : other);
  for (let atMs = 200; atMs < 2_000; atMs += 200) {
    startsAt(atMs, flood);
    startsAt(atMs, other);
  }
  // Due at 2,000 and 2,200, and both late.
  startsAt(2_000, other);
  startsAt(2_200, other);
  expect([startsAt(2_300, flood), startsAt(2_300, flood)]).toEqual([true, true]);
});
