import { type LimitsOptions, perSecond } from 'flyball';
import { flags } from '../../parent/flags.ts';
import { Fleet } from '../../parent/fleet.ts';
import { orAbort } from '../../parent/or-abort.ts';
import { RedisView } from '../../parent/redis-view.ts';
import { Service } from '../../parent/service.ts';
import { pause } from '../../parent/waiting.ts';
import { atLeast, atMost, exactly, type ProveCase } from '../case.ts';
import { closingFigures } from '../figures/closing.ts';

const PROCESSES = 4;
const SHOPS = ['s0', 's1', 's2', 's3', 's4'];
const CLOSED = 's2';
const RATE = 40;
// Somewhat more than the limits let pass, so that a job of every shop always waits.
const OFFERED = 1.15 * RATE;
const RETRY_AFTER_MS = 3_000;
const STEADY_MS = 4_000;
const AFTER_MS = 4_000;

const limits: LimitsOptions = { shop: perSecond(RATE, { by: 'key', burst: RATE / 10 }) };

export const pauseCase: ProveCase = {
  name: 'pause',
  about: `one shop of ${SHOPS.length} is answered 429 with Retry-After ${RETRY_AFTER_MS / 1000}: it pauses, the others do not`,

  async run(stage) {
    const { signal, redisUrl, children, name, say } = stage;
    const service = await orAbort(signal, Service.start(children, { rate: 1e6, burst: 1e6 }));
    const redis = new RedisView(redisUrl, [name]);
    const fleet = new Fleet(
      children,
      'consumer',
      flags({ redis: redisUrl, service: service.url, queues: name, governor: name, limits, heed: true }),
    );
    await orAbort(signal, fleet.start(PROCESSES));
    fleet.go();
    children.start(
      'producer',
      flags({
        ...{ redis: redisUrl, queues: name, seconds: 60 },
        paced: SHOPS.map((shop) => `${shop}=${OFFERED}`).join(','),
      }),
    );
    const stats = async () => (await service.stats()).calls;
    say('the shops reach their rate');
    while ((await stats()) < SHOPS.length * RATE) await pause(signal, 20);
    await pause(signal, STEADY_MS);
    say(`shop ${CLOSED} answers 429`);
    const closedUs = await service.closeKey(CLOSED, RETRY_AFTER_MS);
    await pause(signal, RETRY_AFTER_MS + AFTER_MS);
    const { arrivals, epochMs } = await service.trace();
    const endUs = (Date.now() - epochMs) * 1000;
    await orAbort(signal, fleet.stop());
    const failedEvents = await orAbort(signal, redis.failedEvents());
    await redis.close();

    const plan = { closedUs, endUs, retryAfterMs: RETRY_AFTER_MS, rate: RATE, burst: RATE / 10 };
    const figures = closingFigures(arrivals, { ...plan, closed: CLOSED, shops: SHOPS });
    return {
      figures: { ...figures, failedEvents },
      demands: [
        atMost('last call of the closed shop after its 429', figures.lastCallMs, 50, 'ms'),
        exactly('its calls from then until 3 s were over', figures.callsWhileClosed, 0),
        atLeast('worst of the other shops, of its rate', figures.othersShare, 0.98, '%'),
        atMost('the closed shop: first call after its 429', figures.resumedMs, RETRY_AFTER_MS + 1_000, 'ms'),
        atMost('its excess in the first second after, tokens', figures.resumedExcess, figures.tolerated),
        atMost('its excess until the end, tokens', figures.laterExcess, figures.tolerated),
        exactly('failed events', failedEvents, 0),
      ],
    };
  },
};
