import { afterAll, describe } from 'vitest';
import { parseGovernorOptions } from '../../../src/core/limits/governor-options.ts';
import { redisClient } from '../../../src/store/redis/client/connection.ts';
import { wakePrefix } from '../../../src/store/redis/keys.ts';
import { RedisStore } from '../../../src/store/redis/redis-store.ts';
import { clientWithTime } from '../../lua/support/injected-time.ts';
import { connect, redisUrl, uniqueName } from '../../support/redis.ts';
import { slotsContract } from '../contract/concurrency.ts';
import { mixturesContract } from '../contract/mixtures.ts';
import { pausesContract } from '../contract/pauses.ts';
import { ratesContract } from '../contract/rates.ts';
import { windowsContract } from '../contract/windows.ts';
import type { StoreOptions } from '../support/made.ts';
import { eventually } from '../support/stores.ts';

const redis = connect();
const listener = redisClient(redisUrl());

afterAll(() => listener.close());

function make(options: StoreOptions) {
  let nowUs = 1_700_000_000_000_000;
  const name = uniqueName('kinds');
  const config = parseGovernorOptions({ name, ...options });
  const client = { ...clientWithTime(redis, () => nowUs), subscribe: listener.subscribe!.bind(listener) };
  return {
    store: new RedisStore({ ...config, instance: 'contract' }, client),
    advanceUs: (us: number) => {
      nowUs += us;
    },
    heard: async () => {
      await eventually(async () => {
        const [, count] = (await redis.pubsub('NUMSUB', `${wakePrefix(name)}contract`)) as [string, number];
        return count > 0 ? true : undefined;
      });
    },
  };
}

describe('the Redis store, limits of all kinds', () => {
  windowsContract(make);
  slotsContract(make);
  ratesContract(make);
  pausesContract(make);
  mixturesContract(make);
});
