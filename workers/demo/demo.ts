import { toleratedExcess } from '../measure/bounds.ts';
import { complain, conduct, type Ground, written } from '../parent/conduct.ts';
import { orAbort } from '../parent/or-abort.ts';
import { Service } from '../parent/service.ts';
import { figuresOf, loadOf } from './figures.ts';
import { jobsOfOthers } from './key-figures.ts';
import { demoOptions } from './options.ts';
import { type Outcome, runPhase } from './phase.ts';
import type { Stage } from './stage.ts';
import { summaryTable } from './summary.ts';
import { brokenPromises } from './verdict.ts';
import { createView } from './view.ts';

// Long enough to see what happens, with enough jobs to last that long on an idle machine.
const UNGOVERNED_MS = 3_500;
const UNGOVERNED_JOBS = 12_000;

const options = demoOptions(process.argv);
const view = createView(options);
const voice = { print: (line: string) => view.print(line), done: () => view.phaseDone() };

conduct('demo', voice, run);

async function run(ground: Ground): Promise<number> {
  const { rate, burst, jobs, queues, processes, concurrency, json, kill } = options;
  // The service allows exactly the rate, but twice the burst, because jitter shifts the burst.
  const service = await orAbort(
    ground.signal,
    Service.start(ground.children, { rate, burst: 2 * burst, serviceMs: options.serviceMs }),
  );
  const stage: Stage = {
    ...ground,
    options,
    service,
    say: (line) => view.say(line),
    show: (progress) => view.show(progress),
  };
  view.print(
    `${processes} processes, ${queues} queues, up to ${concurrency} jobs a worker; the service allows ${rate} tokens/s`,
  );
  const names = (phase: string) =>
    Array.from({ length: queues }, (_, i) => `demo-${ground.runId}-${phase}-${i}`);

  let ungoverned: Outcome | undefined;
  if (!options.governedOnly) {
    const plan = { governed: false, jobs: UNGOVERNED_JOBS, queueNames: names('alone'), maxMs: UNGOVERNED_MS };
    ungoverned = await runPhase(stage, plan);
    view.phaseDone();
  }
  const governed = await runPhase(stage, {
    governed: true,
    jobs,
    queueNames: names('governed'),
    ...(options.keys ? { jobsOfOthers: jobsOfOthers(options, options.keys) } : {}),
  });
  view.phaseDone();

  const figures = figuresOf(options, governed, ungoverned);
  const broken = brokenPromises(figures, options);
  const table = summaryTable(
    options,
    figures,
    loadOf(governed, options),
    ungoverned && loadOf(ungoverned, options),
  );
  const verdict =
    broken.length === 0
      ? `The promise was kept${kill ? ', with a process killed half-way' : ''}.`
      : `The promise was broken:\n${broken.map((line) => `  ${line}`).join('\n')}`;
  const note = [
    'Worst excess: the most that any interval, of any length, saw over burst + rate',
    `× length. Up to ${toleratedExcess(rate)} tokens are put down to timers and sockets (50 ms of the rate,`,
    'at least 1).',
  ].join('\n');
  const text = `${table}\n${note}\n${verdict}\n`;
  if (broken.length > 0) complain(voice, ground.children);
  // With --json, stdout has only the JSON, so that a pipe can read it.
  await written(json ? process.stderr : process.stdout, text);
  if (json) await written(process.stdout, `${JSON.stringify(figures)}\n`);
  return broken.length === 0 ? 0 : 1;
}
