/*
 * A toy kind of limit: `max` tokens ever for each bucket, then never again. A reader learns from it how much a kind has to say:
 * how a limit is read, how a bucket looks now, and how it is charged and corrected. It has no line and no queue, so it leaves
 * their functions out. quota.lua is the same in Lua.
 */
import { MAX_AHEAD_US } from '../../src/core/buckets/constants.ts';
import type { DemandOf, Kind, View } from '../../src/core/buckets/kind.ts';
import type { BucketState } from '../../src/core/buckets/moment.ts';
import { pausedForUs, pausesOf } from '../../src/core/buckets/pause.ts';
import { knownNames, wholeNumber } from '../../src/core/checks.ts';
import type { LimitKind } from '../../src/core/limits/kind.ts';
import type { Limit } from '../../src/core/limits/limit.ts';

interface QuotaLimit {
  readonly name: string;
  readonly kind: 'quota';
  readonly by: string | null;
  readonly max: number;
  readonly options: { readonly kind: 'quota'; readonly max: number; readonly by?: string };
}

export const QUOTA_LIMIT: LimitKind<QuotaLimit> = {
  parse(name, path, given, by) {
    knownNames(path, given, ['kind', 'max', 'by']);
    const max = wholeNumber(`${path}.max`, given.max, 1, 2 ** 40);
    const options = { kind: 'quota', max, ...(by !== null && { by }) } as const;
    return { name, kind: 'quota', by, max, options };
  },
  words: ({ kind, max, ...rest }) => [`${max} ever`, rest],
  attributeOf: ({ by }) => by,
  size: ({ max }) => max,
  mostCost: ({ max }) => max,
  countsTokens: true,
  fillingUs: () => 0, // it never fills
  intervalUs: () => undefined,
};

interface QuotaState extends BucketState {
  used: number;
}
// The names of kinds are closed in the types: a new kind adds its own to them.
type QuotaDemand = DemandOf & { readonly limit: Limit & { readonly max: number } };
type QuotaView = View<QuotaDemand, QuotaState>;

const leftOf = ({ state, demand }: Pick<QuotaView, 'state' | 'demand'>) =>
  Math.max(0, demand.limit.max - state.used);

export const QUOTA: Kind<QuotaView> = {
  prefix: 'quota|',
  reserves: false,
  look({ demand, stored }, _asker, at) {
    const blank = { lineUs: 0, granted: 0, refused: 0, pause: null, used: 0 };
    const state = { ...(stored ?? blank), atUs: at.nowUs };
    const pauses = pausesOf(state, at);
    const pausedUs = pausedForUs(pauses, at);
    const waitUs = demand.cost > leftOf({ state, demand }) ? MAX_AHEAD_US : pausedUs;
    return { demand, stored, state, waitUs, pausedUs, pauses, lineUs: 0 };
  },
  expiresUs: ({ atUs }) => atUs + MAX_AHEAD_US,
  canReserve: () => true,
  charge({ state, demand }) {
    state.granted += demand.cost;
    state.used += demand.cost;
    return {};
  },
  remaining: leftOf,
  effective: ({ demand }) => demand.limit.max,
  giveBack({ state, demand }) {
    state.used -= demand.cost;
    return true;
  },
  settle({ state, demand }, _startUs, actual) {
    state.used += actual - demand.cost;
    if (actual > demand.cost) state.granted += actual - demand.cost;
  },
};
