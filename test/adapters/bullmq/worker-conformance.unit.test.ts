import { FakeClock } from 'flyball/testing';
import { FakeQueue, FakeWorker } from '../../support/bullmq-worker.ts';
import { workerConformance } from './worker-conformance.ts';

workerConformance('the fake worker', () => {
  const clock = new FakeClock();
  const queue = new FakeQueue<{ n: number }>(clock);
  let added = 0;
  return {
    worker: (process, options) => new FakeWorker(queue, process, options),
    add: async (count) => {
      for (const last = added + count; added < last; added++) queue.add({ n: added });
    },
    waiting: async () => queue.waiting.map(({ data }) => data.n),
    rest: () => clock.advance(200),
    until: async (condition) => {
      while (!condition()) await clock.advance(10);
    },
    nowMs: () => clock.wallMs(),
  };
});
