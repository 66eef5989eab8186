import type { ServerResponse } from 'node:http';

export function answer(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}

/** 429 and when to come back: in whole seconds in the usual header, and in milliseconds, which some services add. */
export function tooMany(response: ServerResponse, waitMs: number): void {
  // Too short a wait would invite the next refusal.
  const retryAfterMs = Math.max(1, Math.ceil(waitMs));
  response.setHeader('retry-after', Math.ceil(retryAfterMs / 1000));
  response.setHeader('retry-after-ms', retryAfterMs);
  answer(response, 429, { error: 'over the limit', retryAfterMs });
}

export function badRequest(response: ServerResponse, error: string): void {
  answer(response, 400, { error });
}

export function numberIn(query: URLSearchParams, name: string, fallback: number): number {
  const text = query.get(name);
  return text === null || text === '' ? fallback : Number(text);
}
