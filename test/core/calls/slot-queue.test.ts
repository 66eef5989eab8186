import { describe, expect, test, vi } from 'vitest';
import { SlotQueue } from '../../../src/core/calls/slot-queue.ts';

/** A place whose sleep is watched. */
function sleeping(queue: SlotQueue, holder: string) {
  const place = queue.enter(holder);
  const end = vi.fn();
  place.onWake(end);
  return { place, end };
}

describe('who waits for a slot', () => {
  test('is woken from its sleep', () => {
    const queue = new SlotQueue();
    const { place, end } = sleeping(queue, 'a');
    expect(place.woken()).toBe(false);
    queue.wake('a');
    expect(end).toHaveBeenCalledTimes(1);
  });

  test('and is told while it asks knows it before it sleeps', () => {
    const queue = new SlotQueue();
    const place = queue.enter('a');
    place.asks();
    queue.wake('a');
    expect(place.woken()).toBe(true);
    place.asks();
    expect(place.woken()).toBe(false);
  });

  test('and is told while it asks again, after a sleep, knows it too: the old sleep is not what is ended', () => {
    const queue = new SlotQueue();
    const { place, end } = sleeping(queue, 'a');
    queue.wake('a');
    place.asks();
    queue.wake('a');
    expect(place.woken()).toBe(true);
    expect(end).toHaveBeenCalledTimes(1);
  });

  test('is not woken by what is said to another', () => {
    const queue = new SlotQueue();
    const { place, end } = sleeping(queue, 'a');
    queue.wake('b');
    expect(end).not.toHaveBeenCalled();
    expect(place.woken()).toBe(false);
  });

  test('hears nothing after it has left', () => {
    const queue = new SlotQueue();
    const { place, end } = sleeping(queue, 'a');
    place.leave();
    place.leave();
    queue.wake('a');
    queue.wakeAll();
    expect(end).not.toHaveBeenCalled();
    expect(place.woken()).toBe(false);
  });

  test('twice under one name is woken twice, and the one that stays hears after the other has left', () => {
    const queue = new SlotQueue();
    const [first, second] = [sleeping(queue, 'a'), sleeping(queue, 'a')];
    queue.wake('a');
    first.place.leave();
    queue.wake('a');
    expect([first, second].map(({ end }) => end.mock.calls.length)).toEqual([1, 2]);
  });
});

test('wakeAll wakes those who sleep and those who ask', () => {
  const queue = new SlotQueue();
  const { end } = sleeping(queue, 'a');
  const asking = queue.enter('b');
  asking.asks();
  queue.wakeAll();
  expect(end).toHaveBeenCalledTimes(1);
  expect(asking.woken()).toBe(true);
});
