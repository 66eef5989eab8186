import { describe, expect, test } from 'vitest';
import { FencedSlots } from '../../workers/downstream/fenced-slots.ts';
import type { Hold, HoldEnd } from '../../workers/downstream/holds.ts';
import { type Harm, heldFigures } from '../../workers/prove/figures/held.ts';

const MS = 1000;

interface Row {
  fence: number;
  process?: number;
  ms: [begin: number, end: number];
  end?: HoldEnd;
  exposedMs?: number;
}

function hold({ fence, process = 1, ms: [begin, end], end: how = 'done', exposedMs }: Row): Hold {
  return {
    beginUs: begin * MS,
    endUs: end * MS,
    end: how,
    fence,
    process,
    workMs: end - begin,
    exposedUs: exposedMs === undefined ? null : exposedMs * MS,
  };
}

/** Two slots, leases of 300 ms, one second. */
function harm(more: Partial<Harm> = {}): Harm {
  return { cap: 2, leaseUs: 300 * MS, kills: [], freezes: [], fromUs: 0, toUs: 1000 * MS, ...more };
}

describe('the slots as fencing numbers tell them', () => {
  test('within the cap nothing is exposed, whatever the order of the numbers', () => {
    const slots = new FencedSlots(2);
    const second = slots.begin(2, 0);
    const first = slots.begin(1, 1);
    expect([first.exposedUs, second.exposedUs]).toEqual([null, null]);
  });

  test('over the cap the oldest is exposed, also if it is the last to come', () => {
    const slots = new FencedSlots(2);
    const [third, second] = [slots.begin(3, 0), slots.begin(2, 1)];
    const first = slots.begin(1, 2);
    expect([first, second, third].map(({ exposedUs }) => exposedUs)).toEqual([2, null, null]);
    slots.end(first);
    slots.end(second);
    const fourth = slots.begin(4, 3);
    expect([third, fourth].map(({ exposedUs }) => exposedUs)).toEqual([null, null]);
    expect(slots.held).toBe(2);
  });
});

describe('figures of held calls', () => {
  test('both slots busy all the time, 10 ms between calls', () => {
    const rows = [0, 1].flatMap((process) =>
      Array.from(
        { length: 10 },
        (_, i): Row => ({ fence: i * 2 + process, process, ms: [i * 100, i * 100 + 90] }),
      ),
    );
    expect(heldFigures(rows.map(hold), harm())).toMatchObject({
      ...{ maxHeld: 2, maxInFlight: 2, exposed: 0, exposedWithinLease: 0, slotBackMs: null },
      ...{ releaseToStartP99Ms: 10, throughputShare: 0.9, completed: 20 },
    });
  });

  test('an end makes room for a begin at the same moment', () => {
    const rows: Row[] = [
      { fence: 1, ms: [0, 100] },
      { fence: 2, ms: [0, 100] },
      { fence: 3, ms: [100, 200] },
    ];
    expect(heldFigures(rows.map(hold), harm()).maxHeld).toBe(2);
  });

  test('one too many counts, exposed or not', () => {
    const rows: Row[] = [
      { fence: 1, ms: [0, 100], exposedMs: 50 },
      { fence: 2, ms: [0, 100] },
      { fence: 3, ms: [50, 150] },
    ];
    expect(heldFigures(rows.map(hold), harm())).toMatchObject({
      maxHeld: 3,
      exposed: 1,
      exposedWithinLease: 1,
    });
  });

  const frozen = { process: 7, fromUs: 100 * MS, toUs: 500 * MS };

  test('a frozen holder counts until its lease may have ended', () => {
    const outlived: Row = { fence: 1, process: 7, ms: [50, 510], end: 'outlived', exposedMs: 400 };
    const others: Row[] = [
      { fence: 2, ms: [60, 390] },
      { fence: 3, ms: [390, 600] },
      { fence: 4, ms: [400, 600] },
    ];
    const figures = heldFigures([outlived, ...others].map(hold), harm({ freezes: [frozen] }));
    expect(figures).toMatchObject({
      ...{ maxHeld: 2, maxInFlight: 3 },
      ...{ exposed: 1, exposedWithinLease: 0, turnedAway: 1 },
    });
    const early = heldFigures(
      [{ ...outlived, exposedMs: 250 }, ...others].map(hold),
      harm({ freezes: [frozen] }),
    );
    expect(early.exposedWithinLease).toBe(1);
  });

  test('a call begun after the thaw with a fence from before it has outlived its lease', () => {
    const rows: Row[] = [
      { fence: 5, ms: [200, 520] },
      { fence: 6, ms: [500, 600] },
      { fence: 4, process: 7, ms: [510, 515], end: 'outlived', exposedMs: 510 },
    ];
    const figures = heldFigures(rows.map(hold), harm({ freezes: [frozen] }));
    expect(figures).toMatchObject({ maxHeld: 2, maxInFlight: 3, exposedWithinLease: 0 });
  });

  test('a dead holder: its slot is back when all are in use again', () => {
    const rows: Row[] = [
      { fence: 1, process: 7, ms: [0, 100], end: 'cut' },
      { fence: 2, ms: [0, 200] },
      { fence: 3, ms: [200, 400] },
      { fence: 4, ms: [350, 450] },
    ];
    const kills = [
      { process: 7, atUs: 95 * MS },
      { process: 8, atUs: 95 * MS },
    ];
    // The second had nothing to give back.
    expect(heldFigures(rows.map(hold), harm({ kills })).slotBackMs).toBe(255);
    expect(heldFigures(rows.slice(0, 3).map(hold), harm({ kills })).slotBackMs).toBe(
      Number.POSITIVE_INFINITY,
    );
  });

  test('neither a cut nor an outlived call releases anything', () => {
    const rows: Row[] = [
      { fence: 1, ms: [0, 100], end: 'cut' },
      { fence: 2, ms: [0, 200] },
      { fence: 3, ms: [230, 400] },
    ];
    expect(heldFigures(rows.map(hold), harm()).releaseToStartP99Ms).toBe(30);
  });
});
