import fc from 'fast-check';

/** Random histories for the properties: what is done to a governor, one thing after the other. See `Played` for what it means. */

export type Doing =
  | 'acquire'
  | 'atMost'
  | 'force'
  | 'cancel'
  | 'settle'
  | 'release'
  | 'pause'
  | 'resume'
  | 'change'
  | 'forget';

/** How the clock moves before it. */
export interface Move {
  readonly by:
    | 'stands'
    | 'ticks'
    | 'us'
    | 'tokens'
    | 'eighths'
    | 'cells'
    | 'retry'
    | 'idles'
    | 'leaps'
    | 'back';
  readonly amount: number;
}

export interface Operation {
  readonly kind: Doing;
  readonly move: Move;
  readonly shop: number;
  readonly user: number;
  /** One for each limit; the largest is all that it can give. */
  readonly costs: readonly number[];
  readonly maxWait: 0 | 1 | 2 | 3;
  readonly turns: 'none' | 'keyed' | 'all';
  readonly returning: boolean;
  readonly patient: boolean;
  readonly priority: 0 | 1 | 2;
  /** Which of several. */
  readonly pick: number;
}

export const WHOLE = 12;

const moves = (...ways: readonly Move['by'][]): fc.Arbitrary<Move> =>
  fc.record({ by: fc.constantFrom(...ways), amount: fc.nat(1_000) });

const FORWARD_WAYS = ['stands', 'stands', 'ticks', 'tokens', 'tokens', 'retry', 'idles'] as const;
/** Forwards, by nothing up to weeks. */
export const FORWARD = moves(...FORWARD_WAYS);
/** The same, and steps of the clock: hours forwards, or back by up to a second in all. */
export const STEPPING = moves(...FORWARD_WAYS, 'leaps', 'back');
export const STEPPING_BACK = moves(...FORWARD_WAYS, 'leaps', 'back', 'back');
/** Around the ends of windows and of their cells. */
export const WINDOWED = moves(
  'stands',
  'stands',
  'ticks',
  'eighths',
  'eighths',
  'retry',
  'retry',
  'cells',
  'idles',
  'back',
);

/** Seconds, in which pauses and penalties begin and end. @param backUs - By how much the clock may step back at once. */
export const withinSeconds = (backUs = 400_000): fc.Arbitrary<Move> =>
  fc.oneof(
    { weight: 3, arbitrary: moves('stands', 'stands', 'retry', 'retry') },
    {
      weight: 4,
      arbitrary: fc
        .oneof(
          { weight: 2, arbitrary: fc.constantFrom(10_000, 1_000_000) },
          { weight: 6, arbitrary: fc.integer({ min: 0, max: 300_000 }) },
          { weight: 2, arbitrary: fc.integer({ min: -backUs, max: 4_000_000 }) },
        )
        .map((amount): Move => ({ by: 'us', amount })),
    },
  );

/**
 * @param weights - How often each thing is done.
 * @param same - What is the same in all of them.
 */
export function operations(
  weights: Partial<Record<Doing, number>>,
  move: fc.Arbitrary<Move>,
  same: Partial<Operation> = {},
): fc.Arbitrary<Operation[]> {
  const kinds = Object.entries(weights).map(([kind, weight]) => ({
    weight,
    arbitrary: fc.constant(kind as Doing),
  }));
  return fc.array(
    fc
      .record({
        kind: fc.oneof(...kinds),
        move,
        shop: fc.nat(3),
        user: fc.nat(2),
        costs: fc.tuple(fc.nat(WHOLE), fc.nat(WHOLE), fc.nat(WHOLE)),
        maxWait: fc.constantFrom(0 as const, 1 as const, 2 as const, 3 as const, 3 as const),
        turns: fc.constantFrom('none' as const, 'none' as const, 'keyed' as const, 'all' as const),
        returning: fc.boolean(),
        patient: fc.boolean(),
        priority: fc.constantFrom(0 as const, 1 as const, 2 as const),
        pick: fc.nat(1_000),
      })
      .map((operation): Operation => ({ ...operation, ...same })),
    { minLength: 1, maxLength: 90, size: 'max' },
  );
}
