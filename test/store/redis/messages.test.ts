import type { Redis } from 'ioredis';
import { Cluster } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseLimits } from '../../../src/core/limits/limit.ts';
import { perHour, type RateLimit } from '../../../src/core/limits/rate.ts';
import type { StoreMessage } from '../../../src/core/ports/messages.ts';
import { redisClient } from '../../../src/store/redis/client/connection.ts';
import type { RedisStore } from '../../../src/store/redis/redis-store.ts';
import { connect, redisUrl, startRedis, uniqueName } from '../../support/redis.ts';
import { eventually, governorOf, ownServer, storeOf } from '../support/stores.ts';
import { AT_ONCE, ask } from '../support/terms.ts';

const limits = { calls: perHour(1, { burst: 10 }) };
const one = ask();
const set = (store: RedisStore, burst: number) =>
  store.configure({ limits: parseLimits({ calls: perHour(1, { burst }) }) }, 'anna');

/** A store that has started, and what it is told. */
async function listening(url: string, name: string) {
  const store = storeOf(url, { name, limits });
  const heard: StoreMessage[] = [];
  store.subscribe((message) => heard.push(message));
  await store.limits();
  return { store, heard, bursts: () => heard.flatMap((message) => burstsOf(message)) };
}

const burstsOf = (message: StoreMessage) =>
  message.kind === 'configured' ? (message.limits as readonly RateLimit[]).map(({ burst }) => burst) : [];

const subscribers = async (admin: Redis, channel: string) =>
  Number(((await admin.pubsub('NUMSUB', channel)) as unknown[])[1]);

const untilSubscribed = (admin: Redis, channel: string, count = 1) =>
  eventually(async () => ((await subscribers(admin, channel)) === count ? true : undefined));

const untilHeard = (heard: () => readonly unknown[], count: number) =>
  eventually(async () => (heard().length >= count ? true : undefined));

/** Errors that nobody caught while the test ran. */
function unhandled(): unknown[] {
  const errors: unknown[] = [];
  const note = (error: unknown) => errors.push(error);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  return errors;
}

describe('a change', () => {
  test('reaches a process that makes no call, whoever made it and however', async () => {
    const { url, admin } = await ownServer();
    const name = uniqueName('heard');
    const idle = await listening(url, name);
    await untilSubscribed(admin, `flyball:{${name}}:events`);
    const other = storeOf(url, { name, limits });
    await set(other, 3);
    await untilHeard(idle.bursts, 1);
    await other.reset('anna');
    await untilHeard(idle.bursts, 2);
    await storeOf(url, { name, limits: { calls: perHour(1, { burst: 20 }) } }).limits();
    await untilHeard(idle.bursts, 3);
    expect(idle.bursts()).toEqual([3, 10, 20]);
    expect(idle.heard).toMatchObject([
      { version: 2, who: 'anna' },
      { version: 3 },
      { version: 4, who: 'test' },
    ]);
  });

  test('after a flush reaches an idle process too, which puts the operator’s limits back', async () => {
    const { url, admin } = await ownServer();
    const name = uniqueName('heard');
    const idle = await listening(url, name);
    await set(idle.store, 3);
    await untilSubscribed(admin, `flyball:{${name}}:events`);
    await admin.flushall();
    const fresh = storeOf(url, { name, limits });
    expect(await fresh.limits()).toMatchObject([{ burst: 10 }]);
    await eventually(async () => {
      await fresh.acquire(one, AT_ONCE);
      return ((await fresh.limits()) as readonly RateLimit[])[0]!.burst === 3 ? true : undefined;
    });
  });

  test('that nobody is told of is met at the next decision', async () => {
    const name = uniqueName('unheard');
    const inner = redisClient(redisUrl());
    // A client that has no messages.
    const client = {
      evalsha: inner.evalsha.bind(inner),
      eval: inner.eval.bind(inner),
      close: () => inner.close(),
    };
    const deaf = storeOf(client, { name, limits });
    const heard: StoreMessage[] = [];
    deaf.subscribe((message) => heard.push(message));
    await deaf.limits();
    await set(storeOf(redisUrl(), { name, limits }), 3);
    expect(await deaf.limits()).toMatchObject([{ burst: 10 }]);
    await expect(deaf.acquire({ ...one, cost: 5 }, AT_ONCE)).rejects.toMatchObject({ burst: 3 });
    expect(heard).toMatchObject([{ kind: 'configured', version: 2, limits: [{ burst: 3 }] }]);
  });

  test('is made also by a user who may not publish', async () => {
    const { url, admin } = await ownServer();
    await admin.call('ACL', 'SETUSER', 'mute', 'on', '>secret', '~*', '+@all', 'resetchannels');
    const name = uniqueName('mute');
    const store = storeOf(url.replace('redis://', 'redis://mute:secret@'), { name, limits });
    expect(await set(store, 3)).toMatchObject({ version: 2 });
    expect(await admin.hget(`flyball:{${name}}:config`, 'version')).toBe('2');
  });

  test('in a cluster is heard as well', async () => {
    const server = await startRedis(['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1']);
    const admin = connect({}, server.url);
    await admin.cluster('ADDSLOTS', ...Array.from({ length: 16_384 }, (_, slot) => slot));
    await eventually(async () =>
      String(await admin.cluster('INFO')).includes('cluster_state:ok') ? true : undefined,
    );
    const cluster = new Cluster([server.url]);
    onTestFinished(() => cluster.disconnect());
    const name = uniqueName('cluster');
    const [idle, other] = [storeOf(cluster, { name, limits }), storeOf(cluster, { name, limits })];
    const heard: StoreMessage[] = [];
    idle.subscribe((message) => heard.push(message));
    await idle.limits();
    await untilSubscribed(admin, `flyball:{${name}}:events`);
    await set(other, 3);
    await untilHeard(() => heard, 1);
    expect(heard.flatMap(burstsOf)).toEqual([3]);
  });
});

describe('the connection that listens', () => {
  const named = async (admin: Redis) =>
    String(await admin.client('LIST')).match(/name=flyball-events /g)?.length ?? 0;

  test('is opened with the first who listens, shared by all, and closed with the client', async () => {
    const { url, admin } = await ownServer();
    const client = redisClient(url);
    await client.evalsha('0'.repeat(40), [], []).catch(() => {});
    expect(await named(admin)).toBe(0);
    const heard: string[] = [];
    const note = (who: string) => (message: string | null) => heard.push(`${who} ${message}`);
    const [leaveA, leaveB, leaveOther] = await Promise.all([
      client.subscribe!('one', note('a')),
      client.subscribe!('one', note('b')),
      client.subscribe!('other', note('c')),
    ]);
    expect(await named(admin)).toBe(1);
    await admin.publish('one', '1');
    await admin.publish('other', '2');
    await untilHeard(() => heard, 3);
    await leaveA();
    await admin.publish('one', '3');
    await untilHeard(() => heard, 4);
    await leaveB();
    expect(await subscribers(admin, 'one')).toBe(0);
    await leaveA();
    const [again] = await Promise.all([client.subscribe!('one', note('d')), leaveOther()]);
    await admin.publish('one', '4');
    await untilHeard(() => heard, 5);
    expect(heard).toEqual(['a 1', 'b 1', 'c 2', 'b 3', 'd 4']);
    await client.close();
    await again();
    expect(await eventually(async () => ((await named(admin)) === 0 ? 0 : undefined))).toBe(0);
    const late = await client.subscribe!('one', () => expect.unreachable());
    await late();
  });

  test('subscribes again whoever leaves and comes at the same time', async () => {
    const { url, admin } = await ownServer();
    const client = redisClient(url);
    onTestFinished(() => client.close());
    let heard = 0;
    let leave = await client.subscribe!('busy', () => heard++);
    for (let round = 0; round < 50; round++) {
      const [next] = await Promise.all([client.subscribe!('busy', () => heard++), leave()]);
      leave = next;
    }
    await admin.publish('busy', 'x');
    await eventually(async () => (heard > 0 ? true : undefined));
    expect(heard).toBe(1);
  });

  test('comes back when it is killed: what was missed is looked for, and the next is heard', async () => {
    const { url, admin } = await ownServer();
    const errors = unhandled();
    const name = uniqueName('killed');
    const channel = `flyball:{${name}}:events`;
    const idle = await listening(url, name);
    const other = storeOf(url, { name, limits });
    for (let round = 1; round <= 3; round++) {
      await untilSubscribed(admin, channel);
      idle.heard.length = 0;
      // The kill and the change in one go, so that the message meets no listener.
      const replies = await admin
        .multi()
        .call('CLIENT', 'KILL', 'TYPE', 'pubsub')
        .hincrby(`flyball:{${name}}:config`, 'version', 1)
        .exec();
      expect(replies).toMatchObject([
        [null, 1],
        [null, expect.any(Number)],
      ]);
      await eventually(async () => (idle.heard.some(({ kind }) => kind === 'missed') ? true : undefined));
      await set(other, round);
      await untilHeard(idle.bursts, 1);
      expect(idle.bursts()).toEqual([round]);
    }
    expect(errors).toEqual([]);
  });

  test('a change that was missed while it was away is told when it is back, without a call', async () => {
    const server = await ownServer();
    const errors = unhandled();
    const name = uniqueName('away');
    const idle = await listening(server.url, name);
    await untilSubscribed(server.admin, `flyball:{${name}}:events`);
    await server.stop();
    const { admin } = await ownServer(server.port);
    // The new server knows nothing; whoever starts first says what is in force.
    await set(storeOf(server.url, { name, limits: { calls: perHour(1, { burst: 20 }) } }), 4);
    // If the idle one was back before that, it was first told of its own.
    await eventually(async () => (idle.bursts().at(-1) === 4 ? true : undefined));
    await untilSubscribed(admin, `flyball:{${name}}:events`);
    expect(errors).toEqual([]);
  });

  test('to a server that is not there yet is no error, and is made up for', async () => {
    const server = await ownServer();
    await server.stop();
    const errors = unhandled();
    const client = redisClient(server.url);
    onTestFinished(() => client.close());
    const heard: (string | null)[] = [];
    await client.subscribe!('early', (message) => heard.push(message));
    const { admin } = await ownServer(server.port);
    await untilSubscribed(admin, 'early');
    await admin.publish('early', 'x');
    await eventually(async () => (heard.includes('x') ? true : undefined));
    expect(errors).toEqual([]);
  });

  test('is not opened by a governor to which nobody listens; then one tells of every change', async () => {
    const { url, admin } = await ownServer();
    const name = uniqueName('governor');
    const [silent, told] = [1, 2].map(() => governorOf({ name, limits, connection: url }));
    await silent!.allow();
    await told!.allow();
    expect(await named(admin)).toBe(0);
    const versions: number[] = [];
    told!.on('configured', ({ version }) => versions.push(version));
    await untilSubscribed(admin, `flyball:{${name}}:events`);
    const { version } = await silent!.configure({ limits: { calls: perHour(1, { burst: 3 }) } });
    await untilHeard(() => versions, 1);
    expect(versions).toEqual([version]);
    const { history } = await told!.configuration();
    expect(history).toMatchObject([{ version, who: expect.stringMatching(/^.+:\d+:[\da-f]+$/) }]);
    expect(Math.abs(history[0]!.atMs - Date.now())).toBeLessThan(60_000);
    await told!.close();
    expect(await eventually(async () => ((await named(admin)) === 0 ? 0 : undefined))).toBe(0);
  });
});
