import { StoreUnavailableError } from '../../core/errors.ts';
import type { GovernorConfig } from '../../core/governor-options.ts';
import type { Limits } from '../../core/limit.ts';
import { configKey } from './keys.ts';
import { limitsFromJson, limitsToJson } from './limits-json.ts';
import type { RedisClient } from './redis-client.ts';
import { runScript } from './run-script.ts';
import { registerScript } from './scripts.generated.ts';

/** What a call is made under; the store answers it only if this is what is in force there. */
export interface InForce {
  /** Grows by 1 with each change of the limits. */
  readonly version: number;
  /** Microseconds of the store's clock when the governor was first written; another one means that data was lost. */
  readonly created: number;
  readonly limits: Limits;
}

/**
 * The limits in force, which are the store's: those of the process that started last.
 *
 * Three states. Unknown: this process has just started and brings its limits. Known: calls are made under it, and
 * nothing is asked. Outdated: a call was told so; the next one asks, and takes over what is there.
 */
export class SharedConfig {
  #known: InForce | undefined;
  #outdated = false;
  #asking: Promise<InForce> | undefined;
  #promisedUntilUs = 0;

  constructor(
    private readonly config: Pick<GovernorConfig, 'name' | 'limits' | 'coldStart'>,
    private readonly client: RedisClient,
  ) {}

  /** The limits in force as far as is known; asks the store if they are unknown or outdated. */
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

  /** Asks the store; calls made meanwhile share the answer. */
  refresh(): Promise<InForce> {
    this.#asking ??= this.#register().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #register(): Promise<InForce> {
    const known = this.#known;
    // Should the store have lost its data, what was in force is written again, not what this process once brought.
    const json = limitsToJson(known?.limits ?? this.config.limits);
    const reply = await runScript(
      this.client,
      registerScript,
      [configKey(this.config.name)],
      [
        json,
        String(known?.version ?? 0),
        String(known?.created ?? 0),
        this.config.coldStart === 'empty' ? '1' : '0',
        String(this.#promisedUntilUs),
      ],
    );
    const [version, created, limits] = asTexts(reply);
    const inForce: InForce = {
      version: asStamp(version, reply),
      created: asStamp(created, reply),
      limits: limits === json ? (known?.limits ?? this.config.limits) : limitsFromJson(limits),
    };
    this.#known = inForce;
    this.#outdated = false;
    return inForce;
  }
}

function asTexts(reply: unknown): [string, string, string] {
  if (Array.isArray(reply) && reply.length === 3 && reply.every((part) => typeof part === 'string')) {
    return reply as [string, string, string];
  }
  throw malformed(reply);
}

function asStamp(text: string, reply: unknown): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw malformed(reply);
}

const malformed = (reply: unknown): StoreUnavailableError =>
  new StoreUnavailableError(
    `expected version, created and limits from the store, received ${JSON.stringify(reply)}`,
  );
