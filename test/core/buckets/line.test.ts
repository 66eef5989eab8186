import { describe, expect, it } from 'vitest';
import { LINE_GRACE_US } from '../../../src/core/buckets/constants.ts';
import { perSecond } from '../../../src/core/limits/rate.ts';
import { S, World } from '../../support/world.ts';

/** Two a second for each shop, one at once, behind a governor-wide limit that never binds here. */
function shops(): World {
  return new World({
    all: perSecond(1_000_000, { burst: 1_000_000 }),
    shop: perSecond(2, { burst: 1, by: 'shop' }),
  });
}
const acme = { keys: { shop: 'acme' } };
const other = { keys: { shop: 'other' } };
const LINE = 'shop:acme';

describe('the line of a key', () => {
  it('gives slots one by one and in order, half a second apart at two a second', () => {
    const world = shops();
    expect(world.allows(0, acme)).toBe(true);
    const slots = [0, 1, 2, 3, 400_000].map((atUs) => world.takeTurn(atUs, acme));
    expect(slots).toEqual([0.5 * S, 1 * S, 1.5 * S, 2 * S, 2.5 * S]);
    expect(world.lineEnd(LINE)).toBe(3 * S);
  });

  it('moves on by what a job costs', () => {
    const world = new World({ shop: perSecond(2, { burst: 10, by: 'shop' }) });
    world.reserve(0, { ...acme, cost: 10 });
    expect(world.takeTurn(0, { ...acme, cost: 10 })).toBe(5 * S);
    expect(world.takeTurn(0, { ...acme, cost: 1 })).toBe(10 * S);
    expect(world.lineEnd(LINE)).toBe(10.5 * S);
  });

  it('charges nothing', () => {
    const world = shops();
    world.acquire(0, acme);
    for (let n = 0; n < 100; n++) world.takeTurn(0, acme);
    expect(world.buckets.get(LINE)).toMatchObject({ granted: 1, refused: 100 });
    expect(world.buckets.get('all')).toMatchObject({ granted: 1, debt: 1 });
  });

  it('is of that key alone', () => {
    const world = shops();
    world.acquire(0, acme);
    for (let n = 0; n < 100; n++) world.takeTurn(0, acme);
    expect(world.allows(0, other)).toBe(true);
  });

  it('lets everyone in who comes back at his slot, and so gives the rate', () => {
    const world = shops();
    world.acquire(0, acme);
    const slots = Array.from({ length: 50 }, () => world.takeTurn(0, acme));
    for (const slot of slots) expect(world.allows(slot, { ...acme, returning: true })).toBe(true);
    expect(slots.at(-1)).toBe(25 * S);
    // The last is through when the line ends, and the next fresh one has room.
    expect(world.allows(25.5 * S, acme)).toBe(true);
  });
});

describe('who may pass', () => {
  it('is not a fresh request, even while the bucket has room', () => {
    const world = shops();
    world.acquire(0, acme);
    world.takeTurn(0, acme);
    world.takeTurn(0, acme);
    // At 0.5 s there is a token, and it is for the first of the line.
    expect(world.acquire(0.5 * S, acme)).toMatchObject({ granted: false, reason: 'line', waitUs: 1 * S });
    expect(world.allows(0.5 * S, { ...acme, returning: true })).toBe(true);
  });

  it('is not a fresh request that would reserve', () => {
    const world = new World({ shop: perSecond(2, { burst: 1, by: 'shop' }) });
    world.acquire(0, acme);
    world.takeTurn(0, acme);
    expect(world.acquire(0, { ...acme, maxWaitUs: 60 * S })).toMatchObject({
      granted: false,
      reason: 'line',
    });
  });

  it('is who returns, and takes tokens or waits like any other', () => {
    const world = shops();
    world.acquire(0, acme);
    world.takeTurn(0, acme);
    world.takeTurn(0, acme);
    // Too early by 100 ms: there is no token yet, and no place is lost.
    expect(world.acquire(0.4 * S, { ...acme, returning: true, maxTurnUs: 60 * S })).toMatchObject({
      granted: false,
      reason: 'rate',
      waitUs: 100_000,
      hasTurn: false,
    });
    expect(world.lineEnd(LINE)).toBe(1.5 * S);
  });
});

describe('who returns and must wait still', () => {
  // https://github.com/jhurliman/node-rate-limiter/issues/50: large requests starved behind small ones.
  it.each([
    // how long is left to wait, and where that leaves him
    [1 * S, false, 'keeps his place while it is within his patience'],
    [1 * S - 1, true, 'gets a new slot at the end of the line when it is not'],
  ])('with a patience of %d µs: new slot %s', (patienceUs, hasTurn) => {
    const world = new World({ shop: perSecond(2, { burst: 2, by: 'shop' }) });
    world.reserve(0, { ...acme, cost: 2 });
    const slot = world.takeTurn(0, { ...acme, cost: 2 });
    expect(slot).toBe(1 * S);
    // Somebody was let through by hand meanwhile: at the slot both tokens are missing.
    world.force(0, { ...acme, cost: 2 });
    const back = { ...acme, cost: 2, returning: true, maxTurnUs: 60 * S, patienceUs };
    const verdict = world.acquire(slot, back);
    // The end of the line was 2 s, a second from now as well, and is moved on only by who takes a place at it.
    expect(verdict).toMatchObject({ granted: false, waitUs: 1 * S, hasTurn });
    expect(world.lineEnd(LINE)).toBe(hasTurn ? 3 * S : 2 * S);
  });
});

describe('a slot', () => {
  it('is not given further ahead than was asked for', () => {
    const world = shops();
    world.acquire(0, acme);
    world.takeTurn(0, acme);
    world.takeTurn(0, acme);
    expect(world.acquire(0, { ...acme, maxTurnUs: 1.5 * S - 1 })).toMatchObject({
      hasTurn: false,
      waitUs: 1.5 * S,
    });
    expect(world.lineEnd(LINE)).toBe(1.5 * S);
    expect(world.acquire(0, { ...acme, maxTurnUs: 1.5 * S })).toMatchObject({
      hasTurn: true,
      waitUs: 1.5 * S,
    });
    expect(world.lineEnd(LINE)).toBe(2 * S);
  });

  it('is given for a governor-wide limit only to who asks for slots of all limits', () => {
    const world = new World({ all: perSecond(2, { burst: 1 }) });
    world.acquire(0);
    expect(world.acquire(0, { maxTurnUs: 60 * S })).toMatchObject({ hasTurn: false, waitUs: 0.5 * S });
    expect(world.acquire(0, { maxTurnUs: 60 * S, turns: 'all' })).toMatchObject({
      hasTurn: true,
      waitUs: 0.5 * S,
    });
  });

  it('holds back a governor-wide line too, once there is one', () => {
    const world = new World({ all: perSecond(2, { burst: 1 }) });
    world.acquire(0);
    world.takeTurn(0, { turns: 'all' });
    expect(world.acquire(0.5 * S, { maxTurnUs: 60 * S })).toMatchObject({ reason: 'line', hasTurn: true });
  });

  it('does not close a line for as long as another limit of the same request is closed', () => {
    const world = new World({
      shop: perSecond(10, { burst: 1, by: 'shop' }),
      user: { rate: 1, periodMs: 3_600_000, burst: 1, by: 'user' },
    });
    const x = { keys: { shop: 'acme', user: 'x' } };
    world.acquire(0, x);
    expect(world.takeTurn(0, { keys: { shop: 'acme', user: 'y' } })).toBe(100_000);
    // x is closed for an hour, and comes to a line of 200 ms. He is told the hour; the line grows by his token.
    expect(world.takeTurn(0, x)).toBe(3_600 * S);
    expect(world.lineEnd(LINE)).toBe(300_000);
    expect(world.takeTurn(1, { keys: { shop: 'acme', user: 'z' } })).toBe(300_000);
  });
});

describe('a line whose work does not come', () => {
  it('is forgotten once its bucket was full for a second, and not a microsecond before', () => {
    const world = shops();
    world.acquire(0, acme);
    for (let n = 0; n < 100; n++) world.takeTurn(0, acme);
    const fullUs = 0.5 * S;
    expect(LINE_GRACE_US).toBe(1 * S);
    expect(world.acquire(fullUs + 1 * S - 1, acme)).toMatchObject({ granted: false, reason: 'line' });
    expect(world.allows(fullUs + 1 * S, acme)).toBe(true);
    expect(world.lineEnd(LINE)).toBeUndefined();
  });

  it('is forgotten as soon while others go on asking for slots', () => {
    const world = shops();
    world.acquire(0, acme);
    for (let n = 0; n < 100; n++) world.takeTurn(0, acme);
    for (let atUs = 0.6 * S; atUs < 1.5 * S; atUs += 100_000) world.takeTurn(atUs, acme);
    expect(world.allows(1.5 * S, acme)).toBe(true);
  });

  it('is forgotten by what is forced as well', () => {
    const world = shops();
    world.acquire(0, acme);
    for (let n = 0; n < 100; n++) world.takeTurn(0, acme);
    world.force(10 * S, acme);
    expect(world.acquire(10 * S, acme)).toMatchObject({ granted: false, reason: 'rate', waitUs: 0.5 * S });
  });

  // BullMQ resumes a deferred job 50 to 90 ms after its slot; a bucket of one token is full for just that time.
  it('is kept while its work comes, though each comes late', () => {
    const world = shops();
    world.acquire(0, acme);
    const slots = Array.from({ length: 20 }, () => world.takeTurn(0, acme));
    for (const slot of slots) {
      expect(world.allows(slot + 89_000, acme)).toBe(false);
      expect(world.allows(slot + 90_000, { ...acme, returning: true })).toBe(true);
    }
  });

  it('is due, and over, when its end has come', () => {
    const world = shops();
    world.acquire(0, acme);
    world.takeTurn(0, acme);
    world.acquire(0.5 * S, { ...acme, returning: true });
    expect(world.lineEnd(LINE)).toBe(1 * S);
    expect(world.allows(1 * S, acme)).toBe(true);
    expect(world.lineEnd(LINE)).toBeUndefined();
  });
});

// https://github.com/OptimalBits/bull/issues/2235: jobs were still delayed after the backlog had gone.
it('adds no delay any more once a backlog has drained', () => {
  const world = shops();
  world.acquire(0, acme);
  const slots = Array.from({ length: 500 }, () => world.takeTurn(0, acme));
  for (const slot of slots) world.acquire(slot, { ...acme, returning: true });
  const after = slots.at(-1)! + 0.5 * S;
  for (let n = 0; n < 20; n++) expect(world.allows(after + n * S, acme)).toBe(true);
});

it('moves with a clock that is corrected, so that a wrong hour does not become an hour of waiting', () => {
  const world = shops();
  const wrong = 3_600 * S;
  world.acquire(wrong, acme);
  world.takeTurn(wrong, acme);
  // The line was a second ahead by the wrong clock, and is by the right one.
  expect(world.acquire(0, acme)).toMatchObject({ reason: 'line', waitUs: 1 * S });
});
