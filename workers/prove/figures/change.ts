import type { Arrival } from '../../downstream/arrivals.ts';
import { toleratedExcess } from '../../measure/bounds.ts';
import { round, worstExcess } from '../../measure/measure.ts';
import { ratePerSecond, reachedAfterUs, within } from '../../measure/rolling.ts';
import { timed } from '../../measure/timed.ts';

/** A rate that was raised and lowered again; times in microseconds of the service's clock, rates in tokens a second. */
export interface Change {
  /** Jobs that were put aside when the rate was raised. */
  readonly parked: number;
  readonly raisedUs: number;
  readonly loweredUs: number;
  readonly endUs: number;
  readonly low: number;
  readonly high: number;
  /** The keys of the parked jobs, and what each has of the rate: one part in so many. */
  readonly keys: readonly string[];
  readonly keyPart: number;
  readonly keyBurst: number;
}

export interface ChangeFigures {
  readonly parked: number;
  /** Tokens a second in the two seconds before the change. */
  readonly rateBefore: number;
  /** From the change to the begin of a second that saw 95 % of the new rate. */
  readonly reachedMs: number | null;
  readonly parkedReachedMs: number | null;
  /** Tokens a second from one second after each change on. */
  readonly rateRaised: number;
  readonly rateLowered: number;
  /** From one second after the change: the most over what the new rate allows in any interval. */
  readonly loweredExcess: number;
  readonly parkedLoweredExcess: number;
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
    parked: change.parked,
    rateBefore: round(ratePerSecond(all, raisedUs - 2 * SECOND_US, raisedUs)),
    reachedMs: toMs(reachedAfterUs(beforeLowered(all), { ...whileRaised, rate: high })),
    parkedReachedMs: toMs(
      reachedAfterUs(beforeLowered(ofKeys), { ...whileRaised, rate: keys.length * (high / keyPart) }),
    ),
    rateRaised: round(ratePerSecond(all, raisedUs + SECOND_US, loweredUs)),
    rateLowered: round(ratePerSecond(all, loweredUs + SECOND_US, endUs)),
    loweredExcess: round(worstExcess(afterLowered(all), low, low / 10)),
    parkedLoweredExcess: round(
      Math.max(
        ...keys.map((key) => worstExcess(afterLowered(timed(arrivals, { key })), low / keyPart, keyBurst)),
      ),
    ),
    tolerated: toleratedExcess(low),
  };
}
