import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { nowUs } from './arrivals.ts';
import { Calls } from './calls.ts';
import { Completions } from './completions.ts';
import { Holds } from './holds.ts';
import { answer } from './http.ts';
import type { ServiceLimit } from './strict-limit.ts';

export interface ServiceOptions extends ServiceLimit {
  /** How long it works on a plain call. */
  readonly serviceMs: number;
  /** How many held calls it can have at once. */
  readonly slots: number;
  readonly requestsPerMinute: number;
  readonly tokensPerMinute: number;
}

type Route = (
  atUs: number,
  query: URLSearchParams,
  request: IncomingMessage,
  response: ServerResponse,
) => void;

/**
 * The fragile service behind the workers, as an HTTP server (not yet listening).
 *
 *   POST /call?cost=3&job=orders:12&key=k7&attempt=1&ageMs=40   200 after `serviceMs`, or 429 with Retry-After
 *   POST /hold?fence=7&process=4711&workMs=150                  holds a slot until its body ends; 200, or 409
 *   POST /complete?least=200&most=800                           {tokens} after a while, or 429
 *   GET  /stats, /trace, /holds, /holds/now, /completions       totals and the last second; every call of a kind
 *   POST /limit?rate=80&burst=8                                 takes more or less from now on
 *   POST /close?key=k7&ms=3000                                  answers one key 429 for a while
 *   POST /reset?rate=200&burst=40                               forgets all calls; the limit may be left out
 */
export function createService(options: ServiceOptions): Server {
  const calls = new Calls(options, options.serviceMs);
  const holds = new Holds(options.slots);
  const completions = new Completions({
    requests: options.requestsPerMinute,
    tokens: options.tokensPerMinute,
  });
  const routes: Record<string, Route> = {
    'POST /call': (atUs, query, _, response) => calls.call(atUs, query, response),
    'POST /hold': (atUs, query, request, response) => holds.hold(atUs, query, request, response),
    'POST /complete': (atUs, query, _, response) => completions.complete(atUs, query, response),
    'GET /stats': (atUs, _, __, response) => calls.stats(atUs, response),
    'GET /trace': (_, __, ___, response) => calls.trace(response),
    'GET /holds': (_, __, ___, response) => holds.trace(response),
    'GET /holds/now': (_, __, ___, response) => holds.stats(response),
    'GET /completions': (_, __, ___, response) => completions.trace(response),
    'POST /limit': (atUs, query, _, response) => calls.changeLimit(atUs, query, response),
    'POST /close': (atUs, query, _, response) => calls.closeKey(atUs, query, response),
    'POST /reset': (_, query, __, response) => {
      holds.reset();
      completions.reset();
      calls.reset(query, response);
    },
  };

  const server = createServer((request, response) => {
    // Before anything else: the arrival time must not include the server's own work.
    const atUs = nowUs();
    request.resume();
    const url = request.url ?? '/';
    const mark = url.indexOf('?');
    const path = mark < 0 ? url : url.slice(0, mark);
    const query = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1));
    const route = routes[`${request.method} ${path}`];
    if (route) route(atUs, query, request, response);
    else
      answer(response, 404, {
        error: `no ${request.method} ${path} here: ${Object.keys(routes).join(', ')}`,
      });
  });
  // Callers keep their connections for good. A server that closed idle ones would now and then reset a call
  // just being sent, and that call would look like a job failed by the limiter.
  server.keepAliveTimeout = 0;
  // A held call lasts as long as its caller wants.
  server.requestTimeout = 0;
  return server;
}
