import { Queue, QueueEvents, type QueueEventsListener, QueueEventsProducer } from 'bullmq';
import { Redis } from 'ioredis';

// Sent after the last event of a run: a reader that has it has all events before it.
const END_MARK = 'demo-end';

interface MarkListener extends QueueEventsListener {
  [END_MARK]: () => void;
}

/** What a run reads from Redis: its queues, and the server's own count of commands. */
export class RedisView {
  readonly #url: string;
  readonly #client: Redis;
  readonly #queues: readonly Queue[];

  constructor(url: string, queueNames: readonly string[]) {
    this.#url = url;
    this.#client = new Redis(url);
    // The producer decides how long the event streams may grow; writing the options here would reset that.
    this.#queues = queueNames.map((name) => new Queue(name, { connection: { url }, skipMetasUpdate: true }));
    // A lost connection shows in the call that needs it.
    for (const emitter of [this.#client, ...this.#queues]) emitter.on('error', () => {});
  }

  /** Commands the server has run since it started, including those inside scripts. */
  async commandsProcessed(): Promise<number> {
    const info = await this.#client.info('stats');
    return Number(/total_commands_processed:(\d+)/.exec(info)?.[1]);
  }

  /** Jobs in a queue in any state, and how many of them are in the delayed set. */
  async counts(): Promise<{ all: number; delayed: number }> {
    const counts = await Promise.all(
      this.#queues.map((queue) =>
        queue.getJobCounts('wait', 'active', 'delayed', 'prioritized', 'waiting-children'),
      ),
    );
    const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
    return {
      all: sum(counts.flatMap((count) => Object.values(count))),
      delayed: sum(counts.map((count) => count.delayed ?? 0)),
    };
  }

  /**
   * How many `failed` events the queues have emitted. Read at the end from the stream, which the producer keeps
   * whole: listening during the run would cost Redis some two commands a job, and be counted.
   */
  async failedEvents(): Promise<number> {
    const failed = await Promise.all(this.#queues.map((queue) => this.#failedEventsOf(queue.name)));
    return failed.reduce((total, value) => total + value, 0);
  }

  async #failedEventsOf(name: string): Promise<number> {
    const connection = { url: this.#url };
    const producer = new QueueEventsProducer(name, { connection });
    await producer.publishEvent({ eventName: END_MARK }, Number.MAX_SAFE_INTEGER);
    await producer.close();
    const events = new QueueEvents(name, { connection, lastEventId: '0' });
    let failed = 0;
    events.on('failed', () => {
      failed++;
    });
    await new Promise<void>((resolve, reject) => {
      events.on<MarkListener>(END_MARK, resolve);
      events.on('error', reject);
    });
    await events.close();
    return failed;
  }

  /** Removes the queues and all that is in them. */
  async obliterate(): Promise<void> {
    await Promise.all(this.#queues.map((queue) => queue.obliterate({ force: true })));
  }

  async close(): Promise<void> {
    await Promise.all(this.#queues.map((queue) => queue.close()));
    this.#client.disconnect();
  }
}
