import type { AdaptiveReport } from '../../core/buckets/adaptive.ts';
import type { Terms } from '../../core/decide/ask.ts';
import type { Cost, Keys } from '../../core/decide/demands.ts';
import type { HeldSlot } from '../../core/decide/give-back.ts';
import type { Receipt, Verdict } from '../../core/decide/verdict.ts';
import { GovernorClosedError, StoreUnavailableError } from '../../core/errors.ts';
import type { Configuration } from '../../core/limits/configuration.ts';
import type { Limits } from '../../core/limits/limit.ts';
import type { StoreMessage } from '../../core/ports/messages.ts';
import type { Request, Store, StoreConfig } from '../../core/ports/store.ts';
import { GroupCommit, type Outcome } from './call/group-commit.ts';
import type { Operation, Read } from './call/operations.ts';
import * as operations from './call/operations.ts';
import { type Numbers, parseReply } from './call/reply.ts';
import { DecideCall } from './call/write.ts';
import type { RedisClient } from './client/redis-client.ts';
import { runScript } from './client/run-script.ts';
import { type InForce, SharedConfig } from './config/shared-config.ts';
import { RedisDeferrals } from './deferrals.ts';
import { configKey, eventsChannel, wakePrefix } from './keys.ts';
import { StoreMessages } from './messages/store-messages.ts';
import { messageIn, pausedText, resumedText, versionIn } from './messages/texts.ts';
import { decideScript, pauseGovernorScript } from './scripts.generated.ts';

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
 * @param config.limits - A proposal; `SharedConfig` says whose limits are in force.
 * @param client - Owned by the store from now on, and closed with it.
 */
export class RedisStore implements Store {
  readonly deferrals: RedisDeferrals;
  readonly #config: SharedConfig;
  readonly #messages: StoreMessages;
  readonly #calls = new GroupCommit<Pending>((batch) => this.#send(batch));
  #closed: Promise<void> | undefined;
  /** Whether calls of this process wait in queues for slots. */
  #queues = false;

  constructor(
    private readonly config: StoreConfig,
    private readonly client: RedisClient,
  ) {
    const { name, limits, coldStart, revision = 0, instance = 'unnamed' } = config;
    const proposal = { name, limits, coldStart, revision, instance };
    this.#config = new SharedConfig(proposal, client, (changed) => this.#tell(changed));
    this.#messages = new StoreMessages(
      client,
      {
        [eventsChannel(name)]: (text) => this.#heard(text),
        [`${wakePrefix(name)}${instance}`]: (holder) => this.#woken(holder),
      },
      () => {
        if (this.#queues) this.#messages.tell({ kind: 'missed' });
      },
    );
    this.deferrals = new RedisDeferrals(name, client);
  }

  async acquire(request: Request, terms: Terms): Promise<Verdict> {
    this.#queues ||= terms.queue;
    const verdict = await this.#ask(operations.acquire(request, terms));
    if (verdict.granted && verdict.waitUs > 0) this.#config.promised(verdict.receipt.startUs);
    return verdict;
  }

  atMost(request: Request, most: number, priority: Terms['priority']): Promise<number> {
    return this.#ask(operations.atMost(request, most, priority));
  }

  force(request: Request): Promise<Receipt | null> {
    return this.#ask(operations.force(request));
  }

  cancel(receipt: Receipt): Promise<boolean> {
    return this.#ask(operations.cancel(receipt));
  }

  settle(receipt: Receipt, actual: Cost): Promise<void> {
    return this.#ask(operations.settle(receipt, actual));
  }

  release(slot: HeldSlot): Promise<boolean> {
    return this.#ask(operations.release(slot));
  }

  renew(slot: HeldSlot): Promise<number> {
    return this.#ask(operations.renew(slot));
  }

  leave(request: Request): Promise<void> {
    return this.#ask(operations.leave(request));
  }

  peek(request: Request, priority: Terms['priority']) {
    return this.#ask(operations.peek(request, priority));
  }

  async pause(keys: Keys | undefined, forUs: number): Promise<void> {
    if (keys !== undefined) return this.#ask(operations.pauseKeys(keys, forUs));
    await this.#pauseAll(Math.max(1, Math.ceil(forUs)), pausedText(undefined, forUs));
  }

  async resume(keys: Keys | undefined): Promise<void> {
    if (keys !== undefined) return this.#ask(operations.resumeKeys(keys));
    await this.#pauseAll(0, resumedText(undefined));
  }

  async #pauseAll(forUs: number, text: string): Promise<void> {
    const { name } = this.config;
    await this.limits(); // there is a config to write it into
    const args = [Math.min(forUs, Number.MAX_SAFE_INTEGER), eventsChannel(name), text];
    await runScript(this.client, pauseGovernorScript, [configKey(name)], args);
  }

  report(request: Request, calls: AdaptiveReport): Promise<void> {
    return this.#ask(operations.report(request, calls));
  }

  async limits(): Promise<Limits> {
    this.#assertOpen();
    return (await this.#config.inForce()).limits;
  }

  async configure(change: { readonly limits: Limits }, who: string): Promise<Configuration> {
    this.#assertOpen();
    return this.#config.configure(change.limits, who);
  }

  async reset(who: string): Promise<Configuration> {
    this.#assertOpen();
    return this.#config.reset(who);
  }

  async configuration() {
    this.#assertOpen();
    const config = await this.#config.refresh();
    return { ...config, history: await this.#config.history() };
  }

  subscribe(listener: (message: StoreMessage) => void): () => void {
    return this.#closed === undefined ? this.#messages.subscribe(listener) : () => {};
  }

  /** Waits for the answers to what was asked before, then closes the client. */
  close(): Promise<void> {
    this.#messages.close();
    this.#config.close();
    this.#closed ??= Promise.all([this.#calls.idle(), this.deferrals.close()]).then(() =>
      this.client.close(),
    );
    return this.#closed;
  }

  #assertOpen(): void {
    if (this.#closed !== undefined) throw new GovernorClosedError(this.config.name);
  }

  #tell({ version, who, limits }: InForce): void {
    this.#messages.tell({ kind: 'configured', version, who, limits });
  }

  #heard(text: string | null): void {
    const version = text === null ? null : versionIn(text);
    if (version !== undefined) void this.#config.heard(version);
    const message = text === null ? ({ kind: 'missed' } as const) : messageIn(text);
    if (message !== undefined) this.#messages.tell(message);
  }

  #woken(holder: string | null): void {
    this.#messages.tell(holder === null ? { kind: 'missed' } : { kind: 'wake', holder });
  }

  /** Asks for the version of the limits in force with a call that does nothing else. */
  confirm(): Promise<number> {
    return this.#ask((call) => () => call.config.version);
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
      const call = new DecideCall(
        this.config.name,
        config,
        this.config.instance ?? 'unnamed',
        this.client.countsListeners ?? true,
      );
      const reads = batch.map((pending) => written(pending, call));
      const reply = parseReply(await runScript(this.client, decideScript, call.keys, call.arguments()));
      if (reply === null) {
        this.#config.outdate(config);
        return sendAgain(batch);
      }
      settleAll(batch, reads, reply);
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
function settleAll(batch: readonly Pending[], reads: readonly ReturnType<typeof written>[], reply: Numbers) {
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
