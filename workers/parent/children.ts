import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Go, Message } from '../process/messages.ts';

/** The scripts that run as separate processes. */
export type Script = 'downstream' | 'producer' | 'consumer' | 'caller';

/** What a started process says. */
export interface ChildHooks {
  readonly onMessage?: (message: Message) => void;
  /** Each line on stdout. */
  readonly onLine?: (line: string) => void;
}

// How many log lines are kept: the latest explain an end.
const KEPT_COMPLAINTS = 20;
// How long a process may take to stop before it is killed, once its work no longer matters.
const CLEAN_UP_MS = 1_500;

/** One process. What it says arrives through the hooks. */
export class Child {
  /** Resolves when the process is gone and its last message has been read. */
  readonly ended: Promise<void>;
  #process: ChildProcess;
  #leaving = false;

  constructor(
    script: Script,
    args: readonly string[],
    hooks: ChildHooks & { readonly onComplaint: (line: string) => void },
    onCrash: (error: Error) => void,
  ) {
    // The loader that runs TypeScript is in process.execArgv, and a fork takes that over.
    this.#process = fork(fileURLToPath(new URL(`../${script}.ts`, import.meta.url)), args, {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: { ...process.env, LOG_LEVEL: process.env.LOG_LEVEL ?? 'warn' },
    });
    const { stdout, stderr, pid } = this.#process;
    createInterface(stderr!).on('line', hooks.onComplaint);
    createInterface(stdout!).on('line', (line) => hooks.onLine?.(line));
    if (hooks.onMessage) this.#process.on('message', hooks.onMessage);
    const exited = once(this.#process, 'exit');
    this.ended = Promise.all([exited, once(this.#process, 'disconnect')]).then(() => {});
    exited.then(([code, signal]) => {
      if (this.#leaving || code === 0) return;
      onCrash(new Error(`${script} (process ${pid}) ended with ${signal ?? code}`));
    }, onCrash);
  }

  get pid(): number {
    return this.#process.pid!;
  }

  /** Stops it until {@link thaw}: it notices nothing, not even its parent's end. */
  freeze(): void {
    this.#process.kill('SIGSTOP');
  }

  thaw(): void {
    this.#process.kill('SIGCONT');
  }

  send(message: Go): void {
    this.#process.send(message);
  }

  /** Asks it to finish its work and end. */
  async stop(): Promise<void> {
    this.#leaving = true;
    this.#process.kill('SIGTERM');
    await this.ended;
  }

  /** Ends it at once; it finishes nothing. */
  async kill(): Promise<void> {
    this.#leaving = true;
    this.#process.kill('SIGKILL');
    await this.ended;
  }
}

/** All processes of one run, so that no process outlives it. */
export class Children {
  readonly #alive = new Set<Child>();
  readonly #onCrash: (error: Error) => void;
  /** The last lines that any process logged, at level `warn` unless `LOG_LEVEL` says otherwise. */
  readonly complaints: string[] = [];

  /** @param onCrash - Called when a process ends that nobody has stopped. */
  constructor(onCrash: (error: Error) => void) {
    this.#onCrash = onCrash;
  }

  start(script: Script, args: readonly string[], hooks: ChildHooks = {}): Child {
    const onComplaint = (line: string) => {
      const complaint = `${script}: ${shortened(line)}`;
      // Processes that do the same work have the same complaints.
      if (this.complaints.includes(complaint)) return;
      this.complaints.push(complaint);
      if (this.complaints.length > KEPT_COMPLAINTS) this.complaints.shift();
    };
    const child = new Child(script, args, { ...hooks, onComplaint }, this.#onCrash);
    this.#alive.add(child);
    child.ended.then(() => this.#alive.delete(child), this.#onCrash);
    return child;
  }

  /** Ends all: politely first, then by SIGKILL. */
  async endAll(): Promise<void> {
    const killing = setTimeout(() => this.#killAll(), CLEAN_UP_MS);
    await Promise.all([...this.#alive].map((child) => child.stop()));
    clearTimeout(killing);
  }

  #killAll(): void {
    for (const child of this.#alive) void child.kill();
  }
}

/** The message of a log line; any other line unchanged. */
function shortened(line: string): string {
  try {
    const { msg, err } = JSON.parse(line) as { msg: string; err?: { message: string } };
    return err ? `${msg}: ${err.message}` : msg;
  } catch {
    return line;
  }
}
