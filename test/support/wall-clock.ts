/**
 * The options of a test that measures real time, which a busy machine can spoil: it may be tried once more. The end of a
 * run tells which tests were (tried-again.ts).
 */
export const wallClock = { retry: 1 } as const;
