import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const resolve = {
  alias: [
    { find: /^flyball\/bullmq$/, replacement: at('./src/adapters/bullmq/index.ts') },
    { find: /^flyball\/testing$/, replacement: at('./src/testing/index.ts') },
    { find: /^flyball$/, replacement: at('./src/index.ts') },
  ],
};

// Files that need no Redis. Everything else gets one from the global set-up, or fails: it never skips.
const unit = ['test/core/**/*.test.ts', 'test/store/memory/**/*.test.ts', 'test/**/*.unit.test.ts'];

export default defineConfig({
  resolve,
  test: {
    reporters: ['default', './test/support/tried-again.ts'],
    projects: [
      { resolve, test: { name: 'unit', include: unit, testTimeout: 60_000 } },
      {
        resolve,
        test: {
          name: 'integration',
          include: ['test/**/*.test.ts'],
          exclude: unit,
          globalSetup: ['test/support/redis-global-setup.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          // Timing against a real Redis on two cores: files one after the other, so that none disturbs another.
          fileParallelism: false,
        },
      },
    ],
  },
});
