import { provideRedis } from '../../scripts/redis.ts';
import { Children } from './children.ts';
import { figuresOf, loadOf } from './figures.ts';
import { jobsOfOthers } from './key-figures.ts';
import { demoOptions } from './options.ts';
import { type Outcome, runPhase } from './phase.ts';
import { Service } from './service.ts';
import { orAbort, type Stage } from './stage.ts';
import { summaryTable } from './summary.ts';
import { brokenPromises, toleratedExcess } from './verdict.ts';
import { createView } from './view.ts';

// Long enough to see what happens, and enough jobs to last that long at the speed of a machine left alone.
const UNGOVERNED_MS = 3_500;
const UNGOVERNED_JOBS = 12_000;

// In the names of this run: a Redis that was used before may hold queues and governors of an earlier one.
const runId = Date.now().toString(36);

const options = demoOptions(process.argv);
const view = createView(options);
const ending = new AbortController();
const children = new Children((error) => ending.abort(error));
let redis: { stop(): Promise<void> } | undefined;

for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  process.on(signal, () => {
    // A second Ctrl-C does not wait for anything. Children end by themselves when their parent is gone.
    if (ending.signal.aborted) process.exit(code);
    ending.abort(signal);
    void leave(code);
  });
}

run().then(leave, (error: unknown) => {
  // After a signal everything in flight fails in some way, and the signal's handler is already at work.
  if (ending.signal.reason === 'SIGINT' || ending.signal.reason === 'SIGTERM') return;
  view.phaseDone();
  view.print(`demo: ${error instanceof Error ? error.message : error}`);
  complain();
  void leave(1);
});

/** Shows what the processes logged last: when something went wrong, the reason is likely there. */
function complain(): void {
  for (const line of children.complaints) view.print(`  ${line}`);
}

/** Ends everything that was started, then this process. */
async function leave(code: number): Promise<void> {
  view.phaseDone();
  await children.endAll();
  await redis?.stop();
  process.exit(code);
}

async function run(): Promise<number> {
  const { rate, burst, jobs, queues, processes, concurrency, json, kill } = options;
  const provided = await provideRedis({ log: (line) => view.print(line) });
  redis = provided;
  ending.signal.throwIfAborted();
  // Twice the burst: the service is given exactly the rate, and room for the burst to shift by some jitter.
  const service = await orAbort(
    ending.signal,
    Service.start(children, { rate, burst: 2 * burst }, options.serviceMs),
  );
  const stage: Stage = {
    options,
    redisUrl: provided.url,
    service,
    children,
    signal: ending.signal,
    say: (line) => view.say(line),
    show: (progress) => view.show(progress),
  };
  view.print(
    `${processes} processes, ${queues} queues, up to ${concurrency} jobs a worker; the service allows ${rate} tokens/s`,
  );
  const names = (phase: string) => Array.from({ length: queues }, (_, i) => `demo-${runId}-${phase}-${i}`);

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
  if (broken.length > 0) complain();
  // JSON has stdout to itself, so that a pipe can read it.
  await written(json ? process.stderr : process.stdout, text);
  if (json) await written(process.stdout, `${JSON.stringify(figures)}\n`);
  return broken.length === 0 ? 0 : 1;
}

/** A pipe takes its time, and process.exit would not wait for it. */
function written(out: NodeJS.WriteStream, text: string): Promise<void> {
  return new Promise((resolve) => {
    out.write(text, () => resolve());
  });
}
