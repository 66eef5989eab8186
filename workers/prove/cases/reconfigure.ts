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
const PARKED = 500;
const WAITING = 5_000;
const RATE = 30;
const KEY_PART = 100;
// A bucket of one loses its time whenever its job is late, as those are that meet a full limit besides: some quarter of the rate.
const KEY_BURST = 3;
const FACTOR = 10;
// Short enough for parked jobs to be left when the rate is lowered again: their old slots must not break its bound.
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
  about: `the rate raised and lowered tenfold under ${PARKED} parked and ${WAITING} waiting jobs; a deploy of new limits`,

  async run(stage) {
    const service = await orAbort(stage.signal, Service.start(stage.children, { rate: 1e6, burst: 1e6 }));
    const change = await steer(stage, service);
    const figures = changeFigures((await service.trace()).arrivals, change);
    const { flaps, ...seen } = await deploy(stage, service);
    return {
      figures: { ...figures, flaps, ...seen },
      demands: [
        atLeast('jobs parked behind closed keys at the change', figures.parked, 0.9 * PARKED),
        atMost('raised tenfold: the new rate reached after', figures.reachedMs, 1_000, 'ms'),
        atMost('raised: the rate of the parked keys reached after', figures.parkedReachedMs, 1_000, 'ms'),
        atMost('lowered tenfold: excess from 1 s on, tokens', figures.loweredExcess, figures.tolerated),
        atMost('lowered: excess of the worst parked key', figures.parkedLoweredExcess, figures.tolerated),
        exactly('limits that came back after a deploy', flaps, 0),
      ],
    };
  },
};

/** Parks jobs, raises the rate, lowers it again; tells when that was, on the service's clock. */
async function steer(stage: Stage, service: Service): Promise<Change> {
  const { signal, redisUrl, children, name, say } = stage;
  // Queues of their own: a parked job that is due goes to the tail of its queue, and would wait behind the others.
  const queues = [`${name}-parked`, `${name}-waiting`] as const;
  const produced = [KEYS.map((key) => `${key}=${PARKED / KEYS.length}`).join(','), `=${WAITING}`];
  for (const [i, queue] of queues.entries()) {
    const producer = children.start(
      'producer',
      flags({ redis: redisUrl, queues: queue, backlog: produced[i] }),
    );
    await orAbort(signal, producer.ended);
  }
  const parkedQueue = new RedisView(redisUrl, [queues[0]]);
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
    say('parking jobs behind closed keys');
    let parked = 0;
    await until(signal, 'jobs parked', 20_000, async () => {
      parked = (await parkedQueue.counts()).delayed;
      return parked >= 0.92 * PARKED; // the first of each key ran from its burst
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
      parked,
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
    await parkedQueue.close();
  }
}
