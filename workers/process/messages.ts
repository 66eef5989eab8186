/** What a consumer has done since it started, and what it does now. */
export interface Counters {
  /** Calls the service has answered with success. */
  readonly served: number;
  /** Calls it has answered with 429. */
  readonly refused: number;
  /** Jobs that failed. */
  readonly failed: number;
  /** Jobs calling the service now. */
  readonly running: number;
  /** Jobs waiting in this process for their tokens now. */
  readonly held: number;
  /** Times a job was deferred until its turn, so far. */
  readonly deferrals: number;
  /** Jobs put back to the head of their queue, so far. */
  readonly returned: number;
}

/** What a worker process tells its parent. */
export type Message =
  /** Connected to everything; waits for {@link Go}. */
  | { readonly type: 'ready' }
  | ({ readonly type: 'counters' } & Counters)
  /** The last counters, when everything is closed. */
  | ({ readonly type: 'closed' } & Counters)
  /** All jobs are in their queues. Times are wall-clock, to be comparable across processes. */
  | {
      readonly type: 'produced';
      readonly jobs: number;
      readonly startedAtMs: number;
      readonly endedAtMs: number;
    };

/** What a parent tells a consumer: start taking jobs. */
export interface Go {
  readonly type: 'go';
}
