import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { luaDirectory } from '../../scripts/assemble-script.mjs';
import { sharedParts } from '../../scripts/shared-parts.mjs';
import * as buckets from '../../src/core/buckets/kinds.ts';
import type { Terms } from '../../src/core/decide/ask.ts';
import type { Receipt } from '../../src/core/decide/verdict.ts';
import * as limits from '../../src/core/limits/limit.ts';
import { VALUES } from '../../src/store/redis/call/kinds.ts';
import * as protocol from '../../src/store/redis/call/protocol.ts';
import { PLACES } from '../../src/store/redis/keys.ts';
import { RedisStore } from '../../src/store/redis/redis-store.ts';
import { clientWithTime } from '../lua/support/injected-time.ts';
import { connect, uniqueName } from '../support/redis.ts';
import { World, ZERO_US } from '../support/world.ts';
import { QUOTA, QUOTA_LIMIT } from './quota.ts';

/*
 * A kind of limit that is not part of the product, added to each list that a kind has a line in. It shows that a kind is a
 * module: no file of another kind knows of it, and each list below is one that docs/architecture.md names.
 */
const here = (file: string) => fileURLToPath(new URL(file, import.meta.url));
Object.assign(limits.LIMIT_KINDS, { quota: QUOTA_LIMIT });
Object.assign(buckets.KINDS, { quota: QUOTA });
(protocol.KINDS as unknown as string[]).push('quota');
(protocol.REASONS as unknown as string[]).push('quota');
Object.assign(protocol.KIND, { quota: protocol.KINDS.length });
// The reader in Lua numbers the limits by their place here; a share has a number and no limit of its own.
Object.assign(protocol.LIMIT_FIELDS, { share: [], quota: ['max'] });
Object.assign(protocol.LIMIT_PARTS, { share: [], quota: [] });
Object.assign(VALUES, { quota: (limit: object) => ({ ...limit }) });
Object.assign(PLACES, { quota: ['quota'] });

const directory = mkdtempSync(join(tmpdir(), 'flyball-toy-kind-'));
cpSync(luaDirectory, directory, { recursive: true });
for (const [part, text] of Object.entries(sharedParts()))
  writeFileSync(join(directory, 'includes', `${part}.lua`), text);
mkdirSync(join(directory, 'includes/buckets/quota'));
cpSync(here('quota.lua'), join(directory, 'includes/buckets/quota/index.lua'));
afterAll(() => rmSync(directory, { recursive: true }));

const redis = connect();
const OPTIONS = {
  pace: { rate: 5, periodMs: 1_000, burst: 4 },
  slots: { kind: 'concurrency', max: 8, leaseMs: 1_000 },
  total: { kind: 'quota', max: 60 },
  each: { kind: 'quota', max: 25, by: 'shop' },
} as unknown as limits.LimitsOptions;

test('a quota grants its tokens and then never again, all limits or none', () => {
  const world = new World({
    ...OPTIONS,
    total: { kind: 'quota', max: 5 },
  } as unknown as limits.LimitsOptions);
  expect(world.allows(0, { cost: 3, holder: 'a' })).toBe(true);
  const [before] = world.peek(1_000_000);
  expect(world.acquire(1_000_000, { cost: 3, holder: 'b' })).toMatchObject({
    granted: false,
    reason: 'quota',
    limit: { name: 'total' },
  });
  expect(world.peek(1_000_000)[0]).toEqual(before);
  expect(world.allows(1_000_000, { cost: 2, holder: 'b' })).toBe(true);
  expect(world.acquire(9e12, { holder: 'c' })).toMatchObject({ granted: false, reason: 'quota' });
});

test.for([1, 2, 3])('its twin in Lua decides the same, seed %i', async (seed) => {
  const world = new World(OPTIONS);
  let [atUs, state] = [0, seed];
  const random = (below: number) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
  const client = clientWithTime(redis, () => ZERO_US + atUs, directory);
  const setUp = {
    name: uniqueName('toy'),
    limits: world.limits,
    coldStart: 'full',
    instance: 'one',
  } as const;
  const store = new RedisStore(setUp, client);
  await store.limits();
  const receipts: Receipt[] = [];
  const reasons = new Set<unknown>();
  for (let step = 0; step < 200; step++) {
    atUs += random(400_000);
    const request = { cost: 1 + random(3), keys: { shop: 'abc'[random(3)]! }, holder: `h${step}` };
    const terms: Terms = {
      maxWaitUs: random(2) * 1_000_000,
      maxTurnUs: random(2) * Number.MAX_SAFE_INTEGER,
      turns: 'all',
      returning: false,
      patienceUs: 0,
      priority: 1,
      queue: random(2) === 1,
    };
    // A slot is never granted ahead: only without one is there something to cancel.
    const asked = random(2) === 0 ? request : tokens(request);
    const receipt = receipts.at(-1 - random(3));
    const what = random(6);
    let pair: unknown[];
    if (what === 0 && receipt) pair = [await store.cancel(receipt), world.cancel(atUs, receipt)];
    else if (what === 1 && receipt) {
      const actual = random(4);
      await store.settle(receipt, actual);
      pair = [0, world.settle(atUs, receipt, actual) ?? 0];
    } else if (what === 2)
      pair = [await store.atMost(tokens(request), 2, 1), world.atMost(atUs, 2, tokens(request))];
    else
      pair = [
        await store.acquire(asked, terms),
        world.acquire(atUs, { ...asked, ...terms, instance: 'one' }),
      ];
    expect({ step, what, result: plain(pair[0]) }).toEqual({ step, what, result: plain(pair[1]) });
    const verdict = pair[0] as { receipt?: Receipt; reason?: string };
    if (verdict.receipt) receipts.push(verdict.receipt);
    if (verdict.reason) reasons.add(verdict.reason);
    const peeked = await store.peek(request, 1);
    expect(peeked.map((one) => ('sight' in one ? one.sight : one))).toEqual(plain(world.peek(atUs, request)));
  }
  expect(reasons).toContain('quota');
});

/** Without the slots, which are not taken by number. */
const tokens = <R extends { cost: number }>(request: R) => ({
  ...request,
  cost: { pace: request.cost, slots: 0, total: request.cost, each: request.cost },
});

/** A result with limits and demands by name. */
const plain = (result: unknown): unknown =>
  JSON.parse(
    JSON.stringify(result, (key, value) => {
      if (key === 'created') return undefined; // only a shared store has it
      if (key === 'limit') return value.name;
      return key === 'demand' ? `${value.kind} ${value.bucket} ${value.cost}` : value;
    }),
  );

test('the two files of a kind are short', () => {
  const lines = ['quota.ts', 'quota.lua'].map((file) => readFileSync(here(file), 'utf8').split('\n').length);
  expect(lines[0]! + lines[1]!).toBeLessThan(200);
});
