/** All mutants. */
import { clientMutants } from './client-mutants.ts';
import { drawnMutants } from './drawn-mutants.ts';
import { electionMutants } from './election-mutants.ts';
import { ensembleMutants } from './ensemble-mutants.ts';
import { joiningMutants } from './joining-mutants.ts';
import { learnerLinkMutants } from './learner-link-mutants.ts';
import type { Mutant } from './mutant.ts';
import { mutants } from './mutants.ts';
import { queueMutants } from './queue-mutants.ts';
import { transactionMutants } from './transaction-mutants.ts';
import { recipeMutants } from './recipe-mutants.ts';
import { snapshotMutants } from './snapshot-mutants.ts';
import { standingMutants } from './standing-mutants.ts';
import { zabMutants } from './zab-mutants.ts';

export const zoo: Readonly<Record<string, Mutant>> = {
  ...mutants,
  ...clientMutants,
  ...ensembleMutants,
  ...electionMutants,
  ...joiningMutants,
  ...learnerLinkMutants,
  ...zabMutants,
  ...queueMutants,
  ...transactionMutants,
  ...recipeMutants,
  ...snapshotMutants,
  ...standingMutants,
  ...drawnMutants,
};
