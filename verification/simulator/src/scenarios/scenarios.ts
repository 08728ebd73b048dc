/** All scenarios, by name. */
import { busyServer, pausedLeader } from './expiry-scenarios.ts';
import {
  partitionedLeader,
  powerLossEverywhere,
  diskRefusesEpoch,
  largeSnapshot,
  snapshotsForUnknownObservers,
  lateEphemeral,
  lateObserver,
  writeOvertakenByMove,
  movingSession,
  restartUnderLoad,
  silentFollowers,
  silentLeader,
  moveDuringCommit,
  snapshotOfTail,
  uncommittedTail,
  zxidCounterExhausted,
  wipedQuorum,
} from './ensemble-scenarios.ts';
import { sidConflict, manyUnknownObservers, slowLinkToLeader } from './learner-link-scenarios.ts';
import { elevenServers, quorumComesBack } from './majority-scenarios.ts';
import { duplicateMyid, unlistedServer } from './misconfiguration-scenarios.ts';
import { leaderOfMasterEnds, observerAhead, slowReportsOfObserver } from './observer-scenarios.ts';
import type { Scenario } from './scenario.ts';
import {
  authThrottled,
  authOfClosedCnxn,
  clockSetBack,
  closingServer,
  movedSession,
  znodeReplacedInMulti,
  pausedServer,
  watchesOverPowerLoss,
  watchSetAfterRemoval,
} from './session-scenarios.ts';
import {
  failedSync,
  halfInstalledSnapshot,
  killedWhilePurging,
  powerLossInMidSync,
  acceptedEpochInPageCache,
} from './storage-scenarios.ts';

import { leadTransferred, transferGivenUp } from './transfer-scenarios.ts';

export const scenarios: Readonly<Record<string, Scenario>> = {
  'lead-transferred': leadTransferred,
  'transfer-given-up': transferGivenUp,
  'clock-set-back': clockSetBack,
  'auth-throttled': authThrottled,
  'auth-of-closed-cnxn': authOfClosedCnxn,
  'moved-session': movedSession,
  'paused-server': pausedServer,
  'paused-leader': pausedLeader,
  'busy-server': busyServer,
  'closing-server': closingServer,
  'znode-replaced-in-multi': znodeReplacedInMulti,
  'watches-over-power-loss': watchesOverPowerLoss,
  'watch-set-after-removal': watchSetAfterRemoval,
  'power-loss-in-mid-sync': powerLossInMidSync,
  'failed-sync': failedSync,
  'killed-while-purging': killedWhilePurging,
  'half-installed-snapshot': halfInstalledSnapshot,
  'accepted-epoch-in-page-cache': acceptedEpochInPageCache,
  'moving-session': movingSession,
  'write-overtaken-by-move': writeOvertakenByMove,
  'move-during-commit': moveDuringCommit,
  'late-ephemeral': lateEphemeral,
  'partitioned-leader': partitionedLeader,
  'silent-leader': silentLeader,
  'silent-followers': silentFollowers,
  'disk-refuses-epoch': diskRefusesEpoch,
  'power-loss-everywhere': powerLossEverywhere,
  'wiped-quorum': wipedQuorum,
  'uncommitted-tail': uncommittedTail,
  'snapshot-of-tail': snapshotOfTail,
  'zxid-counter-exhausted': zxidCounterExhausted,
  'large-snapshot': largeSnapshot,
  'snapshots-for-unknown-observers': snapshotsForUnknownObservers,
  'restart-under-load': restartUnderLoad,
  'late-observer': lateObserver,
  'sid-conflict': sidConflict,
  'many-unknown-observers': manyUnknownObservers,
  'slow-link-to-leader': slowLinkToLeader,
  'eleven-servers': elevenServers,
  'quorum-comes-back': quorumComesBack,
  'duplicate-myid': duplicateMyid,
  'unlisted-server': unlistedServer,
  'leader-of-master-ends': leaderOfMasterEnds,
  'observer-ahead': observerAhead,
  'slow-reports-of-observer': slowReportsOfObserver,
};
