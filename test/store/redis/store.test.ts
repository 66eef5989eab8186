import { describe } from 'vitest';
import { parseGovernorOptions } from '../../../src/core/limits/governor-options.ts';
import { RedisStore } from '../../../src/store/redis/redis-store.ts';
import { clientWithTime } from '../../lua/support/injected-time.ts';
import { connect, uniqueName } from '../../support/redis.ts';
import { storeContract } from '../contract/index.ts';

describe('the Redis store', () => {
  const redis = connect();

  storeContract((options) => {
    let nowUs = 1_700_000_000_000_000;
    const config = parseGovernorOptions({ name: uniqueName('contract'), ...options });
    const client = clientWithTime(redis, () => nowUs);
    return {
      store: new RedisStore(config, client),
      advanceUs: (us) => {
        nowUs += us;
      },
    };
  });
});
