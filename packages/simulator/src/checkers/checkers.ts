/** All checkers, by name. */
import type { Recording } from '../record/recording.ts';
import { type Replay, replay } from '../replay/replay.ts';
import { fewestFindings, triesOf } from '../replay/tracings.ts';
import { access } from './access.ts';
import { acknowledgedWhere } from './acknowledged-where.ts';
import { afterFailure } from './after-failure.ts';
import type { Checker } from './checker.ts';
import { clientOutcomes } from './client-outcomes.ts';
import { clientPings } from './client-pings.ts';
import { clientReturns } from './client-returns.ts';
import { clientTold } from './client-told.ts';
import { compareAndSet } from './compare-and-set.ts';
import { convergence } from './convergence.ts';
import { digests } from './digests.ts';
import { durability } from './durability.ts';
import { earlyExpiry } from './early-expiry.ts';
import { ephemerals } from './ephemerals.ts';
import { epochFiles } from './epoch-files.ts';
import { fifoOrder } from './fifo-order.ts';
import { lateExpiry } from './late-expiry.ts';
import { legality } from './legality.ts';
import { linearizableWrites } from './linearizable-writes.ts';
import { multiAtomic } from './multi-atomic.ts';
import { negotiation } from './negotiation.ts';
import { noLeak } from './no-leak.ts';
import { nothingRolledBack } from './nothing-rolled-back.ts';
import { oneOrder } from './one-order.ts';
import { peerWords } from './peer-words.ts';
import { quorumCommits } from './quorum-commits.ts';
import { quotas } from './quotas.ts';
import { reads } from './reads.ts';
import { registerHistory } from './register-history.ts';
import { rereadable } from './rereadable.ts';
import { sequences } from './sequences.ts';
import { sessionIdentity } from './session-identity.ts';
import { singleImage } from './single-image.ts';
import { snapshots } from './snapshots.ts';
import { statLaws } from './stat-laws.ts';
import { sweeps } from './sweeps.ts';
import { syncThenRead } from './sync-then-read.ts';
import { timeliness } from './timeliness.ts';
import { turnedAway } from './turned-away.ts';
import { unknownOutcomes } from './unknown-outcomes.ts';
import { watchAcl } from './watch-acl.ts';
import { persistentWatches, watchBeforeData, watchesOverReconnect, watchOnce, watchOrder } from './watch-events.ts';
import { watchesRestored } from './watches-restored.ts';
import { writeReplies } from './write-replies.ts';
import { zab } from './zab.ts';

export const checkers = {
  oneOrder,
  linearizableWrites,
  writeReplies,
  turnedAway,
  registerHistory,
  fifoOrder,
  reads,
  singleImage,
  nothingRolledBack,
  syncThenRead,
  multiAtomic,
  compareAndSet,
  unknownOutcomes,
  watchBeforeData,
  watchOnce,
  watchOrder,
  persistentWatches,
  watchesOverReconnect,
  watchesRestored,
  watchAcl,
  ephemerals,
  earlyExpiry,
  lateExpiry,
  sessionIdentity,
  negotiation,
  sequences,
  statLaws,
  durability,
  snapshots,
  rereadable,
  digests,
  access,
  quotas,
  sweeps,
  noLeak,
  clientTold,
  clientOutcomes,
  clientReturns,
  clientPings,
  afterFailure,
  zab,
  legality,
  quorumCommits,
  acknowledgedWhere,
  epochFiles,
  peerWords,
  timeliness,
  convergence,
} as const satisfies Record<string, Checker>;

export type CheckerName = keyof typeof checkers;

/** A violation in a recording. */
export interface Finding {
  /** The checker that found it, or `story` for what the run itself reports. */
  readonly checker: CheckerName | 'story';
  readonly property: string;
  readonly evidence: string;
}

/**
 * Returns the violations in a recording. If a doubtful txn is traced to the wrong request
 * (replay/whose-txn.ts), that can look like a violation. So the recording has no finding if some
 * tracing of its doubtful txns yields none.
 */
export function check(recording: Recording, story: Replay = replay(recording)): Finding[] {
  const first = { doubtful: story.doubtful, findings: judge(recording, story) };
  return fewestFindings(first, triesOf(story.txns.length), (tracing) => {
    const retold = replay(recording, tracing);
    return { doubtful: retold.doubtful, findings: judge(recording, retold) };
  });
}

function judge(recording: Recording, story: Replay): Finding[] {
  const findings: Finding[] = recording.faults.map((evidence) => ({ checker: 'story', property: 'P35', evidence }));
  for (const [name, checker] of Object.entries(recording.isImpersonated ? { afterFailure } : checkers)) {
    const { property } = checker;
    for (const evidence of checker.check(recording, story)) findings.push({ checker: name as CheckerName, property, evidence });
  }
  return findings;
}

export function findingText({ checker, property, evidence }: Finding): string {
  return `${checker}${property === '' ? '' : ` (${property})`}: ${evidence}`;
}
