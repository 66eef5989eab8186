import type { Receipt, RefusalReason, Sight, Terms, Verdict } from '../../core/decide.ts';
import type { Limits } from '../../core/limit.ts';
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
    return (reply, nowUs) =>
      reply.oneOf(2) === 1 ? readGrant(reply, nowUs, legs, created) : readRefusal(reply, legs);
  };

function readGrant(reply: Numbers, nowUs: number, legs: readonly Leg[], created: number): Verdict {
  const waitUs = reply.next();
  const receipt: RedisReceipt = {
    startUs: nowUs + waitUs,
    legs: legs.map((leg) => ({ leg, grantedAfter: reply.next() })),
    created,
  };
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
    const legs = receipt.legs.flatMap(({ leg, grantedAfter }) => {
      const limit = stillThere(leg, limits);
      return limit === undefined ? [] : [{ leg: { ...leg, limit }, grantedAfter }];
    });
    call.cancel({ startUs: receipt.startUs, legs });
    return (reply) => reply.oneOf(2) === 1 && legs.length === receipt.legs.length;
  };

// The limit may have other numbers by now, and its bucket is in units of those. One that is gone has nothing to give back.
const stillThere = ({ limit }: Leg, limits: Limits) =>
  limits.find(({ name, by }) => name === limit.name && by === limit.by);

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
