import { describe, expect, it } from 'vitest';
import { perHour, perSecond } from '../../../src/core/limits/rate.ts';
import { governed, outcome } from '../support/governed.ts';

const range = (count: number) => Array.from({ length: count }, (_, index) => index);

describe('a signal that aborts', () => {
  // https://github.com/songzhibin97/gkit/pull/134: a wait whose context was cancelled already took a token all the same.
  it('before the call takes nothing', async () => {
    const { governor, store } = governed({ calls: perSecond(10, { burst: 1 }) });
    const reason = new Error('not any more');
    await expect(governor.wait({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(store.states.size).toBe(0);
  });

  it('during the wait ends it with its reason, and hands the reservation back', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 1 }) });
    await governor.allow();
    const abort = new AbortController();
    const wait = governor.wait({ signal: abort.signal });
    const seen = outcome(wait);
    await clock.advance(50);
    expect(seen.state).toBe('pending');
    abort.abort('changed my mind');
    await clock.advance(0);
    expect(seen).toEqual({ state: 'rejected', value: 'changed my mind' });
    expect(await governor.peek()).toMatchObject([{ granted: 1, waitMs: 50 }]);
  });

  // https://github.com/Netflix/concurrency-limits/pull/179: a token was lost when time-out and grant came together.
  it('while the store decides hands back what it granted', async () => {
    const { governor, clock } = governed({ calls: perHour(1, { burst: 1 }) });
    await governor.allow();
    const abort = new AbortController();
    const seen = outcome(governor.wait({ signal: abort.signal }));
    abort.abort();
    await clock.advance(0);
    expect(seen).toMatchObject({ state: 'rejected', value: { name: 'AbortError' } });
    expect(await governor.peek()).toMatchObject([{ granted: 1, waitMs: 3_600_000 }]);
  });

  it('after the grant changes nothing, and nobody listens to it any more', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 1 }) });
    const abort = new AbortController();
    const wait = Promise.all(range(3).map(() => governor.wait({ signal: abort.signal })));
    await clock.advance(200);
    await wait;
    abort.abort();
    expect(await governor.peek()).toMatchObject([{ granted: 3 }]);
  });

  it('at the very time of the start leaves one outcome: the start', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 1 }) });
    await governor.allow();
    const abort = new AbortController();
    const seen = outcome(governor.wait({ signal: abort.signal }));
    await clock.advance(99);
    clock.timer(1, () => abort.abort());
    await clock.advance(1);
    expect(seen.state).toBe('resolved');
    expect(await governor.peek()).toMatchObject([{ granted: 2 }]);
  });

  it('ends the wait for a slot too', async () => {
    const { governor, clock } = governed({
      all: perSecond(1_000),
      shop: perSecond(1, { burst: 1, by: 'shop' }),
    });
    const acme = { keys: { shop: 'acme' } };
    await governor.allow(acme);
    const abort = new AbortController();
    const seen = outcome(governor.wait({ ...acme, signal: abort.signal }));
    await clock.advance(500);
    abort.abort('enough');
    await clock.advance(0);
    expect(seen).toEqual({ state: 'rejected', value: 'enough' });
    expect(clock.pending).toBe(0);
  });
});

describe('one signal for many waits', () => {
  it('hands all reservations back: newest first, so that none is lost', async () => {
    const { governor, clock } = governed({ calls: perSecond(1, { burst: 1 }) });
    await governor.allow();
    const abort = new AbortController();
    const waits = Promise.allSettled(range(50).map(() => governor.wait({ signal: abort.signal })));
    await clock.advance(0);
    expect(await governor.peek()).toMatchObject([{ waitMs: 51_000 }]);
    abort.abort();
    expect((await waits).every(({ status }) => status === 'rejected')).toBe(true);
    expect(await governor.peek()).toMatchObject([{ granted: 1, waitMs: 1_000 }]);
  });

  it('raises no warning of a leak', async () => {
    const warnings: Error[] = [];
    const warn = (warning: Error) => warnings.push(warning);
    process.on('warning', warn);
    const { governor, clock } = governed({ calls: perSecond(1, { burst: 1 }) });
    const abort = new AbortController();
    const waits = Promise.allSettled(range(100).map(() => governor.wait({ signal: abort.signal })));
    await clock.advance(0);
    abort.abort();
    await waits;
    await clock.advance(0);
    process.off('warning', warn);
    expect(warnings).toEqual([]);
  });

  it('leaves the waits of others alone', async () => {
    const { governor, clock } = governed({ calls: perSecond(10, { burst: 1 }) });
    await governor.allow();
    const abort = new AbortController();
    const [one, other, third] = [
      outcome(governor.wait({ signal: abort.signal })),
      outcome(governor.wait()),
      outcome(governor.wait({ signal: new AbortController().signal })),
    ];
    await clock.advance(0);
    abort.abort();
    await clock.advance(300);
    expect([one.state, other.state, third.state]).toEqual(['rejected', 'resolved', 'resolved']);
  });
});
