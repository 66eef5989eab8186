import { createGovernor, type LimitsOptions, perSecond } from 'flyball';
import type { Child } from '../../../parent/children.ts';
import { flags } from '../../../parent/flags.ts';
import { Fleet } from '../../../parent/fleet.ts';
import { orAbort } from '../../../parent/or-abort.ts';
import type { Service } from '../../../parent/service.ts';
import { pause } from '../../../parent/waiting.ts';
import type { Stage } from '../../case.ts';
import { type FlapFigures, flapFigures } from '../../figures/flaps.ts';

const PROCESSES = 3;
const SAMPLE_MS = 20;
const STEP_MS = 500;
const OLD_RATE = 60;
const NEW_RATE = 120;
const JOBS = 3_000;

const limitsAt = (rate: number): LimitsOptions => ({ calls: perSecond(rate, { burst: 5 }) });

/**
 * A rolling restart: one process after the other gets new code with other limits. Half-way a process with the old code dies
 * and is started again with the old code: it comes last, and must not bring the old limits back.
 */
export async function deploy(stage: Stage, service: Service): Promise<FlapFigures> {
  const { signal, redisUrl, children, say } = stage;
  const name = `${stage.name}-deploy`;
  const codeOf = (rate: number, revision: number) =>
    flags({
      ...{ redis: redisUrl, service: service.url, queues: name, governor: name },
      ...{ limits: limitsAt(rate), revision },
    });
  await orAbort(
    signal,
    children.start('producer', flags({ redis: redisUrl, queues: name, backlog: `=${JOBS}` })).ended,
  );
  const fleet = new Fleet(children, 'consumer', codeOf(OLD_RATE, 1));
  await orAbort(signal, fleet.start(PROCESSES));
  fleet.go();

  const watcher = createGovernor({ name, connection: redisUrl, limits: limitsAt(OLD_RATE), revision: 1 });
  const rates: number[] = [];
  let over = false;
  const watching = (async () => {
    while (!over) {
      const { limits } = await watcher.configuration();
      rates.push((limits.calls as { rate: number }).rate);
      await pause(signal, SAMPLE_MS);
    }
  })();
  try {
    await pause(signal, STEP_MS);
    const [first, second, last] = [...fleet.members] as [Child, Child, Child];
    const deployTo = async (old: Child) => {
      say(`new limits for process ${old.pid}`);
      await orAbort(signal, fleet.stopAndReplace(old, codeOf(NEW_RATE, 2)));
      await pause(signal, STEP_MS);
    };
    await deployTo(first);
    say(`process ${last.pid} dies and comes back with the old limits`);
    await orAbort(signal, fleet.killAndReplace(last));
    const back = fleet.members.at(-1)!;
    await pause(signal, STEP_MS);
    await deployTo(second);
    await deployTo(back);
    await orAbort(signal, fleet.stop());
  } finally {
    over = true;
    await watching.catch(() => {});
    await watcher.close();
  }
  return flapFigures(rates, NEW_RATE);
}
