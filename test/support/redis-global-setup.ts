import type { TestProject } from 'vitest/node';
import { provideRedis } from '../../scripts/redis.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    redisUrl: string;
  }
}

/**
 * Gives the integration tests one Redis. If none can be had this throws and the run fails: tests that were
 * skipped in silence would look like tests that passed.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const redis = await provideRedis({ log: (line) => console.error(line) });
  project.provide('redisUrl', redis.url);
  return () => redis.stop();
}
