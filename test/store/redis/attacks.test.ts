import { setTimeout as sleep } from 'node:timers/promises';
import { describe } from 'vitest';
import { redisUrl, uniqueName } from '../../support/redis.ts';
import { attacks } from '../contract/attacks.ts';
import { governorOf } from '../support/stores.ts';

describe('a governor on Redis', () => {
  // What starts later than its time by more than the governor's grace is not started.
  attacks(
    (options) => ({
      governor: governorOf({ name: uniqueName('attacked'), connection: redisUrl(), ...options }),
      monoMs: () => performance.now(),
      sleep,
      pass: sleep,
    }),
    100,
  );
});
