import type { Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Stats, Trace } from '../../workers/downstream/arrivals.ts';
import type { CompletionTrace } from '../../workers/downstream/completions.ts';
import type { HoldTrace } from '../../workers/downstream/holds.ts';
import { createService } from '../../workers/downstream/server.ts';
import { ServiceClient } from '../../workers/process/service-client.ts';

let server: Server;
let url: string;
let client: ServiceClient;

beforeEach(async () => {
  server = createService({
    ...{ rate: 0.001, burst: 3, serviceMs: 0, slots: 2 },
    ...{ requestsPerMinute: 2, tokensPerMinute: 1_000 },
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  client = new ServiceClient(url, 10);
});

afterEach(async () => {
  client.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const post = (path: string) => fetch(url + path, { method: 'POST' });
const get = async <Answer>(path: string) => (await (await fetch(url + path)).json()) as Answer;
const call = (key = '') => client.call({ cost: 1, job: 'j', key, attempt: 1, ageMs: 0 });

test('a 429 says when to come back, in seconds and in milliseconds', async () => {
  for (let i = 0; i < 3; i++) expect((await call()).status).toBe(200);
  const refused = await post('/call?cost=1');
  expect(refused.status).toBe(429);
  const ms = Number(refused.headers.get('retry-after-ms'));
  expect(ms).toBeGreaterThan(990_000);
  expect(refused.headers.get('retry-after')).toBe(String(Math.ceil(ms / 1000)));
  const { retryAfterMs } = await call();
  expect(retryAfterMs).toBeGreaterThan(990_000);
});

test('its capacity changes while it runs, and the record stays', async () => {
  for (let i = 0; i < 4; i++) await call();
  const changed = (await (await post('/limit?rate=1000000&burst=5')).json()) as { atUs: number };
  expect((await call()).status).toBe(200);
  const { arrivals } = await get<Trace>('/trace');
  expect(arrivals.map((arrival) => arrival[6])).toEqual([0, 0, 0, 1, 0]);
  expect(changed.atUs).toBeGreaterThan(arrivals[3]![0]);
  expect(changed.atUs).toBeLessThan(arrivals[4]![0]);
});

test('a lower burst cuts what was left of the old one', async () => {
  await post('/limit?rate=0.001&burst=1');
  expect([(await call()).status, (await call()).status]).toEqual([200, 429]);
});

test('one key is closed for a while, and takes nothing from the others', async () => {
  await post('/close?key=a&ms=60000');
  const refused = await call('a');
  expect([refused.status, (await call('b')).status]).toEqual([429, 200]);
  expect(refused.retryAfterMs).toBeGreaterThan(59_000);
  expect(refused.retryAfterMs).toBeLessThanOrEqual(60_000);
  expect((await get<Stats>('/stats')).answeredOfKey).toEqual({ b: 1 });
  await post('/close?key=a&ms=1');
  await vi.waitFor(async () => expect((await call('a')).status).toBe(200));
});

const held = async () => (await get<{ held: number }>('/holds/now')).held;

test('a held call lasts until its body ends, and counts meanwhile', async () => {
  const answered = client.hold(1, 100);
  await vi.waitFor(async () => expect(await held()).toBe(1), { interval: 5 });
  expect((await answered).status).toBe(200);
  const [hold] = (await get<HoldTrace>('/holds')).holds;
  expect(hold).toMatchObject({ end: 'done', fence: 1, process: process.pid, workMs: 100, exposedUs: null });
  expect(hold!.endUs! - hold!.beginUs).toBeGreaterThan(95_000);
});

test('over its slots, the holder with the oldest fence is exposed and turned away', async () => {
  const first = client.hold(1, 150);
  await vi.waitFor(async () => expect(await held()).toBe(1), { interval: 5 });
  const others = [client.hold(2, 150), client.hold(3, 150)];
  expect((await first).status).toBe(409);
  expect((await Promise.all(others)).map(({ status }) => status)).toEqual([200, 200]);
  const { holds } = await get<HoldTrace>('/holds');
  expect(holds.map(({ end, exposedUs }) => [end, exposedUs === null])).toEqual([
    ['outlived', false],
    ['done', true],
    ['done', true],
  ]);
});

test('a held call ends at once when its caller is cut off', async () => {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write(
    'POST /hold?fence=1&process=4711&workMs=9 HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n',
  );
  await vi.waitFor(async () => expect(await held()).toBe(1), { interval: 5 });
  socket.destroy();
  await vi.waitFor(async () => expect(await held()).toBe(0), { interval: 5 });
  expect((await get<HoldTrace>('/holds')).holds).toMatchObject([{ end: 'cut', process: 4711 }]);
});

test('a language model tells the tokens in its answer, and refuses over its requests a minute', async () => {
  const answers = [
    await client.complete(10, 20),
    await client.complete(10, 20),
    await client.complete(10, 20),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
  expect(answers[2]!.retryAfterMs).toBeGreaterThan(50_000);
  const told = answers.slice(0, 2).map(({ body }) => (body as { tokens: number }).tokens);
  for (const tokens of told) expect(tokens >= 10 && tokens <= 20).toBe(true);
  const { completions } = await get<CompletionTrace>('/completions');
  expect(completions.map(({ tokens, refused }) => [tokens, refused])).toEqual([
    [told[0], false],
    [told[1], false],
    [0, true],
  ]);
});

test('a language model refuses over its tokens a minute', async () => {
  expect((await client.complete(1_000, 1_000)).status).toBe(200);
  expect((await client.complete(1, 1)).status).toBe(429);
});

test.each([
  ['/call?cost=0', 'cost: expected'],
  ['/hold?fence=x', 'fence: expected'],
  ['/complete?least=5&most=1', 'least and most: expected'],
  ['/limit?rate=0', 'rate and burst: expected'],
  ['/close?key=a', 'ms: expected'],
])('%s makes no sense', async (path, error) => {
  const response = await post(path);
  expect(response.status).toBe(400);
  expect(((await response.json()) as { error: string }).error).toContain(error);
});
