import {
  type Receipt,
  type RefusalReason,
  type Sight,
  type Terms,
  underLimits,
  type Verdict,
} from '../../core/decide.ts';
import { type Leg, legsOf } from '../../core/request.ts';
import type { Request } from '../../core/store.ts';
import type { DecideCall } from './decide-call.ts';
import type { Numbers } from './reply.ts';

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

const REASONS: readonly RefusalReason[] = ['rate', 'line', 'horizon'];

export const acquire =
  (request: Request, terms: Terms): Operation<Verdict> =>
  (call) => {
    const legs = legsOf(call.config.limits, request.cost, request.keys);
    call.acquire(legs, terms);
    const { created } = call.config;
    return (reply, nowUs) => {
      const first = reply.next();
      return first === 0 ? readRefusal(reply, legs) : readGrant(reply, first - 1, nowUs, legs, created);
    };
  };

function readGrant(
  reply: Numbers,
  waitUs: number,
  nowUs: number,
  legs: readonly Leg[],
  created: number,
): Verdict {
  const granted =
    waitUs === 0 ? [] : legs.map((leg) => ({ leg, grantedAfter: reply.next(), pushedUnits: reply.next() }));
  const receipt: RedisReceipt = { startUs: nowUs + waitUs, legs: granted, created };
  return { granted: true, waitUs, receipt };
}

function readRefusal(reply: Numbers, legs: readonly Leg[]): Verdict {
  const { limit } = legs[reply.oneOf(legs.length)]!;
  const reason = REASONS[reply.oneOf(REASONS.length)]!;
  return { granted: false, limit, reason, waitUs: reply.next(), slotted: reply.oneOf(2) === 1 };
}

export const force =
  (request: Request): Operation<boolean> =>
  (call) => {
    call.force(legsOf(call.config.limits, request.cost, request.keys));
    return (reply) => reply.oneOf(2) === 1;
  };

export const cancel =
  (receipt: Receipt): Operation<boolean> =>
  (call) => {
    const { limits, created } = call.config;
    if ((receipt as RedisReceipt).created !== created) return () => false;
    const current = underLimits(receipt, limits);
    call.cancel(current);
    return (reply) => reply.oneOf(2) === 1 && current.legs.length === receipt.legs.length;
  };

export const peek =
  (request: Request): Operation<{ leg: Leg; sight: Sight }[]> =>
  (call) => {
    const legs = legsOf(call.config.limits, request.cost, request.keys);
    call.peek(legs);
    return (reply) => legs.map((leg) => ({ leg, sight: readSight(reply) }));
  };

const readSight = (reply: Numbers): Sight => ({
  remaining: reply.next(),
  waitUs: reply.next(),
  lineUs: reply.next(),
  granted: reply.next(),
  refused: reply.next(),
});
