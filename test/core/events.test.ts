import { describe, expect, onTestFinished, test } from 'vitest';
import { Emitter } from '../../src/core/ports/events.ts';

interface Events {
  count: number;
  text: string;
}

/** What nobody catches while the test runs. */
function uncaught(): unknown[] {
  const errors: unknown[] = [];
  const others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => errors.push(error));
  onTestFinished(() => {
    process.removeAllListeners('uncaughtException');
    for (const other of others) process.on('uncaughtException', other);
  });
  return errors;
}

describe('an emitter', () => {
  test('calls those who listen to that event, in the order in which they came', () => {
    const emitter = new Emitter<Events>();
    const heard: string[] = [];
    emitter.on('count', (count) => heard.push(`first ${count}`));
    emitter.on('text', (text) => heard.push(text));
    emitter.on('count', (count) => heard.push(`second ${count}`));
    emitter.emit('count', 7);
    expect(heard).toEqual(['first 7', 'second 7']);
    expect(emitter.count('count')).toBe(2);
  });

  test('calls nobody who left, and a function that was added twice once more than it was removed', () => {
    const emitter = new Emitter<Events>();
    const heard: number[] = [];
    const listener = (count: number) => heard.push(count);
    const [remove, removeOther] = [emitter.on('count', listener), emitter.on('count', listener)];
    remove();
    remove();
    emitter.emit('count', 1);
    expect(heard).toEqual([1]);
    removeOther();
    emitter.emit('count', 2);
    expect(heard).toEqual([1]);
    expect(emitter.count('count')).toBe(0);
    emitter.on('count', listener);
    removeOther();
    emitter.emit('count', 3);
    expect(heard).toEqual([1, 3]);
  });

  test('goes by who listened when the event came: one may leave or come meanwhile', () => {
    const emitter = new Emitter<Events>();
    const heard: string[] = [];
    const remove = emitter.on('count', () => {
      heard.push('once');
      remove();
      emitter.on('count', () => heard.push('late'));
    });
    emitter.on('count', () => heard.push('always'));
    emitter.emit('count', 1);
    expect(heard).toEqual(['once', 'always']);
    emitter.emit('count', 2);
    expect(heard).toEqual(['once', 'always', 'always', 'late']);
  });

  test('is not broken by a listener that throws, nor is its error lost', async () => {
    const errors = uncaught();
    const emitter = new Emitter<Events>();
    const heard: number[] = [];
    const wrong = new Error('a listener’s own');
    emitter.on('count', () => {
      throw wrong;
    });
    emitter.on('count', (count) => heard.push(count));
    emitter.emit('count', 1);
    expect(heard).toEqual([1]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(errors).toEqual([wrong]);
  });

  test('that is cleared has no listeners left', () => {
    const emitter = new Emitter<Events>();
    emitter.on('count', () => expect.unreachable());
    emitter.clear();
    emitter.emit('count', 1);
    expect(emitter.count('count')).toBe(0);
  });
});
