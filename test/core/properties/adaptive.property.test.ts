import fc from 'fast-check';
import { expect, it } from 'vitest';
import { runs } from '../../support/runs.ts';
import { adaptiveHistories, play } from '../support/adaptive-history.ts';

const numRuns = runs(1_000);

it('keeps whole numbers between its bounds, whatever is reported and however the clock goes', () => {
  fc.assert(
    fc.property(adaptiveHistories, (history) => {
      for (const { state, rule } of play(history)) {
        for (const [field, value] of Object.entries(state)) {
          if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${field} is ${value}`);
        }
        expect(state.value).toBeGreaterThanOrEqual(Math.round(rule.min * 1_000));
        expect(state.value).toBeLessThanOrEqual(Math.round(rule.max * 1_000));
      }
    }),
    { numRuns },
  );
});

it('never cuts twice within a tenth of a second', () => {
  fc.assert(
    fc.property(adaptiveHistories, (history) => {
      for (const { before, state } of play(history)) {
        if (state.cutUs <= before.cutUs) continue;
        expect(state.cutUs - before.cutUs).toBeGreaterThanOrEqual(100_000);
      }
    }),
    { numRuns },
  );
});

it('rises only if at least half was used', () => {
  fc.assert(
    fc.property(adaptiveHistories, (history) => {
      for (const { before, state, rule } of play(history)) {
        if (rule.mode === 'gradient' || state.value <= before.value) continue;
        // Up to a higher min it comes without use.
        if (state.value === Math.round(rule.min * 1_000)) continue;
        expect(before.used).toBeGreaterThan(0);
      }
    }),
    { numRuns },
  );
});
