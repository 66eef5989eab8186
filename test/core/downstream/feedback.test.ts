import { describe, expect, test } from 'vitest';
import { parseFeedback } from '../../../src/core/downstream/feedback.ts';
import { isInvalidOptionError } from '../../../src/core/errors.ts';

const NOW_MS = Date.UTC(2026, 10, 30, 12, 0, 0);
const httpDate = (ms: number) => new Date(ms).toUTCString();
const pauseOf = (options: unknown, wallMs = NOW_MS) => parseFeedback(options, wallMs).pauseMs;

test('nothing said asks for nothing', () => {
  expect(parseFeedback({}, NOW_MS)).toEqual({
    throttled: false,
    failed: false,
    latencyMs: undefined,
    pauseMs: 0,
    keys: undefined,
    grant: undefined,
  });
});

describe('Retry-After', () => {
  test.for<[string, number]>([
    ['0', 0],
    ['7', 7_000],
    [' 7 ', 7_000],
    ['1.5', 1_500],
    ['0.0004', 1],
    ['86400', 86_400_000],
    [httpDate(NOW_MS + 90_000), 90_000],
    [httpDate(NOW_MS), 0],
    [httpDate(NOW_MS - 90_000), 0],
  ])('of %j, as an option and as a header', ([text, ms]) => {
    expect(pauseOf({ retryAfter: text })).toBe(ms);
    expect(pauseOf({ headers: new Headers({ 'Retry-After': text }) })).toBe(ms);
    expect(pauseOf({ headers: { 'retry-after': text } })).toBe(ms);
    expect(pauseOf({ headers: { 'Retry-After': [text] } })).toBe(ms);
  });

  test('as a date is reckoned by the Date of the answer: clocks may disagree by hours', () => {
    const theirsMs = NOW_MS + 5 * 3_600_000;
    const headers = { date: httpDate(theirsMs), 'retry-after': httpDate(theirsMs + 30_000) };
    expect(pauseOf({ headers })).toBe(30_000);
    expect(pauseOf({ headers: new Headers(headers) })).toBe(30_000);
    expect(pauseOf({ headers: { date: headers.date }, retryAfter: headers['retry-after'] })).toBe(30_000);
    expect(pauseOf({ headers: { ...headers, date: 'yesterday' } })).toBe(5 * 3_600_000 + 30_000);
  });

  test.for([
    Date.UTC(1970, 0, 1),
    Date.UTC(1999, 11, 31, 23, 59, 59),
    Date.UTC(2000, 1, 29),
    Date.UTC(2000, 2, 1),
    Date.UTC(2026, 0, 1),
    Date.UTC(2027, 1, 28, 23, 59, 59),
    Date.UTC(2028, 1, 29, 12),
    Date.UTC(2028, 2, 1),
    Date.UTC(2028, 11, 31),
    Date.UTC(2100, 1, 28),
    Date.UTC(2100, 2, 1),
    Date.UTC(2400, 1, 29),
  ])('reads the calendar as everybody does: %i', (ms) => {
    expect(pauseOf({ retryAfter: httpDate(ms) }, ms - 1_000)).toBe(1_000);
  });

  test.for(['', 'soon', '-5', '+5', '1e9', '0x10', 'NaN', 'Infinity', '5 s', '7, 9', '2026-11-30T12:00:00Z'])(
    'that is none (%j) is refused as an option, and says nothing as a header',
    (text) => {
      expect(() => pauseOf({ retryAfter: text })).toThrow(/^retryAfter: expected seconds or an HTTP date/);
      expect(pauseOf({ headers: { 'retry-after': text } })).toBe(0);
    },
  );
});

describe('headers of what remains', () => {
  const seconds = NOW_MS / 1_000;
  test.for<[string, Record<string, string>, number]>([
    ['RateLimit', { ratelimit: '"default";r=0;t=30' }, 30_000],
    ['RateLimit with something left', { ratelimit: '"default";r=1;t=30' }, 0],
    ['RateLimit without a reset', { ratelimit: '"default";r=0' }, 0],
    ['RateLimit whose parameters stand in another order', { ratelimit: '"default";t=30;r=0' }, 30_000],
    ['RateLimit with parameters between', { ratelimit: '"default";r=0;pk=:YWNtZQ==:;t=30' }, 30_000],
    [
      'RateLimit of several policies, the second used up',
      { ratelimit: '"burst";r=5;t=1, "day";r=0;t=3600' },
      3_600_000,
    ],
    [
      'RateLimit of several policies, both used up',
      { ratelimit: '"burst";r=0;t=1, "day";r=0;t=3600' },
      3_600_000,
    ],
    ['the older RateLimit', { ratelimit: 'limit=100, remaining=0, reset=50' }, 50_000],
    ['the older RateLimit with something left', { ratelimit: 'limit=100, remaining=3, reset=50' }, 0],
    ['RateLimit-Remaining', { 'ratelimit-remaining': '0', 'ratelimit-reset': '20' }, 20_000],
    ['X-RateLimit-Remaining', { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '20' }, 20_000],
    ['X-RateLimit with something left', { 'x-ratelimit-remaining': '10', 'x-ratelimit-reset': '20' }, 0],
    ['X-RateLimit-Remaining alone', { 'x-ratelimit-remaining': '0' }, 0],
    ['X-RateLimit-Reset alone', { 'x-ratelimit-reset': '20' }, 0],
    [
      'a reset that is a time',
      { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': `${seconds + 45}` },
      45_000,
    ],
    ['a reset that is over', { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': `${seconds - 45}` }, 0],
  ])('%s', ([, headers, ms]) => {
    expect(pauseOf({ headers })).toBe(ms);
    expect(pauseOf({ headers: new Headers(headers) })).toBe(ms);
  });

  test('a reset that is a time is reckoned by the Date of the answer', () => {
    const headers = {
      date: httpDate(NOW_MS - 60_000),
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': `${seconds}`,
    };
    expect(pauseOf({ headers })).toBe(60_000);
  });

  test.for<[string, string]>([
    ['', ''],
    ['0', ''],
    ['0', '-5'],
    ['0', 'NaN'],
    ['0', 'Infinity'],
    ['0', 'tomorrow'],
    ['none', '5'],
    ['-0', '5'],
  ])('that cannot be read say nothing: %j, %j', ([remaining, reset]) => {
    expect(pauseOf({ headers: { 'x-ratelimit-remaining': remaining, 'x-ratelimit-reset': reset } })).toBe(0);
  });
});

test('of several times the longest counts', () => {
  const headers = { 'retry-after': '3', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '8' };
  expect(pauseOf({ headers })).toBe(8_000);
  expect(pauseOf({ headers, retryAfterMs: 9_000 })).toBe(9_000);
  expect(pauseOf({ headers, retryAfterMs: 9_000, retryAfter: '10' })).toBe(10_000);
  expect(pauseOf({ headers: { 'retry-after': '60' }, retryAfterMs: 1 })).toBe(60_000);
});

// Clients of HTTP differ.
test.for<[string, unknown]>([
  ['a number', { 'retry-after': 5 }],
  ['a list', { 'retry-after': ['5', '7'] }],
  ['Headers that answer a number', { get: (name: string) => (name === 'retry-after' ? 5 : undefined) }],
  ['Headers that answer a list', { get: (name: string) => (name === 'retry-after' ? ['5'] : null) }],
])('a header may be given as %s', ([, headers]) => {
  expect(pauseOf({ headers })).toBe(5_000);
});

describe('headers of a hostile or careless downstream', () => {
  test.for<[string, unknown]>([
    ['an empty object', {}],
    ['no values', { 'retry-after': undefined, ratelimit: undefined }],
    ['an empty list', { 'retry-after': [] }],
    ['names of Object’s own', Object.create({ 'retry-after': '60' })],
    ['Headers that answer no text', { get: () => ({}) }],
    ['Headers that answer true', { get: () => true }],
    ['Headers that answer null', { get: () => null }],
    ['Headers that answer nothing', { get: () => undefined }],
    ['a long text', { 'retry-after': ' '.repeat(100_000), ratelimit: 'r=0'.repeat(30_000) }],
  ])('%s', ([, headers]) => {
    const beganMs = performance.now();
    expect(pauseOf({ headers })).toBe(0);
    expect(performance.now() - beganMs).toBeLessThan(1_000);
  });

  // One answer must not shut a fleet for centuries: 366 days are the most that Throttled takes, too.
  test.for<[string, Record<string, string>]>([
    ['many seconds', { 'retry-after': '9'.repeat(20) }],
    ['more seconds than there are numbers', { 'retry-after': '9'.repeat(400) }],
    ['a date in the year 9999', { 'retry-after': httpDate(Date.UTC(9999, 11, 31)) }],
    ['a RateLimit of many seconds', { ratelimit: `"a";r=0;t=${'9'.repeat(20)}` }],
    [
      'a reset in milliseconds since 1970',
      { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': `${NOW_MS + 60_000}` },
    ],
  ])('close for no longer than a year: %s', ([, headers]) => {
    expect(pauseOf({ headers })).toBeLessThanOrEqual(366 * 86_400_000);
  });
});

describe('options that are none are refused', () => {
  test.for<[unknown, string]>([
    [undefined, 'options'],
    [[], 'options'],
    [{ throttle: true }, 'options.throttle'],
    [{ throttled: 1 }, 'throttled'],
    [{ failed: 'yes' }, 'failed'],
    [{ latencyMs: -1 }, 'latencyMs'],
    [{ latencyMs: Number.NaN }, 'latencyMs'],
    [{ retryAfterMs: -1 }, 'retryAfterMs'],
    [{ retryAfterMs: '5' }, 'retryAfterMs'],
    [{ retryAfter: 5 }, 'retryAfter'],
    [{ headers: 'retry-after: 5' }, 'headers'],
    [{ headers: null }, 'headers'],
  ])('%j', ([options, option]) => {
    let error: unknown;
    try {
      pauseOf(options);
    } catch (thrown) {
      error = thrown;
    }
    expect(isInvalidOptionError(error)).toBe(true);
    expect(error).toMatchObject({ option });
  });
});
