import { ACTIVE_US, LEAST_LEFT, MAX_CLOCK_STEP_US, SCALE, SECOND_US } from '../constants.ts';

/** What is known of all values of one limit together. */
export interface ShareGroup {
  /** Those that use their share, with their weight, until when they count as such. */
  active: ReadonlyMap<string, { readonly weight: number; readonly untilUs: number }>;
  /** What the others were granted, in this second and in the one before. */
  second: number;
  light: number;
  lightBefore: number;
}

export const blankGroup = (nowUs: number): ShareGroup => ({
  active: new Map(),
  second: Math.floor(nowUs / SECOND_US),
  light: 0,
  lightBefore: 0,
});

/** The group now: without those whose activity is over. */
export function groupAt(stored: ShareGroup, nowUs: number): ShareGroup {
  const second = Math.floor(nowUs / SECOND_US);
  const passed = second - stored.second;
  return {
    active: new Map(
      [...stored.active].filter(
        ([, { untilUs }]) => untilUs > nowUs && untilUs - nowUs <= ACTIVE_US + MAX_CLOCK_STEP_US,
      ),
    ),
    second: passed === 0 ? stored.second : second,
    light: passed === 0 ? stored.light : 0,
    lightBefore: passed === 0 ? stored.lightBefore : passed === 1 ? stored.light : 0,
  };
}

/** The share of a value of that weight, in units a microsecond. */
export function shareIn(group: ShareGroup, key: string, weight: number, nowUs: number): number {
  let total = weight;
  for (const [other, { weight: theirs }] of group.active) if (other !== key) total += theirs;
  const restUs = SECOND_US - (nowUs - group.second * SECOND_US);
  const lightUnits = Math.floor((group.lightBefore * restUs) / SECOND_US) + group.light;
  const left = Math.max(LEAST_LEFT, SCALE - Math.floor(lightUnits / SECOND_US));
  return Math.max(1, Math.floor((left * weight) / total));
}

export function activate(group: ShareGroup, key: string, weight: number, nowUs: number): void {
  group.active = new Map(group.active).set(key, { weight, untilUs: nowUs + ACTIVE_US });
}

/** From when it says nothing more than none does. */
export const groupOverUs = (group: ShareGroup): number => (group.second + 2) * SECOND_US;
