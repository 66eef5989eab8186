import { Bench, sleep, until } from './fixture.ts';
import { workerConformance } from './worker-conformance.ts';

workerConformance('BullMQ’s own worker', (context) => {
  const bench = new Bench(context);
  const queue = bench.queue();
  let added = 0;
  return {
    worker: (process, options) => bench.plainWorker(queue, process, options),
    async add(count) {
      const from = added;
      added += count;
      await queue.addBulk(Array.from({ length: count }, (_, n) => ({ name: 'job', data: { n: from + n } })));
    },
    waiting: async () => (await queue.getWaiting()).map(({ data }) => data.n),
    rest: () => sleep(200),
    until: (condition) => until(condition, 'what the test waits for'),
    nowMs: () => Date.now(),
  };
});
