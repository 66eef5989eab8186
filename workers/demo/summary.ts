import Table from 'cli-table3';
import { toleratedExcess } from '../measure/bounds.ts';
import type { Figures, Load } from './figures.ts';
import type { DemoOptions } from './options.ts';
import { LEAST_SHARE } from './verdict.ts';

/** The closing table: what the service saw, and how the jobs ended. Fits 80 columns. */
export function summaryTable(
  options: DemoOptions,
  figures: Figures,
  governed: Load,
  ungoverned: Load | undefined,
): string {
  const { rate, burst, keys: traffic } = options;
  const table = new Table({
    head: [
      `limit: ${rate} tokens/s, burst ${burst}`,
      ...(ungoverned ? ['BullMQ alone'] : []),
      'with Flyball',
      'promised',
    ],
    colAligns: ['left', 'right', 'right', ...(ungoverned ? (['right'] as const) : [])],
    style: { head: [], border: [], compact: true },
  });
  const row = (what: string, before: unknown, after: unknown, promised = '') => {
    table.push([what, ...(ungoverned ? [text(before)] : []), text(after), promised]);
  };
  row('calls the service got', ungoverned?.calls, governed.calls);
  row('tokens a second it saw', ungoverned?.tokensPerSecond, governed.tokensPerSecond);
  row('calls answered 429', figures.ungoverned429, figures.downstream429, '0');
  row('worst excess, tokens', ungoverned?.worstExcess, figures.worstExcess, `≤ ${toleratedExcess(rate)}`);
  row('part of the limit used', '', percent(figures.utilisation));
  row('jobs completed', '', `${figures.completed} of ${figures.jobs}`);
  row('jobs lost', '', figures.lost, '0');
  row('jobs done twice', '', figures.duplicated, options.kill ? '(killed)' : '0');
  row('failed events', '', figures.failedEvents, '0');
  row(
    'starts per job, mean / most',
    '',
    `${text(figures.startsPerJobMean)} / ${text(figures.startsPerJobMax)}`,
  );
  row('deferrals', '', figures.deferrals);
  row('Redis commands per job', '', figures.redisCommandsPerJob);
  row('seconds', '', figures.seconds);
  if (figures.keys && traffic) {
    const { others, flooding } = figures.keys;
    row('other keys: asked, tokens', '', others.asked);
    row('worst-served got', '', percent(others.share), `≥ ${percent(LEAST_SHARE)}`);
    row('99 of 100 jobs within, ms', '', others.p99Ms);
    row(`flooding key (${traffic.keyRate}/s): asked`, '', flooding.asked);
    row('got, tokens a second', '', flooding.rate);
    row('worst excess of its limit', '', flooding.worstExcess, `≤ ${toleratedExcess(traffic.keyRate)}`);
    row('its jobs left over', '', flooding.backlog);
  }
  return table.toString();
}

function text(value: unknown): string {
  if (value === null || value === undefined) return '-';
  return typeof value === 'number' ? value.toLocaleString('en-US', { maximumFractionDigits: 2 }) : `${value}`;
}

function percent(share: number | null): string {
  return share === null ? '-' : `${(share * 100).toFixed(1)} %`;
}
