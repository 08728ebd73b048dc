/**
 * More mutants of leaders and learners, among them bugs that ZooKeeper had. The explorer hunts
 * them: it reaches every state of a small ensemble and knows what must be on disk in each. Those
 * that need more than two txns or three servers have another hunter.
 */
import type { Mutant } from './mutant.ts';

const peer = 'packages/core/src/peer.ts';
const flushingRole = 'packages/core/src/roles/flushing-role.ts';
const learningRole = 'packages/core/src/roles/learning-role.ts';
const learner = 'packages/core/src/zab/learner.ts';
const learnerHistory = 'packages/core/src/zab/learner-history.ts';
const epochStages = 'packages/core/src/zab/epoch-stages.ts';
const broadcast = 'packages/core/src/zab/broadcast.ts';
const leader = 'packages/core/src/zab/leader.ts';

const explorerMutants: Readonly<Record<string, Mutant>> = {
  'newleader-before-log': {
    description: 'currentEpoch is written before the history that the leader sent is durable',
    origin: 'ZOOKEEPER-4643',
    file: learner,
    original: 'if (!this.#history.isDurable) return;\n    this.stages',
    replacement: 'this.stages',
  },
  'newleader-after-all': {
    detector: 'scenarios',
    description: 'NEWLEADER is acknowledged only when the whole log is durable, which each proposal delays',
    origin: 'a restart under load',
    file: learnerHistory,
    original: 'return this.#durable >= this.#historyEnd;',
    replacement: 'return this.#durable >= this.#logged;',
  },
  'newleader-before-epoch': {
    description: 'NEWLEADER is acknowledged before currentEpoch is on disk',
    origin: 'ZOOKEEPER-3911',
    file: learner,
    original: "this.#storage.saveEpoch('currentEpoch', this.#epoch);",
    replacement: "this.#storage.saveEpoch('currentEpoch', this.#epoch);\n    this.#history.ack(makeZxid(this.#epoch, 0));",
  },
  'ack-before-log': {
    description: 'a proposal is acknowledged before it is durable',
    origin: 'ZOOKEEPER-4646',
    file: learnerHistory,
    original: 'next !== undefined && next <= this.#durable;',
    replacement: 'next !== undefined;',
  },
  'epoch-accepted-unwritten': {
    description: 'an epoch is accepted before it is on disk',
    origin: 'P31',
    file: learner,
    original: "this.stages.enter('saving acceptedEpoch');\n      this.#storage.saveEpoch('acceptedEpoch', this.#epoch);",
    replacement: "this.#storage.saveEpoch('acceptedEpoch', this.#epoch);\n      this.#acceptEpoch(this.#start.currentEpoch);",
  },
  'trunc-keeps-memory': {
    description: 'a learner whose log was truncated keeps its tree',
    origin: 'ZOOKEEPER-2845',
    file: peer,
    original: 'state.replaceReplica(replica);',
    replacement: 'state.config.storeIn(replica.tree);',
  },
  'commit-without-quorum': {
    description: 'a leader commits txns that only it has',
    origin: 'P32',
    file: broadcast,
    original: 'if (!this.#quorum.containsQuorum(this.#acked)) break;',
    replacement: '',
  },
  'outstanding-not-sent': {
    description: 'a joining learner is not sent the outstanding proposals',
    origin: 'ZOOKEEPER-4394',
    file: broadcast,
    original: 'backlog.raw(packet);\n        learner.proposed(',
    replacement: 'learner.proposed(',
  },
  'epoch-used-twice': {
    description: 'a leader uses the highest epoch accepted so far instead of the next',
    origin: 'ZOOKEEPER-335',
    file: epochStages,
    original: 'this.#epoch = this.#acceptedEpochMax + 1;',
    replacement: 'this.#epoch = Math.max(1, this.#acceptedEpochMax);',
  },
  'newleader-before-diff': {
    description: 'NEWLEADER is acknowledged as soon as it arrives',
    origin: 'ZOOKEEPER-3023',
    file: learner,
    original: "this.stages.enter('settling');",
    replacement: "this.stages.enter('settling');\n    this.#history.ack(makeZxid(this.#epoch, 0));",
  },
  'newleader-counts-for-all': {
    description: 'the ACK of NEWLEADER counts for everything proposed since',
    origin: 'ZOOKEEPER-4785',
    file: leader,
    original: 'Math.max(learner.ackedZxid, learner.historyEndZxid)',
    replacement: 'Math.max(learner.ackedZxid, this.#proposals.proposed)',
  },
  'ack-ahead-of-newleader': {
    description: 'a proposal is acknowledged before NEWLEADER is',
    origin: 'ZOOKEEPER-4685',
    file: learner,
    original: 'else if (this.stages.isSynced) this.#history.ackDurable();',
    replacement: 'else this.#history.ackDurable();',
  },
  'commit-before-uptodate-lost': {
    description: 'a COMMIT between NEWLEADER and UPTODATE is ignored',
    origin: 'ZOOKEEPER-4394',
    file: learner,
    original: 'if (this.#history.isInSnapshot(zxid)) return;\n    const next = this.#history.nextProposal;',
    replacement:
      "if (this.#history.isInSnapshot(zxid) || this.stages.stage === 'synchronised') return;\n    const next = this.#history.nextProposal;",
  },
  'proposal-before-uptodate-lost': {
    description: 'proposals made while a learner is being synchronised are not sent to it',
    origin: 'ZOOKEEPER-508',
    file: broadcast,
    original: 'if (!learner.isReplicating || learner.isObserver) continue;',
    replacement: "if (!learner.isReplicating || learner.isObserver || learner.stage === 'synchronising') continue;",
  },
  'election-before-disk': {
    description: 'a server starts an election while its disk still works for the last leader',
    origin: 'ZOOKEEPER-4712',
    file: flushingRole,
    original: "this.#disk.isFlushed ? { to: 'looking' } : undefined",
    replacement: "{ to: 'looking' }",
  },
  'trunc-not-awaited': {
    description: 'a server starts an election while its log is being truncated',
    origin: 'ZOOKEEPER-5094',
    file: 'packages/core/src/zab/disk-state.ts',
    original: 'truncate(zxid: Zxid): void {\n    this.#pendingOperations++;',
    replacement: 'truncate(zxid: Zxid): void {',
  },
  'snapshot-not-awaited': {
    description: 'packets that follow a snapshot are processed before the snapshot is on disk',
    origin: 'ZOOKEEPER-3642, ZOOKEEPER-2872',
    file: learner,
    original: "this.stages.enter('installing');\n    this.#storage.installSnapshot(this.#history.snapshotZxid);",
    replacement:
      "this.stages.enter('synchronising');\n    this.#history.restartAt(this.#history.snapshotZxid);\n    this.#storage.installSnapshot(this.#history.snapshotZxid);\n    this.#resumePackets(now);",
  },
  'committed-log-with-a-hole': {
    description: 'txns that a learner applies while it is synchronised do not enter its committedLog',
    origin: 'ZOOKEEPER-4925',
    file: learner,
    original: 'this.#host.committed(next);\n    if (this.#forwarder === undefined) {',
    replacement: 'if (this.#forwarder !== undefined) this.#host.committed(next);\n    if (this.#forwarder === undefined) {',
  },
  'committed-log-outlives-snapshot': {
    description: 'a learner that received a snapshot keeps the committedLog of its old history',
    origin: 'ZOOKEEPER-2846',
    file: learningRole,
    original: 'state.committedLog.clear();',
    replacement: '',
  },
  'committed-log-outlives-trunc': {
    description: 'truncated txns stay in the committedLog',
    origin: 'ZOOKEEPER-2845',
    file: peer,
    original: 'state.committedLog.truncate(lastZxid);',
    replacement: '',
  },
  'memory-behind-log': {
    description: 'a learner that loses its leader does not apply the rest of its log',
    origin: 'ZOOKEEPER-5010',
    file: learner,
    original: 'this.#host.committed(next);\n      this.#host.apply(next, now);',
    replacement: 'this.#host.committed(next);',
  },
  'tail-not-cut': {
    description: 'a learner keeps the end of its log that no quorum has',
    origin: 'ZOOKEEPER-1154, ZOOKEEPER-1156',
    file: 'packages/core/src/zab/sync-plan.ts',
    original: "return { kind: 'trunc', zxid: max, from: max };",
    replacement: "return { kind: 'diff', zxid: max, from: max };",
  },
  'gap-before-committed-log': {
    description: 'the first txn in memory is not sent to a learner',
    origin: 'ZOOKEEPER-2418',
    file: 'packages/core/src/zab/learner-syncer.ts',
    original: 'this.#committed.forEachAbove(sent, ',
    replacement: 'this.#committed.forEachAbove(sent + 1, ',
  },
  'serves-without-quorum': {
    description: 'a leader serves before a quorum has acknowledged its history',
    origin: 'ZOOKEEPER-1081, ZOOKEEPER-790',
    file: epochStages,
    original: "if (this.#stage !== 'synchronisation' || !this.#quorum.containsQuorum(this.#joinedVoters)) return false;",
    replacement: "if (this.#stage !== 'synchronisation') return false;",
  },
  'epoch-without-quorum': {
    description: 'a leader uses an epoch before a quorum has accepted it',
    origin: 'ZOOKEEPER-1343',
    file: epochStages,
    original: "if (this.#stage !== 'acknowledgement' || !this.#quorum.containsQuorum(this.#joinedVoters)) return;",
    replacement: "if (this.#stage !== 'acknowledgement') return;",
  },
  'half-is-a-quorum': {
    description: 'half of the voters are a quorum',
    origin: 'P32',
    file: 'packages/core/src/quorum/majority-quorum.ts',
    original: 'present * 2 > this.voters.length',
    replacement: 'present * 2 >= this.voters.length',
  },
  'half-of-the-groups': {
    description: 'half of the groups are a quorum',
    origin: 'P32',
    file: 'packages/core/src/quorum/hierarchical-quorum.ts',
    original: 'agreeing * 2 > this.#groups.length',
    replacement: 'agreeing * 2 >= this.#groups.length',
  },
  'half-of-a-group': {
    description: 'a group agrees when half of its weight agrees',
    origin: 'P32',
    file: 'packages/core/src/quorum/hierarchical-quorum.ts',
    original: 'present * 2 > group.total',
    replacement: 'present * 2 >= group.total',
  },
  'weight-ignored': {
    description: 'every voter has the same weight, whatever is configured',
    origin: 'P32',
    file: 'packages/core/src/quorum/hierarchical-quorum.ts',
    original: 'return this.#weights.get(sid) ?? 0;',
    replacement: 'return this.#weights.has(sid) ? 1 : 0;',
  },
  'observer-counts': {
    description: 'what was sent to an observer counts as acknowledged by a voter',
    origin: 'P36',
    file: broadcast,
    original: 'return sid === this.#sid ? this.#proposals.ownAcked :',
    replacement:
      'for (const learner of this.#learners.values()) if (learner.isReplicating && learner.isObserver) return this.#proposals.proposed;\n    return sid === this.#sid ? this.#proposals.ownAcked :',
  },
  'sync-answered-by-learner': {
    description: 'a learner answers a sync by itself, so reads after it may show an older state',
    origin: 'P9',
    file: 'packages/core/src/request/leader-forwarder.ts',
    original: 'get isCaughtUp(): boolean {\n    return false;',
    replacement: 'get isCaughtUp(): boolean {\n    return true;',
  },
};

export const zabMutants: Readonly<Record<string, Mutant>> = Object.fromEntries(
  Object.entries(explorerMutants).map(([name, mutant]) => [name, { detector: 'explorer', ...mutant }]),
);
