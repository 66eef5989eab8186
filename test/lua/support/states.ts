import type { Redis } from 'ioredis';
import type { AdaptiveState } from '../../../src/core/buckets/adaptive.ts';
import type { ConcurrencyState } from '../../../src/core/buckets/concurrency/index.ts';
import {
  groupName,
  type KeyRegistry,
  registryName,
  type State,
  stateName,
} from '../../../src/core/buckets/kinds.ts';
import type { Moment } from '../../../src/core/buckets/moment.ts';
import type { RateState } from '../../../src/core/buckets/rate/index.ts';
import type { ShareGroup, ShareState } from '../../../src/core/buckets/share/index.ts';
import type { WindowState } from '../../../src/core/buckets/window/index.ts';
import type { Demand } from '../../../src/core/decide/demands.ts';
import type { Limit } from '../../../src/core/limits/limit.ts';
import { bucketKey, bucketKeys, registryKey } from '../../../src/store/redis/keys.ts';

type Hash = Record<string, string>;

/** What Redis holds of the given buckets, as core would: by the names and in the shapes of src/core/decide/buckets.ts. */
export async function statesOf(
  redis: Redis,
  governor: string,
  demands: readonly Demand[],
  at: Moment,
): Promise<Map<string, State>> {
  const states = new Map<string, State>();
  const own = new Map(demands.map((demand) => [stateName(demand), demand]));
  const ofAll = new Map(demands.map((demand) => [demand.limit.name, demand]));
  await Promise.all([
    ...[...own].map(async ([name, demand]) => {
      const state = await stateOf(redis, governor, demand, at);
      if (state !== undefined) states.set(name, state);
    }),
    ...[...ofAll].map(async ([name, demand]) => {
      if (demand.kind === 'share') states.set(groupName(name), await groupOf(redis, governor, demand));
      else if (demand.kind !== 'concurrency' && demand.limit.maxKeys !== null)
        states.set(registryName(name), await registryOf(redis, governor, demand.limit));
    }),
  ]);
  return states;
}

/** The keys that hold what core keeps under a name; the state's own is the first. */
export function keysOfState(governor: string, name: string): string[] {
  const [, place, rest] = /^(?:(window|concurrency|share|group|keys)\|)?(.*)$/.exec(name)!;
  if (place === 'keys') return [registryKey(governor, rest!)];
  if (place === 'group')
    return [bucketKeys(governor, { kind: 'share', limit: { name: rest }, bucket: rest } as Demand)[1]!];
  const kind = (place ?? 'rate') as Demand['kind'];
  return bucketKeys(governor, { kind, limit: { name: '' }, bucket: rest } as Demand).slice(
    0,
    kind === 'share' ? 1 : undefined,
  );
}

async function stateOf(
  redis: Redis,
  governor: string,
  demand: Demand,
  at: Moment,
): Promise<State | undefined> {
  const [own, ...others] = bucketKeys(governor, demand);
  const hash = await redis.hgetall(own!);
  if (Object.keys(hash).length === 0) return undefined;
  if (demand.kind === 'rate') return rateOf(hash, at);
  if (demand.kind === 'share') return shareOf(hash);
  if (demand.kind === 'window') return windowOf(hash, await redis.zrange(others[0]!, '0', '-1'));
  const [leases, queue, waiting] = await Promise.all([
    redis.zrange(others[0]!, '0', '-1', 'WITHSCORES'),
    redis.zrange(others[1]!, '0', '-1'),
    redis.hgetall(others[2]!),
  ]);
  return slotsOf(hash, leases, queue, waiting);
}

const number = (text: string | undefined, absent = 0): number => (text === undefined ? absent : Number(text));

const common = (hash: Hash) => ({
  atUs: number(hash.at),
  lineUs: number(hash.line),
  granted: number(hash.granted),
  refused: number(hash.refused),
  pause: hash.closed === undefined ? null : { fromUs: number(hash.closedFrom), untilUs: number(hash.closed) },
});

const rateOf = (hash: Hash, at: Moment): RateState => ({
  ...common(hash),
  debt: number(hash.debt),
  lastUs: number(hash.last),
  promised: number(hash.promised),
  terms: {
    rate: number(hash.rate),
    periodUs: number(hash.unit),
    burst: number(hash.burst),
    version: number(hash.version, at.version),
  },
  ...adaptiveOf(hash.adaptive),
  ...penaltyOf(hash),
});

const shareOf = (hash: Hash): ShareState => ({
  ...common(hash),
  debt: number(hash.debt),
  share: number(hash.share),
});

const MODES = { 1: 'fixed', 2: 'sliding', 3: 'log' } as const;

const windowOf = (hash: Hash, members: readonly string[]): WindowState => ({
  ...common(hash),
  start: number(hash.start),
  counts: (hash.counts ?? '').split(' ').filter(Boolean).map(Number),
  entries: members.map((member) => {
    const [total, us] = member.split(':').map(Number);
    return { us: us!, total: total! };
  }),
  base: hash.mode === '3' ? number(hash.base) : 0,
  mode: MODES[hash.mode as unknown as 1],
  windowUs: number(hash.window),
});

function slotsOf(
  hash: Hash,
  leases: readonly string[],
  queue: readonly string[],
  waiting: Hash,
): ConcurrencyState {
  const held = [];
  for (let index = 0; index < leases.length; index += 2) {
    const [, fence, cost, holder] = /^(\d+) (\d+) (.*)$/.exec(leases[index]!)!;
    held.push({
      holder: holder!,
      fence: Number(fence),
      cost: Number(cost),
      untilUs: Number(leases[index + 1]),
    });
  }
  const places = queue.map((holder) => {
    const [, cost, untilUs, woken, instance] = /^(\d+) (\d+) (\d+) (.*)$/.exec(waiting[holder]!)!;
    return {
      holder,
      cost: Number(cost),
      untilUs: Number(untilUs),
      wokenUs: Number(woken),
      instance: instance!,
    };
  });
  return {
    ...common(hash),
    fence: number(hash.fence),
    leases: held,
    waiting: places,
    ...adaptiveOf(hash.adaptive),
  };
}

// In the order of lua/includes/buckets/adaptive.lua.
const ADAPTIVE: readonly (keyof AdaptiveState)[] = [
  'value',
  'bad',
  'climbUs',
  'cutUs',
  'riseUs',
  'used',
  'busy',
  'windowUs',
  'calls',
  'failed',
  'latencySumUs',
  'usualNs',
  'lookUs',
  'lookFrom',
];

function penaltyOf(hash: Hash): Pick<RateState, 'penalty'> {
  const [overSinceUs, untilUs] = [number(hash.over), number(hash.penalty)];
  return overSinceUs === 0 && untilUs === 0 ? {} : { penalty: { overSinceUs, untilUs } };
}

function adaptiveOf(text: string | undefined): { adaptive?: AdaptiveState } {
  if (text === undefined) return {};
  const numbers = text.split(' ').map(Number);
  const fields = ADAPTIVE.map((field, index) => [field, numbers[index]]);
  return { adaptive: Object.fromEntries(fields) as AdaptiveState };
}

async function groupOf(
  redis: Redis,
  governor: string,
  demand: Demand & { readonly kind: 'share' },
): Promise<ShareGroup> {
  const { second, light, before, ...members } = await redis.hgetall(bucketKeys(governor, demand)[1]!);
  const own = `${bucketKey(governor, demand.limit.name, 'share')}:`;
  const active = Object.entries(members).map(([member, text]) => {
    const [weight, untilUs] = text.split(' ').map(Number);
    return [member.slice(own.length), { weight: weight!, untilUs: untilUs! }] as const;
  });
  return {
    active: new Map(active),
    second: number(second),
    light: number(light),
    lightBefore: number(before),
  };
}

async function registryOf(redis: Redis, governor: string, limit: Limit): Promise<KeyRegistry> {
  const members = await redis.zrange(registryKey(governor, limit.name), '0', '-1', 'WITHSCORES');
  const until = new Map<string, number>();
  const [rates, windows] = [bucketKey(governor, '', 'rate'), bucketKey(governor, '', 'window')];
  for (let index = 0; index < members.length; index += 2) {
    const name = members[index]!.replace(rates, '').replace(windows, 'window|');
    until.set(name, Number(members[index + 1]));
  }
  return { until };
}
