/** All checks, by subject. */
import type { Check, RunnableCheck } from '../check.ts';
import { aclChecks } from './acl.ts';
import { authChecks } from './auth.ts';
import { chrootChecks } from './chroot.ts';
import { configChecks } from './config.ts';
import { createChecks } from './create.ts';
import { dataChecks } from './data.ts';
import { deleteChecks } from './delete.ts';
import { ensembleChecks } from './ensemble.ts';
import { errorChecks } from './errors.ts';
import { localSessionChecks } from './local-sessions.ts';
import { multiReadChecks } from './multi-read.ts';
import { multiChecks } from './multi.ts';
import { opcodeChecks } from './opcodes.ts';
import { orderChecks } from './order.ts';
import { pathChecks } from './paths.ts';
import { readChecks } from './reads.ts';
import { sequenceChecks } from './sequence.ts';
import { sessionChecks } from './sessions.ts';
import { statChecks } from './stat.ts';
import { versionChecks } from './versions.ts';
import { oneShotWatchChecks } from './watches-one-shot.ts';
import { watchRemovalChecks } from './watches-removal.ts';
import { watchRestoredChecks } from './watches-restored.ts';
import { persistentWatchChecks } from './watches-persistent.ts';

export const runnableChecks: readonly RunnableCheck[] = [
  ...createChecks,
  ...sequenceChecks,
  ...dataChecks,
  ...versionChecks,
  ...statChecks,
  ...deleteChecks,
  ...readChecks,
  ...errorChecks,
  ...pathChecks,
  ...aclChecks,
  ...authChecks,
  ...multiChecks,
  ...multiReadChecks,
  ...oneShotWatchChecks,
  ...persistentWatchChecks,
  ...watchRemovalChecks,
  ...watchRestoredChecks,
  ...sessionChecks,
  ...chrootChecks,
  ...orderChecks,
  ...opcodeChecks,
  ...configChecks,
  ...ensembleChecks,
  ...localSessionChecks,
];

/** All checks, in the order in which the command runs them. */
export const checks: readonly Check[] = [...runnableChecks];
