import { describe, expect, test } from 'vitest';
import { optionConflicts, versionConflicts } from '../../../src/adapters/bullmq/queue/warnings.ts';

describe('versionConflicts', () => {
  // https://github.com/taskforcesh/bullmq/issues/4163: before 5.76.11 close() did not end while jobs were deferred.
  test.each([
    ['5.76.10', 1],
    ['5.76.11', 1],
    ['5.76.12', 1],
    ['5.75.99', 1],
    ['5.81.3', 1],
    ['5.9.0', 1],
    ['4.99.99', 1],
    ['6.0.0', 1],
    ['6.3.16', 1],
    ['6.4.0', 0],
    ['6.7.0', 0],
    ['10.0.0', 0],
    ['5.76.11-beta.1', 1],
    ['5.76', 1],
    [undefined, 0],
  ])('BullMQ %s: %i warnings', (version, warnings) => {
    expect(versionConflicts(version)).toHaveLength(warnings);
  });

  test('names both versions', () => {
    expect(versionConflicts('5.20.0')[0]).toMatch(/5\.20\.0 is older than 5\.76\.11/);
    expect(versionConflicts('5.81.5')[0]).toMatch(/5\.81\.5 is older than 6\.4\.0/);
  });
});

describe('optionConflicts', () => {
  test.each([
    [{}, []],
    [{ limiter: { max: 1, duration: 1_000 } }, [/limiter/]],
    [{ maxStartedAttempts: 3 }, [/maxStartedAttempts is 3/]],
    [{ maxStartedAttempts: 9, limiter: { max: 1, duration: 1 } }, [/limiter/, /maxStartedAttempts is 9/]],
  ])('%o', (options, expected) => {
    const found = optionConflicts(options);
    expect(found).toHaveLength(expected.length);
    for (const [index, pattern] of expected.entries()) expect(found[index]).toMatch(pattern);
  });
});
