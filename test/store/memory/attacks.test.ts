import { describe } from 'vitest';
import { governed } from '../../core/support/governed.ts';
import { attacks } from '../contract/attacks.ts';

describe('a governor in memory', () => {
  attacks(({ limits, coldStart }) => {
    const { governor, clock } = governed(limits, { coldStart: coldStart ?? 'full' });
    return {
      governor,
      monoMs: () => clock.monoMs(),
      sleep: (ms) => new Promise<void>((resolve) => clock.timer(ms, resolve)),
      pass: (ms) => clock.advance(ms),
    };
  });
});
