import { describe, expect, test, vi } from 'vitest';
import { perMinute, perSecond } from '../../../src/core/limits/rate.ts';
import type { StoreMessage } from '../../../src/core/ports/messages.ts';
import { governed, outcome, startsOf } from '../support/governed.ts';
import { processes, seenAs } from '../support/processes.ts';

const range = (count: number) => Array.from({ length: count }, (_, index) => index);
const acme = { keys: { shop: 'acme' } };
const other = { keys: { shop: 'other' } };
const keyed = { calls: perSecond(1_000, { burst: 100 }), shop: perSecond(10, { burst: 5, by: 'shop' }) };
const paused = { allowed: false, reason: 'paused' };

describe('pause and resume of the whole governor', () => {
  test('refuse all until the end, and then give tokens in a ramp, from an empty bucket', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 5 }) });
    await governor.pause({ forMs: 2_000 });
    expect(await governor.allow()).toMatchObject({ ...paused, limit: 'calls', keyed: false });
    await clock.advance(1_999);
    expect(await governor.allow()).toMatchObject(paused);
    await clock.advance(1);
    // Half a second that the pause costs, and the first token.
    expect(await governor.allow()).toMatchObject({ allowed: false, reason: 'rate', retryAfterMs: 600 });
    await clock.advance(599);
    expect(await governor.allow()).toMatchObject({ allowed: false });
    await clock.advance(1);
    expect(await governor.allow()).toMatchObject({ allowed: true });
    expect(await governor.allow()).toMatchObject({ allowed: false, reason: 'rate' });
    await clock.advance(1_000);
    expect(await governor.allowN(5)).toMatchObject({ allowed: true });
    expect(await governor.allowAtMost(10)).toBe(0);
  });

  test('refuse as one that all requests meet, also where there are limits with keys', async () => {
    const { governor } = governed(keyed);
    await governor.pause();
    expect(await governor.allow(acme)).toMatchObject({ ...paused, keyed: false });
  });

  test('last until they are ended, if no time is given', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 5 }) });
    await governor.pause();
    await clock.advance(1_000 * 86_400_000);
    expect(await governor.allow()).toMatchObject(paused);
    await governor.resume();
    await clock.advance(600);
    expect(await governor.allow()).toMatchObject({ allowed: true });
  });

  test('are not made shorter by a shorter one', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 5 }) });
    await governor.pause({ forMs: 10_000 });
    await governor.pause({ forMs: 10 });
    await clock.advance(9_999);
    expect(await governor.allow()).toMatchObject(paused);
  });

  test('resume lets those who wait go on at the rate, in order', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 5 }) });
    await governor.pause();
    const { starts, done } = startsOf(clock, range(10), () => governor.wait());
    await clock.advance(30_000);
    expect(starts).toEqual([]);
    await governor.resume();
    await clock.advance(2_000);
    await done;
    expect(starts.map(({ item }) => item)).toEqual(range(10));
    const times = starts.map(({ atMs }) => atMs - 30_000);
    expect(times[0]).toBeGreaterThanOrEqual(100);
    for (const n of range(9)) expect(times[n + 1]! - times[n]!).toBeGreaterThanOrEqual(99.9);
    expect(times.at(-1)).toBeLessThanOrEqual(2_000);
  });

  test('of one process hold in all', async () => {
    const { clock, start } = processes({ calls: perSecond(10, { burst: 5 }) });
    const [first, second] = [start(), start()];
    const waits = outcome(second.wait());
    await clock.advance(0);
    expect(waits.state).toBe('resolved');
    await first.pause();
    const later = outcome(second.wait());
    await clock.advance(10_000);
    expect(later.state).toBe('pending');
    await first.resume();
    await clock.advance(1_000);
    expect(later.state).toBe('resolved');
  });

  test('what was reserved before a pause is not used in it', async () => {
    const { clock, start } = processes({ calls: perSecond(10, { burst: 1 }) });
    const [first, second] = [start(), start()];
    await first.wait();
    const { starts, done } = startsOf(clock, range(5), () => first.wait());
    await clock.advance(150);
    await second.pause({ forMs: 5_000 });
    await clock.advance(4_800);
    expect(starts).toHaveLength(1);
    await clock.advance(1_500);
    await done;
    expect(starts.filter(({ atMs }) => atMs > 150).every(({ atMs }) => atMs >= 5_150)).toBe(true);
  });

  // A message is a matter of time, never of right: the store decides.
  test('a resume that a process does not hear of holds up nothing that it asks later', async () => {
    const { clock, store, start } = processes({ calls: perSecond(10, { burst: 1 }) });
    const deaf = start(
      seenAs(store, {
        subscribe: (listener: (message: StoreMessage) => void) =>
          store.subscribe((message) => message.kind !== 'resumed' && listener(message)),
      }),
    );
    const other = start();
    deaf.on('paused', () => {});
    await other.pause({ forMs: 600_000 });
    await clock.advance(1_000);
    await other.resume();
    const { starts } = startsOf(clock, range(300), () => deaf.wait().catch(() => {}));
    await clock.advance(30_000);
    // Half a second's are the ramp's.
    expect(starts.length).toBeGreaterThanOrEqual(294);
  });

  test('a resume that a process does not hear of wakes those who wait in it within five seconds', async () => {
    const { clock, store, start } = processes({ calls: perSecond(10, { burst: 1 }) });
    const deaf = start(seenAs(store, { subscribe: () => () => {} }));
    const other = start();
    await other.pause({ forMs: 600_000 });
    const waits = outcome(deaf.wait());
    await clock.advance(1_000);
    await other.resume();
    await clock.advance(5_200);
    expect(waits.state).toBe('resolved');
  });
});

describe('pause and resume of a key', () => {
  test('refuse that key, and no other', async () => {
    const { governor, clock } = governed(keyed);
    await governor.pause({ ...acme, forMs: 2_000 });
    expect(await governor.allow(acme)).toMatchObject({ ...paused, limit: 'shop', keyed: true });
    expect(await governor.allow(other)).toMatchObject({ allowed: true });
    await clock.advance(2_000);
    expect(await governor.allow(acme)).toMatchObject({ allowed: false, reason: 'rate' });
    await clock.advance(600);
    expect(await governor.allow(acme)).toMatchObject({ allowed: true });
  });

  test.for([undefined, 50_000, 600_000])(
    '(of %s ms) resume wakes all who wait for that key',
    async (forMs) => {
      const { governor, clock } = governed(keyed);
      await governor.pause({ ...acme, ...(forMs !== undefined && { forMs }) });
      const { starts, done } = startsOf(clock, range(3), () => governor.wait(acme));
      await clock.advance(30_000);
      expect(starts).toEqual([]);
      await governor.resume(acme);
      await clock.advance(1_000);
      await done;
      expect(starts.every(({ atMs }) => atMs >= 30_100 && atMs <= 31_000)).toBe(true);
    },
  );

  test('take no one else’s reservation away, in no process', async () => {
    const limits = { calls: perSecond(10, { burst: 1 }), shop: perSecond(100, { by: 'shop' }) };
    const { clock, start } = processes(limits);
    const [first, second] = [start(), start()];
    const { starts, done } = startsOf(clock, range(50), () => first.wait(other));
    await clock.advance(1_000);
    await second.resume(acme);
    await second.pause(acme);
    await second.resume(acme);
    await clock.advance(4_000);
    await done;
    expect(starts.map(({ atMs }) => atMs)).toEqual(range(50).map((n) => n * 100));
  });

  test('the end of one wakes nobody whose whole governor is paused still', async () => {
    const { governor, clock } = governed(keyed);
    await governor.pause();
    await governor.pause(acme);
    await governor.resume(acme);
    await clock.advance(10_000);
    expect(await governor.allow(acme)).toMatchObject(paused);
    await governor.resume();
    await clock.advance(600);
    expect(await governor.allow(acme)).toMatchObject({ allowed: true });
  });

  test.for<[string, object]>([
    ['an attribute that no limit has', { keys: { shp: 'acme' } }],
    ['no key', { keys: {} }],
    ['a name that is none', { key: 'acme' }],
    ['keys that are none', { keys: 'acme' }],
  ])('with %s are refused', async ([, options]) => {
    const { governor } = governed(keyed);
    const code = 'FLYBALL_INVALID_OPTION';
    await expect(governor.pause(options)).rejects.toMatchObject({ code });
    await expect(governor.resume(options)).rejects.toMatchObject({ code });
  });
});

test.for([0, -1, Number.NaN, '5'])('pause for %s ms is refused', async (forMs) => {
  const { governor } = governed(keyed);
  await expect(governor.pause({ forMs: forMs as number })).rejects.toMatchObject({ option: 'forMs' });
});

describe('feedback that asks for a pause', () => {
  const calls = perSecond(1_000, { burst: 10 });

  test.for<[number, number, number]>([
    [10_000, 0, 10_000],
    [10_000, 0.5, 10_500],
    [10_000, 1, 11_000],
    [3_600_000, 1, 3_630_000],
  ])(
    'of %i ms lasts a tenth longer at the most, and 30 s: at random %f for %i ms',
    async ([ms, random, lastsMs]) => {
      const { clock, start } = processes({ calls }, () => random);
      const governor = start();
      await governor.feedback({ throttled: true, retryAfterMs: ms });
      await clock.advance(lastsMs - 1);
      expect(await governor.allow()).toMatchObject(paused);
      await clock.advance(502); // 1,000/s: half a second and a token after the end
      expect(await governor.allow()).toMatchObject({ allowed: true });
    },
  );

  test('closes its keys alone', async () => {
    const { clock, start } = processes(keyed, () => 0);
    const governor = start();
    await governor.feedback({ throttled: true, headers: new Headers({ 'retry-after': '2' }), ...acme });
    expect(await governor.allow(acme)).toMatchObject(paused);
    expect(await governor.allow(other)).toMatchObject({ allowed: true });
    await clock.advance(2_600);
    expect(await governor.allow(acme)).toMatchObject({ allowed: true });
  });

  test('never shortens one', async () => {
    const { clock, start } = processes({ calls }, () => 0);
    const governor = start();
    await governor.feedback({ retryAfter: '60' });
    await governor.feedback({ retryAfter: '1' });
    await clock.advance(59_999);
    expect(await governor.allow()).toMatchObject(paused);
  });

  test('of a call that was throttled without a time closes nothing', async () => {
    const { clock, start } = processes({ calls });
    const governor = start();
    await governor.feedback({ throttled: true, headers: {} });
    expect(await governor.allow()).toMatchObject({ allowed: true });
    await clock.advance(250);
  });

  test.for<[string, object]>([
    ['keys that no limit has', { throttled: true, keys: { shp: 'acme' } }],
    ['a grant that is none', { throttled: true, grant: 'x' }],
    ['a grant that is none, of a pause', { retryAfterMs: 5, grant: {} }],
  ])('with %s is refused at once, and closes nothing', async ([, options]) => {
    const { governor } = governed(keyed);
    await expect(governor.feedback(options)).rejects.toMatchObject({ code: 'FLYBALL_INVALID_OPTION' });
    expect(await governor.allow(acme)).toMatchObject({ allowed: true });
  });

  test('is told to adaptive limits: many throttled calls lower them', async () => {
    const adaptive = { min: 1, max: 100 };
    const { governor, clock } = governed({ calls: perSecond(100, { adaptive }) });
    const effective = async () => (await governor.peek())[0]!.effective;
    const before = await effective();
    const decision = await governor.allow();
    await governor.feedback({ throttled: true, ...(decision.allowed && { grant: decision }) });
    await clock.advance(0);
    expect(await effective()).toBeLessThan(before);
    await governor.close();
  });
});

describe('events', () => {
  test('of pauses tell whom they concern and until when', async () => {
    const { governor, clock } = governed(keyed);
    const heard = { paused: vi.fn(), resumed: vi.fn() };
    governor.on('paused', heard.paused);
    governor.on('resumed', heard.resumed);
    await governor.pause({ forMs: 2_000 });
    await governor.resume();
    await governor.pause({ ...acme, forMs: 3_000 });
    await governor.resume(acme);
    await clock.advance(0);
    const at = clock.wallMs();
    expect(heard.paused.mock.calls).toEqual([
      [{ keys: undefined, untilMs: at + 2_000 }],
      [{ keys: acme.keys, untilMs: at + 3_000 }],
    ]);
    expect(heard.resumed.mock.calls).toEqual([[{ keys: undefined }], [{ keys: acme.keys }]]);
  });
});

test('after close, none of it does anything', async () => {
  const { governor } = governed({ calls: perMinute(1) });
  await governor.close();
  for (const call of [governor.pause(), governor.resume(), governor.feedback({ throttled: true })]) {
    await expect(call).rejects.toMatchObject({ code: 'FLYBALL_GOVERNOR_CLOSED' });
  }
});
