import { type LimitsOptions, perSecond } from 'flyball';
import { round } from '../../measure/measure.ts';
import { flags } from '../../parent/flags.ts';
import { Fleet } from '../../parent/fleet.ts';
import { orAbort } from '../../parent/or-abort.ts';
import { Service } from '../../parent/service.ts';
import { pause, until } from '../../parent/waiting.ts';
import { atLeast, atMost, type Demand, type ProveCase, type Stage } from '../case.ts';
import { type ShareFigures, shareFigures } from '../figures/shares.ts';

const PROCESSES = 4;
const RATE = 120;
const WEIGHTS = { a: 3, b: 2, c: 1 };
const FLOOD = 10_000;
// The others ask for half as much again as they get, so that each always has a job that waits.
const OFFERED = { a: 90, b: 60 };
// Of the others, which begin when the flood is there and the workers run.
const ALL_SEEN_MS = 40_000;
const SETTLING_MS = 3_000;
const SECONDS = 10;

const limits: LimitsOptions = {
  calls: perSecond(RATE, { by: 'key', fair: true, weights: WEIGHTS, burst: RATE / 10 }),
};

interface Run extends ShareFigures {
  /** From the start of the others until the service had seen calls of each key. */
  readonly allSeenMs: number;
  /** Of the jobs done in the measured time. */
  readonly startsPerJob: number;
  readonly mostStarts: number;
}

export const fair: ProveCase = {
  name: 'fair',
  about: `three keys share ${RATE} a second by weights 3:2:1, and the lightest floods ${FLOOD} jobs; in a queue each, and in one`,

  async run(stage) {
    stage.say('a queue for each key');
    const queueEach = await measured(stage, `${stage.name}-each`, (queue, key) => `${queue}-${key}`);
    stage.say('one queue, and the flood ahead of the others in it');
    const oneQueue = await measured(stage, `${stage.name}-one`, (queue) => queue);
    return {
      figures: { queueEach, oneQueue },
      demands: [...demandsOf('a queue each', queueEach), ...demandsOf('one queue', oneQueue)],
    };
  },
};

/** One key floods, then the others begin. Measures the shares over some seconds once all have been seen. */
async function measured(
  { signal, redisUrl, children, say }: Stage,
  name: string,
  queueOf: (name: string, key: string) => string,
): Promise<Run> {
  const service = await orAbort(signal, Service.start(children, { rate: 1e6, burst: 1e6 }));
  const produce = (key: string, options: object) =>
    children.start(
      'producer',
      flags({ redis: redisUrl, queues: queueOf(name, key), source: key, ...options }),
    );
  await orAbort(signal, produce('c', { backlog: `c=${FLOOD}` }).ended);
  const queues = new Set(Object.keys(WEIGHTS).map((key) => queueOf(name, key)));
  const fleet = new Fleet(
    children,
    'consumer',
    flags({
      ...{ redis: redisUrl, service: service.url, governor: name, limits, queues: [...queues].join(',') },
    }),
  );
  await orAbort(signal, fleet.start(PROCESSES));
  fleet.go();
  const others = Object.entries(OFFERED).map(([key, rate]) =>
    produce(key, { paced: `${key}=${rate}`, seconds: 60 }),
  );
  const startedMs = performance.now();
  await until(signal, 'calls of every key', ALL_SEEN_MS, async () => {
    const { answeredOfKey } = await service.stats();
    return Object.keys(WEIGHTS).every((key) => answeredOfKey[key] !== undefined);
  });
  const allSeenMs = Math.round(performance.now() - startedMs);
  await pause(signal, SETTLING_MS);
  const { epochMs } = await service.trace();
  const fromUs = (Date.now() - epochMs) * 1000;
  say(`all keys are seen; measuring for ${SECONDS} s`);
  await pause(signal, SECONDS * 1000);
  const { arrivals } = await service.trace();
  await orAbort(signal, Promise.all([fleet.stop(), service.stop(), ...others.map((other) => other.stop())]));

  const toUs = fromUs + SECONDS * 1e6;
  const starts = arrivals
    .filter(([atUs]) => atUs >= fromUs && atUs < toUs)
    .map(([, , , , attempt]) => attempt);
  return {
    ...shareFigures(arrivals, { fromUs, toUs, weights: WEIGHTS, rate: RATE }),
    allSeenMs,
    startsPerJob: round(starts.reduce((sum, one) => sum + one, 0) / starts.length),
    mostStarts: Math.max(...starts),
  };
}

function demandsOf(where: string, { ofShare, used }: ShareFigures): Demand[] {
  return [
    ...Object.entries(ofShare).flatMap(([key, share]) => [
      atLeast(`${where}, key ${key}: what it got of its share`, share, 0.95, '%'),
      atMost(`${where}, key ${key}: the same, at most`, share, 1.05, '%'),
    ]),
    atLeast(`${where}: all of them, of the limit`, used, 0.95, '%'),
  ];
}
