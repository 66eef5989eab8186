import { badOption, type CostRange, command, costOption, wholeNumber } from '../process/options.ts';
import { demandOf } from '../traffic.ts';

/** What the demo is to show. Rates are tokens a second, costs whole tokens. */
export interface DemoOptions {
  readonly rate: number;
  readonly burst: number;
  readonly processes: number;
  readonly concurrency: number;
  readonly jobs: number;
  readonly cost: CostRange;
  readonly queues: number;
  readonly maxHoldMs: number;
  readonly serviceMs: number;
  readonly kill: boolean;
  /** Both, or neither. */
  readonly keys: { readonly keys: number; readonly rate: number; readonly keyRate: number } | undefined;
  readonly seed: number;
  readonly governedOnly: boolean;
  readonly json: boolean;
}

/** How long traffic of many keys lasts unless --jobs is given. */
const TRAFFIC_SECONDS = 20;
const DEFAULT_KEY_RATE = 20;

/** Reads the command line; ends the process with 2 and a message if it is not valid. */
export function demoOptions(argv: readonly string[]): DemoOptions {
  const program = command('demo', 'A fragile service behind many workers: first without, then with Flyball.')
    .option(
      '--rate <tokens>',
      'tokens a second the service is promised, by all workers together',
      wholeNumber(1),
      200,
    )
    .option('--burst <tokens>', 'the most tokens at one instant', wholeNumber(1), 20)
    .option('--processes <number>', 'worker processes', wholeNumber(1, 64), 4)
    .option('--concurrency <jobs>', 'the most jobs at once in one worker', wholeNumber(1, 10_000), 50)
    .option('--jobs <number>', 'jobs to do', wholeNumber(1, 10_000_000), 3_000)
    .addOption(costOption())
    .option('--queues <number>', 'queues; each process has a worker for each', wholeNumber(1, 100), 2)
    .option('--max-hold-ms <ms>', 'longest wait for tokens inside a worker', wholeNumber(0, 600_000), 1_000)
    .option('--service-ms <ms>', 'how long the service works on a call', wholeNumber(0, 600_000), 5)
    .option('--kill', 'end a worker process by SIGKILL half-way and start another')
    .option(
      '--keys <number>',
      `how many keys the jobs have; they are offered over time, and one key floods; for ${TRAFFIC_SECONDS} s unless --jobs is given`,
      wholeNumber(2, 10_000),
    )
    .option(
      '--key-rate <tokens>',
      `with --keys: tokens a second for each key (default: ${DEFAULT_KEY_RATE})`,
      wholeNumber(1),
    )
    .option('--seed <number>', 'the same seed draws the same costs', wholeNumber(0, 2 ** 32 - 1), 1)
    .option('--governed-only', 'leave out the part without Flyball')
    .option('--json', 'the last line on stdout is the result as JSON')
    .addHelpText(
      'after',
      '\nExit code: 0 the promise was kept, 1 it was broken, 2 an option is not valid, 130 Ctrl-C.',
    )
    .parse(argv);
  const given = program.opts();
  const { rate, burst, cost, keys, keyRate } = given;
  const costs = cost.min === cost.max ? `${cost.min}` : `${cost.min}-${cost.max}`;
  if (cost.max > burst) {
    badOption(
      program,
      '--cost <tokens>',
      `at most --burst (${burst}): a job of a higher cost could never pass`,
      costs,
    );
  }
  if (keys === undefined && keyRate !== undefined) {
    badOption(program, '--key-rate <tokens>', '--keys along with it', `--key-rate ${keyRate} alone`);
  }
  const traffic = keys === undefined ? undefined : { keys, rate, keyRate: keyRate ?? DEFAULT_KEY_RATE };
  if (traffic && traffic.keyRate >= rate) {
    badOption(program, '--key-rate <tokens>', `less than --rate (${rate})`, `${traffic.keyRate}`);
  }
  if (traffic && cost.max > traffic.keyRate) {
    badOption(program, '--cost <tokens>', `at most --key-rate (${traffic.keyRate}), a key's burst`, costs);
  }
  const timed = traffic && program.getOptionValueSource('jobs') === 'default';
  const meanCost = (cost.min + cost.max) / 2;
  return {
    rate,
    burst,
    processes: given.processes,
    concurrency: given.concurrency,
    jobs: timed ? Math.ceil((TRAFFIC_SECONDS * demandOf(traffic).totalRate) / meanCost) : given.jobs,
    cost,
    queues: given.queues,
    maxHoldMs: given.maxHoldMs,
    serviceMs: given.serviceMs,
    kill: given.kill ?? false,
    keys: traffic,
    seed: given.seed,
    governedOnly: given.governedOnly ?? false,
    json: given.json ?? false,
  };
}
