import { describe, expect, test } from 'vitest';
import { leaveFor, type Situation, waitFor } from '../../../src/adapters/bullmq/admit/refusal.ts';
import type { RefusedAction } from '../../../src/adapters/bullmq/options.ts';
import type { Refusal } from '../../../src/core/answers.ts';

/** A governor-wide limit refused, without a turn; it would have to wait for 500 ms. */
const refusal = (but: Partial<Refusal> = {}): Refusal => ({
  allowed: false,
  limit: 'calls',
  keyed: false,
  reason: 'rate',
  retryAfterMs: 500,
  hasTurn: false,
  ...but,
});

/** A job of an attached worker with room, that has not waited yet. */
const situation = (but: Partial<Situation> = {}): Situation => ({
  attached: true,
  returning: false,
  roomNearby: true,
  nearbyMs: 1_000,
  holdMs: 1_000,
  maxHoldMs: 1_000,
  defers: true,
  ...but,
});

const turn = { hasTurn: true };
const keyed = { keyed: true };
const slot = { reason: 'concurrency' } as const;
const paused = { reason: 'paused' } as const;

describe('a refused job waits', () => {
  test.each<['held' | 'nearby' | 'away', string, Partial<Refusal>, Partial<Situation>]>([
    ['away', 'without a turn', {}, {}],
    ['held', 'with a near turn at a limit that all jobs meet', turn, {}],
    ['away', 'with a far one', { ...turn, retryAfterMs: 1_001 }, {}],
    ['held', 'for the near end of a pause of all', paused, {}],
    ['away', 'for a far one', { ...paused, retryAfterMs: 1_001 }, {}],
    ['away', 'for the end of a pause without a handle on the worker', paused, { attached: false }],
    ['nearby', 'with a near turn of its key', { ...keyed, ...turn }, {}],
    ['away', 'with one that is further than it may still wait', { ...keyed, ...turn }, { nearbyMs: 499 }],
    ['away', 'with a near turn of its key, but no room', { ...keyed, ...turn }, { roomNearby: false }],
    ['nearby', 'when it comes back too early to its key', keyed, { returning: true }],
    ['away', 'when it comes back too early to a limit that all jobs meet', {}, { returning: true }],
    ['held', 'for a slot that all jobs wait for', slot, {}],
    ['held', 'for such a slot as long as it takes', slot, { holdMs: 0 }],
    ['away', 'for such a slot only so long if it may fail', slot, { holdMs: 0, defers: false }],
    ['nearby', 'for a slot of its key', { ...slot, ...keyed }, {}],
    ['away', 'for a slot of its key no longer than it may', { ...slot, ...keyed }, { nearbyMs: 0 }],
    ['away', 'for a slot of its key not without room', { ...slot, ...keyed }, { roomNearby: false }],
  ])('%s %s', (where, _, refused, now) => {
    expect(waitFor(refusal(refused), situation(now))).toBe(where);
  });
});

describe('a job that does not wait in the worker', () => {
  test.each<[ReturnType<typeof leaveFor>, RefusedAction, Partial<Refusal>, boolean]>([
    ['drop', 'drop', {}, true],
    ['fail', 'fail', keyed, true],
    // All jobs meet the limit: none is let pass.
    ['head', 'delay', {}, true],
    ['head', 'requeue', {}, true],
    ['defer', 'delay', {}, false],
    ['requeue', 'requeue', {}, false],
    ['defer', 'delay', keyed, true],
    ['requeue', 'requeue', keyed, true],
    ['defer', 'requeue', { ...keyed, ...turn }, true],
    ['defer', 'delay', turn, true],
  ])('%s, if onRefused says %s, the refusal %o, attached: %s', (what, action, refused, attached) => {
    expect(leaveFor(refusal(refused), action, attached)).toBe(what);
  });
});
