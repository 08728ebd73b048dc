/** All checkers, by name. */
import type { Recording } from '../record/recording.ts';
import type { Replay } from '../replay/replay-result.ts';
import { replay } from '../replay/replay.ts';
import { fewestFindings, triesOf } from '../replay/tracings.ts';
import { access } from './access.ts';
import { acknowledgedAfterApply } from './acknowledged-after-apply.ts';
import { silentAfterFailure } from './silent-after-failure.ts';
import type { Checker } from './checker.ts';
import { childListings } from './child-listings.ts';
import { clientOutcomes } from './client-outcomes.ts';
import { clientPings } from './client-pings.ts';
import { clientReconnects } from './client-reconnects.ts';
import { clientDeliveries } from './client-deliveries.ts';
import { compareAndSet } from './compare-and-set.ts';
import { configurations } from './configurations.ts';
import { convergence } from './convergence.ts';
import { digests } from './digests.ts';
import { durability } from './durability.ts';
import { earlyExpiry } from './early-expiry.ts';
import { epochQuorums } from './epoch-quorums.ts';
import { ephemerals } from './ephemerals.ts';
import { epochFiles } from './epoch-files.ts';
import { fifoOrder } from './fifo-order.ts';
import { lateExpiry } from './late-expiry.ts';
import { protocolErrors } from './protocol-errors.ts';
import { linearizableWrites } from './linearizable-writes.ts';
import { localSessions } from './local-sessions.ts';
import { multiAtomic } from './multi-atomic.ts';
import { negotiation } from './negotiation.ts';
import { noLeaks } from './no-leaks.ts';
import { nothingRolledBack } from './nothing-rolled-back.ts';
import { totalOrder } from './total-order.ts';
import { peerClaims } from './peer-claims.ts';
import { quorumCommits } from './quorum-commits.ts';
import { quotas } from './quotas.ts';
import { readOnlyMode } from './read-only-mode.ts';
import { reads } from './reads.ts';
import { registerLinearizability } from './register-linearizability.ts';
import { logRecordSize } from './log-record-size.ts';
import { sequentialNames } from './sequential-names.ts';
import { sessionIdentity } from './session-identity.ts';
import { singleSystemImage } from './single-system-image.ts';
import { snapshots } from './snapshots.ts';
import { statConsistency } from './stat-consistency.ts';
import { sweeps } from './sweeps.ts';
import { syncThenRead } from './sync-then-read.ts';
import { staleness } from './staleness.ts';
import { throttledOps } from './throttled-ops.ts';
import { unknownOutcomes } from './unknown-outcomes.ts';
import { watchAcl } from './watch-acl.ts';
import { persistentWatches, watchBeforeData, watchesOverReconnect, oneShotWatches, watchEventOrder } from './watch-events.ts';
import { watchesRestored } from './watches-restored.ts';
import { writeReplies } from './write-replies.ts';
import { zab } from './zab.ts';

export const checkers = {
  totalOrder,
  linearizableWrites,
  writeReplies,
  throttledOps,
  registerLinearizability,
  fifoOrder,
  reads,
  childListings,
  singleSystemImage,
  nothingRolledBack,
  syncThenRead,
  multiAtomic,
  compareAndSet,
  unknownOutcomes,
  watchBeforeData,
  oneShotWatches,
  watchEventOrder,
  persistentWatches,
  watchesOverReconnect,
  watchesRestored,
  watchAcl,
  ephemerals,
  earlyExpiry,
  lateExpiry,
  sessionIdentity,
  localSessions,
  negotiation,
  sequentialNames,
  statConsistency,
  durability,
  snapshots,
  logRecordSize,
  digests,
  access,
  quotas,
  sweeps,
  noLeaks,
  clientDeliveries,
  clientOutcomes,
  clientReconnects,
  clientPings,
  silentAfterFailure,
  zab,
  protocolErrors,
  quorumCommits,
  epochQuorums,
  configurations,
  acknowledgedAfterApply,
  readOnlyMode,
  epochFiles,
  peerClaims,
  staleness,
  convergence,
} as const satisfies Record<string, Checker>;

export type CheckerName = keyof typeof checkers;

/** A violation in a recording. */
export interface Finding {
  /** The checker that found it, or `run` for what the run itself reports. */
  readonly checker: CheckerName | 'run';
  readonly property: string;
  readonly evidence: string;
}

/**
 * Returns the violations in a recording. If a doubtful txn is traced to the wrong request
 * (replay/request-of-txn.ts), that can look like a violation. So the recording has no finding if
 * some tracing of its doubtful txns yields none.
 */
export function check(recording: Recording, replayed: Replay = replay(recording)): Finding[] {
  const first = { doubtful: replayed.doubtful, findings: judge(recording, replayed) };
  return fewestFindings(first, triesOf(replayed.txns.length), (tracing) => {
    const retold = replay(recording, tracing);
    return { doubtful: retold.doubtful, findings: judge(recording, retold) };
  });
}

function judge(recording: Recording, replayed: Replay): Finding[] {
  const findings: Finding[] = recording.violations.map((evidence) => ({ checker: 'run', property: 'P35', evidence }));
  for (const [name, checker] of Object.entries(recording.isImpersonated ? { afterFailure: silentAfterFailure } : checkers)) {
    const { property } = checker;
    for (const evidence of checker.check(recording, replayed)) findings.push({ checker: name as CheckerName, property, evidence });
  }
  return findings;
}

export function findingText({ checker, property, evidence }: Finding): string {
  return `${checker}${property === '' ? '' : ` (${property})`}: ${evidence}`;
}
