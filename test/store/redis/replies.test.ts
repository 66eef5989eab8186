import { describe, expect, test } from 'vitest';
import { StoreUnavailableError } from '../../../src/core/errors.ts';
import { parseGovernorOptions } from '../../../src/core/limits/governor-options.ts';
import { perHour } from '../../../src/core/limits/rate.ts';
import type { RedisClient } from '../../../src/store/redis/client/redis-client.ts';
import { limitsToJson } from '../../../src/store/redis/config/json.ts';
import { RedisStore } from '../../../src/store/redis/redis-store.ts';
import { decideScript, registerScript } from '../../../src/store/redis/scripts.generated.ts';
import { AT_ONCE, ask, NORMAL, WHENEVER } from '../support/terms.ts';

const config = parseGovernorOptions({ name: 'replies', limits: { calls: perHour(1, { burst: 5 }) } });
const LIMITS = limitsToJson(config.limits);
const request = ask();

/** The reply to a registration: what is in force, all of it text. */
const registered = ({ outcome = '0', version = '1', limits = '[]', operator = '', revision = '0' }) => [
  outcome,
  version,
  '1700000000000000',
  limits,
  operator,
  revision,
  'test',
];

/** A client whose server answers what it is told to. */
function answering(
  decide: (args: readonly string[]) => unknown,
  register = (args: readonly string[]): unknown => registered({ limits: args[0]! }),
): RedisClient {
  return {
    evalsha: async (sha1, _keys, args) => (sha1 === registerScript.sha1 ? register(args) : decide(args)),
    eval: () => Promise.reject(new Error('not needed')),
    close: async () => {},
  };
}

const storeOn = (client: RedisClient) => new RedisStore(config, client);

/** All that a store can be asked, in one call. A right answer is `RIGHT`. */
function everything(store: RedisStore): Promise<unknown>[] {
  return [
    store.acquire(request, WHENEVER),
    store.acquire(request, WHENEVER),
    store.force(request),
    store.peek(request, NORMAL),
  ];
}
const RIGHT = '1700000000000000 1 0 0 0 99 0 1 5 0 0 0 1 0 1';

async function expectNoAnswer(client: RedisClient): Promise<void> {
  for (const outcome of await Promise.allSettled(everything(storeOn(client)))) {
    expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(StoreUnavailableError) });
  }
}

test('a right reply is read as it is meant', async () => {
  const [first, second, forced, seen] = await Promise.all(everything(storeOn(answering(() => [0, RIGHT]))));
  expect(first).toMatchObject({ granted: true, waitUs: 0 });
  expect(second).toMatchObject({ granted: false, reason: 'rate', waitUs: 99, hasTurn: false });
  expect(forced).toMatchObject({ startUs: 1_700_000_000_000_000, ahead: false });
  expect(seen).toMatchObject([{ sight: { remaining: 5, granted: 1 } }]);
});

describe('an invalid reply is an error for every operation of the call, never a grant', () => {
  test.for<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'OK'],
    ['a number', 1],
    ['true', true],
    ['an object', { 0: 0, 1: RIGHT }],
    ['an empty list', []],
    ['a list of one', [0]],
    ['a list of three', [0, RIGHT, RIGHT]],
    ['a list of numbers', [0, 1_700_000_000_000_000]],
    ['a list without text', [0, null]],
    ['a list with a buffer', [0, Buffer.from(RIGHT)]],
    ['a state that is text', ['0', RIGHT]],
    ['an unknown state', [2, RIGHT]],
    ['an empty text', [0, '']],
    ['only a time', [0, '1700000000000000']],
    ['one number too few', [0, RIGHT.slice(0, -2)]],
    ['half of it', [0, RIGHT.slice(0, 20)]],
    ['one number too many', [0, `${RIGHT} 1`]],
    ['a space too many at the end', [0, `${RIGHT} `]],
    ['a space too many at the beginning', [0, ` ${RIGHT}`]],
    ['two spaces', [0, RIGHT.replace(' ', '  ')]],
    ['commas', [0, RIGHT.replaceAll(' ', ',')]],
    ['lines', [0, RIGHT.replaceAll(' ', '\n')]],
    ['letters', [0, RIGHT.replace('99', 'ab')]],
    ['nan', [0, RIGHT.replace('99', 'nan')]],
    ['inf', [0, RIGHT.replace('99', 'inf')]],
    ['an exponent', [0, RIGHT.replace('99', '1e+14')]],
    ['a hexadecimal number', [0, RIGHT.replace('99', '0x63')]],
    ['digits of another script', [0, RIGHT.replace('99', '٩٩')]],
    ['a fraction', [0, RIGHT.replace('99', '99.5')]],
    ['a negative wait', [0, RIGHT.replace('99', '-99')]],
    ['a negative grant', [0, RIGHT.replace(' 1 0 0 0 99', ' -1 0 0 0 99')]],
    ['a wait beyond the exact numbers', [0, RIGHT.replace('99', '9007199254740993')]],
    ['a wait without end', [0, RIGHT.replace('99', '9'.repeat(400))]],
    ['a limit that is not there', [0, RIGHT.replace('0 0 0 99 0', '0 1 0 99 0')]],
    ['a reason that is not known', [0, RIGHT.replace('0 0 0 99 0', '0 0 8 99 0')]],
    ['neither yes nor no', [0, RIGHT.replace('99 0 1 5', '99 0 2 5')]],
  ])('%s', async ([, reply]) => expectNoAnswer(answering(() => reply)));

  test.for<[string, unknown]>([
    ['nothing', null],
    ['a text', 'OK'],
    ['an empty list', []],
    ['two texts', ['0', '1']],
    ['a text too few', registered({ limits: LIMITS }).slice(0, -1)],
    ['a text too many', [...registered({ limits: LIMITS }), '']],
    ['numbers', [0, 1, 1_700_000_000_000_000, LIMITS, '', 0, 'test']],
    ['an unknown outcome', registered({ limits: LIMITS, outcome: '2' })],
    ['a version of letters', registered({ limits: LIMITS, version: 'a' })],
    ['version 0', registered({ limits: LIMITS, version: '0' })],
    ['a negative version', registered({ limits: LIMITS, version: '-1' })],
    ['a revision of letters', registered({ limits: LIMITS, revision: 'a' })],
    ['no limits', registered({})],
    ['limits cut off', registered({ limits: LIMITS.slice(0, -9) })],
    ['a limit with a rate of 0', registered({ limits: LIMITS.replace('"rate":1', '"rate":0') })],
    [
      'a limit beyond the exact numbers',
      registered({ limits: LIMITS.replace('"burst":5', `"burst":${2 ** 51}`) }),
    ],
    ['limits of an operator that are not valid', registered({ limits: LIMITS, operator: 'x' })],
    ['an empty list of an operator', registered({ limits: LIMITS, operator: '[]' })],
  ])('%s in place of the limits', async ([, reply]) =>
    expectNoAnswer(
      answering(
        () => [0, RIGHT],
        () => reply,
      ),
    ),
  );
});

describe('a client that fails', () => {
  test.for<[string, () => unknown]>([
    ['rejects with an error', () => Promise.reject(new Error('gone'))],
    ['rejects with a text', () => Promise.reject('gone')],
    ['rejects with nothing', () => Promise.reject(undefined)],
    [
      'throws at once',
      () => {
        throw new Error('gone');
      },
    ],
  ])('because it %s makes every operation of the call fail', async ([, fail]) => {
    await expectNoAnswer({ ...answering(() => undefined), evalsha: fail as RedisClient['evalsha'] });
  });

  test('is the cause of the error', async () => {
    const cause = new Error('gone');
    const store = storeOn(answering(() => Promise.reject(cause)));
    await expect(store.acquire(request, AT_ONCE)).rejects.toMatchObject({
      cause,
      message: expect.stringContaining('gone'),
    });
  });

  test('is asked once: a call without an answer may have charged', async () => {
    let asked = 0;
    const store = storeOn(
      answering(() => {
        asked++;
        throw new Error('Connection is closed.');
      }),
    );
    await expect(store.acquire(request, AT_ONCE)).rejects.toBeInstanceOf(StoreUnavailableError);
    expect(asked).toBe(1);
  });

  test('fails only what it was asked then: the next call stands for itself', async () => {
    let fails = true;
    const store = storeOn(
      answering(() => {
        if (fails) throw new Error('gone');
        return [0, '1700000000000000 1'];
      }),
    );
    await expect(store.acquire(request, AT_ONCE)).rejects.toBeInstanceOf(StoreUnavailableError);
    fails = false;
    expect(await store.acquire(request, AT_ONCE)).toMatchObject({ granted: true });
  });
});

describe('a server without the script', () => {
  test('is given it once, with the same keys and arguments', async () => {
    const calls: unknown[] = [];
    const client = answering(() =>
      Promise.reject(new Error('NOSCRIPT No matching script. Please use EVAL.')),
    );
    const store = storeOn({
      ...client,
      evalsha: (sha1, keys, args) => {
        calls.push(['evalsha', sha1, keys, args]);
        return client.evalsha(sha1, keys, args);
      },
      eval: async (source, keys, args) => {
        calls.push(['eval', source, keys, args]);
        return [0, '1700000000000000 1'];
      },
    });
    expect(await store.acquire(request, AT_ONCE)).toMatchObject({ granted: true });
    const [, asked, given] = calls as [string, string, unknown, unknown][];
    expect(calls).toHaveLength(3);
    expect(asked!.slice(0, 2)).toEqual(['evalsha', decideScript.sha1]);
    expect(given!.slice(0, 2)).toEqual(['eval', decideScript.source]);
    expect(given!.slice(2)).toEqual(asked!.slice(2));
  });

  test('that will not take it either is unavailable, and asked no more', async () => {
    let evals = 0;
    const client = answering(() => Promise.reject(new Error('NOSCRIPT No matching script.')));
    const store = storeOn({
      ...client,
      eval: () => {
        evals++;
        return Promise.reject(new Error('NOPERM this user has no permissions to run the eval command'));
      },
    });
    await expect(store.acquire(request, AT_ONCE)).rejects.toThrow(/NOPERM/);
    expect(evals).toBe(1);
  });
});

test('limits that change with every call end in an error, not in a loop', async () => {
  let asked = 0;
  const store = storeOn(
    answering(() => {
      asked++;
      return [1, ''];
    }),
  );
  await expect(store.acquire(request, AT_ONCE)).rejects.toThrow(/changed 10 times/);
  expect(asked).toBe(10);
});

test('close waits for answers that take their time', async () => {
  let answer: (reply: unknown) => void = () => {};
  let closed = false;
  const client = answering(
    () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
  );
  const store = storeOn({
    ...client,
    close: async () => {
      closed = true;
    },
  });
  const asked = store.acquire(request, AT_ONCE);
  const closing = store.close();
  await new Promise((resolve) => setImmediate(resolve));
  expect(closed).toBe(false);
  answer([0, '1700000000000000 1']);
  expect(await asked).toMatchObject({ granted: true });
  await closing;
  expect(closed).toBe(true);
});
