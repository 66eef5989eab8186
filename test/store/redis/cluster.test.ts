import { Cluster } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { perHour } from '../../../src/core/limits/rate.ts';
import { connect, keysWithoutTtl, startRedis, uniqueName } from '../../support/redis.ts';
import { LIMITS, request, use } from '../support/every-key.ts';
import { eventually, governorOf, storeOf } from '../support/stores.ts';
import { AT_ONCE } from '../support/terms.ts';

describe('a cluster', () => {
  let cluster: Cluster;

  // One node with all slots: it answers CROSSSLOT and MOVED as a large one does.
  beforeAll(async () => {
    const server = await startRedis(['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1']);
    const admin = connect({}, server.url);
    await admin.cluster('ADDSLOTS', ...Array.from({ length: 16_384 }, (_, slot) => slot));
    await eventually(async () =>
      String(await admin.cluster('INFO')).includes('cluster_state:ok') ? true : undefined,
    );
    cluster = new Cluster([server.url]);
    await eventually(async () => (cluster.status === 'ready' ? true : undefined));
  });
  afterAll(() => cluster.disconnect());

  test('takes every call as a server does, also where keys hold braces of their own', async () => {
    const name = uniqueName('cluster');
    const store = storeOf(cluster, { name, limits: LIMITS });
    const shops = ['{x}', '}{', '{}'];
    const verdicts = await Promise.all(shops.map((shop) => store.acquire(request(shop, 'holder'), AT_ONCE)));
    expect(verdicts.map(({ granted }) => granted)).toEqual([true, true, true]);
    await use(store);
    const node = cluster.nodes('master')[0]!;
    expect(await keysWithoutTtl(node, `flyball:{${name}}:*`)).toEqual([`flyball:{${name}}:config`]);
  });

  test('may lose its script cache unseen, and stays open for its owner', async () => {
    const governor = governorOf({
      name: uniqueName('cluster'),
      connection: cluster,
      limits: { calls: perHour(1, { burst: 5 }) },
    });
    let granted = 0;
    for (let call = 0; call < 8; call++) {
      if ((await governor.allow()).allowed) granted++;
      await cluster.nodes('master')[0]!.script('FLUSH');
    }
    expect(granted).toBe(5);
    await governor.close();
    expect(cluster.status).toBe('ready');
  });
});
