import { createGovernor, type LimitsOptions, perSecond } from 'flyball';
import { flags } from '../../parent/flags.ts';
import { Fleet } from '../../parent/fleet.ts';
import { orAbort } from '../../parent/or-abort.ts';
import { RedisView } from '../../parent/redis-view.ts';
import { Service } from '../../parent/service.ts';
import { pause, until } from '../../parent/waiting.ts';
import { atLeast, atMost, exactly, type ProveCase, type Stage } from '../case.ts';
import { type Change, changeFigures } from '../figures/change.ts';
import { deploy } from './reconfigure/deploy.ts';

const PROCESSES = 4;
const KEYS = Array.from({ length: 10 }, (_, i) => `p${i}`);
const DEFERRED = 500;
const WAITING = 5_000;
const RATE = 30;
const KEY_PART = 100;
// A bucket of one token loses time whenever its job is late: jobs that also meet a full limit would lose a quarter of the rate.
const KEY_BURST = 3;
const FACTOR = 10;
// Short enough to leave deferred jobs when the rate is lowered again: their old turns must not break its bound.
const RAISED_MS = 3_500;
const LOWERED_MS = 6_000;

/** One limit for all calls, and one for each key; the keys take a tenth of it. */
function limitsAt(rate: number): LimitsOptions {
  return {
    calls: perSecond(rate, { burst: rate / 10 }),
    key: perSecond(rate / KEY_PART, { by: 'key', burst: KEY_BURST }),
  };
}

export const reconfigure: ProveCase = {
  name: 'reconfigure',
  about: `the rate raised and lowered tenfold under ${DEFERRED} deferred and ${WAITING} waiting jobs; a deploy of new limits`,

  async run(stage) {
    const service = await orAbort(stage.signal, Service.start(stage.children, { rate: 1e6, burst: 1e6 }));
    const change = await steer(stage, service);
    const figures = changeFigures((await service.trace()).arrivals, change);
    const { flaps, ...seen } = await deploy(stage, service);
    return {
      figures: { ...figures, flaps, ...seen },
      demands: [
        atLeast('jobs deferred behind closed keys at the change', figures.deferred, 0.9 * DEFERRED),
        atMost('raised tenfold: the new rate reached after', figures.reachedMs, 1_000, 'ms'),
        atMost('raised: the rate of the deferred keys reached after', figures.deferredReachedMs, 1_000, 'ms'),
        atMost('lowered tenfold: excess from 1 s on, tokens', figures.loweredExcess, figures.tolerated),
        atMost('lowered: excess of the worst deferred key', figures.deferredLoweredExcess, figures.tolerated),
        exactly('limits that came back after a deploy', flaps, 0),
      ],
    };
  },
};

/** Lets jobs be deferred, raises the rate, lowers it again. Resolves to when that was, on the service's clock. */
async function steer(stage: Stage, service: Service): Promise<Change> {
  const { signal, redisUrl, children, name, say } = stage;
  // Separate queues: a deferred job that is due goes to the tail of its queue, and would wait behind the others.
  const queues = [`${name}-deferred`, `${name}-waiting`] as const;
  const produced = [KEYS.map((key) => `${key}=${DEFERRED / KEYS.length}`).join(','), `=${WAITING}`];
  for (const [i, queue] of queues.entries()) {
    const producer = children.start(
      'producer',
      flags({ redis: redisUrl, queues: queue, backlog: produced[i] }),
    );
    await orAbort(signal, producer.ended);
  }
  const deferredQueue = new RedisView(redisUrl, [queues[0]]);
  const governor = createGovernor({ name, connection: redisUrl, limits: limitsAt(RATE) });
  const fleet = new Fleet(
    children,
    'consumer',
    flags({
      ...{ redis: redisUrl, service: service.url, governor: name, limits: limitsAt(RATE) },
      queues: queues.join(','),
    }),
  );
  try {
    await orAbort(signal, fleet.start(PROCESSES));
    fleet.go();
    say('deferring jobs behind closed keys');
    let deferred = 0;
    await until(signal, 'jobs deferred', 20_000, async () => {
      deferred = (await deferredQueue.counts()).delayed;
      return deferred >= 0.92 * DEFERRED; // the first of each key ran from its burst
    });
    await pause(signal, 2_000);
    const { epochMs } = await service.trace();
    const nowUs = () => (Date.now() - epochMs) * 1000;

    say(`raising ${RATE} a second to ${FACTOR * RATE}`);
    const raisedUs = nowUs();
    await governor.configure({ limits: limitsAt(FACTOR * RATE) }, { who: 'prove' });
    await pause(signal, RAISED_MS);
    say('lowering it again');
    const loweredUs = nowUs();
    await governor.configure({ limits: limitsAt(RATE) }, { who: 'prove' });
    await pause(signal, LOWERED_MS);
    const endUs = nowUs();
    await orAbort(signal, fleet.stop());
    return {
      deferred,
      raisedUs,
      loweredUs,
      endUs,
      low: RATE,
      high: FACTOR * RATE,
      keys: KEYS,
      keyPart: KEY_PART,
      keyBurst: KEY_BURST,
    };
  } finally {
    await governor.close();
    await deferredQueue.close();
  }
}
