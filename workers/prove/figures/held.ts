import type { Hold } from '../../downstream/holds.ts';
import { percentile, round, roundOrNull } from '../../measure/measure.ts';

/** What was done to the callers, in microseconds of the service's clock. */
export interface Harm {
  readonly cap: number;
  /** After this time a slot that was not renewed goes to another holder; holders renew three times as often. */
  readonly leaseUs: number;
  readonly kills: readonly { readonly process: number; readonly atUs: number }[];
  readonly freezes: readonly { readonly process: number; readonly fromUs: number; readonly toUs: number }[];
  /** From when the service was full until it was no longer kept full. */
  readonly fromUs: number;
  readonly toUs: number;
}

export interface HeldFigures {
  /** The most held at once, without those that outlived their lease while frozen. */
  readonly maxHeld: number;
  /** The same with them. */
  readonly maxInFlight: number;
  /** Calls whose fencing number showed the service that another holder had their slot. */
  readonly exposed: number;
  /** Those of them that had not outlived their lease: the service held too many. */
  readonly exposedWithinLease: number;
  /** Exposed calls that were rejected in the end. */
  readonly turnedAway: number;
  /** The longest time from the death of a process that held calls until as many slots were in use as before. */
  readonly slotBackMs: number | null;
  readonly releaseToStartP99Ms: number | null;
  /** Work that was completed, over cap × time: 1 if every slot worked at every moment. */
  readonly throughputShare: number;
  readonly completed: number;
}

interface Step {
  readonly atUs: number;
  readonly change: 1 | -1;
  readonly hold: Hold;
}

export function heldFigures(holds: readonly Hold[], harm: Harm): HeldFigures {
  const outlived = new Map(holds.map((hold) => [hold, outlivedUs(hold, holds, harm)]));
  const rightful = steps(holds, (hold) => Math.min(outlived.get(hold)!, endOf(hold)));
  const exposed = holds.filter(({ exposedUs }) => exposedUs !== null);
  const done = holds.filter(
    ({ end, endUs }) => end === 'done' && endUs! >= harm.fromUs && endUs! < harm.toUs,
  );
  const backUs = harm.kills.flatMap(({ process, atUs }) => slotBackUs(holds, rightful, process, atUs, harm));
  const waitsUs = releaseToStartUs(holds, outlived, harm);
  const p99Us = percentile(waitsUs, 0.99);
  return {
    maxHeld: most(rightful),
    maxInFlight: most(steps(holds, endOf)),
    exposed: exposed.length,
    exposedWithinLease: exposed.filter((hold) => hold.exposedUs! < outlived.get(hold)!).length,
    turnedAway: exposed.filter(({ end }) => end === 'outlived').length,
    slotBackMs: roundOrNull(backUs.length > 0 ? Math.max(...backUs) / 1000 : null),
    releaseToStartP99Ms: roundOrNull(p99Us === null ? null : p99Us / 1000),
    throughputShare: round(
      done.reduce((sum, { workMs }) => sum + workMs * 1000, 0) / (harm.cap * (harm.toUs - harm.fromUs)),
    ),
    completed: done.length,
  };
}

/**
 * From when a call may have lost its slot: its process had been frozen for two thirds of a lease, the least that is left
 * of one when nobody renews it any more. Also a call that its process began only after the freeze, although
 * its slot was granted before: newer ones had begun that long ago. Infinity for all others.
 */
function outlivedUs(hold: Hold, holds: readonly Hold[], { leaseUs, freezes }: Harm): number {
  const shortestUs = (2 * leaseUs) / 3;
  const times = freezes.map(({ process, fromUs, toUs }) => {
    if (process !== hold.process || toUs - fromUs < shortestUs) return Number.POSITIVE_INFINITY;
    if (hold.beginUs < toUs) return endOf(hold) > fromUs ? fromUs + shortestUs : Number.POSITIVE_INFINITY;
    const newer = holds.some(
      ({ fence, beginUs }) => fence > hold.fence && beginUs <= hold.beginUs - shortestUs,
    );
    return newer ? hold.beginUs : Number.POSITIVE_INFINITY;
  });
  return Math.min(Number.POSITIVE_INFINITY, ...times);
}

function endOf({ endUs }: Hold): number {
  return endUs ?? Number.POSITIVE_INFINITY;
}

/** Starts and ends in order of time. An end makes room for a start at the same moment. */
function steps(holds: readonly Hold[], end: (hold: Hold) => number): Step[] {
  return holds
    .filter((hold) => end(hold) > hold.beginUs)
    .flatMap((hold): Step[] => [
      { atUs: hold.beginUs, change: 1, hold },
      { atUs: end(hold), change: -1, hold },
    ])
    .sort((a, b) => a.atUs - b.atUs || a.change - b.change);
}

function most(list: readonly Step[]): number {
  let held = 0;
  return list.reduce((max, { change }) => {
    held += change;
    return Math.max(max, held);
  }, 0);
}

/**
 * From the death of a process until all slots were in use again, or had just been given back and not started again;
 * empty if it held none.
 */
function slotBackUs(
  holds: readonly Hold[],
  rightful: readonly Step[],
  process: number,
  killedUs: number,
  { cap }: Harm,
): number[] {
  const cut = holds.filter((hold) => hold.process === process && hold.end === 'cut');
  if (cut.length === 0) return [];
  const lastCutUs = Math.max(...cut.map(endOf));
  let held = 0;
  let givenBack = 0;
  for (const { atUs, change, hold } of rightful) {
    held += change;
    if (change === -1 && hold.end === 'done' && hold.endUs === atUs) givenBack++;
    else if (change === 1 && givenBack > 0) givenBack--;
    if (atUs > lastCutUs && held + givenBack >= cap) return [atUs - killedUs];
  }
  return [Number.POSITIVE_INFINITY];
}

/**
 * How long each freed slot stayed empty: ends and starts matched in order. Only ends with a release count: not those
 * of killed callers, nor of callers that had lost their slot.
 */
function releaseToStartUs(
  holds: readonly Hold[],
  outlived: ReadonlyMap<Hold, number>,
  { fromUs, toUs }: Harm,
): number[] {
  const freedUs: number[] = [];
  const waitsUs: number[] = [];
  for (const { atUs, change, hold } of steps(holds, endOf)) {
    if (atUs < fromUs || atUs >= toUs) continue;
    if (change === -1) {
      if (hold.end === 'done' && outlived.get(hold)! > atUs) freedUs.push(atUs);
    } else if (freedUs.length > 0) {
      waitsUs.push(atUs - freedUs.shift()!);
    }
  }
  return waitsUs;
}
