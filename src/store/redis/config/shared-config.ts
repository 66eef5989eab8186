import { StoreUnavailableError } from '../../../core/errors.ts';
import {
  type Configuration,
  type ConfigurationChange,
  changesInWords,
  fillingUs,
  overlaid,
} from '../../../core/limits/configuration.ts';
import type { Limits } from '../../../core/limits/limit.ts';
import type { StoreConfig } from '../../../core/ports/store.ts';
import type { RedisClient } from '../client/redis-client.ts';
import { limitsFromJson, limitsToJson } from './json.ts';
import { ConfigScripts, type Replacement, type StoredConfig } from './scripts.ts';

// A change is met by another one once or twice; more often, something is changing the config all the time.
const MAX_TRIES = 10;

// The connection for calls may come back later than the one for messages.
const ASK_AGAIN_MS = 500;

/** What a call is made under; the store answers it only if this is what is in force there. */
export interface InForce extends Configuration {
  /** Microseconds of the store's clock when the governor was first written; another one means that data was lost. */
  readonly created: number;
}

/**
 * The config in force, which is the store's: code's limits as the process with the highest revision, or else the last to
 * start, brought them; over them those of an operator.
 *
 * Three states. Unknown: this process has just started and brings its limits. Known: calls are made under it, and
 * nothing is asked. Outdated: a call or a message said so; the next one asks, and takes over what is there.
 */
export class SharedConfig {
  #known: InForce | undefined;
  /** The last answer as text, whether or not this version can read it. */
  #stored: StoredConfig | undefined;
  #outdated = false;
  #asking: Promise<InForce> | undefined;
  #askAgain: NodeJS.Timeout | undefined;
  #closed = false;
  #promisedUntilUs = 0;
  /** Whether this process, as it started, replaced what was there. */
  #replaced = false;
  readonly #scripts: ConfigScripts;
  readonly #proposed: string;

  /** @param changed - Told of a config that is another one than this process knew, or than its code proposes. */
  constructor(
    private readonly proposal: Required<StoreConfig>,
    client: RedisClient,
    private readonly changed: (config: InForce) => void,
  ) {
    this.#scripts = new ConfigScripts(proposal.name, client, proposal.instance);
    this.#proposed = limitsToJson(proposal.limits);
  }

  /** The config in force as far as is known; asks the store if it is unknown or outdated. */
  async inForce(): Promise<InForce> {
    return this.#known !== undefined && !this.#outdated ? this.#known : this.refresh();
  }

  /** A grant was given that starts then: should the store lose its data, nothing may be granted before. */
  promised(startUs: number): void {
    if (startUs > this.#promisedUntilUs) this.#promisedUntilUs = startUs;
  }

  /** Told by the store that calls under `config` are out of date; ignored if that is known already. */
  outdate(config: InForce): void {
    if (config === this.#known) this.#outdated = true;
  }

  /**
   * Told by a message that the config has this version, or (null) that messages may have been lost. Never rejects: while the
   * store does not answer, it is asked again.
   */
  async heard(version: number | null): Promise<void> {
    // What is under way may have been asked before the change.
    await this.#asking?.catch(() => {});
    if (this.#closed || this.#stored === undefined || this.#stored.version === version) return;
    this.#outdated = true;
    await this.refresh().catch(() => this.#heardInVain());
  }

  #heardInVain(): void {
    if (this.#closed) return;
    this.#askAgain ??= setTimeout(() => {
      this.#askAgain = undefined;
      if (this.#outdated) void this.heard(null);
    }, ASK_AGAIN_MS).unref();
  }

  /** Ends what `heard` began. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#askAgain);
  }

  /** Asks the store; calls made meanwhile share the answer. */
  refresh(): Promise<InForce> {
    return this.#asking ?? this.#ask(() => this.#register());
  }

  /** Adds an operator's limits to those it set before. */
  configure(limits: Limits, who: string): Promise<InForce> {
    return this.#operate(who, (operator) => overlaid(limitsOf(operator), limits));
  }

  /** Takes all of the operator's limits away, also those that this version can't read. */
  reset(who: string): Promise<InForce> {
    return this.#operate(who, () => []);
  }

  /** The last changes, newest first. */
  history(): Promise<readonly ConfigurationChange[]> {
    return this.#scripts.history();
  }

  // One thing is asked at a time, so that no answer is taken for news after a later one.
  #ask(ask: () => Promise<StoredConfig>): Promise<InForce> {
    this.#asking = ask()
      .then((stored) => this.#take(stored))
      .finally(() => {
        this.#asking = undefined;
      });
    return this.#asking;
  }

  async #operate(who: string, change: (operator: string) => Limits): Promise<InForce> {
    while (this.#asking !== undefined) await this.#asking.catch(() => {});
    return this.#ask(async () => {
      let seen = await this.#register();
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const limits = change(seen.operator);
        const operator = limits.length === 0 ? '' : limitsToJson(limits);
        if (operator === seen.operator) return seen;
        const before = readable(() => limitsOf(seen.operator));
        const what = changesInWords('operator', before, limits);
        const answer = await this.#scripts.configure(operator, who, replacing(seen, what));
        // Without a config the store has lost its data: it is told what was in force first.
        seen = this.#stored = answer?.stored ?? (await this.#register());
        if (answer?.done) return seen;
      }
      throw changedAllTheTime();
    });
  }

  async #register(): Promise<StoredConfig> {
    const { revision, coldStart } = this.proposal;
    const brought = { limits: this.#proposed, operator: '', revision, version: 0, created: 0 };
    // Should the store have lost its data, what was in force is written again, not what this process once brought.
    const known = this.#stored ?? brought;
    const promisedUntilUs = this.#promisedUntilUs;
    const registration = { ...known, startsEmpty: coldStart === 'empty', promisedUntilUs };
    let replacement: Replacement | undefined;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const { stored, wins } = await this.#scripts.register(registration, replacement);
      const what = wins ? changesBy(this.proposal, stored) : [];
      // None also where the same limits are another text, of another version of this package.
      if (what.length === 0) {
        this.#stored = stored;
        this.#replaced ||= !wins && replacement !== undefined;
        return stored;
      }
      replacement = replacing(stored, what);
    }
    throw changedAllTheTime();
  }

  #take(stored: StoredConfig): InForce {
    const before = this.#known;
    const isProposed = stored.limits === this.#proposed;
    const code = isProposed ? this.proposal.limits : limitsFromJson(stored.limits);
    const operator = limitsOf(stored.operator);
    const { version, created, revision, who } = stored;
    const limits = overlaid(code, operator);
    const config = Object.freeze({ version, created, revision, who, limits, code, operator });
    this.#known = config;
    this.#outdated = false;
    // The version alone may grow, when promises are recalled: listeners to changes are not told of that.
    const isNews =
      before === undefined
        ? this.#replaced || !isProposed || operator.length > 0
        : !sameLimits(before.code, code) ||
          !sameLimits(before.operator, operator) ||
          before.revision !== revision;
    if (isNews) this.changed(config);
    return config;
  }
}

const sameLimits = (a: Limits, b: Limits): boolean => limitsToJson(a) === limitsToJson(b);

const limitsOf = (operator: string): Limits => (operator === '' ? [] : limitsFromJson(operator));

/** The limits, or undefined for a text that was damaged: it may be replaced, and the history says so. */
function readable(read: () => Limits): Limits | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** What a process changes by its start. */
function changesBy({ limits, revision }: Required<StoreConfig>, stored: StoredConfig): readonly string[] {
  const before = readable(() => limitsFromJson(stored.limits));
  const changed = changesInWords('code', before, limits);
  if (stored.revision === revision) return changed;
  return [...changed, `revision: ${stored.revision || 'none'} → ${revision}`];
}

function replacing(seen: StoredConfig, what: readonly string[]): Replacement {
  const limits = readable(() => overlaid(limitsFromJson(seen.limits), limitsOf(seen.operator)));
  return { seen, fillingUs: limits && fillingUs(limits), what };
}

const changedAllTheTime = (): StoreUnavailableError =>
  new StoreUnavailableError(
    `the configuration in the store changed ${MAX_TRIES} times while it was to be changed`,
  );
