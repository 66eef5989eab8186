import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { MAX_AHEAD_US } from '../../../src/core/buckets/constants.ts';
import type { View } from '../../../src/core/buckets/kind.ts';
import type { KeyRegistry, State } from '../../../src/core/buckets/kinds.ts';
import { stateName } from '../../../src/core/buckets/kinds.ts';
import type { ShareGroup } from '../../../src/core/buckets/share/index.ts';
import type { Demand } from '../../../src/core/decide/demands.ts';
import type { HeldSlot } from '../../../src/core/decide/give-back.ts';
import type { Receipt, Verdict } from '../../../src/core/decide/verdict.ts';
import { changesInWords } from '../../../src/core/limits/configuration.ts';
import { type Limits, type LimitsOptions, parseLimits } from '../../../src/core/limits/limit.ts';
import { wakePrefix } from '../../../src/store/redis/keys.ts';
import { RedisStore } from '../../../src/store/redis/redis-store.ts';
import { type Batch, type History, KEY_VALUES, type Step } from '../../support/histories.ts';
import { States, slotsOf, World, ZERO_US } from '../../support/world.ts';
import { clientWithTime, expiriesMs } from './injected-time.ts';
import { keysOfState, statesOf } from './states.ts';

const INSTANCES = ['one', 'two'];

/** A history on Redis and in the pure core, side by side: the same calls at the same times. */
export class Both {
  readonly #world: World;
  readonly #receipts: Receipt[] = [];
  #stores = new Map<string, RedisStore>();
  #atUs = 0;
  played = 0;

  private constructor(
    private readonly redis: Redis,
    private readonly listener: Redis,
    private readonly name: string,
    { limits, coldStart }: History,
  ) {
    this.#world = new World(limits, coldStart === 'empty' ? 0 : undefined);
  }

  static async begin(redis: Redis, listener: Redis, name: string, history: History): Promise<Both> {
    const both = new Both(redis, listener, name, history);
    await both.#start(both.#world.limits, history.coldStart);
    await listener.subscribe(...[...INSTANCES, 'end'].map((channel) => wakePrefix(name) + channel));
    return both;
  }

  async end(): Promise<void> {
    this.listener.removeAllListeners('message');
    await this.listener.unsubscribe();
  }

  async play(batch: Batch): Promise<void> {
    this.#atUs += batch.afterUs;
    await this.#expire();
    if (batch.limits !== null) await this.#change(batch.limits);
    if (batch.pauseUs !== null) await this.#pauseAll(batch.pauseUs);
    const steps = batch.steps.map((step) => this.#timed(step)).filter((step) => this.#isPlayable(step));
    const receipts = steps.map((step) => this.#receiptOf(step));
    // Together, so that they travel in one call and are decided in this order at one time.
    const store = this.#stores.get(batch.instance)!;
    const ended = this.#listen();
    // First a look at both: it puts times of a wrong clock right, and tidies a full registry, also where nothing else is asked.
    this.#world.peek(this.#atUs, { cost: this.#oneOfEach() });
    const [, ...results] = await Promise.all([
      store.peek({ cost: this.#oneOfEach(), keys: undefined, holder: '' }, 1),
      ...steps.map((step, index) => outcome(() => onRedis(store, step, receipts[index]))),
    ]);
    await this.redis.publish(`${wakePrefix(this.name)}end`, '');
    for (const [index, step] of steps.entries()) {
      const expected = await outcome(() => this.#inCore(step, receipts[index], batch.instance));
      expect({ step, result: plain(results[index]) }).toEqual({ step, result: plain(expected) });
      this.#keep(results[index]);
      this.played++;
    }
    expect({ steps, wakes: await ended }).toEqual({ steps, wakes: this.#world.woken.splice(0) });
    await this.#compareStates();
  }

  /** Processes that start with these limits, which win over those in force. */
  async #start(limits: Limits, coldStart: 'full' | 'empty' = 'full'): Promise<void> {
    const client = clientWithTime(this.redis, () => ZERO_US + this.#atUs);
    for (const instance of INSTANCES) {
      const store = new RedisStore({ name: this.name, limits, coldStart, instance }, client);
      this.#stores.set(instance, store);
      await store.limits();
    }
  }

  async #change(options: LimitsOptions): Promise<void> {
    const limits = parseLimits(options);
    await this.#start(limits);
    if (changesInWords('code', this.#world.limits, limits).length > 0)
      this.#world.configure(this.#atUs, limits);
  }

  /** @param forUs - 0: it is resumed. */
  async #pauseAll(forUs: number): Promise<void> {
    const store = this.#stores.get('one')!;
    if (forUs === 0) {
      await store.resume(undefined);
      this.#world.resume(this.#atUs);
    } else {
      await store.pause(undefined, forUs);
      this.#world.pause(this.#atUs, this.#atUs + Math.min(forUs, MAX_AHEAD_US));
    }
  }

  /** What core says is at rest goes on both sides; it must not have gone before on Redis. */
  async #expire(): Promise<void> {
    const over = this.#world.forget(this.#atUs);
    if (over.length > 0) await this.redis.del(...over.flatMap((name) => keysOfState(this.name, name)));
    // So do the entries of registries that are over: a clock that steps back would bring back those that were not cleaned up yet.
    for (const [name, state] of this.#world.buckets) {
      if (!('until' in state)) continue;
      const nowUs = ZERO_US + this.#atUs;
      for (const [bucket, untilUs] of state.until) if (untilUs <= nowUs) state.until.delete(bucket);
      await this.redis.zremrangebyscore(keysOfState(this.name, name)[0]!, '-inf', nowUs);
    }
    // What is told of all values together is written only when it changes.
    const kept = [...this.#world.buckets.restsUs].filter(([name]) => !/^(group|keys)\|/.test(name));
    const keys = kept.map(([name]) => keysOfState(this.name, name)[0]!);
    const gone = await expiriesMs(this.redis, keys);
    for (const [index, [name, restUs]] of kept.entries()) {
      expect({ name, early: gone[index]! * 1_000 < restUs - 1_000 }).toEqual({ name, early: false });
    }
  }

  #inCore(step: Step, receipt: Receipt | undefined, instance: string): unknown {
    const world = this.#world;
    const at = this.#atUs;
    switch (step.do) {
      case 'acquire':
        return world.acquire(at, { ...step.request, ...step.terms, instance });
      case 'force':
        return world.force(at, step.request);
      case 'peek':
        return world.peek(at, { ...step.request, priority: step.priority });
      case 'atMost':
        return world.atMost(at, step.most, { ...step.request, priority: step.priority });
      case 'leave':
        return world.leave(at, step.request);
      case 'report':
        return world.report(at, step.calls, step.request);
      case 'pause':
        return world.pause(at, at + Math.min(step.forUs, MAX_AHEAD_US), step.keys);
      case 'resume':
        return void world.resume(at, step.keys);
      case 'cancel':
        return world.cancel(at, receipt!);
      case 'settle':
        return world.settle(at, receipt!, step.actual);
      default:
        return world[step.do](at, slotOf(receipt!, step.stale)!);
    }
  }

  // A server tells one subscriber what it publishes in that order: all that was woken comes before the end.
  #listen(): Promise<string[]> {
    const wakes: string[] = [];
    return new Promise((resolve) => {
      const hear = (channel: string, holder: string) => {
        if (!channel.startsWith(wakePrefix(this.name))) return;
        if (!channel.endsWith(':end')) return void wakes.push(holder);
        this.listener.off('message', hear);
        resolve(wakes);
      };
      this.listener.on('message', hear);
    });
  }

  // Times of reports are written as from now.
  #timed(step: Step): Step {
    if (step.do !== 'report') return step;
    const startedUs = Math.max(0, ZERO_US + this.#atUs + step.calls.startedUs);
    return { ...step, calls: { ...step.calls, startedUs } };
  }

  #receiptOf(step: Step): Receipt | undefined {
    return 'back' in step ? this.#receipts.at(-1 - step.back) : undefined;
  }

  #isPlayable(step: Step): boolean {
    if (!('back' in step)) return true;
    const receipt = this.#receiptOf(step);
    if (receipt === undefined) return false;
    return 'stale' in step ? slotOf(receipt, false) !== undefined : true;
  }

  #keep(result: unknown): void {
    if (typeof result !== 'object' || result === null) return;
    if ('receipt' in result) this.#receipts.push((result as { receipt: Receipt }).receipt);
    else if ('startUs' in result) this.#receipts.push(result as Receipt);
  }

  #oneOfEach(): Record<string, number> {
    return Object.fromEntries(this.#world.limits.map(({ name }) => [name, 1]));
  }

  /**
   * What core sees in what Redis holds is what it sees in its own: each state brought to now. So things that are cleaned up
   * late (entries and leases that are over, counts that have drained) may be there or not, as long as they mean the same.
   */
  async #compareStates(): Promise<void> {
    const { limits } = this.#world;
    const at = this.#world.at(this.#atUs);
    const requests = KEY_VALUES.map((value) => ({
      cost: this.#oneOfEach(),
      keys: Object.fromEntries(
        limits.flatMap(({ by, options }) => by ?? options.by ?? []).map((by) => [by, value]),
      ),
    }));
    const stored = new States();
    const demands = requests.flatMap(({ cost, keys }) => this.#world.demands(cost, keys));
    for (const [name, state] of await statesOf(
      this.redis,
      this.name,
      [...demands, ...demands.map(sharedOf)],
      at,
    ))
      stored.set(name, state);
    const seen = (world: World) =>
      requests.flatMap((request) => world.views(this.#atUs, request).map(normal));
    expect(seen(this.#world.copy(stored))).toEqual(seen(this.#world.copy()));
  }
}

/** The first slot of a grant, if it has any. @param stale - With the number of an earlier lease. */
function slotOf(receipt: Receipt, stale: boolean): HeldSlot | undefined {
  const [slot] = slotsOf(receipt);
  return slot && { ...slot, fence: stale ? slot.fence - 1 : slot.fence };
}

async function onRedis(store: RedisStore, step: Step, receipt: Receipt | undefined): Promise<unknown> {
  switch (step.do) {
    case 'acquire':
      return store.acquire(step.request, step.terms);
    case 'force':
      return store.force(step.request);
    case 'peek':
      return store.peek(step.request, step.priority);
    case 'atMost':
      return store.atMost(step.request, step.most, step.priority);
    case 'leave':
      return store.leave(step.request);
    case 'report':
      return store.report(step.request, step.calls);
    case 'pause':
      return store.pause(step.keys, step.forUs);
    case 'resume':
      return store.resume(step.keys);
    case 'cancel':
      return store.cancel(receipt!);
    case 'settle':
      return store.settle(receipt!, step.actual);
    case 'release':
      return store.release(slotOf(receipt!, step.stale)!);
    default:
      return (await store.renew(slotOf(receipt!, step.stale)!)) > 0;
  }
}

async function outcome(work: () => unknown): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    if ((error as { code?: string }).code === undefined) throw error;
    return { error: (error as Error).message };
  }
}

const sharedOf = (demand: Demand): Demand =>
  demand.kind !== 'concurrency' && demand.kind !== 'share' && demand.limit.maxKeys !== null
    ? { ...demand, bucket: demand.limit.name }
    : demand;

/** A view without what says nothing: in which order leases are kept, and since when a window without a count has run. */
function normal(view: View): unknown {
  const { demand, waitUs, pausedUs, lineUs } = view;
  const state = view.state as Exclude<State, KeyRegistry | ShareGroup>;
  const kept: Record<string, unknown> = { ...state };
  if ('leases' in state)
    kept.leases = [...state.leases].sort((a, b) => a.fence - b.fence || (a.holder < b.holder ? -1 : 1));
  if ('entries' in state && state.entries.length === 0) kept.base = 0;
  if ('counts' in state && state.mode === 'fixed' && state.counts[0] === 0) kept.start = 0;
  const shared = view.group as ShareGroup | undefined;
  const group = shared && { ...shared, active: [...shared.active].sort() };
  return { name: stateName(demand), state: kept, waitUs, pausedUs, lineUs, group };
}

/** With nothing in it that only one side has. */
function plain(result: unknown): unknown {
  if (typeof result !== 'object' || result === null) return result;
  if (Array.isArray(result)) return result.map((one) => ('sight' in one ? one.sight : one));
  if ('receipt' in result) return { ...result, receipt: plain(result.receipt) };
  if ('charges' in result) return plainReceipt(result as Receipt);
  return 'limit' in result
    ? { ...result, limit: (result as Verdict & { granted: false }).limit.name }
    : result;
}

function plainReceipt({ startUs, ahead, version, holder, charges }: Receipt): unknown {
  // Which bucket a value of a limit with maxKeys meets is asked anew, on both sides, when something is given back.
  const flat = charges.map(({ demand, ...rest }) => ({
    limit: demand.limit.name,
    kind: demand.kind,
    cost: demand.cost,
    ...rest,
  }));
  return { startUs, ahead, version, holder, charges: flat };
}
