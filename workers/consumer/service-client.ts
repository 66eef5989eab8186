import { Agent, request } from 'node:http';

/** What the service is told about a call, beside its cost. */
export interface Call {
  readonly cost: number;
  readonly job: string;
  readonly key: string;
  readonly attempt: number;
  readonly ageMs: number;
}

/**
 * Calls the service over kept connections.
 *
 * node:http and not fetch: on Node 20 a call costs 52 µs of CPU this way and 264 µs by fetch, and these
 * processes share their cores with Redis and the service.
 */
export class ServiceClient {
  readonly #url: URL;
  readonly #agent: Agent;

  constructor(url: string, connections: number) {
    this.#url = new URL('/call', url);
    this.#agent = new Agent({ keepAlive: true, maxFreeSockets: connections });
  }

  /** Resolves to the HTTP status; rejects only if there was no answer. */
  call({ cost, job, key, attempt, ageMs }: Call): Promise<number> {
    const { hostname, port, pathname } = this.#url;
    const path = `${pathname}?cost=${cost}&job=${encodeURIComponent(job)}&key=${encodeURIComponent(key)}&attempt=${attempt}&ageMs=${ageMs}`;
    return new Promise((resolve, reject) => {
      const sent = request({ agent: this.#agent, method: 'POST', hostname, port, path }, (response) => {
        response.resume();
        response.on('error', reject);
        response.on('end', () => resolve(response.statusCode!));
      });
      sent.on('error', reject);
      sent.end();
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
