import { Command, type CommanderError, InvalidArgumentError, Option } from 'commander';

/** A job's cost is drawn between these two, both included, in whole tokens. */
export interface CostRange {
  readonly min: number;
  readonly max: number;
}

/** Exit code for an option that makes no sense; 1 is kept for a run that failed. */
const EXIT_BAD_OPTION = 2;

/** A command whose usage errors end the process with {@link EXIT_BAD_OPTION}. */
export function command(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .helpOption('-h, --help', 'show this and exit')
    .showHelpAfterError('(--help lists the options)')
    .exitOverride((error: CommanderError) => process.exit(error.exitCode === 0 ? 0 : EXIT_BAD_OPTION));
}

/** Ends the process with a message in the shape commander gives its own. */
export function badOption(program: Command, option: string, expected: string, got: string): never {
  program.error(`error: option '${option}' is invalid. Expected ${expected}, got ${got}.`);
}

/** A parser for a whole number in a range. Commander puts the option's name before the message. */
export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) {
      throw new InvalidArgumentError(`Expected a whole number ${range}, got '${text}'.`);
    }
    return value;
  };
}

/** `--cost`, the same for all who draw costs. */
export function costOption(): Option {
  return new Option('--cost <tokens>', 'what a job costs: 3, or 1-5')
    .argParser(costRange)
    .default({ min: 1, max: 5 } satisfies CostRange, '1-5');
}

function costRange(text: string): CostRange {
  const match = /^(\d+)(?:-(\d+))?$/.exec(text);
  const min = Number(match?.[1]);
  const max = Number(match?.[2] ?? match?.[1]);
  if (!(min >= 1 && max >= min)) {
    throw new InvalidArgumentError(
      `Expected whole tokens, one number or two with the smaller first (3 or 1-5), got '${text}'.`,
    );
  }
  return { min, max };
}

/** Names separated by commas. BullMQ builds its keys with colons, so a queue's name may not hold one. */
export function queueNames(text: string): string[] {
  const names = text.split(',');
  if (names.some((name) => !/^[^:\s]+$/.test(name))) {
    throw new InvalidArgumentError(`Expected queue names separated by commas, no colons, got '${text}'.`);
  }
  return names;
}
