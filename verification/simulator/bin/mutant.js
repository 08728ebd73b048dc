/** `node --import mutant.js`: loads the mutant that TSKEEPER_MUTANT names. */
import { loadMutant } from '../dist/mutants/loader.js';

const name = process.env.TSKEEPER_MUTANT;
if (name !== undefined) loadMutant(name);
