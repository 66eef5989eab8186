import { Command, type CommanderError, InvalidArgumentError, Option } from 'commander';
import type { LimitsOptions } from 'flyball';

/** A job's cost, or another whole number, is drawn from this range, both ends included. */
export interface CostRange {
  readonly min: number;
  readonly max: number;
}

/** Exit code for an invalid option; 1 is for a run that failed. */
const EXIT_BAD_OPTION = 2;

/** A command whose usage errors end the process with {@link EXIT_BAD_OPTION}. */
export function command(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .helpOption('-h, --help', 'show this and exit')
    .showHelpAfterError('(--help lists the options)')
    .exitOverride((error: CommanderError) => process.exit(error.exitCode === 0 ? 0 : EXIT_BAD_OPTION));
}

/** Ends the process with a message in commander's own form. */
export function badOption(program: Command, option: string, expected: string, got: string): never {
  program.error(`error: option '${option}' is invalid. Expected ${expected}, got ${got}.`);
}

/** A parser for a whole number in a range. Commander puts the option's name before the message. */
export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  const allowed = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) {
      throw new InvalidArgumentError(`Expected a whole number ${allowed}, got '${text}'.`);
    }
    return value;
  };
}

/** `--cost`, the same for all programs that draw costs. */
export function costOption(): Option {
  return new Option('--cost <tokens>', 'what a job costs: 3, or 1-5')
    .argParser(range)
    .default({ min: 1, max: 5 } satisfies CostRange, '1-5');
}

/** `3`, or `1-5`. */
export function range(text: string): CostRange {
  const match = /^(\d+)(?:-(\d+))?$/.exec(text);
  const min = Number(match?.[1]);
  const max = Number(match?.[2] ?? match?.[1]);
  if (!(min >= 1 && max >= min)) {
    throw new InvalidArgumentError(
      `Expected whole numbers from 1, one or two with the smaller first (3 or 1-5), got '${text}'.`,
    );
  }
  return { min, max };
}

/** A parser for one of several words. */
export function choice<Word extends string>(words: readonly Word[]): (text: string) => Word {
  return (text) => {
    const word = words.find((known) => known === text);
    if (word === undefined) throw new InvalidArgumentError(`Expected ${words.join(', ')}, got '${text}'.`);
    return word;
  };
}

/** Limits as JSON, in the form they have in code; the governor checks them. */
export function limitsJson(text: string): LimitsOptions {
  try {
    return JSON.parse(text) as LimitsOptions;
  } catch (error) {
    throw new InvalidArgumentError(`Expected limits as JSON: ${(error as Error).message}.`);
  }
}

/** `k0=500,k1=20`: a number for each name, in the order given. A name may be empty. */
export function numbersByName(text: string): [name: string, number: number][] {
  return text.split(',').map((entry) => {
    const match = /^([^=,]*)=(\d+(?:\.\d+)?)$/.exec(entry);
    if (!match) throw new InvalidArgumentError(`Expected name=number, several with commas, got '${text}'.`);
    return [match[1]!, Number(match[2])];
  });
}

/** Names separated by commas. BullMQ builds its keys with colons, so a queue's name may not hold one. */
export function queueNames(text: string): string[] {
  const names = text.split(',');
  if (names.some((name) => !/^[^:\s]+$/.test(name))) {
    throw new InvalidArgumentError(`Expected queue names separated by commas, no colons, got '${text}'.`);
  }
  return names;
}
