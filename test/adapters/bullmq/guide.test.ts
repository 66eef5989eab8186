import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Queue, type Worker } from 'bullmq';
import type { Governor } from 'flyball';
import type { Redis } from 'ioredis';
import { expect, test, vi } from 'vitest';
import { redisUrl } from '../../support/redis.ts';
import { until } from './fixture.ts';

const guide = new URL('../../../docs/bullmq.md', import.meta.url);
const here = fileURLToPath(new URL('.', import.meta.url));

interface Samples {
  connection: Redis;
  governor: Governor;
  workers: (() => Worker)[];
}

/** The samples of the guide as one module: the first is what all others stand on, each of them makes a worker. */
function moduleOf(markdown: string): string {
  const [first, ...others] = [...markdown.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code!);
  const imports = new Set<string>();
  const bodyOf = (code: string) =>
    code.replace(/^import .*$\n/gm, (line) => {
      for (const each of apart(line)) imports.add(each);
      return '';
    });
  const base = bodyOf(first!);
  const workers = others.map((code) => `() => {\n${bodyOf(code)}\nreturn worker;\n}`);
  return `${[...imports].join('\n')}\n${base}\nexport { connection, governor };\nexport const workers = [${workers.join(',\n')}];\n`;
}

// One import a name, so that samples may share them.
function apart(line: string): string[] {
  const [, names, from] = /^import (?:type )?\{(.*)\} from (.*);/.exec(line)!;
  return names!
    .split(',')
    .filter((name) => !/^\s*type /.test(name) && !line.startsWith('import type'))
    .map((name) => `import { ${name.trim()} } from ${from};`);
}

test('every sample of the guide runs, and its worker does a job', async (context) => {
  // Beside the sandboxed processor that one of them names.
  const folder = mkdtempSync(join(here, '.guide-'));
  context.onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'samples.ts');
  const source = moduleOf(readFileSync(guide, 'utf8')).replace('./sandboxed', '../sandboxed');
  writeFileSync(file, source);
  vi.stubEnv('REDIS_URL', redisUrl());
  const quiet = [vi.spyOn(console, 'log'), vi.spyOn(console, 'warn')].map((spy) => spy.mockReturnValue());
  context.onTestFinished(() => {
    vi.unstubAllEnvs();
    for (const spy of quiet) spy.mockRestore();
  });
  const onSigterm = process.listeners('SIGTERM');
  const { connection, governor, workers } = (await import(pathToFileURL(file).href)) as Samples;
  const queue = new Queue('orders', { connection });
  context.onTestFinished(async () => {
    for (const listener of process.listeners('SIGTERM')) {
      if (!onSigterm.includes(listener)) process.off('SIGTERM', listener);
    }
    await queue.obliterate({ force: true });
    await queue.close();
    await governor.close();
    connection.disconnect();
  });

  expect(workers.length).toBeGreaterThanOrEqual(10);
  for (const make of workers) {
    const worker = make();
    const job = await queue.add('order', { shop: 'acme', items: [1, 2], n: 1, forcedBy: 'ops' });
    await until(async () => ['completed', 'failed'].includes(await job.getState()), 'the job done', 5_000);
    const done = await queue.getJob(job.id!);
    expect(done!.failedReason).toBeUndefined();
    expect(done!.returnvalue).not.toBeNull();
    await worker.close();
  }
});
