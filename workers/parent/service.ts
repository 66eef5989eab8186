import type { Stats, Trace } from '../downstream/arrivals.ts';
import type { CompletionTrace } from '../downstream/completions.ts';
import type { HoldTrace } from '../downstream/holds.ts';
import type { ServiceOptions } from '../downstream/server.ts';
import type { ServiceLimit } from '../downstream/strict-limit.ts';
import type { Child, Children } from './children.ts';
import { flags } from './flags.ts';

/** The service in a run: a process that is told over HTTP what to do and asked what it saw. */
export class Service {
  readonly url: string;
  readonly #process: Child;

  private constructor(url: string, process: Child) {
    this.url = url;
    this.#process = process;
  }

  /** Starts it on a free port and resolves when it listens. Defaults are in `downstream.ts --help`. */
  static start(children: Children, options: Partial<ServiceOptions>): Promise<Service> {
    return new Promise((resolve) => {
      const child = children.start('downstream', flags(options), {
        onLine: (line) => {
          const { host, port } = JSON.parse(line) as { host: string; port: number };
          resolve(new Service(`http://${host}:${port}`, child));
        },
      });
    });
  }

  stats(): Promise<Stats> {
    return this.#ask('GET', '/stats');
  }

  trace(): Promise<Trace> {
    return this.#ask('GET', '/trace');
  }

  holds(): Promise<HoldTrace> {
    return this.#ask('GET', '/holds');
  }

  holdsNow(): Promise<{ held: number; calls: number }> {
    return this.#ask('GET', '/holds/now');
  }

  completions(): Promise<CompletionTrace> {
    return this.#ask('GET', '/completions');
  }

  /** It takes more or less from now on; resolves to when that was, on its clock. */
  async changeLimit({ rate, burst }: ServiceLimit): Promise<number> {
    const { atUs } = await this.#ask<{ atUs: number }>('POST', `/limit?rate=${rate}&burst=${burst}`);
    return atUs;
  }

  /** It answers one key 429 for a while; resolves to when that began, on its clock. */
  async closeKey(key: string, forMs: number): Promise<number> {
    const query = `key=${encodeURIComponent(key)}&ms=${forMs}`;
    const { atUs } = await this.#ask<{ atUs: number }>('POST', `/close?${query}`);
    return atUs;
  }

  /** Forgets all calls and starts with a full bucket. */
  async reset(): Promise<void> {
    await this.#ask('POST', '/reset');
  }

  async stop(): Promise<void> {
    await this.#process.stop();
  }

  async #ask<Answer>(method: string, path: string): Promise<Answer> {
    const response = await fetch(this.url + path, { method });
    if (!response.ok) {
      throw new Error(`${method} ${path}: the service answered ${response.status}, expected 200`);
    }
    return (await response.json()) as Answer;
  }
}
