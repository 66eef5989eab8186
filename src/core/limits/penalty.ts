import { durationMs, knownNames, plainObject, shareOf } from '../checks.ts';

/** What becomes of a bucket that stays over its limit. */
export interface PenaltyOptions {
  /** How long its requests must have been refused without a pause, in milliseconds: 1,000 to 86,400,000. */
  afterMs: number;
  /** The share of the rate at which it then runs: 0.01 to 0.99. Default 0.5. */
  share?: number;
  /** For how long, in milliseconds: 1,000 to 86,400,000. Then it recovers by itself. */
  forMs: number;
}

/** The same, checked and complete. */
export interface Penalty {
  readonly afterUs: number;
  /** Thousandths of the rate. */
  readonly permille: number;
  readonly forUs: number;
  readonly options: Readonly<PenaltyOptions>;
}

const DAY_MS = 86_400_000;

/** @throws {@link InvalidOptionError} */
export function parsePenalty(path: string, value: unknown): Penalty {
  const given = plainObject(path, value);
  knownNames(path, given, ['afterMs', 'share', 'forMs']);
  const afterMs = durationMs(`${path}.afterMs`, given.afterMs, 1_000, DAY_MS);
  const forMs = durationMs(`${path}.forMs`, given.forMs, 1_000, DAY_MS);
  const { share: asked = 0.5 } = given;
  const share = shareOf(`${path}.share`, asked, 0.01, 0.99);
  return Object.freeze({
    afterUs: Math.round(afterMs * 1_000),
    permille: Math.round(share * 1_000),
    forUs: Math.round(forMs * 1_000),
    options: Object.freeze({ afterMs, share, forMs }),
  });
}
