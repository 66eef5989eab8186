import type { Counters, Message } from '../process/messages.ts';
import type { Child, Children } from './children.ts';

const NONE: Counters = { served: 0, refused: 0, failed: 0, running: 0, held: 0, deferrals: 0, returned: 0 };

/** The consumer processes of one phase. */
export class Fleet {
  readonly #children: Children;
  readonly #args: readonly string[];
  readonly #members: Child[] = [];
  /** The last counters of every process, also of one that was killed: what it did has been done. */
  readonly #counters = new Map<Child, Counters>();

  constructor(children: Children, args: readonly string[]) {
    this.#children = children;
    this.#args = args;
  }

  /** Starts processes; resolves when all are ready. None takes a job before {@link go}. */
  async start(processes: number): Promise<void> {
    await Promise.all(Array.from({ length: processes }, () => this.#startOne()));
  }

  go(): void {
    for (const child of this.#members) child.send({ type: 'go' });
  }

  /** Kills one process without warning, then starts another in its place. */
  async killAndReplaceOne(): Promise<void> {
    const victim = this.#members.shift()!;
    await victim.kill();
    this.#counters.set(victim, { ...this.#countersOf(victim), running: 0, held: 0 });
    const substitute = await this.#startOne();
    substitute.send({ type: 'go' });
  }

  /** All processes together. */
  counters(): Counters {
    return [...this.#counters.values()].reduce(add, NONE);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#members.map((child) => child.stop()));
  }

  #startOne(): Promise<Child> {
    return new Promise((resolve) => {
      const child = this.#children.start('consumer', this.#args, {
        onMessage: (message: Message) => {
          if (message.type === 'ready') resolve(child);
          else if (message.type === 'counters' || message.type === 'closed')
            this.#counters.set(child, message);
        },
      });
      this.#members.push(child);
    });
  }

  #countersOf(child: Child): Counters {
    return this.#counters.get(child) ?? NONE;
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
