import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { assemble } from '../../../scripts/assemble-script.mjs';
import type { View } from '../../../src/core/buckets/kind.ts';
import type { KeyRegistry, State } from '../../../src/core/buckets/kinds.ts';
import { stateName } from '../../../src/core/buckets/kinds.ts';
import type { ShareGroup } from '../../../src/core/buckets/share/index.ts';
import { type Demand, demandsOf } from '../../../src/core/decide/demands.ts';
import type { Receipt, Verdict } from '../../../src/core/decide/verdict.ts';
import { viewsOf } from '../../../src/core/decide/view.ts';
import { type LimitsOptions, parseLimits } from '../../../src/core/limits/limit.ts';
import * as operations from '../../../src/store/redis/call/operations.ts';
import { parseReply } from '../../../src/store/redis/call/reply.ts';
import { DecideCall } from '../../../src/store/redis/call/write.ts';
import { configKey, eventsChannel, wakePrefix } from '../../../src/store/redis/keys.ts';
import { type Batch, type History, KEY_VALUES, type Step } from './kinds-histories.ts';
import { Kept, Model, slotOf } from './kinds-model.ts';
import { keysOfState, statesOf } from './kinds-states.ts';

const START_US = 1_700_000_000_000_000;
const CREATED = 1;

// Far enough for keys not to expire by the server's own clock.
const EXPIRY_SHIFT_MS = 1_000_000_000_000;

/** The time is the last argument; when a key would expire by it can be read, and is seen to by the test. */
const CLOCK = `
local function nowUs()
  return tonumber(ARGV[#ARGV])
end
local function expireAfterMs(key, ms)
  redis.call('PEXPIREAT', key, string.format('%.0f', math.floor(nowUs() / 1000) + ms + ${EXPIRY_SHIFT_MS}))
end
return { nowUs = nowUs, expireAfterMs = expireAfterMs }
`;
const script = (name: string): string => assemble(name, { replaceIncludes: { clock: CLOCK } }).source;
const decideSource = script('decide');
const pauseSource = script('pause-governor');

type Read = operations.Read<unknown>;

/** A history in Redis and in core, side by side: the same calls at the same times. */
export class Both {
  readonly #model: Model;
  readonly #receipts: Receipt[] = [];
  #nowUs = START_US;
  played = 0;

  private constructor(
    private readonly redis: Redis,
    private readonly listener: Redis,
    private readonly name: string,
    { limits, coldStart }: History,
  ) {
    this.#model = new Model(parseLimits(limits), coldStart === 'empty' ? START_US : 0);
  }

  static async begin(redis: Redis, listener: Redis, name: string, history: History): Promise<Both> {
    const both = new Both(redis, listener, name, history);
    const coldAt = history.coldStart === 'empty' ? START_US : 0;
    await redis.hset(configKey(name), { version: 1, created: CREATED, coldAt });
    await listener.subscribe(`${wakePrefix(name)}one`, `${wakePrefix(name)}two`, `${wakePrefix(name)}end`);
    return both;
  }

  async end(): Promise<void> {
    this.listener.removeAllListeners('message');
    await this.listener.unsubscribe();
  }

  async play(batch: Batch): Promise<void> {
    this.#nowUs += batch.afterUs;
    await this.#expire();
    if (batch.limits !== null) await this.#change(batch.limits);
    if (batch.pauseUs !== null) await this.#pauseAll(batch.pauseUs);
    const steps = batch.steps.map((step) => this.#at(step)).filter((step) => this.#isPlayable(step));
    const receipts = steps.map((step) => this.#receiptOf(step));
    this.#model.begin(this.#nowUs);
    const expectedWakes: string[] = [];
    const expected = steps.map((step, index) =>
      outcome(() =>
        this.#model.play(step, receipts[index], batch.instance, this.#nowUs, (holder) =>
          expectedWakes.push(holder),
        ),
      ),
    );
    const { results, wakes } = await this.#call(batch.instance, steps, receipts);
    for (const [index, step] of steps.entries()) {
      expect({ step, result: plain(results[index]) }).toEqual({ step, result: plain(expected[index]) });
      this.#keep(results[index]);
      this.played++;
    }
    expect({ steps, wakes }).toEqual({ steps, wakes: expectedWakes });
    await this.#compareStates();
  }

  /** What core says is at rest goes on both sides; it must not have gone before in Redis. */
  async #expire(): Promise<void> {
    const over = this.#model.buckets.expire(this.#nowUs);
    if (over.length > 0) await this.redis.del(...over.flatMap((name) => keysOfState(this.name, name)));
    const pipeline = this.redis.pipeline();
    // What is told of all values together is written only when it changes.
    const kept = [...this.#model.buckets.restsUs].filter(([name]) => !/^(group|keys)\|/.test(name));
    for (const [name] of kept) pipeline.pexpiretime(keysOfState(this.name, name)[0]!);
    const times = (await pipeline.exec())!.map(([, ms]) => Number(ms) - EXPIRY_SHIFT_MS);
    for (const [index, [name, restUs]] of kept.entries()) {
      expect({ name, gone: times[index]! * 1_000 < restUs - 1_000, restUs, ms: times[index] }).toMatchObject({
        gone: false,
      });
    }
  }

  async #change(limits: LimitsOptions): Promise<void> {
    this.#model.change(parseLimits(limits), this.#nowUs);
    await this.redis.hincrby(configKey(this.name), 'version', 1);
    await this.redis.hset(configKey(this.name), 'updatedAt', this.#nowUs);
  }

  async #pauseAll(forUs: number): Promise<void> {
    this.#model.pauseAll(forUs, this.#nowUs);
    const key = configKey(this.name);
    const args = [String(forUs), eventsChannel(this.name), 'paused', String(this.#nowUs)];
    await this.redis.eval(pauseSource, 1, key, ...args);
    expect(Number(await this.redis.hget(key, 'version'))).toBe(this.#model.version);
  }

  async #call(instance: string, steps: readonly Step[], receipts: readonly (Receipt | undefined)[]) {
    const inForce = { version: this.#model.version, created: CREATED, limits: this.#model.limits } as never;
    const call = new DecideCall(this.name, inForce, instance);
    const reads = steps.map((step, index) => written(step, receipts[index], call));
    const ended = this.#listen();
    const args = [...call.arguments(), String(this.#nowUs)];
    const answer = await this.redis.eval(decideSource, call.keys.length, ...call.keys, ...args);
    const reply = parseReply(answer)!;
    const nowUs = reply.next();
    const results = reads.map((read) => (typeof read === 'function' ? read(reply, nowUs) : read));
    reply.end();
    await this.redis.publish(`${wakePrefix(this.name)}end`, '');
    return { results, wakes: await ended };
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
  #at(step: Step): Step {
    if (step.do !== 'report') return step;
    return { ...step, calls: { ...step.calls, startedUs: Math.max(0, this.#nowUs + step.calls.startedUs) } };
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

  /**
   * What core sees in what Redis holds is what it sees in its own: each state brought to now. So things that are cleaned up
   * late (entries and leases that are over, counts that have drained) may be there or not, as long as they mean the same.
   */
  async #compareStates(): Promise<void> {
    const { limits } = this.#model;
    const at = this.#model.moment(this.#nowUs);
    const cost = Object.fromEntries(limits.map(({ name }) => [name, 1]));
    const requests = KEY_VALUES.map((value) => {
      const keys = Object.fromEntries(
        limits.flatMap(({ by, options }) => by ?? options.by ?? []).map((by) => [by, value]),
      );
      return demandsOf(limits, cost, keys);
    });
    const stored = new Kept();
    const all = [...requests.flat(), ...requests.flat().map(sharedOf)];
    for (const [name, state] of await statesOf(this.redis, this.name, all, at)) stored.set(name, state, 0);
    const seen = (buckets: Kept) =>
      requests.flatMap((demands) => viewsOf(buckets, demands, { priority: 1, holder: '' }, at).map(normal));
    expect(seen(stored)).toEqual(seen(this.#model.buckets.copy()));
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

function written(
  step: Step,
  receipt: Receipt | undefined,
  call: DecideCall,
): Read | { readonly error: string } {
  return outcome(() => operationOf(step, receipt)(call)) as Read | { readonly error: string };
}

function operationOf(step: Step, receipt: Receipt | undefined): operations.Operation<unknown> {
  switch (step.do) {
    case 'acquire':
      return operations.acquire(step.request, step.terms);
    case 'force':
      return operations.force(step.request);
    case 'peek':
      return operations.peek(step.request, step.priority);
    case 'atMost':
      return operations.atMost(step.request, step.most, step.priority);
    case 'leave':
      return operations.leave(step.request);
    case 'report':
      return operations.report(step.request, step.calls);
    case 'pause':
      return operations.pauseKeys(step.keys, step.forUs);
    case 'resume':
      return operations.resumeKeys(step.keys);
    case 'cancel':
      return operations.cancel(receipt!);
    case 'settle':
      return operations.settle(receipt!, step.actual);
    default: {
      const slot = slotOf(receipt!, step.stale)!;
      if (step.do === 'release') return operations.release(slot);
      return (call) => {
        const read = operations.renew(slot)(call);
        return (reply, nowUs) => read(reply, nowUs) > 0;
      };
    }
  }
}

const outcome = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    if ((error as { code?: string }).code === undefined) throw error;
    return { error: (error as Error).message };
  }
};

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
