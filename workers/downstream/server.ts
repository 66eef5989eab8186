import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Arrivals, nowUs } from './arrivals.ts';
import { type ServiceLimit, StrictLimit } from './strict-limit.ts';

/**
 * The fragile service behind the workers, as an HTTP server (not yet listening).
 *
 *   POST /call?cost=3&job=orders:12&key=k7&attempt=1&ageMs=40   200 after `serviceMs`, or 429 with Retry-After
 *   GET  /stats                                                 totals and the last second
 *   GET  /trace                                                 every arrival
 *   POST /reset?rate=200&burst=40                               forgets all; the limit may be left out
 */
export function createService(initial: ServiceLimit, serviceMs: number): Server {
  const arrivals = new Arrivals();
  let limit = new StrictLimit(initial, nowUs());

  const call = (atUs: number, query: URLSearchParams, response: ServerResponse) => {
    const cost = numberIn(query, 'cost', 1);
    if (!Number.isInteger(cost) || cost < 1) {
      answer(response, 400, {
        error: `cost: expected a whole number of at least 1, got ${query.get('cost')}`,
      });
      return;
    }
    const waitSeconds = limit.take(cost, atUs);
    arrivals.add([
      atUs,
      cost,
      query.get('job') ?? '',
      query.get('key') ?? '',
      numberIn(query, 'attempt', 1),
      numberIn(query, 'ageMs', 0),
      waitSeconds > 0 ? 1 : 0,
    ]);
    if (waitSeconds > 0) {
      // Retry-After knows whole seconds only, and one that is too short would invite the next refusal.
      response.setHeader('retry-after', Math.ceil(waitSeconds));
      answer(response, 429, { error: 'over the limit', retryAfterMs: Math.ceil(waitSeconds * 1000) });
    } else if (serviceMs > 0) {
      setTimeout(answer, serviceMs, response, 200, { ok: true });
    } else {
      answer(response, 200, { ok: true });
    }
  };

  const reset = (query: URLSearchParams, response: ServerResponse) => {
    const next = {
      rate: numberIn(query, 'rate', limit.limit.rate),
      burst: numberIn(query, 'burst', limit.limit.burst),
    };
    if (!(next.rate > 0 && next.burst > 0)) {
      answer(response, 400, { error: `rate and burst: expected numbers over 0, got ${query}` });
      return;
    }
    limit = new StrictLimit(next, nowUs());
    arrivals.clear();
    answer(response, 200, next);
  };

  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    // Before anything else: whatever the server does with a call must not show in when it came.
    const atUs = nowUs();
    request.resume();
    const url = request.url ?? '/';
    const mark = url.indexOf('?');
    const path = mark < 0 ? url : url.slice(0, mark);
    const query = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1));
    const route = `${request.method} ${path}`;
    if (route === 'POST /call') call(atUs, query, response);
    else if (route === 'GET /stats') answer(response, 200, arrivals.stats(atUs));
    else if (route === 'GET /trace') answer(response, 200, arrivals.trace());
    else if (route === 'POST /reset') reset(query, response);
    else
      answer(response, 404, { error: `no ${route} here: POST /call, GET /stats, GET /trace, POST /reset` });
  });
  // Callers keep their connections for good. A server that closed idle ones would now and then reset a call
  // just being sent, and that call would look like a job failed by the limiter.
  server.keepAliveTimeout = 0;
  server.requestTimeout = 0;
  return server;
}

function answer(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}

function numberIn(query: URLSearchParams, name: string, fallback: number): number {
  const text = query.get(name);
  return text === null || text === '' ? fallback : Number(text);
}
