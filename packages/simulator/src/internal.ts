export { main } from './command/main.ts';
export { compiled } from './mutants/compiled.ts';
export { loadMutant } from './mutants/loader.ts';
export { mutated } from './mutants/mutant.ts';
export { mutants } from './mutants/mutants.ts';
