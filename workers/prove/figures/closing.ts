import type { Arrival } from '../../downstream/arrivals.ts';
import { toleratedExcess } from '../../measure/bounds.ts';
import { round, roundOrNull, worstExcess } from '../../measure/measure.ts';
import { ratePerSecond, within } from '../../measure/rolling.ts';
import { timed } from '../../measure/timed.ts';

/** One key that the service closed for a while; times in microseconds of its clock. */
export interface Closing {
  readonly closedUs: number;
  readonly retryAfterMs: number;
  readonly endUs: number;
  readonly closed: string;
  readonly shops: readonly string[];
  /** Tokens a second of each shop. */
  readonly rate: number;
  readonly burst: number;
}

/** Times are counted from the first 429 that the closed shop got. */
export interface ClosingFigures {
  readonly refusals: number;
  /** The last of its calls before the pause was felt everywhere. */
  readonly lastCallMs: number | null;
  /** Its calls later than {@link FELT_MS} and before it could be called again. */
  readonly callsWhileClosed: number;
  /** The rate of the worst-served other shop during the closing, over what its limit allows. */
  readonly othersShare: number;
  /** The same before it was closed, to compare. */
  readonly othersShareBefore: number;
  readonly resumedMs: number | null;
  /** In the second after that: the excess over its rate, with an empty bucket. */
  readonly resumedExcess: number;
  readonly laterExcess: number;
  readonly tolerated: number;
}

const FELT_MS = 50;
const BEFORE_US = 3_000_000;
const SECOND_US = 1_000_000;

export function closingFigures(arrivals: readonly Arrival[], plan: Closing): ClosingFigures {
  const { closedUs, retryAfterMs, endUs, closed, shops, rate, burst } = plan;
  const others = shops.filter((shop) => shop !== closed);
  const ofClosed = timed(arrivals, { key: closed });
  const refused = arrivals.filter(
    ([atUs, , , key, , , no]) => no === 1 && key === closed && atUs >= closedUs,
  );
  const firstUs = refused[0]?.[0] ?? Number.NaN;
  const opensUs = firstUs + retryAfterMs * 1000;
  const sinceFirstMs = (atUs: number | undefined) => (atUs === undefined ? null : (atUs - firstUs) / 1000);
  const whileClosed = ofClosed.filter(({ atUs }) => atUs >= firstUs && atUs < opensUs);
  const afterwards = within(ofClosed, opensUs, endUs);
  const worstShare = (fromUs: number, toUs: number) =>
    Math.min(
      ...others.map((key) => ratePerSecond(timed(arrivals, { key, accepted: true }), fromUs, toUs) / rate),
    );
  const resumedUs = afterwards[0]?.atUs;
  return {
    refusals: refused.length,
    lastCallMs: roundOrNull(sinceFirstMs(whileClosed.at(-1)?.atUs)),
    callsWhileClosed: whileClosed.filter(({ atUs }) => atUs - firstUs > FELT_MS * 1000).length,
    othersShare: round(worstShare(firstUs, opensUs)),
    othersShareBefore: round(worstShare(closedUs - BEFORE_US, closedUs)),
    resumedMs: roundOrNull(sinceFirstMs(resumedUs)),
    resumedExcess: round(
      worstExcess(within(afterwards, opensUs, (resumedUs ?? opensUs) + SECOND_US), rate, 1),
    ),
    laterExcess: round(worstExcess(afterwards, rate, burst)),
    tolerated: toleratedExcess(rate),
  };
}
