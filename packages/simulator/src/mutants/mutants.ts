import type { Mutant } from './mutant.ts';

export const mutants: Readonly<Record<string, Mutant>> = {};
