import type { Arrival } from '../../downstream/arrivals.ts';
import { toleratedExcess } from '../../measure/bounds.ts';
import { round, worstExcess } from '../../measure/measure.ts';
import { ratePerSecond, reachedAfterUs, within } from '../../measure/rolling.ts';
import { timed } from '../../measure/timed.ts';

/** A rate that was raised and lowered again; times in microseconds of the service's clock, rates in tokens a second. */
export interface Change {
  /** Jobs that were deferred when the rate was raised. */
  readonly deferred: number;
  readonly raisedUs: number;
  readonly loweredUs: number;
  readonly endUs: number;
  readonly low: number;
  readonly high: number;
  /** The keys of the deferred jobs; each has a `keyPart`-th of the rate. */
  readonly keys: readonly string[];
  readonly keyPart: number;
  readonly keyBurst: number;
}

export interface ChangeFigures {
  readonly deferred: number;
  /** Tokens a second in the two seconds before the change. */
  readonly rateBefore: number;
  /** From the change to the start of a second that saw 95 % of the new rate. */
  readonly reachedMs: number | null;
  readonly deferredReachedMs: number | null;
  /** Tokens a second, from one second after each change on. */
  readonly rateRaised: number;
  readonly rateLowered: number;
  /** From one second after the change on: the most that any interval saw over what the new rate allows. */
  readonly loweredExcess: number;
  readonly deferredLoweredExcess: number;
  readonly tolerated: number;
}

const SECOND_US = 1_000_000;
const REACHED_SHARE = 0.95;

export function changeFigures(arrivals: readonly Arrival[], change: Change): ChangeFigures {
  const { raisedUs, loweredUs, endUs, low, high, keys, keyPart, keyBurst } = change;
  const all = timed(arrivals);
  const ofKeys = timed(arrivals.filter(([, , , key]) => keys.includes(key)));
  const whileRaised = { changeUs: raisedUs, windowUs: SECOND_US, share: REACHED_SHARE };
  const beforeLowered = (items: typeof all) => items.filter(({ atUs }) => atUs < loweredUs);
  const afterLowered = (items: typeof all) => within(items, loweredUs + SECOND_US, endUs);
  const toMs = (us: number | null) => (us === null ? null : round(us / 1000));
  return {
    deferred: change.deferred,
    rateBefore: round(ratePerSecond(all, raisedUs - 2 * SECOND_US, raisedUs)),
    reachedMs: toMs(reachedAfterUs(beforeLowered(all), { ...whileRaised, rate: high })),
    deferredReachedMs: toMs(
      reachedAfterUs(beforeLowered(ofKeys), { ...whileRaised, rate: keys.length * (high / keyPart) }),
    ),
    rateRaised: round(ratePerSecond(all, raisedUs + SECOND_US, loweredUs)),
    rateLowered: round(ratePerSecond(all, loweredUs + SECOND_US, endUs)),
    loweredExcess: round(worstExcess(afterLowered(all), low, low / 10)),
    deferredLoweredExcess: round(
      Math.max(
        ...keys.map((key) => worstExcess(afterLowered(timed(arrivals, { key })), low / keyPart, keyBurst)),
      ),
    ),
    tolerated: toleratedExcess(low),
  };
}
