import type { Pause } from './pause.ts';

/** What a decision knows besides the buckets: when it is made, and what the store says of all of them. */
export interface Moment {
  /** The store's clock, in microseconds. */
  readonly nowUs: number;
  /** When all buckets without state were empty; may lie ahead. 0: they are full. */
  readonly coldAtUs: number;
  /** The last pause of the whole governor; null: there was none. */
  readonly pause: Pause | null;
  /** Version of the limits in force. Grants made ahead under another one are recalled. */
  readonly version: number;
  /** When the limits came to that version. 0: not known; then they are taken to have done so now. */
  readonly changedUs: number;
}

/** What the buckets of all kinds keep. Times are microseconds of the store's clock. */
export interface BucketState {
  /** The time at which the rest of it was true. It never goes back, but with a clock that is put right. */
  atUs: number;
  /** When all deferred work will have been admitted (line.ts); 0: none is deferred. */
  lineUs: number;
  /** Tokens or slots granted since the bucket has been there. */
  granted: number;
  /** Requests that it refused since it has been there. */
  refused: number;
  /** Its last pause; null: there was none. */
  pause: Pause | null;
}

/** From the store's now until `waitUs` after the bucket's own time; 0 stays "at once". A stepped clock stands still until then. */
export const fromNowUs = ({ atUs }: BucketState, waitUs: number, { nowUs }: Moment): number =>
  waitUs === 0 ? 0 : atUs - nowUs + waitUs;

/** A time that a clock wrote which has been put right since: moved with it. 0 stays "none". */
export function movedBy(us: number, stepUs: number): number {
  return us === 0 ? 0 : Math.max(0, us - stepUs);
}
