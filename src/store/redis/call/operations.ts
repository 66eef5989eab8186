import type { AdaptiveReport } from '../../../core/buckets/adaptive.ts';
import type { Terms } from '../../../core/decide/ask.ts';
import {
  type Cost,
  type Demand,
  demandsOf,
  type Keys,
  keyedDemandsOf,
} from '../../../core/decide/demands.ts';
import { type HeldSlot, isAdaptive, settledUnder, slotUnder } from '../../../core/decide/give-back.ts';
import type { BucketReport } from '../../../core/decide/peek.ts';
import type { Receipt, Verdict } from '../../../core/decide/verdict.ts';
import type { Request } from '../../../core/ports/store.ts';
import { pausedText, resumedText } from '../messages/texts.ts';
import { readCharge } from './kinds.ts';
import { REASONS, REPORT_FIELDS } from './protocol.ts';
import type { Numbers } from './reply.ts';
import type { DecideCall } from './write.ts';

/** Reads an operation's own part of the reply. */
export type Read<T> = (reply: Numbers, nowUs: number) => T;

/**
 * One thing asked of the store: writes itself into a call, under the limits in force there, and returns how to read the
 * answer. Throws if the request is wrong under those limits. May be asked again, for another call.
 */
export type Operation<T> = (call: DecideCall) => Read<T>;

/** A grant of this store is taken back only from the data that it was made on. */
interface RedisReceipt extends Receipt {
  readonly created: number;
}

const yes: Read<boolean> = (reply) => reply.oneOf(2) === 1;
const no: Read<boolean> = () => false;
const nothing: Read<void> = (reply) => void reply.next();

const met = (call: DecideCall, request: Request): Demand[] =>
  demandsOf(call.config.limits, request.cost, request.keys);

export const acquire =
  (request: Request, terms: Terms): Operation<Verdict> =>
  (call) => {
    const demands = met(call, request);
    call.acquire(demands, request.holder, terms);
    return (reply, nowUs) => {
      const first = reply.next();
      if (first === 0) return readRefusal(reply, demands);
      const waitUs = first - 1;
      const receipt = readReceipt(reply, call, demands, request.holder, nowUs, waitUs);
      return { granted: true, waitUs, receipt };
    };
  };

function readReceipt(
  reply: Numbers,
  call: DecideCall,
  demands: readonly Demand[],
  holder: string,
  nowUs: number,
  waitUs: number,
): RedisReceipt {
  const { version, created } = call.config;
  const ahead = waitUs > 0;
  const charged = demands.map((demand) => readCharge(reply, demand, ahead));
  return { startUs: nowUs + waitUs, ahead, version, created, holder, charges: charged };
}

function readRefusal(reply: Numbers, demands: readonly Demand[]): Verdict {
  const { limit, by } = demands[reply.oneOf(demands.length)]!;
  const told = REASONS[reply.oneOf(REASONS.length)]!;
  const why = told === 'governorPaused' ? ({ by: null, reason: 'paused' } as const) : { by, reason: told };
  const waitUs = reply.next();
  return { granted: false, limit, ...why, waitUs, hasTurn: reply.oneOf(2) === 1 };
}

export const atMost =
  (request: Request, most: number, priority: Terms['priority']): Operation<number> =>
  (call) => {
    call.atMost(met(call, request), most, priority);
    return (reply) => reply.next();
  };

export const force =
  (request: Request): Operation<Receipt | null> =>
  (call) => {
    const demands = met(call, request);
    call.force(demands, request.holder);
    return (reply, nowUs) =>
      reply.oneOf(2) === 0 ? null : readReceipt(reply, call, demands, request.holder, nowUs, 0);
  };

export const cancel =
  (receipt: Receipt): Operation<boolean> =>
  (call) => {
    if (!receipt.ahead || !isOf(call, receipt)) return no;
    call.cancel({ ...receipt, charges: receipt.charges.filter(({ demand }) => demand.kind !== 'share') });
    return yes;
  };

/** Whether a receipt was made on the data, and under the limits, that the call is for. */
const isOf = (call: DecideCall, receipt: Receipt): boolean =>
  (receipt as RedisReceipt).created === call.config.created && receipt.version === call.config.version;

export const settle =
  (receipt: Receipt, actual: Cost): Operation<void> =>
  (call) => {
    const settled = settledUnder(call.config.limits, receipt, actual);
    call.settle(settled.receipt, settled.actual, isOf(call, receipt));
    return nothing;
  };

export const release =
  (slot: HeldSlot): Operation<boolean> =>
  (call) => {
    const held = slotUnder(call.config.limits, slot);
    if (held === undefined) return no;
    call.release(held);
    return yes;
  };

export const renew =
  (slot: HeldSlot): Operation<number> =>
  (call) => {
    const held = slotUnder(call.config.limits, slot);
    // Without the limit there is nothing to exceed, and no work to end.
    if (held === undefined) return () => slot.demand.limit.leaseUs;
    call.renew(held);
    return (reply) => reply.oneOf(2) * held.demand.limit.leaseUs;
  };

export const leave =
  (request: Request): Operation<void> =>
  (call) => {
    call.leave(met(call, request), request.holder);
    return nothing;
  };

export const pauseKeys =
  (keys: Keys, forUs: number): Operation<void> =>
  (call) => {
    call.pause(keyedDemandsOf(call.config.limits, keys), forUs, pausedText(keys, forUs));
    return nothing;
  };

export const resumeKeys =
  (keys: Keys): Operation<void> =>
  (call) => {
    call.resume(keyedDemandsOf(call.config.limits, keys), resumedText(keys));
    return nothing;
  };

export const report =
  (request: Request, calls: AdaptiveReport): Operation<void> =>
  (call) => {
    call.report(met(call, request).filter(isAdaptive), calls);
    return nothing;
  };

export const peek =
  (request: Request, priority: Terms['priority']): Operation<{ demand: Demand; sight: BucketReport }[]> =>
  (call) => {
    const demands = met(call, request);
    call.peek(demands, priority);
    return (reply) => demands.map((demand) => ({ demand, sight: readSight(reply) }));
  };

type Sight = { -readonly [Field in keyof BucketReport]: number };

const readSight = (reply: Numbers): BucketReport =>
  Object.fromEntries(REPORT_FIELDS.map((field) => [field, reply.next()])) as Sight;
