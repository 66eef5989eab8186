import type { Receipt, Terms, Verdict } from '../../core/decide.ts';
import { GovernorClosedError, StoreUnavailableError } from '../../core/errors.ts';
import type { GovernorConfig } from '../../core/governor-options.ts';
import type { Limits } from '../../core/limit.ts';
import type { Request, Store } from '../../core/store.ts';
import { DecideCall } from './decide-call.ts';
import { GroupCommit, type Outcome } from './group-commit.ts';
import { acquire, cancel, force, type Operation, peek, type Read } from './operations.ts';
import type { RedisClient } from './redis-client.ts';
import { type Numbers, parseReply } from './reply.ts';
import { runScript } from './run-script.ts';
import { decideScript } from './scripts.generated.ts';
import { SharedConfig } from './shared-config.ts';

// A change of the limits is met once or twice by a call; more often, something is changing them all the time.
const MAX_SENDS = 10;

interface Pending {
  readonly operation: Operation<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
  sends: number;
}

/**
 * The buckets of a governor in Redis, shared by all processes that give the same name to the same server. Its clock is
 * the server's. lua/decide.lua makes the decisions, as core does; this class brings them there and back.
 *
 * @param config.limits - A proposal: the limits in force are those of the process that started last.
 * @param client - Owned by the store from now on, and closed with it.
 */
export class RedisStore implements Store {
  readonly #config: SharedConfig;
  readonly #calls = new GroupCommit<Pending>((batch) => this.#send(batch));
  #closed: Promise<void> | undefined;

  constructor(
    private readonly config: Pick<GovernorConfig, 'name' | 'limits' | 'coldStart'>,
    private readonly client: RedisClient,
  ) {
    this.#config = new SharedConfig(config, client);
  }

  async acquire(request: Request, terms: Terms): Promise<Verdict> {
    const verdict = await this.#ask(acquire(request, terms));
    if (verdict.granted && verdict.waitUs > 0) this.#config.promised(verdict.receipt.startUs);
    return verdict;
  }

  force(request: Request): Promise<boolean> {
    return this.#ask(force(request));
  }

  cancel(receipt: Receipt): Promise<boolean> {
    return this.#ask(cancel(receipt));
  }

  peek(request: Request) {
    return this.#ask(peek(request));
  }

  async limits(): Promise<Limits> {
    if (this.#closed !== undefined) throw new GovernorClosedError(this.config.name);
    return (await this.#config.inForce()).limits;
  }

  /** Waits for the answers to what was asked before, then closes the client. */
  close(): Promise<void> {
    this.#closed ??= this.#calls.idle().then(() => this.client.close());
    return this.#closed;
  }

  #ask<T>(operation: Operation<T>): Promise<T> {
    if (this.#closed !== undefined) return Promise.reject(new GovernorClosedError(this.config.name));
    return new Promise<T>((resolve, reject) => {
      this.#calls.add({ operation, resolve: resolve as (result: unknown) => void, reject, sends: 0 });
    });
  }

  async #send(batch: readonly Pending[]): Promise<Outcome> {
    try {
      const config = await this.#config.inForce();
      const call = new DecideCall(this.config.name, config);
      const reads = batch.map((pending) => written(pending, call));
      const reply = parseReply(await runScript(this.client, decideScript, call.keys, [call.argument()]));
      if (reply === null) {
        this.#config.outdate(config);
        return sendAgain(batch);
      }
      settle(batch, reads, reply);
    } catch (error) {
      for (const pending of batch) pending.reject(error);
    }
    return 'settled';
  }
}

// What is wrong under limits that turn out to be outdated may be right under the new ones, so an error waits for the
// store's answer too.
function written({ operation }: Pending, call: DecideCall): Read<unknown> | { readonly error: unknown } {
  try {
    return operation(call);
  } catch (error) {
    return { error };
  }
}

/** Settles all operations of a call, or none: a reply that ends too early is no answer to any of them. */
function settle(batch: readonly Pending[], reads: readonly ReturnType<typeof written>[], reply: Numbers) {
  const nowUs = reply.next();
  const results = reads.map((read) => (typeof read === 'function' ? { result: read(reply, nowUs) } : read));
  reply.end();
  for (const [index, outcome] of results.entries()) {
    if ('error' in outcome) batch[index]!.reject(outcome.error);
    else batch[index]!.resolve(outcome.result);
  }
}

function sendAgain(batch: readonly Pending[]): Outcome {
  for (const pending of batch) pending.sends++;
  if (batch.every((pending) => pending.sends < MAX_SENDS)) return 'again';
  throw new StoreUnavailableError(`the limits in the store changed ${MAX_SENDS} times while a call was made`);
}
