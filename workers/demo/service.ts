import type { Stats, Trace } from '../downstream/arrivals.ts';
import type { ServiceLimit } from '../downstream/strict-limit.ts';
import type { Child, Children } from './children.ts';

/** The service as the demo handles it: a process, asked over HTTP what it saw. */
export class Service {
  readonly url: string;
  readonly #process: Child;

  private constructor(url: string, process: Child) {
    this.url = url;
    this.#process = process;
  }

  /** Starts it on a free port and resolves when it listens. */
  static start(children: Children, limit: ServiceLimit, serviceMs: number): Promise<Service> {
    return new Promise((resolve) => {
      const { rate, burst } = limit;
      const args = ['--rate', `${rate}`, '--burst', `${burst}`, '--service-ms', `${serviceMs}`];
      const child = children.start('downstream', args, {
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
