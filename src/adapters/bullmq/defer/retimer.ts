import type { Job, Queue, Worker } from 'bullmq';
import { deskOf } from '../../../core/calls/desk.ts';
import type { Governor } from '../../../core/governor.ts';
import type { Pace } from '../admit/pace.ts';
import { retime } from './retime.ts';

// While one process re-times; should it end in the middle, another may go on after this.
const CLAIM_MS = 5_000;
// So that who hears of it late does not do it again.
const DONE_MS = 3_600_000;

/**
 * Re-times the deferred jobs of one worker's queue, each time the limits have changed: once in the fleet for
 * each version of the limits. Who finds it claimed looks once more when the claim would have lapsed.
 */
export class Retimer<J extends Job> {
  #latest = 0;
  #turn: Promise<void> = Promise.resolve();
  #ended = false;
  #stopListening: (() => void) | undefined;
  #cancelSecondLook: (() => void) | undefined;

  /**
   * @param paceOf - The pace of a job under the limits in force.
   * @param failed - Told why a re-timing ended early. The jobs then come at their old turns.
   */
  constructor(
    private readonly governor: Governor,
    private readonly paceOf: (job: J) => Promise<Pace | undefined>,
    private readonly failed: (error: unknown) => void,
  ) {}

  attach(worker: Worker, queue: () => Queue): void {
    this.#stopListening = this.governor.on('configured', ({ version }) => this.#changed(version, queue));
    worker.on('closing', () => this.#end());
  }

  #end(): void {
    this.#ended = true;
    this.#stopListening?.();
    this.#cancelSecondLook?.();
  }

  #changed(version: number, queue: () => Queue): void {
    if (this.#ended || version <= this.#latest) return;
    this.#latest = version;
    this.#cancelSecondLook?.();
    this.#next(version, queue, true);
  }

  #next(version: number, queue: () => Queue, looksAgain: boolean): void {
    this.#turn = this.#turn.then(() => this.#retime(version, queue, looksAgain)).catch(this.failed);
  }

  async #retime(version: number, queueOf: () => Queue, looksAgain: boolean): Promise<void> {
    if (!this.#isLatest(version)) return;
    const { clock } = this.governor;
    const { deferrals } = deskOf(this.governor);
    const queue = queueOf();
    const claim = (forMs: number, again: boolean) =>
      deferrals.claim(queue.qualifiedName, version, forMs, again);
    if (looksAgain) {
      this.#cancelSecondLook = clock.timer(CLAIM_MS * (1 + Math.random()), () =>
        this.#next(version, queueOf, false),
      );
    }
    if (!(await claim(CLAIM_MS, false))) return;
    const mayGoOn = async () => this.#isLatest(version) && (await claim(CLAIM_MS, true));
    await retime({ queue, deferrals, clock, paceOf: this.paceOf, mayGoOn });
    if (await mayGoOn()) await claim(DONE_MS, true);
  }

  #isLatest(version: number): boolean {
    return !this.#ended && version === this.#latest;
  }
}
