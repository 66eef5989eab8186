import { afterAll, describe } from 'vitest';
import { redisClient } from '../../../src/store/redis/client/connection.ts';
import { wakePrefix } from '../../../src/store/redis/keys.ts';
import { connect, redisUrl } from '../../support/redis.ts';
import { storeContract } from '../contract/index.ts';
import { eventually, timedStore } from '../support/stores.ts';

const redis = connect();
const listener = redisClient(redisUrl());

afterAll(() => listener.close());

describe('the Redis store', () => {
  storeContract((options) => {
    const made = timedStore(redis, options, listener.subscribe!.bind(listener));
    const heard = async () => {
      await eventually(async () => {
        const [, count] = (await redis.pubsub('NUMSUB', `${wakePrefix(made.name)}test`)) as [string, number];
        return count > 0 ? true : undefined;
      });
    };
    return { ...made, heard };
  });
});
