import { readFileSync, writeFileSync } from 'node:fs';

/* Draws an adaptive limit over time: npx tsx bench/adaptive-chart.ts SERIES.json [docs/adaptive.svg] */

interface Point {
  readonly atMs: number;
  readonly capacity: number;
  readonly limit: number;
  readonly acceptedPerS: number;
  readonly throttledPerS: number;
}

const WIDTH = 860;
const HEIGHT = 380;
const [LEFT, RIGHT, TOP, BOTTOM] = [52, 16, 44, 44];

/** A step of 1, 2 or 5 times a power of ten that divides `range` into about `count` parts. */
function roundStep(range: number, count: number): number {
  const power = 10 ** Math.floor(Math.log10(range / count));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => range / step <= count)!;
}

function draw(series: readonly Point[]): string {
  const [first, last] = [series[0]!.atMs, series.at(-1)!.atMs];
  const highest = Math.max(...series.flatMap((p) => [p.capacity, p.limit, p.acceptedPerS, p.throttledPerS]));
  const stepY = roundStep(highest, 6);
  const most = Math.ceil(highest / stepY) * stepY;
  const x = (ms: number) => LEFT + ((ms - first) / Math.max(1, last - first)) * (WIDTH - LEFT - RIGHT);
  const y = (value: number) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - TOP - BOTTOM);
  const at = (ms: number, value: number) => `${x(ms).toFixed(1)},${y(value).toFixed(1)}`;

  const grid: string[] = [];
  for (let value = 0; value <= most; value += stepY) {
    grid.push(`<path class="grid" d="M${LEFT},${y(value).toFixed(1)}H${WIDTH - RIGHT}"/>`);
    grid.push(`<text x="${LEFT - 8}" y="${(y(value) + 4).toFixed(1)}" text-anchor="end">${value}</text>`);
  }
  const stepX = roundStep((last - first) / 1_000, 10) * 1_000;
  for (let ms = first; ms <= last; ms += stepX) {
    const seconds = Math.round((ms - first) / 1_000);
    grid.push(
      `<text x="${x(ms).toFixed(1)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${seconds}</text>`,
    );
  }

  const line = (of: (point: Point) => number) => series.map((point) => at(point.atMs, of(point))).join(' ');
  // The capacity changes at once, not gradually from one point to the next.
  const steps = series.map((point, index) =>
    index === 0
      ? `M${at(point.atMs, point.capacity)}`
      : `H${x(point.atMs).toFixed(1)}V${y(point.capacity).toFixed(1)}`,
  );
  const legend = [
    ['capacity', 'capacity of the downstream'],
    ['limit', 'limit'],
    ['accepted', 'accepted a second'],
    ['throttled', 'answered 429 a second'],
  ].map(([name, words], index) => {
    const from = LEFT + index * 200;
    return `<path class="${name}" d="M${from},20h24"/><text x="${from + 30}" y="24">${words}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="An adaptive limit follows the capacity of its downstream">
<style>
text { font: 12px system-ui, sans-serif; fill: #444 }
path, polyline { fill: none; stroke-width: 2; stroke-linejoin: round }
.grid { stroke: #ddd; stroke-width: 1 }
.capacity { stroke: #888; stroke-dasharray: 6 4 }
.limit { stroke: #d97706 }
.accepted { stroke: #2563eb }
.throttled { stroke: #dc2626 }
</style>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
${grid.join('\n')}
<text x="${WIDTH - RIGHT}" y="${HEIGHT - 8}" text-anchor="end">seconds</text>
<path class="capacity" d="${steps.join('')}"/>
<polyline class="limit" points="${line((p) => p.limit)}"/>
<polyline class="accepted" points="${line((p) => p.acceptedPerS)}"/>
<polyline class="throttled" points="${line((p) => p.throttledPerS)}"/>
${legend.join('\n')}
</svg>
`;
}

const usage = `Draws how an adaptive limit follows a capacity that moves.

Usage: tsx bench/adaptive-chart.ts SERIES.json [OUT.svg]

SERIES.json is what "npm run prove -- adaptive --json-series SERIES.json" writes. OUT.svg is docs/adaptive.svg by default.
`;
const [input, output = 'docs/adaptive.svg'] = process.argv.slice(2);
if (input === undefined || input === '--help' || input === '-h') {
  (input === undefined ? process.stderr : process.stdout).write(usage);
  process.exitCode = input === undefined ? 2 : 0;
} else {
  const series = JSON.parse(readFileSync(input, 'utf8')) as Point[];
  if (series.length === 0) throw new Error(`expected points in ${input}, found none`);
  writeFileSync(output, draw(series));
}
