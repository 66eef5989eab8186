import { describe } from 'vitest';
import { storeContract } from '../contract/index.ts';
import { memoryStore } from '../support/memory.ts';

describe('the memory store', () => storeContract(memoryStore));
