/** `flyball/testing`: tests of governed code without Redis and without sleeping. */
export { FakeClock } from './fake-clock.ts';
export { memoryGovernor } from './memory-governor.ts';
