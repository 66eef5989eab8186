import { createGovernor, type LimitsOptions, perSecond } from 'flyball';
import { flags } from '../../parent/flags.ts';
import { Fleet } from '../../parent/fleet.ts';
import { orAbort } from '../../parent/or-abort.ts';
import { Service } from '../../parent/service.ts';
import { pause } from '../../parent/waiting.ts';
import { atLeast, atMost, type ProveCase } from '../case.ts';
import { adaptiveFigures, adaptiveSeries, type Phase, type Sample } from '../figures/adapting.ts';

const PROCESSES = 4;
const LOOPS = 40;
const SERVICE_MS = 50;
const CAPACITIES = [200, 80, 200];
const PHASE_MS = 22_000;
const SAMPLE_MS = 250;

const limits: LimitsOptions = {
  calls: perSecond(100, { burst: 10, adaptive: { min: 20, max: 400 } }),
};

/** A tenth of a second's worth at once. */
const service = (capacity: number) => ({ rate: capacity, burst: capacity / 10 });

export const adaptive: ProveCase = {
  name: 'adaptive',
  about: `a service takes ${CAPACITIES.join(', then ')} calls a second and tells nobody: the limit follows`,

  async run(stage) {
    const { signal, redisUrl, children, name, say } = stage;
    const started = { ...service(CAPACITIES[0]!), serviceMs: SERVICE_MS };
    const downstream = await orAbort(signal, Service.start(children, started));
    const fleet = new Fleet(
      children,
      'caller',
      flags({ redis: redisUrl, service: downstream.url, governor: name, limits, loops: LOOPS }),
    );
    await orAbort(signal, fleet.start(PROCESSES));
    const governor = createGovernor({ name, connection: redisUrl, limits });
    const { epochMs } = await downstream.trace();
    const nowUs = () => (Date.now() - epochMs) * 1000;
    const samples: Sample[] = [];
    const phases: Phase[] = [];
    fleet.go();
    for (const capacity of CAPACITIES) {
      say(`the service takes ${capacity} calls a second`);
      const fromUs = await downstream.changeLimit(service(capacity));
      const toUs = fromUs + PHASE_MS * 1000;
      while (nowUs() < toUs) {
        const [state] = await governor.peek();
        samples.push({ atUs: nowUs(), limit: state!.effective });
        await pause(signal, SAMPLE_MS);
      }
      phases.push({ capacity, fromUs, toUs });
    }
    const { arrivals } = await downstream.trace();
    await governor.close();
    await orAbort(signal, fleet.stop());

    const figures = adaptiveFigures(arrivals, phases);
    return {
      figures: { phases: figures },
      demands: figures.flatMap(({ capacity, used, refusedShare }, i) => [
        atLeast(`phase ${i + 1}, capacity ${capacity}/s: of it used, after 10 s`, used, 0.85, '%'),
        atMost(`phase ${i + 1}: of all calls, answered 429`, refusedShare, 0.03, '%'),
      ]),
      series: adaptiveSeries(arrivals, phases, samples),
    };
  },
};
