import type { ProveCase } from '../case.ts';
import { adaptive } from './adaptive.ts';
import { concurrency } from './concurrency.ts';
import { fair } from './fair.ts';
import { llm } from './llm.ts';
import { pauseCase } from './pause.ts';
import { reconfigure } from './reconfigure.ts';

/** In the order of the list. A new case is a file beside this one, and a line here. */
export const cases: readonly ProveCase[] = [concurrency, reconfigure, pauseCase, adaptive, llm, fair];
