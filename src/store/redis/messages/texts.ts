import type { Keys } from '../../../core/decide/demands.ts';
import type { StoreMessage } from '../../../core/ports/messages.ts';

/** The texts on the channel of events, and what they mean. */

export const pausedText = (keys: Keys | undefined, forUs: number): string =>
  `paused ${JSON.stringify({ keys, forUs: Math.min(forUs, Number.MAX_SAFE_INTEGER) })}`;

export const resumedText = (keys: Keys | undefined): string => `resumed ${JSON.stringify({ keys })}`;

/** The version that a text tells of; undefined: it is about something else. */
export function versionIn(text: string): number | undefined {
  const version = /^config (\d+)$/.exec(text)?.[1];
  return version === undefined ? undefined : Number(version);
}

/** Undefined for a text that this version does not know: it is for newer ones. */
export function messageIn(text: string): StoreMessage | undefined {
  const kind = /^(paused|resumed) /.exec(text)?.[1];
  if (kind === undefined) return undefined;
  try {
    const { keys, forUs } = JSON.parse(text.slice(kind.length + 1)) as { keys?: Keys; forUs?: number };
    if (kind === 'resumed') return { kind, keys };
    return typeof forUs === 'number' ? { kind: 'paused', keys, forUs } : undefined;
  } catch {
    return undefined;
  }
}
