/**
 * The numbers that decisions go by, in TypeScript and in Lua alike. Times are microseconds. Nothing else belongs here: the build
 * makes the constants of the Redis scripts of this file.
 */

/** No time reaches further ahead than this (ten years), so that it stays an exact number. */
export const MAX_AHEAD_US = 315_360_000_000_000;
/** How far a clock may be behind a time that it wrote before it counts as corrected, not as late. */
export const MAX_CLOCK_STEP_US = 1_000_000;
/** A cold start lies no further ahead than this; a time that does was written by a clock that was wrong. */
export const MAX_COLD_AHEAD_US = 60_000_000;
/** After the limits have changed, grants made ahead count for this long. A process that holds a later one hears of the change by then. */
export const RECALL_US = 1_000_000;
/** After a pause, work comes back over this long. */
export const RAMP_US = 1_000_000;
/** A bucket may be full for this long while its line lies ahead: a deferred job resumes up to 90 ms late. */
export const LINE_GRACE_US = 1_000_000;
/** An adaptive limit is forgotten after this long without a request. */
export const ADAPTIVE_KEPT_US = 3_600_000_000;

/** Rates: half of what a double holds exactly, so that a debt and a capacity (2^51 units) can be added exactly. */
export const MAX_DEBT_UNITS = 4_503_599_627_370_496;

/** Concurrency: a place in the queue for slots lapses after this long without asking again. */
export const WAITING_US = 3_000_000;
/** One that was woken and has not asked again within this is passed over, with all places of its process behind it. */
export const WOKEN_US = 50_000;
/** One that waits for a slot asks again after this long at the latest, in case the message that wakes it is lost. */
export const ASK_AGAIN_US = 1_000_000;

/** Shares: the whole rate, as a share. */
export const SCALE = 65_536;
/** What the light users had is counted by the second. */
export const SECOND_US = 1_000_000;
/** A value counts as active for this long after it was last seen to use its share. */
export const ACTIVE_US = 1_000_000;
/** What was to spare is owed for this long's worth of a share at most. */
export const OWED_US = 1_000_000;
/** A pause of a share's own is remembered for this long after its end. */
export const PAUSE_KEPT_US = 60_000_000;
/** However much the light users had, this much is left to share: they may stop. */
export const LEAST_LEFT = 16_384;

/** Adaptive limits, in thousandths: a cut keeps at most this much, and at least {@link MOST_CUT_KEEPS}, since a report may be chance. */
export const LEAST_CUT_KEEPS = 900;
export const MOST_CUT_KEEPS = 500;
/** A cut that was not enough is followed by a deeper one. So much of the limit is kept then. */
export const NEXT_CUT_KEEPS = 850;
/** It was not enough if another one is needed so soon. */
export const NEXT_CUT_US = 500_000;
/** The share of throttled calls is of at least this many: of a report of two calls one that is throttled is no half. */
export const SHARE_OF_AT_LEAST = 20;
/** Calls granted sooner than this after a cut say nothing: the downstream is still full of what came before it. */
export const SETTLE_US = 100_000;
/** How long the limit takes back to the level that was too much. Past it, it takes as long for the first tenth more. */
export const RETURN_US = 2_500_000;
export const MAX_CLIMB_US = 60_000_000;
/** Use is looked at in stretches of at least this, in which at least so many tokens could have been granted. */
export const USE_US = 250_000;
export const USE_TOKENS = 4;
/** What a stretch adds to the climb at most. */
export const MAX_STEP_US = 1_000_000;
/** What each token adds to it: a slow limit climbs by what it grants, since each probe costs a call and it has few. */
export const TOKEN_STEP_US = 50_000;
/** Failures and latencies are judged by at least so many calls, over at least this long. */
export const JUDGED_CALLS = 20;
export const JUDGED_US = 500_000;
/** A single failure is chance, whatever share of the calls it is. */
export const LEAST_FAILED = 2;
/** Gradient, in thousandths: latency may be this much of the usual before the limit gives way. */
export const TOLERANCE = 1_250;
/** How often it looks at the latency with half the load, so that queues of its own making do not become the usual. */
export const LOOK_US = 30_000_000;
/** How soon it looks when in doubt. */
export const LOOK_SOON_US = 5_000_000;
/** Half of what a double holds exactly: counters stay below it whatever is reported. */
export const MOST = 4_503_599_627_370_496;
