/**
 * How many histories a property plays. By default as many as a test run can afford; for a long run by hand:
 * FLYBALL_RUNS=100000 npx vitest run --project unit test/core/properties
 */
export const runs = (byDefault: number): number => Number(process.env.FLYBALL_RUNS ?? byDefault);
