import type { ConfigurationChange } from '../../../core/limits/configuration.ts';
import type { RedisClient } from '../client/redis-client.ts';
import { malformed, runScript, wholeOf } from '../client/run-script.ts';
import { configKey, eventsChannel, historyKey } from '../keys.ts';
import { configureScript, historyScript, registerScript } from '../scripts.generated.ts';

/** The config as the store holds it. Limits stay text here: that of a newer version of this package may be no news to us. */
export interface StoredConfig {
  /** Grows by 1 with each change. */
  readonly version: number;
  /** Microseconds of the store's clock when the governor was first written; another one means that data was lost. */
  readonly created: number;
  /** Code's limits, JSON. */
  readonly limits: string;
  /** The operator's, JSON; `''`: none. */
  readonly operator: string;
  /** The highest that code brought; 0: none. */
  readonly revision: number;
  /** Who wrote it. */
  readonly who: string;
}

/** What the caller of `register` knew, or brings; version 0: it has just started. lua/register.lua has the rules. */
export interface Registration extends Omit<StoredConfig, 'who'> {
  readonly startsEmpty: boolean;
  readonly promisedUntilUs: number;
}

/** What is to be replaced, and what the history says of it. */
export interface Replacement {
  readonly seen: StoredConfig;
  /** Time in which buckets fill under it; undefined if its limits can't be read. */
  readonly fillingUs: number | undefined;
  readonly what: readonly string[];
}

/** Runs the scripts of one governor's config. */
export class ConfigScripts {
  readonly #keys: readonly string[];
  readonly #channel: string;

  constructor(
    governor: string,
    private readonly client: RedisClient,
    private readonly instance: string,
  ) {
    this.#keys = [configKey(governor), historyKey(governor)];
    this.#channel = eventsChannel(governor);
  }

  /** @returns what is in force; or, with `wins`, what the caller's limits would replace once it says that it saw it. */
  async register(
    known: Registration,
    replacing?: Replacement,
  ): Promise<{ stored: StoredConfig; wins: boolean }> {
    const restored = ['written again as this process knew it, since the store had lost its data'];
    const what = replacing?.what ?? restored;
    const reply = await runScript(this.client, registerScript, this.#keys, [
      known.limits,
      known.operator,
      known.revision,
      known.version,
      known.created,
      known.startsEmpty,
      known.promisedUntilUs,
      replacing === undefined ? '' : stampOf(replacing.seen),
      replacing?.fillingUs ?? '',
      this.instance,
      JSON.stringify({ who: this.instance, what }),
      this.#channel,
    ]);
    const { outcome, stored } = parseConfig(reply);
    return { stored, wins: outcome === '1' };
  }

  /** @returns what is in force now, and whether it is what was asked for; undefined: nothing is, and nothing was written. */
  async configure(
    operator: string,
    who: string,
    replacing: Replacement,
  ): Promise<{ stored: StoredConfig; done: boolean } | undefined> {
    const reply = await runScript(this.client, configureScript, this.#keys, [
      stampOf(replacing.seen),
      operator,
      replacing.fillingUs ?? '',
      who,
      JSON.stringify({ who, what: replacing.what }),
      this.#channel,
    ]);
    if (Array.isArray(reply) && reply.length === 1 && reply[0] === '1') return undefined;
    const { outcome, stored } = parseConfig(reply);
    return { stored, done: outcome === '0' };
  }

  /** Newest first. An entry that can't be read is left out: it decides nothing. */
  async history(): Promise<ConfigurationChange[]> {
    const reply = await runScript(this.client, historyScript, this.#keys.slice(1), []);
    if (!Array.isArray(reply)) throw malformed('the history', reply);
    return reply.flatMap((entry) => parseChange(entry) ?? []);
  }
}

const stampOf = ({ version, created }: StoredConfig): string => `${version} ${created}`;

function parseConfig(reply: unknown): { outcome: string; stored: StoredConfig } {
  if (!Array.isArray(reply) || reply.length !== 7 || !reply.every((part) => typeof part === 'string')) {
    throw malformed('the config', reply);
  }
  const [outcome, ...texts] = reply as [string, string, string, string, string, string, string];
  const [version, created, revision] = [wholeOf(texts[0]), wholeOf(texts[1]), wholeOf(texts[4])];
  const isRight = version > 0 && created > 0 && !Number.isNaN(revision);
  if (!isRight || !['0', '1'].includes(outcome)) throw malformed('the config', reply);
  const [, , limits, operator, , who] = texts;
  return { outcome, stored: { version, created, limits, operator, revision, who } };
}

function parseChange(entry: unknown): ConfigurationChange | undefined {
  try {
    const { version, atUs, who, what } = JSON.parse(String(entry)) as Record<string, unknown>;
    if (!Number.isSafeInteger(version) || !Number.isSafeInteger(atUs) || typeof who !== 'string')
      return undefined;
    if (!Array.isArray(what)) return undefined;
    return Object.freeze({ version: version as number, atUs: atUs as number, who, what: what.map(String) });
  } catch {
    return undefined;
  }
}
