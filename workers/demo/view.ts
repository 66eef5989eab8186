import { styleText } from 'node:util';
import type { DemoOptions } from './options.ts';
import { Screen } from './screen.ts';
import type { Progress } from './stage.ts';

/** Shows a demo while it runs. On stderr, because the result goes to stdout. */
export interface View {
  print(line: string): void;
  /** A temporary line: on a terminal the next frame replaces it. */
  say(line: string): void;
  show(progress: Progress): void;
  /** The phase is over. */
  phaseDone(): void;
}

const BAR_WIDTH = 38;
const LINE_EVERY_MS = 1_000;

/** A drawn screen on a terminal, plain lines elsewhere. */
export function createView(options: DemoOptions): View {
  return process.stderr.isTTY ? screenView(options) : lineView(options);
}

/** One line a second, for logs and pipes. */
function lineView({ rate }: DemoOptions): View {
  let lastMs = Number.NEGATIVE_INFINITY;
  let governed: boolean | undefined;
  const print = (line: string) => process.stderr.write(`${line}\n`);
  return {
    print,
    say: print,
    show(progress) {
      if (progress.governed === governed && progress.elapsedMs - lastMs < LINE_EVERY_MS) return;
      governed = progress.governed;
      lastMs = progress.elapsedMs;
      const { elapsedMs, stats, jobs } = progress;
      print(
        `${governed ? 'governed' : 'ungoverned'} ${(elapsedMs / 1000).toFixed(0)} s: ` +
          `the service sees ${stats.lastSecond.cost} tokens/s of ${rate}, 429s ${stats.answered429}, ` +
          `${inHand(progress)}, jobs ${stats.calls}/${jobs}`,
      );
    },
    phaseDone() {},
  };
}

function screenView(options: DemoOptions): View {
  const screen = new Screen(process.stderr);
  return {
    print: (line) => screen.print(line),
    say: (line) => screen.frame([line]),
    show: (progress) => screen.frame(frameOf(progress, options)),
    phaseDone: () => screen.keep(),
  };
}

/** At most 78 columns, so that it fits a terminal of 80. */
function frameOf(progress: Progress, { rate, governedOnly }: DemoOptions): string[] {
  const { governed, jobs, elapsedMs, stats } = progress;
  const { cost: seen } = stats.lastSecond;
  const scale = BAR_WIDTH / Math.max(1.25 * rate, seen);
  const over = seen > 1.25 * rate || stats.answered429 > 0;
  const part = governedOnly ? '' : governed ? '2 of 2  ' : '1 of 2  ';
  const title = `${part}${governed ? 'with Flyball' : 'BullMQ alone'}`;
  const share = Math.min(1, stats.calls / jobs);
  return [
    `${colour('bold', title.padEnd(68))}${`${(elapsedMs / 1000).toFixed(1)} s`.padStart(10)}`,
    `service sees ${number(seen).padStart(8)} tokens/s  ${colour(over ? 'red' : 'green', bar(seen * scale))}`,
    `its limit    ${number(rate).padStart(8)} tokens/s  ${bar(rate * scale)}`,
    colour(stats.answered429 > 0 ? 'red' : 'green', `429 answers  ${number(stats.answered429).padStart(8)}`),
    `jobs         ${inHand(progress)}`,
    `             ${bar(share * BAR_WIDTH).padEnd(BAR_WIDTH, '·')}  ${number(stats.calls)} of ${number(jobs)}`,
  ];
}

function inHand({ governed, counters, delayed }: Progress): string {
  const running = `running ${counters.running}`;
  if (!governed) return running;
  return `${running}, held ${counters.held}, deferred ${delayed} (${counters.deferrals} times in all)`;
}

/** `width` columns, precise to an eighth of a column. */
function bar(width: number): string {
  const eighths = Math.round(Math.max(0, width) * 8);
  const rest = ' ▏▎▍▌▋▊▉'[eighths % 8];
  return '█'.repeat(Math.floor(eighths / 8)) + (eighths % 8 > 0 ? rest : '');
}

function number(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

function colour(style: 'bold' | 'red' | 'green', text: string): string {
  return process.env.NO_COLOR ? text : styleText(style, text);
}
