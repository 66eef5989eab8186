import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Redis } from 'ioredis';
import { provideRedis } from '../scripts/redis.ts';

/*
 * What a decision costs: real governors on a Redis of their own, callers that each ask again as soon as they have an answer.
 *
 *   npx tsx bench/decisions.ts [--checkout DIRECTORY] [--seconds 2] [--callers 1,64,512]
 *
 * Prints JSON, a row for each set of limits and number of callers: decisions a second, and microseconds of the server's CPU a
 * decision. --checkout measures the code of another checkout of this project, so that two can be compared in turn.
 */

type Package = typeof import('../src/index.ts');
type Limits = Parameters<Package['createGovernor']>[0]['limits'];

interface Scenario {
  readonly limits: (flyball: Package) => Limits;
  readonly keys: (index: number) => Record<string, string>;
}

const KEYS = 10_000;
// Walks through all keys in an order in which neighbours lie far apart.
const spread = (index: number): string => String((index * 7_919) % KEYS);

const scenarios: Record<string, Scenario> = {
  'one limit': { limits: ({ perSecond }) => ({ all: perSecond(1_000_000) }), keys: () => ({}) },
  '10,000 keys': {
    limits: ({ perSecond }) => ({ shop: perSecond(1_000_000, { by: 'shop' }) }),
    keys: (index) => ({ shop: spread(index) }),
  },
  'three limits': {
    limits: ({ perSecond }) => ({
      all: perSecond(1_000_000),
      shop: perSecond(1_000_000, { by: 'shop' }),
      user: perSecond(1_000_000, { by: 'user' }),
    }),
    keys: (index) => ({ shop: spread(index), user: spread(index + 1) }),
  },
  refused: { limits: ({ perSecond }) => ({ all: perSecond(1) }), keys: () => ({}) },
};

function option(name: string, fallback: string): string {
  const at = process.argv.indexOf(`--${name}`);
  return at === -1 ? fallback : (process.argv[at + 1] ?? fallback);
}

async function cpuUs(redis: Redis): Promise<number> {
  const text = await redis.info('cpu');
  const seconds = (field: string) => Number(new RegExp(`${field}:([0-9.]+)`).exec(text)![1]);
  return (seconds('used_cpu_sys') + seconds('used_cpu_user')) * 1e6;
}

async function measure(flyball: Package, url: string, scenario: Scenario, callers: number, forMs: number) {
  const redis = new Redis(url);
  await redis.flushall();
  const governor = flyball.createGovernor({
    name: 'bench',
    connection: url,
    limits: scenario.limits(flyball),
  });
  let asked = 0;
  const runUntil = async (endMs: number) => {
    const caller = async () => {
      while (performance.now() < endMs) await governor.allow({ keys: scenario.keys(asked++) });
    };
    await Promise.all(Array.from({ length: callers }, caller));
  };
  await runUntil(performance.now() + forMs / 4);
  asked = 0;
  const [cpuBefore, began] = [await cpuUs(redis), performance.now()];
  await runUntil(began + forMs);
  const [cpu, ms] = [(await cpuUs(redis)) - cpuBefore, performance.now() - began];
  await governor.close();
  redis.disconnect();
  return { perSecond: Math.round((asked / ms) * 1_000), cpuUs: Number((cpu / asked).toFixed(2)) };
}

const checkout = resolve(option('checkout', join(import.meta.dirname, '..')));
const flyball = (await import(pathToFileURL(join(checkout, 'src/index.ts')).href)) as Package;
const server = await provideRedis();
const rows = [];
for (const [limits, scenario] of Object.entries(scenarios)) {
  for (const callers of option('callers', '1,64,512').split(',').map(Number)) {
    const forMs = Number(option('seconds', '2')) * 1_000;
    rows.push({ limits, callers, ...(await measure(flyball, server.url, scenario, callers, forMs)) });
  }
}
await server.stop();
process.stdout.write(`${JSON.stringify({ checkout, rows }, undefined, 2)}\n`);
