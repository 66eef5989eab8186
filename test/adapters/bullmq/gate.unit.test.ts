import { EventEmitter } from 'node:events';
import type { Worker } from 'bullmq';
import { FakeClock } from 'flyball/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import { Feed } from '../../../src/adapters/bullmq/fetch/feed.ts';
import { Gate } from '../../../src/adapters/bullmq/fetch/gate.ts';
import { FakeQueue, FakeWorker } from '../../support/bullmq-worker.ts';

const MAX_HOLD_MS = 1_000;

describe('Gate', () => {
  let clock: FakeClock;
  let worker: FakeWorker<unknown>;
  let feed: Feed;
  let gate: Gate;
  let waitMs: number | Error;
  let peeks: number;
  let events: string[];
  let running: Promise<void>;
  /** What BullMQ's class has, past what the user sees. */
  const actual = () => Reflect.get(FakeWorker.prototype, 'concurrency', worker) as number;
  const paused = () => Reflect.apply(FakeWorker.prototype.isPaused, worker, []) as boolean;

  beforeEach(async () => {
    clock = new FakeClock();
    worker = new FakeWorker(new FakeQueue(clock), async () => {}, { concurrency: 10, autorun: false });
    feed = new Feed(10, MAX_HOLD_MS);
    waitMs = 0;
    peeks = 0;
    events = [];
    const longestWaitMs = async () => {
      peeks += 1;
      if (waitMs instanceof Error) throw waitMs;
      return waitMs;
    };
    gate = new Gate(worker as unknown as Worker, feed, clock, MAX_HOLD_MS, longestWaitMs);
    running = worker.run();
    await clock.advance(10);
    for (const event of ['paused', 'resumed', 'drained', 'error']) worker.on(event, () => events.push(event));
  });

  function close(ms: number): void {
    feed.arrived();
    gate.fetched();
    waitMs = ms;
    feed.refused();
    gate.apply(ms);
    feed.left();
    gate.apply();
  }

  test('lowers what BullMQ fetches and leaves what the user reads', () => {
    expect(worker.concurrency).toBe(10);
    expect(actual()).toBe(1);
    worker.concurrency = 25;
    expect(worker.concurrency).toBe(25);
    expect(actual()).toBe(1);
    worker.concurrency = 1;
    for (let n = 0; n < 5; n++) {
      feed.arrived();
      feed.started();
      gate.apply();
    }
    expect(actual()).toBe(1);
  });

  test('refuses a concurrency that BullMQ refuses, with BullMQ’s words, and keeps the one before', () => {
    expect(() => {
      worker.concurrency = 0;
    }).toThrow('concurrency must be a finite number greater than 0');
    expect(worker.concurrency).toBe(10);
  });

  test('raises what BullMQ fetches with the jobs that run, up to the user’s', () => {
    for (let n = 1; n <= 12; n++) {
      feed.arrived();
      feed.started();
      gate.apply();
      expect(actual()).toBe(Math.min(10, n + 1));
    }
  });

  test('wakes the loop, less and less often, while free slots stay empty', async () => {
    feed.arrived();
    feed.started();
    gate.fetched();
    await clock.advance(29);
    expect(worker.calls).toEqual([]);
    await clock.advance(2);
    expect(worker.calls).toEqual(['pause(true)', 'resume()']);
    await clock.advance(10_000);
    const wakes = worker.calls.length / 2;
    // 30, 60, 120, … up to 1,000 ms: some 15 in ten seconds, and not 300.
    expect(wakes).toBeGreaterThanOrEqual(10);
    expect(wakes).toBeLessThanOrEqual(16);
    expect(events).toEqual([]);
    expect(worker.isPaused()).toBe(false);
  });

  test('wakes quickly again after a job came', async () => {
    feed.arrived();
    feed.started();
    gate.fetched();
    await clock.advance(20_000);
    worker.calls.length = 0;
    feed.arrived();
    feed.started();
    gate.fetched();
    await clock.advance(1_100);
    expect(worker.calls.length / 2).toBeGreaterThanOrEqual(4);
  });

  test('does not wake the loop without need', async () => {
    await clock.advance(5_000);
    expect(worker.calls).toEqual([]);
    feed.arrived();
    gate.fetched();
    await clock.advance(5_000);
    expect(worker.calls).toEqual([]);
    feed.started();
    gate.fetched();
    worker.emit('drained');
    await clock.advance(5_000);
    expect(worker.calls).toEqual([]);
  });

  test('does not take a full worker for an empty queue', async () => {
    feed.setMax(1);
    feed.arrived();
    feed.started();
    gate.fetched();
    worker.emit('drained'); // a job ended, and BullMQ was not to fetch another
    worker.concurrency = 10;
    await clock.advance(50);
    expect(worker.calls).toEqual(['pause(true)', 'resume()']);
  });

  test('does not wake a worker that the user has paused', async () => {
    feed.arrived();
    feed.started();
    gate.fetched();
    await worker.pause(true);
    worker.calls.length = 0;
    await clock.advance(5_000);
    expect(worker.calls).toEqual([]);
  });

  test('fetches nothing while the gate is shut, and opens it at half of maxHoldMs', async () => {
    close(5_000);
    expect(gate.open).toBe(false);
    expect(paused()).toBe(true);
    await clock.advance(3_900);
    expect(gate.open).toBe(false);
    // What was asked about has drained meanwhile.
    waitMs = 400;
    await clock.advance(1_200);
    expect(gate.open).toBe(true);
    expect(paused()).toBe(false);
    expect(feed.open).toBe(true);
    expect(events).toEqual([]);
  });

  test('asks a few times a second at most while the wait is long', async () => {
    close(2_000);
    waitMs = 60_000;
    await clock.advance(10_000);
    expect(gate.open).toBe(false);
    expect(peeks).toBeGreaterThanOrEqual(1);
    expect(peeks).toBeLessThanOrEqual(30);
  });

  test('opens within some two seconds of a limit that was raised', async () => {
    close(3_600_000);
    await clock.advance(60_000);
    expect(gate.open).toBe(false);
    waitMs = 0;
    await clock.advance(2_000);
    expect(gate.open).toBe(true);
  });

  test('stays shut while the store does not answer, and opens once it does', async () => {
    close(100);
    waitMs = new Error('connection lost');
    await clock.advance(30_000);
    expect(gate.open).toBe(false);
    expect(peeks).toBeLessThanOrEqual(60);
    waitMs = 0;
    await clock.advance(3_000);
    expect(gate.open).toBe(true);
    expect(events).toEqual([]);
  });

  test('a shut gate is not a pause of the user’s', async () => {
    close(3_000);
    expect(worker.isPaused()).toBe(false);
    expect(worker.isRunning()).toBe(true);
    await clock.advance(100);
    expect(events).toEqual([]);
  });

  test('the user’s pause holds while the gate is shut and after it opens', async () => {
    close(1_000);
    await worker.pause(true);
    expect(worker.isPaused()).toBe(true);
    expect(events).toEqual(['paused']);
    waitMs = 0;
    await clock.advance(5_000);
    expect(paused()).toBe(true);
    expect(worker.isPaused()).toBe(true);
    await worker.resume();
    expect(paused()).toBe(false);
    expect(worker.isPaused()).toBe(false);
    expect(events).toEqual(['paused', 'resumed']);
  });

  test('the user’s resume does not open a shut gate', async () => {
    await worker.pause();
    close(10_000);
    await worker.resume();
    expect(worker.isPaused()).toBe(false);
    expect(paused()).toBe(true);
    expect(events).toEqual(['paused', 'resumed']);
    waitMs = 0;
    await clock.advance(11_000);
    expect(paused()).toBe(false);
    expect(events).toEqual(['paused', 'resumed']);
  });

  test('pause() reaches BullMQ, which ignores one while it is paused, also through a shut gate', async () => {
    close(1_000);
    worker.calls.length = 0;
    await worker.pause();
    expect(worker.calls).toEqual(['resume()', 'pause()']);
    expect(events).toEqual(['paused']);
  });

  test('run() does not end while the gate is shut, though BullMQ’s loop does', async () => {
    let ended = false;
    void running.then(() => {
      ended = true;
    });
    close(10_000);
    await clock.advance(6_000);
    expect(Reflect.apply(FakeWorker.prototype.isRunning, worker, [])).toBe(false);
    expect(ended).toBe(false);
    waitMs = 0;
    await clock.advance(2_000);
    expect(gate.open).toBe(true);
    expect(ended).toBe(false);
    await worker.pause();
    await running;
    expect(ended).toBe(true);
  });

  test('gates that shut and open leave no run() behind but the user’s', async () => {
    const runs: Promise<void>[] = [];
    const run = worker.run.bind(worker);
    Object.defineProperty(worker, 'run', {
      configurable: true,
      value: () => {
        runs.push(run());
        return runs.at(-1);
      },
    });
    for (let n = 0; n < 50; n++) {
      close(60_000);
      await clock.advance(6_000);
      waitMs = 0;
      await clock.advance(2_200);
      expect(gate.open).toBe(true);
    }
    expect(runs.length).toBe(50);
    let pending = runs.length;
    for (const each of runs) void each.then(() => pending--);
    await clock.advance(0);
    expect(pending).toBe(1);
  });

  test('once it has ended, no timer is left, and run() ends', async () => {
    close(5_000);
    gate.end();
    await worker.close();
    await running;
    expect(gate.open).toBe(true);
    expect(clock.pending).toBe(0);
    await clock.advance(60_000);
    expect(peeks).toBe(0);
    gate.apply();
    expect(clock.pending).toBe(0);
  });

  test('a BullMQ whose concurrency cannot be set is refused', () => {
    class Old extends EventEmitter {
      readonly concurrency = 1;
      pause() {}
      resume() {}
      isRunning() {
        return true;
      }
      isPaused() {
        return false;
      }
      run() {}
    }
    expect(() => new Gate(new Old() as unknown as Worker, feed, clock, MAX_HOLD_MS, async () => 0)).toThrow(
      /no settable Worker#concurrency.*5\.76\.11/,
    );
  });
});
