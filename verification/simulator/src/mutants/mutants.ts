/** All mutants. */
import { clientMutants } from './client-mutants.ts';
import { randomMutants } from './random-mutants.ts';
import { readOnlyMutants } from './read-only-mutants.ts';
import { electionMutants } from './election-mutants.ts';
import { ensembleMutants } from './ensemble-mutants.ts';
import { joiningMutants } from './joining-mutants.ts';
import { keeperMutants } from './keeper-mutants.ts';
import { learnerLinkMutants } from './learner-link-mutants.ts';
import { localSessionMutants } from './local-session-mutants.ts';
import type { Mutant } from './mutant.ts';
import { observerMutants } from './observer-mutants.ts';
import { pageMutants } from './page-mutants.ts';
import { reconfigMutants } from './reconfig-mutants.ts';
import { serverMutants } from './server-mutants.ts';
import { queueMutants } from './queue-mutants.ts';
import { transferMutants } from './transfer-mutants.ts';
import { transactionMutants } from './transaction-mutants.ts';
import { recipeMutants } from './recipe-mutants.ts';
import { snapshotMutants } from './snapshot-mutants.ts';
import { statefulRecipeMutants } from './stateful-recipe-mutants.ts';
import { zabMutants } from './zab-mutants.ts';

export const mutants: Readonly<Record<string, Mutant>> = {
  ...serverMutants,
  ...clientMutants,
  ...ensembleMutants,
  ...electionMutants,
  ...readOnlyMutants,
  ...joiningMutants,
  ...learnerLinkMutants,
  ...localSessionMutants,
  ...observerMutants,
  ...zabMutants,
  ...reconfigMutants,
  ...queueMutants,
  ...pageMutants,
  ...keeperMutants,
  ...transactionMutants,
  ...transferMutants,
  ...recipeMutants,
  ...snapshotMutants,
  ...statefulRecipeMutants,
  ...randomMutants,
};
