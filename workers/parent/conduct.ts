import { provideRedis } from '../../scripts/redis.ts';
import { Children } from './children.ts';

/** What every run of several processes needs. */
export interface Ground {
  readonly redisUrl: string;
  readonly children: Children;
  /** Aborted when the run must end; its reason is thrown wherever the run is. */
  readonly signal: AbortSignal;
  /** For the names of this run: Redis may hold queues and governors of an earlier one. */
  readonly runId: string;
}

/** Where a run reports what it does. */
export interface Voice {
  print(line: string): void;
  /** Called before the last lines of a run that ends early. */
  done(): void;
}

/**
 * Runs `run` with its own Redis and processes, then ends them all and this process with the exit code that
 * `run` returned: 1 if it threw, 130 or 143 after SIGINT or SIGTERM.
 */
export function conduct(name: string, voice: Voice, run: (ground: Ground) => Promise<number>): void {
  const ending = new AbortController();
  const children = new Children((error) => ending.abort(error));
  let redis: { stop(): Promise<void> } | undefined;

  const leave = async (code: number) => {
    voice.done();
    await children.endAll();
    await redis?.stop();
    process.exit(code);
  };

  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    process.on(signal, () => {
      // A second Ctrl-C does not wait for anything. Children end by themselves when their parent is gone.
      if (ending.signal.aborted) process.exit(code);
      ending.abort(signal);
      void leave(code);
    });
  }

  const start = async () => {
    const provided = await provideRedis({ log: (line) => voice.print(line) });
    redis = provided;
    ending.signal.throwIfAborted();
    return run({
      redisUrl: provided.url,
      children,
      signal: ending.signal,
      runId: Date.now().toString(36),
    });
  };
  start().then(leave, (error: unknown) => {
    // After a signal everything fails in some way, and the signal's handler is already running.
    if (ending.signal.reason === 'SIGINT' || ending.signal.reason === 'SIGTERM') return;
    voice.done();
    voice.print(`${name}: ${error instanceof Error ? error.message : error}`);
    complain(voice, children);
    void leave(1);
  });
}

/** Shows what the processes logged last: the reason of a failure is likely there. */
export function complain(voice: Voice, children: Children): void {
  for (const line of children.complaints) voice.print(`  ${line}`);
}

/** A pipe is slow, and process.exit would not wait for it. */
export function written(out: NodeJS.WriteStream, text: string): Promise<void> {
  return new Promise((resolve) => {
    out.write(text, () => resolve());
  });
}
