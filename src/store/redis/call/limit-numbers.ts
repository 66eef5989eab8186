import type { Adaptive } from '../../../core/limits/adaptive.ts';
import type { Limit } from '../../../core/limits/limit.ts';
import { fastestRate } from '../../../core/limits/rate.ts';

const MODES = { fixed: 1, sliding: 2, log: 3 } as const;

/** A limit as lua/decide.lua takes it; its header has the order. */
export function limitNumbers(limit: Limit): number[] {
  if (limit.kind === 'window') {
    const { mode, max, windowUs, cells, aligned, maxKeys } = limit;
    return [2, MODES[mode], max, windowUs, cells, aligned ? 1 : 0, maxKeys ?? 0];
  }
  if (limit.kind === 'concurrency')
    return [3, limit.max, limit.leaseUs, ...adaptiveNumbers(limit.adaptive, 0)];
  const { rate, periodUs, burst, oversize, kept, penalty, maxKeys, adaptive } = limit;
  const [, normal, low] = kept ?? [0, 0, 0];
  const over = penalty === null ? [0, 0, 0] : [penalty.afterUs, penalty.permille, penalty.forUs];
  const numbers = [1, rate, periodUs, burst, oversize ? 1 : 0, kept === null ? 0 : 1, normal, low, ...over];
  return [
    ...numbers,
    maxKeys ?? 0,
    fastestRate(limit),
    ...adaptiveNumbers(adaptive, limit.options.periodMs * 1_000),
  ];
}

function adaptiveNumbers(adaptive: Adaptive | null, periodUs: number): number[] {
  if (adaptive === null) return [0, 0, 0, 0, 0, 0];
  const { min, max, mode, latencyUs, errorPermille } = adaptive;
  const thousandths = (value: number) => Math.round(value * 1_000);
  return [
    thousandths(min),
    thousandths(max),
    mode === 'gradient' ? 1 : 0,
    latencyUs,
    errorPermille,
    periodUs,
  ];
}
