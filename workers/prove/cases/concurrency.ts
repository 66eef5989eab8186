import type { LimitsOptions } from 'flyball';
import type { Child } from '../../parent/children.ts';
import { flags } from '../../parent/flags.ts';
import { Fleet } from '../../parent/fleet.ts';
import { orAbort } from '../../parent/or-abort.ts';
import { Service } from '../../parent/service.ts';
import { pause, until } from '../../parent/waiting.ts';
import { atLeast, atMost, exactly, type ProveCase, type Stage } from '../case.ts';
import { type Harm, heldFigures } from '../figures/held.ts';

const CAP = 20;
const LEASE_MS = 1_000;
const PROCESSES = 8;
// Far more callers than slots, so that one always waits for a free slot.
const LOOPS = 10;
const SECONDS = 60;
// As long as a slow query, to measure the limit and not how fast two cores start calls. Shorter than what is left
// of a lease at its next renewal, since a fence only tells which holder came first.
const WORK_MS = '500-650';
const HANDOVER_MS = 50;
// A slot is free when its lease has lapsed; the server sees it at the latest when the next holder has been told and has come.
const LONGEST_HANDOVER_MS = 100;
// Longer than a lease, so that a frozen process has lost its slots when it goes on.
const FREEZE_MS = LEASE_MS + 2_000;
// Far enough apart to see each death by itself: a lease, and some time with all slots in use.
const GAP_MS = { min: 6_000, max: 9_000 };
// The blows, counted from 0, that freeze a process; the others kill one.
const FREEZES = [2, 5];

const limits: LimitsOptions = { slots: { kind: 'concurrency', max: CAP, leaseMs: LEASE_MS } };

type Blows = { -readonly [Name in 'kills' | 'freezes']: Harm[Name][number][] };

export const concurrency: ProveCase = {
  name: 'concurrency',
  about: `${PROCESSES} processes share ${CAP} slots of a service, killed and frozen at random for ${SECONDS} s`,

  async run(stage) {
    const service = await orAbort(stage.signal, Service.start(stage.children, { slots: CAP }));
    const fleet = new Fleet(
      stage.children,
      'caller',
      flags({
        ...{ redis: stage.redisUrl, service: service.url, governor: stage.name, limits },
        ...{ kind: 'hold', loops: LOOPS, workMs: WORK_MS },
      }),
    );
    await orAbort(stage.signal, fleet.start(PROCESSES));
    const { epochMs } = await service.holds();
    const nowUs = () => (Date.now() - epochMs) * 1000;
    fleet.go();
    await until(stage.signal, 'all slots in use', 5_000, async () => (await service.holdsNow()).held >= CAP);

    const fromUs = nowUs();
    const blows = await strike(stage, service, fleet, nowUs);
    const toUs = nowUs();
    await orAbort(stage.signal, fleet.stop());

    const { holds } = await service.holds();
    const harm = { cap: CAP, leaseUs: LEASE_MS * 1000, fromUs, toUs, ...blows };
    const figures = heldFigures(holds, harm);
    return {
      figures: { ...figures, kills: blows.kills.length, freezes: blows.freezes.length, leaseMs: LEASE_MS },
      demands: [
        atMost('held at once, without outlived ones', figures.maxHeld, CAP),
        atLeast('outlived holders exposed by their fence', figures.exposed, 1),
        exactly('exposed though within their lease', figures.exposedWithinLease, 0),
        exactly('exposed and not turned away', figures.exposed - figures.turnedAway, 0),
        atMost("a dead holder's slot in use again", figures.slotBackMs, LEASE_MS + LONGEST_HANDOVER_MS, 'ms'),
        atMost('release to next start, p99', figures.releaseToStartP99Ms, HANDOVER_MS, 'ms'),
        atLeast('throughput of cap ÷ duration', figures.throughputShare, 0.95, '%'),
      ],
    };
  },
};

/** Kills or freezes a process of the fleet from time to time, until the time is over. */
async function strike(
  { signal, say }: Stage,
  service: Service,
  fleet: Fleet,
  nowUs: () => number,
): Promise<Blows> {
  const blows: Blows = { kills: [], freezes: [] };
  const endUs = nowUs() + SECONDS * 1e6;
  let replacing: Promise<void> = Promise.resolve();
  for (let blow = 0; ; blow++) {
    const gapMs = GAP_MS.min + Math.random() * (GAP_MS.max - GAP_MS.min);
    const leftMs = (endUs - nowUs()) / 1000;
    // A later blow would leave no time to see its outcome.
    if (leftMs < gapMs + FREEZE_MS) {
      await pause(signal, leftMs);
      await orAbort(signal, replacing);
      return blows;
    }
    await pause(signal, gapMs);
    if (FREEZES.includes(blow)) {
      const victim = await busiest(service, fleet);
      say(`freezing process ${victim.pid} for ${FREEZE_MS} ms`);
      const fromUs = nowUs();
      await frozen(victim, () => pause(signal, FREEZE_MS));
      blows.freezes.push({ process: victim.pid, fromUs, toUs: nowUs() });
    } else {
      const victim = fleet.members[Math.floor(Math.random() * fleet.members.length)]!;
      say(`killing process ${victim.pid}`);
      blows.kills.push({ process: victim.pid, atUs: nowUs() });
      replacing = fleet.killAndReplace(victim);
    }
  }
}

/** The process that holds the most slots: one without slots has no lease to outlive. */
async function busiest(service: Service, fleet: Fleet): Promise<Child> {
  const { holds } = await service.holds();
  const heldBy = ({ pid }: Child) =>
    holds.filter(({ process, endUs }) => process === pid && endUs === null).length;
  return fleet.members.reduce((most, member) => (heldBy(member) > heldBy(most) ? member : most));
}

async function frozen(victim: Child, meanwhile: () => Promise<void>): Promise<void> {
  victim.freeze();
  try {
    await meanwhile();
  } finally {
    victim.thaw();
  }
}
