import { writeFile } from 'node:fs/promises';
import Table from 'cli-table3';
import type { Command } from 'commander';
import { complain, conduct, type Ground, written } from '../parent/conduct.ts';
import { command } from '../process/options.ts';
import type { Proof, ProveCase } from './case.ts';
import { cases } from './cases/index.ts';

const program: Command = command('prove', 'Runs real processes and measures whether a promise is kept.')
  .argument('[case]', 'which one; without it, lists them')
  .option('--json', 'the last line on stdout is the result as JSON')
  .option('--json-series <file>', 'writes the course over time, for a chart, if the case has one')
  .addHelpText(
    'after',
    `\nCases:\n${list()}\n\nExit code: 0 the promise was kept, 1 it was broken, 2 wrong usage, 130 Ctrl-C.`,
  )
  .parse();
const options = program.opts<{ json?: true; jsonSeries?: string }>();
const [name] = program.args;

if (name === undefined) {
  process.stdout.write(`npm run prove -- CASE [--json]\n\n${list()}\n`);
} else {
  const chosen = cases.find((one) => one.name === name);
  if (chosen === undefined) {
    program.error(`error: no case '${name}'. Expected ${cases.map((one) => one.name).join(', ')}.`);
  }
  prove(chosen);
}

function prove(chosen: ProveCase): void {
  const print = (line: string) => process.stderr.write(`${line}\n`);
  const voice = { print, done: () => {} };
  conduct('prove', voice, async (ground: Ground) => {
    const startedMs = performance.now();
    const seconds = () => (performance.now() - startedMs) / 1000;
    print(`${chosen.name}: ${chosen.about}`);
    const proof = await chosen.run({
      ...ground,
      name: `prove-${chosen.name}-${ground.runId}`,
      say: (line) => print(`${seconds().toFixed(0).padStart(3)} s  ${line}`),
    });
    const ok = proof.demands.every(({ kept }) => kept);
    if (!ok) complain(voice, ground.children);
    await tell(chosen, proof, ok, Math.round(seconds()));
    return ok ? 0 : 1;
  });
}

/** With --json, stdout has only the JSON, so that a pipe can read it. */
async function tell({ name: which }: ProveCase, proof: Proof, ok: boolean, seconds: number): Promise<void> {
  if (options.jsonSeries !== undefined) {
    await writeFile(options.jsonSeries, `${JSON.stringify(proof.series ?? [])}\n`);
  }
  const verdict = ok ? 'The promise was kept.' : 'The promise was broken.';
  const text = `${tableOf(proof)}\n${verdict}\n`;
  await written(options.json ? process.stderr : process.stdout, text);
  if (options.json) {
    const result = { case: which, ok, ...proof.figures, seconds };
    await written(process.stdout, `${JSON.stringify(result)}\n`);
  }
}

/** The demands, then all figures as in the JSON. */
function tableOf({ demands, figures }: Proof): string {
  const table = new Table({
    head: ['', 'promised', 'measured', ''],
    colAligns: ['left', 'right', 'right', 'left'],
    style: { head: [], border: [], compact: true },
  });
  for (const { what, promised, was, kept } of demands)
    table.push([what, promised, was, kept ? '' : 'BROKEN']);
  const named = Object.entries(figures).map(([figure, value]) => `${figure}: ${JSON.stringify(value)}`);
  return `${table.toString()}\n${named.join('\n')}`;
}

function list(): string {
  const width = Math.max(...cases.map((one) => one.name.length));
  return cases.map((one) => `  ${one.name.padEnd(width)}  ${one.about}`).join('\n');
}
