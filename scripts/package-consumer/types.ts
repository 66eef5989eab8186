// Compiled by check-package.mjs, strictly, against the types of the packed package.
import type { Processor } from 'bullmq';
import { createGovernor, type Governor, perSecond } from 'flyball';
import { GovernedWorker, governed } from 'flyball/bullmq';

const governor: Governor = createGovernor({
  name: 'x',
  limits: { calls: perSecond(5, { burst: 2 }), shop: perSecond(1, { by: 'shop' }) },
});

/** "Not now" is a value: the compiler must know which fields come with which answer. */
export async function waitMs(cost: number, shop: string): Promise<number> {
  const decision = await governor.allowN(cost, { keys: { shop } });
  return decision.allowed ? 0 : decision.retryAfterMs;
}

interface Order {
  items: string[];
}

const process: Processor<Order> = async (job) => job.data.items.length;

export const processor: Processor<Order> = governed(governor, process, {
  cost: (job) => job.data.items.length,
});

export const startWorker = () =>
  new GovernedWorker<Order>('orders', process, {
    connection: { url: 'redis://127.0.0.1:6379' },
    govern: { governor, cost: (job) => job.data.items.length },
  });
