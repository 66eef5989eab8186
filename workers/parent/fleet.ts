import type { Counters, Message } from '../process/messages.ts';
import type { Child, Children, Script } from './children.ts';

const NONE: Counters = { served: 0, refused: 0, failed: 0, running: 0, held: 0, deferrals: 0, returned: 0 };

/** Processes that do the same work: started, released and stopped together. */
export class Fleet {
  readonly #children: Children;
  readonly #script: Script;
  readonly #args: readonly string[];
  readonly #members: Child[] = [];
  /** The last counters of every process, including killed ones: their work was done. */
  readonly #counters = new Map<Child, Counters>();

  constructor(children: Children, script: Script, args: readonly string[]) {
    this.#children = children;
    this.#script = script;
    this.#args = args;
  }

  /** The processes that are there now. A replacement comes last. */
  get members(): readonly Child[] {
    return this.#members;
  }

  /** Starts processes; resolves when all are ready. They begin their work with {@link go}. */
  async start(processes: number): Promise<void> {
    await Promise.all(Array.from({ length: processes }, () => this.#startOne(this.#args)));
  }

  go(): void {
    for (const child of this.#members) child.send({ type: 'go' });
  }

  /** Kills one process without warning, then starts another in its place. */
  async killAndReplace(victim: Child = this.#members[0]!): Promise<void> {
    this.#remove(victim);
    await victim.kill();
    await this.#replace(victim, this.#args);
  }

  /** Stops one process, then starts another in its place, as a deploy does. */
  async stopAndReplace(old: Child, args: readonly string[]): Promise<void> {
    this.#remove(old);
    await old.stop();
    await this.#replace(old, args);
  }

  /** All processes together. */
  counters(): Counters {
    return [...this.#counters.values()].reduce(add, NONE);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#members.map((child) => child.stop()));
  }

  #remove(child: Child): void {
    this.#members.splice(this.#members.indexOf(child), 1);
  }

  async #replace(old: Child, args: readonly string[]): Promise<void> {
    this.#counters.set(old, { ...(this.#counters.get(old) ?? NONE), running: 0, held: 0 });
    const substitute = await this.#startOne(args);
    substitute.send({ type: 'go' });
  }

  #startOne(args: readonly string[]): Promise<Child> {
    return new Promise((resolve) => {
      const child = this.#children.start(this.#script, args, {
        onMessage: (message: Message) => {
          if (message.type === 'ready') resolve(child);
          else if (message.type === 'counters' || message.type === 'closed')
            this.#counters.set(child, message);
        },
      });
      this.#members.push(child);
    });
  }
}

function add(a: Counters, b: Counters): Counters {
  return {
    served: a.served + b.served,
    refused: a.refused + b.refused,
    failed: a.failed + b.failed,
    running: a.running + b.running,
    held: a.held + b.held,
    deferrals: a.deferrals + b.deferrals,
    returned: a.returned + b.returned,
  };
}
