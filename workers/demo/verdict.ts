import { toleratedExcess } from '../measure/bounds.ts';
import type { Figures } from './figures.ts';
import type { DemoOptions } from './options.ts';

/** While one key floods, each other key gets at least this part of what it asks for. */
export const LEAST_SHARE = 0.95;

/** The broken promises, a sentence each; empty if all were kept. */
export function brokenPromises(figures: Figures, { kill, keys }: DemoOptions): string[] {
  const { lost, duplicated, failedEvents, downstream429, worstExcess, rate } = figures;
  const broken: string[] = [];
  const none = (what: string, count: number) => {
    if (count !== 0) broken.push(`${what}: promised 0, was ${count}`);
  };
  none('jobs lost', lost);
  // If a process dies between a job's call and its end, the job was done but is done again.
  if (!kill) none('jobs done twice', duplicated);
  none('failed events', failedEvents);
  none('calls answered 429', downstream429);
  const share = figures.keys?.others.share ?? 1;
  if (share < LEAST_SHARE) {
    broken.push(
      `the worst-served of the other keys: promised ${LEAST_SHARE * 100} % of what it asked for, was ${share * 100} %`,
    );
  }
  const within = (whose: string, excess: number, ofRate: number) => {
    const most = toleratedExcess(ofRate);
    if (excess > most) broken.push(`${whose}: promised at most ${most} tokens over, was ${excess}`);
  };
  within('the limit', worstExcess, rate);
  if (keys && figures.keys) {
    within('the limit of the flooding key', figures.keys.flooding.worstExcess, keys.keyRate);
  }
  return broken;
}
