import { Emitter } from '../../../core/ports/events.ts';
import type { StoreMessage } from '../../../core/ports/messages.ts';
import type { RedisClient } from '../client/redis-client.ts';

/** What each channel's texts are to its listener; null: messages may have been lost. */
export type Channels = Readonly<Record<string, (text: string | null) => void>>;

/**
 * The messages of a store: listens to its channels while anybody subscribes to it.
 *
 * A client that can't subscribe, or whose server is away, is no error: what nobody is told of is seen at the next decision.
 */
export class StoreMessages {
  readonly #listeners = new Emitter<{ message: StoreMessage }>();
  #listening: Promise<(() => Promise<void>)[]> | undefined;

  constructor(
    private readonly client: RedisClient,
    private readonly channels: Channels,
    /** Called when it listens: what was said before was heard by nobody here. */
    private readonly begun: () => void = () => {},
  ) {}

  subscribe(listener: (message: StoreMessage) => void): () => void {
    const remove = this.#listeners.on('message', listener);
    this.#listening ??= this.#listen();
    return () => {
      remove();
      if (this.#listeners.count('message') === 0) this.#end();
    };
  }

  tell(message: StoreMessage): void {
    this.#listeners.emit('message', message);
  }

  close(): void {
    this.#listeners.clear();
    this.#end();
  }

  async #listen(): Promise<(() => Promise<void>)[]> {
    const { client } = this;
    if (client.subscribe === undefined) return [];
    const channels = Object.entries(this.channels);
    const begun = await Promise.allSettled(channels.map(([name, read]) => client.subscribe!(name, read)));
    this.begun();
    return begun.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  }

  #end(): void {
    const listening = this.#listening;
    this.#listening = undefined;
    void listening?.then((ends) => Promise.allSettled(ends.map((end) => end())));
  }
}
