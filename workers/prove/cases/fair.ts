import { type LimitsOptions, perSecond } from 'flyball';
import { flags } from '../../parent/flags.ts';
import { Fleet } from '../../parent/fleet.ts';
import { orAbort } from '../../parent/or-abort.ts';
import { Service } from '../../parent/service.ts';
import { pause, until } from '../../parent/waiting.ts';
import { atLeast, atMost, type ProveCase } from '../case.ts';
import { shareFigures } from '../figures/shares.ts';

const PROCESSES = 4;
const RATE = 120;
const WEIGHTS = { a: 3, b: 2, c: 1 };
const FLOOD = 10_000;
// The others ask for half as much again as they get, so that they always have a job that waits.
const OFFERED = { a: 90, b: 60 };
const SETTLING_MS = 3_000;
const SECONDS = 10;

const limits: LimitsOptions = {
  calls: perSecond(RATE, { by: 'key', fair: true, weights: WEIGHTS, burst: RATE / 10 }),
};

export const fair: ProveCase = {
  name: 'fair',
  about: `three keys share ${RATE} a second by weights 3:2:1, and the lightest floods ${FLOOD} jobs`,

  async run(stage) {
    const { signal, redisUrl, children, name, say } = stage;
    const service = await orAbort(signal, Service.start(children, { rate: 1e6, burst: 1e6 }));
    // A queue of its own for each key: in one, first in, first out, the others' jobs would only come when the flood is put aside.
    const queueOf = (key: string) => `${name}-${key}`;
    const flood = flags({ redis: redisUrl, queues: queueOf('c'), backlog: `c=${FLOOD}`, source: 'flood' });
    await orAbort(signal, children.start('producer', flood).ended);
    const fleet = new Fleet(
      children,
      'consumer',
      flags({
        ...{ redis: redisUrl, service: service.url, governor: name, limits },
        queues: Object.keys(WEIGHTS).map(queueOf).join(','),
      }),
    );
    await orAbort(signal, fleet.start(PROCESSES));
    fleet.go();
    for (const [key, rate] of Object.entries(OFFERED)) {
      children.start(
        'producer',
        flags({ redis: redisUrl, queues: queueOf(key), paced: `${key}=${rate}`, seconds: 60, source: key }),
      );
    }
    const startedMs = performance.now();
    say('one key floods, the others begin');
    await until(signal, 'calls of every key', 40_000, async () => {
      const { answeredOfKey } = await service.stats();
      return Object.keys(WEIGHTS).every((key) => answeredOfKey[key] !== undefined);
    });
    const allSeenMs = Math.round(performance.now() - startedMs);
    await pause(signal, SETTLING_MS);
    const { epochMs } = await service.trace();
    const fromUs = (Date.now() - epochMs) * 1000;
    say(`measuring for ${SECONDS} s`);
    await pause(signal, SECONDS * 1000);
    const { arrivals } = await service.trace();
    await orAbort(signal, fleet.stop());

    const toUs = fromUs + SECONDS * 1e6;
    const figures = shareFigures(arrivals, { fromUs, toUs, weights: WEIGHTS, rate: RATE });
    return {
      figures: { ...figures, allSeenMs },
      demands: [
        ...Object.entries(figures.ofShare).flatMap(([key, share]) => [
          atLeast(`key ${key}: what it got of its share`, share, 0.95, '%'),
          atMost(`key ${key}: the same, at most`, share, 1.05, '%'),
        ]),
        atLeast('all of them, of the limit', figures.used, 0.95, '%'),
      ],
    };
  },
};
