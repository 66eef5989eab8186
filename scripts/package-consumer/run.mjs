// Run by check-package.mjs in a project that has the packed package installed.
import { createGovernor, perSecond } from 'flyball';
import { GovernedWorker, governed } from 'flyball/bullmq';
import * as testing from 'flyball/testing';

for (const [name, value] of Object.entries({ GovernedWorker, governed })) {
  if (typeof value !== 'function')
    throw new Error(`flyball/bullmq: expected a function ${name}, got ${typeof value}`);
}
if (Object.keys(testing).length === 0) throw new Error('flyball/testing: expected exports, found none');

const governor = createGovernor({ name: 'x', limits: { calls: perSecond(5) } });
const decision = await governor.allow();
if (decision.allowed !== true)
  throw new Error(`expected an allowed decision, got ${JSON.stringify(decision)}`);
await governor.close();
