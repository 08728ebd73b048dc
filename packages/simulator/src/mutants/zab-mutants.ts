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
const leader = 'packages/core/src/zab/leader.ts';

const explored: Readonly<Record<string, Mutant>> = {
  'newleader-before-log': {
    what: 'currentEpoch is written before the history that the leader sent is durable',
    from: 'ZOOKEEPER-4643',
    file: learner,
    replace: 'if (this.#durable < this.#historyEnd) return;\n    this.#stage',
    by: 'this.#stage',
  },
  'newleader-after-all': {
    hunter: 'scenarios',
    what: 'NEWLEADER is acknowledged only when the whole log is durable, which each proposal delays',
    from: 'a restart under load',
    file: learner,
    replace: 'if (this.#durable < this.#historyEnd) return;',
    by: 'if (this.#durable < this.#logged) return;',
  },
  'newleader-before-epoch': {
    what: 'NEWLEADER is acknowledged before currentEpoch is on disk',
    from: 'ZOOKEEPER-3911',
    file: learner,
    replace: "this.#storage.saveEpoch('currentEpoch', this.#epoch);",
    by: "this.#storage.saveEpoch('currentEpoch', this.#epoch);\n    this.#ack(makeZxid(this.#epoch, 0));",
  },
  'ack-before-log': {
    what: 'a proposal is acknowledged before it is durable',
    from: 'ZOOKEEPER-4646',
    file: learner,
    replace: 'next !== undefined && next <= this.#durable;',
    by: 'next !== undefined;',
  },
  'epoch-accepted-unwritten': {
    what: 'an epoch is accepted before it is on disk',
    from: 'P31',
    file: learner,
    replace: "this.#stage = 'saving acceptedEpoch';\n      this.#storage.saveEpoch('acceptedEpoch', this.#epoch);",
    by: "this.#storage.saveEpoch('acceptedEpoch', this.#epoch);\n      this.#acceptEpoch(this.#start.currentEpoch);",
  },
  'trunc-keeps-memory': {
    what: 'a learner whose log was truncated keeps its tree',
    from: 'ZOOKEEPER-2845',
    file: peer,
    replace: 'state.replaceReplica(replica);',
    by: 'state.config.keepIn(replica.tree);',
  },
  'commit-without-quorum': {
    what: 'a leader commits txns that only it has',
    from: 'P32',
    file: leader,
    replace: 'if (!this.#quorum.containsQuorum(this.#acked)) break;',
    by: '',
  },
  'outstanding-not-sent': {
    what: 'a joining learner is not sent the outstanding proposals',
    from: 'ZOOKEEPER-4394',
    file: leader,
    replace: 'backlog.raw(packet);\n        learner.unacked.push',
    by: 'learner.unacked.push',
  },
  'epoch-used-twice': {
    what: 'a leader uses the highest epoch accepted so far instead of the next',
    from: 'ZOOKEEPER-335',
    file: leader,
    replace: 'this.#epoch = this.#acceptedMax + 1;',
    by: 'this.#epoch = Math.max(1, this.#acceptedMax);',
  },
  'newleader-before-diff': {
    what: 'NEWLEADER is acknowledged as soon as it arrives',
    from: 'ZOOKEEPER-3023',
    file: learner,
    replace: "this.#stage = 'settling';",
    by: "this.#stage = 'settling';\n    this.#ack(makeZxid(this.#epoch, 0));",
  },
  'newleader-counts-for-all': {
    what: 'the ACK of NEWLEADER counts for everything proposed since',
    from: 'ZOOKEEPER-4785',
    file: leader,
    replace: 'Math.max(learner.ackedZxid, learner.historyEnd)',
    by: 'Math.max(learner.ackedZxid, this.#proposed)',
  },
  'ack-ahead-of-newleader': {
    what: 'a proposal is acknowledged before NEWLEADER is',
    from: 'ZOOKEEPER-4685',
    file: learner,
    replace: "if (this.#stage !== 'synchronised' && this.#stage !== 'serving') return;\n    for (",
    by: 'for (',
  },
  'commit-before-uptodate-lost': {
    what: 'a COMMIT between NEWLEADER and UPTODATE is ignored',
    from: 'ZOOKEEPER-4394',
    file: learner,
    replace: 'if (zxid <= this.#snapshotZxid) return;\n    const next = this.#proposals.peek();',
    by: "if (zxid <= this.#snapshotZxid || this.#stage === 'synchronised') return;\n    const next = this.#proposals.peek();",
  },
  'proposal-before-uptodate-lost': {
    what: 'proposals made while a learner is being synchronised are not sent to it',
    from: 'ZOOKEEPER-508',
    file: leader,
    replace: 'if (!learner.hears || learner.isObserver) continue;',
    by: "if (!learner.hears || learner.isObserver || learner.stage === 'synchronising') continue;",
  },
  'election-before-disk': {
    what: 'a server starts an election while its disk still works for the last leader',
    from: 'ZOOKEEPER-4712',
    file: flushingRole,
    replace: "this.#disk.isSettled ? { to: 'looking' } : undefined",
    by: "{ to: 'looking' }",
  },
  'trunc-not-awaited': {
    what: 'a server starts an election while its log is being truncated',
    from: 'ZOOKEEPER-5094',
    file: 'packages/core/src/zab/disk-state.ts',
    replace: 'truncate(zxid: Zxid): void {\n    this.#work++;',
    by: 'truncate(zxid: Zxid): void {',
  },
  'snapshot-not-awaited': {
    what: 'packets that follow a snapshot are processed before the snapshot is on disk',
    from: 'ZOOKEEPER-3642, ZOOKEEPER-2872',
    file: learner,
    replace: "this.#stage = 'installing';\n    this.#storage.installSnapshot(this.#snapshotZxid);",
    by: "this.#stage = 'synchronising';\n    this.#logged = this.#durable = this.#snapshotZxid;\n    this.#storage.installSnapshot(this.#snapshotZxid);\n    this.#goOn(now);",
  },
  'committed-log-with-a-hole': {
    what: 'txns that a learner applies while it is synchronised do not enter its committedLog',
    from: 'ZOOKEEPER-4925',
    file: learner,
    replace: 'this.#host.committed(next);\n    if (this.#forwarding === undefined) {',
    by: 'if (this.#forwarding !== undefined) this.#host.committed(next);\n    if (this.#forwarding === undefined) {',
  },
  'committed-log-outlives-snapshot': {
    what: 'a learner that received a snapshot keeps the committedLog of its old history',
    from: 'ZOOKEEPER-2846',
    file: learningRole,
    replace: 'state.committedLog.clear();',
    by: '',
  },
  'committed-log-outlives-trunc': {
    what: 'truncated txns stay in the committedLog',
    from: 'ZOOKEEPER-2845',
    file: peer,
    replace: 'state.committedLog.truncate(lastZxid);',
    by: '',
  },
  'memory-behind-log': {
    what: 'a learner that loses its leader does not apply the rest of its log',
    from: 'ZOOKEEPER-5010',
    file: learner,
    replace: 'this.#host.committed(next);\n      this.#host.apply(next, now);',
    by: 'this.#host.committed(next);',
  },
  'tail-not-cut': {
    what: 'a learner keeps the end of its log that no quorum has',
    from: 'ZOOKEEPER-1154, ZOOKEEPER-1156',
    file: 'packages/core/src/zab/sync-plan.ts',
    replace: "return { kind: 'trunc', zxid: max, from: max };",
    by: "return { kind: 'diff', zxid: max, from: max };",
  },
  'gap-before-committed-log': {
    what: 'the first txn in memory is not sent to a learner',
    from: 'ZOOKEEPER-2418',
    file: 'packages/core/src/zab/synchroniser.ts',
    replace: 'this.#committed.forEachAbove(sent, ',
    by: 'this.#committed.forEachAbove(sent + 1, ',
  },
  'serves-without-quorum': {
    what: 'a leader serves before a quorum has acknowledged its history',
    from: 'ZOOKEEPER-1081, ZOOKEEPER-790',
    file: leader,
    replace: "if (this.#stage !== 'synchronisation' || !this.#quorum.containsQuorum(this.#agreeing)) return;",
    by: "if (this.#stage !== 'synchronisation') return;",
  },
  'epoch-without-quorum': {
    what: 'a leader uses an epoch before a quorum has accepted it',
    from: 'ZOOKEEPER-1343',
    file: leader,
    replace: "if (this.#stage !== 'acknowledgement' || !this.#quorum.containsQuorum(this.#agreeing)) return;",
    by: "if (this.#stage !== 'acknowledgement') return;",
  },
  'half-is-a-quorum': {
    what: 'half of the voters are a quorum',
    from: 'P32',
    file: 'packages/core/src/quorum/majority-quorum.ts',
    replace: 'present * 2 > this.voters.length',
    by: 'present * 2 >= this.voters.length',
  },
  'half-of-the-groups': {
    what: 'half of the groups are a quorum',
    from: 'P32',
    file: 'packages/core/src/quorum/hierarchical-quorum.ts',
    replace: 'agreeing * 2 > this.#groups.length',
    by: 'agreeing * 2 >= this.#groups.length',
  },
  'half-of-a-group': {
    what: 'a group agrees when half of its weight agrees',
    from: 'P32',
    file: 'packages/core/src/quorum/hierarchical-quorum.ts',
    replace: 'present * 2 > group.total',
    by: 'present * 2 >= group.total',
  },
  'weight-ignored': {
    what: 'every voter has the same weight, whatever is configured',
    from: 'P32',
    file: 'packages/core/src/quorum/hierarchical-quorum.ts',
    replace: 'return this.#weights.get(sid) ?? 0;',
    by: 'return this.#weights.has(sid) ? 1 : 0;',
  },
  'observer-counts': {
    what: 'what was sent to an observer counts as acknowledged by a voter',
    from: 'P36',
    file: leader,
    replace: 'if (learner.sid === sid && learner.hears && !learner.isObserver) return learner.ackedZxid;',
    by: 'if (learner.hears && learner.isObserver) return this.#proposed;\n      else if (learner.sid === sid && learner.hears) return learner.ackedZxid;',
  },
  'sync-answered-by-learner': {
    what: 'a learner answers a sync by itself, so reads after it may show an older state',
    from: 'P9',
    file: 'packages/core/src/request/forwarding.ts',
    replace: 'get isCaughtUp(): boolean {\n    return false;',
    by: 'get isCaughtUp(): boolean {\n    return true;',
  },
};

export const zabMutants: Readonly<Record<string, Mutant>> = Object.fromEntries(
  Object.entries(explored).map(([name, mutant]) => [name, { hunter: 'explorer', ...mutant }]),
);
