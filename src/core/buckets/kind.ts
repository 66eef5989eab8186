import type { Limit } from '../limits/limit.ts';
import type { AdaptiveReport } from './adaptive.ts';
import type { BucketState, Moment } from './moment.ts';
import type { Pauses } from './pause.ts';

export type KindName = Limit['kind'] | 'share';

/** What a request asks of one bucket. */
export interface DemandOf<K extends KindName = KindName, L extends Limit = Limit> {
  readonly kind: K;
  readonly limit: L;
  /** The limit's name, with `:` and the key's value if it has one. Unique within the governor, but for its kind. */
  readonly bucket: string;
  /** The attribute whose value chose the bucket; null: all requests meet it. */
  readonly by: string | null;
  readonly cost: number;
  /** Of a share: what is asked of the rate that is shared. */
  readonly parent?: DemandOf;
}

/** What a bucket knows of the caller. */
export interface Asker {
  /** 0 high, 1 normal, 2 low. */
  readonly priority: 0 | 1 | 2;
  /** Whose slots they are to be; '' if the request can't meet any. */
  readonly holder: string;
  /** The process that asks; '' or left out: not known. */
  readonly instance?: string;
}

/** One bucket of a request, as it looks to it now. */
export interface View<D extends DemandOf = DemandOf, S extends BucketState = BucketState> {
  readonly demand: D;
  /** As stored; undefined if there is no state. */
  readonly stored: S | undefined;
  /** As it stands now: a copy that may be changed. */
  readonly state: S;
  /** From the store's now until there is room, at most `MAX_AHEAD_US` (there never is); includes the time for which a stepped clock stands still. */
  readonly waitUs: number;
  /** From the store's now until its pause ends; 0: it is not paused. */
  readonly pausedUs: number;
  /** Of the bucket and its governor. */
  readonly pauses: Pauses;
  /** The line as it counts: when it ends; 0: there is none. */
  readonly lineUs: number;
  /** Of a share: what is known of all values of the limit together. */
  readonly group?: object;
  /** Of a share: the rate that is shared. */
  readonly parent?: View;
}

/** What a kind makes a view of. */
interface Found<V extends View> {
  readonly demand: V['demand'];
  readonly stored: V['stored'];
  readonly group: V['group'] | undefined;
  readonly parent: V['parent'];
}

/** What is needed to take a grant back or to know a slot again. */
export interface Charged {
  /** What `granted` was after it, and the units by which the bucket was moved forward: of a rate, and if it was made ahead; else 0. */
  readonly grantedAfter: number;
  readonly pushedUnits: number;
  /** The fencing number of a slot; else 0. */
  readonly fence: number;
}

/**
 * A kind of limit, as decisions see it: all that is about one kind, in a folder of its own. What is left out here a kind has no
 * part in: those without `lineAfterUs` have no line, those without `slots` no queue.
 */
export interface Kind<V extends View = View> {
  /** What the names of its states begin with, so that a limit that becomes one of another kind finds no state of the old. */
  readonly prefix: string;
  /** Whether a request that has to wait may be charged now, for a start that lies ahead. */
  readonly reserves: boolean;

  /** A demand on another bucket that comes with one of this kind. */
  companion?(demand: V['demand'], keyOf: (attribute: string) => string): DemandOf | undefined;
  /** The bucket as it stands now, in the terms of the limit in force. */
  look(found: Found<V>, asker: Asker, at: Moment): V;
  /** From when the state says nothing more than none does. */
  expiresUs(state: V['state'], limit: V['demand']['limit']): number;
  /** The same, of the state that all buckets of the limit share; left out: there is none. */
  groupExpiresUs?(group: NonNullable<V['group']>): number;

  /** Whether the line does not hold this request up. */
  passesLine?(view: V, asker: Asker): boolean;
  /** Whether a request may start later than now over this bucket, when another one makes it wait; `reserves`: when this one does. */
  canReserve(view: V, asker: Asker, at: Moment): boolean;
  /** Whether a grant may be counted now that starts then. */
  countsAhead?(view: V, startUs: number): boolean;
  /** Whether its numbers would stay exact. */
  staysExact?(view: V, startUs: number): boolean;
  /** Takes the cost, from `startUs` on. */
  charge(view: V, asker: Asker, startUs: number): Partial<Charged>;
  /** Whole tokens that could be taken now, or free slots. Not asked of a bucket that is paused. */
  remaining(view: V): number;
  /** What one request may take of them. */
  available?(view: V, asker: Asker): number;
  /** The limit as it is now: units a microsecond of a rate or a share, slots, or tokens of a window. */
  effective(view: V): number;
  /** The same in the units that people write the limit in; left out: it is in those. */
  inLimitUnits?(limit: V['demand']['limit'], effective: number): number;

  /** Where the line ends once this demand has joined it at `fromUs`. */
  lineAfterUs?(view: V, fromUs: number): number;
  /** A request that comes back to its turn keeps it for no longer a wait than this. */
  patienceUs?(view: V): number;
  /** Told of a refusal for `reason`. Whether the state is now another, and must be kept. */
  refused?(view: V, reason: string, at: Moment): boolean;
  /** Whether the state as stored stands for what it is now: then a place in the line is all that changes. */
  isCurrent?(view: V & { readonly stored: V['state'] }): boolean;
  /** Whether what was taken over now would have to be taken over again and again. */
  isOutdated?(view: V & { readonly stored: V['state'] }): boolean;
  /** Copies to a stored state what has to be kept even where nothing else is. */
  carry?(from: V['state'], to: V['state']): void;

  /** Takes back a grant that has not started. Whether all of it was given back. */
  giveBack?(view: V, charged: Charged, startUs: number): boolean;
  /** Corrects the cost of a grant that started at `startUs`. */
  settle?(view: V, startUs: number, actual: number): void;
  /** Tells an adaptive limit what calls came to. */
  observe?(view: V, calls: AdaptiveReport, nowUs: number): void;
  /** A pause of the bucket has begun. */
  paused?(view: V): void;
  /** A pause of the bucket was ended early, now. */
  resumed?(view: V, at: Moment): void;
  readonly slots?: Slots<V>;
}

/** What only a kind has whose grants are held: leases, and a queue of those that wait for one. */
interface Slots<V extends View> {
  /** Gives a request a place in the queue, or keeps it there. */
  join(view: V, asker: Asker): void;
  /** Whether it had a place. */
  leave(view: V, holder: string): boolean;
  /** Those in the queue for whom there is room now and who do not know it yet. */
  wake(view: V): string[];
  /** Whether it was still held. */
  release(view: V, holder: string, fence: number): boolean;
  /** Whether it was still held. @param lostCost - Of a lease that the store may have lost: what it was for. */
  renew(view: V, holder: string, fence: number, lostCost?: number): boolean;
}
