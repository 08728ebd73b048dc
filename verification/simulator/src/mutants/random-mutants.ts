/**
 * Mutants at places drawn at random over core and runtime. No guard is removed; something is
 * slightly wrong at an unobtrusive place: a neighbouring field is compared, a step is taken one too
 * early, a count is off by one, an owner is kept, only one half of a pair is compared, something is
 * counted twice or forgotten. Only seeds may catch them; no scenario covers them.
 */
import type { Mutant } from './mutant.ts';

type RandomMutant = Omit<Mutant, 'origin' | 'detector'>;

/** The wrong field is compared or used. */
const wrongField: Readonly<Record<string, RandomMutant>> = {
  'acl-version-checked-against-data': {
    description: 'setACL compares its version with the version of the data',
    symbol: 'WriteValidator.setAcl',
    original: 'request.version !== znode.aversion',
    replacement: 'request.version !== znode.version',
  },
  'check-version-against-cversion': {
    description: 'a check in a multi compares its version with the cversion',
    symbol: 'WriteValidator.check',
    original: 'const version = future === undefined ? tree.versionOf(node) : future.version;',
    replacement: 'const version = future === undefined ? tree.cversionOf(node) : future.cversion;',
  },
  'acl-version-from-data': {
    description: 'setACL sets the ACL version to the version of the data plus one',
    symbol: 'WriteValidator.setAcl',
    original: 'const version = (znode.aversion + 1) | 0;',
    replacement: 'const version = (znode.version + 1) | 0;',
  },
  'mark-names-earlier-txn': {
    description: 'a mark holds the zxid of the mark before it',
    symbol: 'MarkWriter.#writeSlot',
    original: 'offset: this.#offset, lastZxid: this.#lastZxid };',
    replacement: 'offset: this.#offset, lastZxid: this.#written.lastZxid };',
  },
  'sequential-checked-without-counter': {
    description: 'a sequential create is refused if a znode with the name without the counter exists',
    symbol: 'WriteValidator.create',
    original: 'if (this.#outstandingChanges.find(path) !== undefined) return ErrorCode.NodeExists',
    replacement: 'if (this.#outstandingChanges.find(request.path) !== undefined) return ErrorCode.NodeExists',
  },
  'multi-error-on-last-part': {
    description: 'a failed multi reports its last failed operation as the cause',
    symbol: 'Replica.#multi',
    original: 'txns.findIndex((member) => member.type === OpCode.error)',
    replacement: 'txns.findLastIndex((member) => member.type === OpCode.error)',
  },
  'digest-of-root-by-slash': {
    description: 'the digest includes the path of the root as a slash',
    symbol: 'nodeDigest',
    original: "const text = path === '/' ? '' : path;",
    replacement: 'const text = path;',
  },
  'moved-mark-keeps-its-txn': {
    description: 'a mark that a start has moved still holds its old zxid',
    symbol: 'Recovery.#moveMark',
    original: 'lastZxid: end.lastZxid ?? mark.lastZxid };',
    replacement: 'lastZxid: mark.lastZxid };',
  },
};

/** Something happens one step too early. */
const oneStepEarly: Readonly<Record<string, RandomMutant>> = {
  'ack-one-early': {
    description: 'a learner also acknowledges the txn after the last durable one',
    symbol: 'LearnerHistory.ackDurable',
    original: 'next !== undefined && next <= this.#durable;',
    replacement: 'next !== undefined && next <= this.#durable + 1;',
  },
  'outstanding-changes-dropped-early': {
    description: 'the pending changes of a txn are dropped when the txn before it is applied',
    symbol: 'OutstandingChanges.#removeUpTo',
    original: 'if (recorded.zxid > zxid) break;',
    replacement: 'if (recorded.zxid > zxid + 1) break;',
  },
  'ttl-halved': {
    description: 'a TTL znode is swept after half its time',
    symbol: 'ContainerManager.#isDue',
    original: 'return ttlMs !== undefined && ageMs > ttlMs;',
    replacement: 'return ttlMs !== undefined && ageMs * 2 > ttlMs;',
  },
  'session-bucket-one-tick-early': {
    description: 'sessions expire one tick too early',
    symbol: 'ExpiryQueue.touch',
    original: 'this.#tickMs) + 1) * this.#tickMs;',
    replacement: 'this.#tickMs)) * this.#tickMs;',
  },
  'newleader-acked-one-early': {
    description: 'a learner reports that it has the history before the last txn of it is durable',
    symbol: 'LearnerHistory.isDurable',
    original: 'return this.#durable >= this.#historyEnd;',
    replacement: 'return this.#durable + 1 >= this.#historyEnd;',
  },
  'sync-overtakes-write': {
    description: 'a sync after a write is answered together with the write',
    symbol: 'SessionQueue.answerPendingReads',
    original: "(next.kind === 'sync' && !next.isDone)",
    replacement: "(next.kind === 'sync' && next.isDone && false)",
  },
  'reconnect-not-touched': {
    description: 'a session that is resumed over another connection is due at once',
    symbol: 'Handshakes.#attachAndAccept',
    original: 'this.#tracker.touch(slot, now.elapsedMs, cnxn.timeoutMs);',
    replacement: 'this.#tracker.touch(slot, now.elapsedMs, 0);',
  },
  'votes-before-last-durable': {
    description: 'a server reports its last zxid in an election before that txn is durable',
    symbol: 'DiskState.isFlushed',
    original: 'return this.#durable >= this.#logged &&',
    replacement: 'return this.#durable + 1 >= this.#logged &&',
  },
  'sync-answered-before-apply': {
    description: 'a learner answers a sync when the commits before it have arrived but are not applied',
    symbol: 'LeaderForwarder.synced',
    original: 'this.#confirmedSyncs.push(sync, this.#lastCommitted);',
    replacement: 'this.#confirmedSyncs.push(sync, 0);',
  },
  'snapshot-ends-at-deleted-znode': {
    description: 'a snapshot ends when the znode it would write next is deleted',
    symbol: 'TreeSnapshots.beforeRemove',
    original: 'if (walk.next === node) walk.next = this.#tree.nextAfterSubtree(node, this.#tree.root);',
    replacement: 'if (walk.next === node) walk.next = 0;',
  },
  'snapshot-misses-acl-change': {
    description: 'setACL changes a znode before a running snapshot has written it',
    symbol: 'DataTree.setAcl',
    original: 'this.snapshots.beforeChange(node);\n    this.acls.release(this.rows.get(node, aclField));',
    replacement: 'this.acls.release(this.rows.get(node, aclField));',
  },
};

/** A count or a bound is off by one. */
const offByOne: Readonly<Record<string, RandomMutant>> = {
  'trunc-keeps-one-txn-in-memory': {
    description: 'one of the txns in memory that a TRUNC removed is kept',
    symbol: 'CommittedLog.truncate',
    original: 'while (this.#length > kept) this.#clearSlot',
    replacement: 'while (this.#length > kept + 1) this.#clearSlot',
  },
  'last-acl-left-out': {
    description: 'a snapshot lacks the last ACL of the table',
    symbol: 'AclTable.ids',
    original: 'for (let id = 1; id < this.#end; id++) {',
    replacement: 'for (let id = 1; id < this.#end - 1; id++) {',
  },
  'replay-from-later-log': {
    description: 'replay begins with a log file whose first txn is one after the first it needs',
    symbol: 'Recovery.run',
    original: 'logs.findLastIndex(({ zxid }) => zxid <= this.#lastZxid + 1)',
    replacement: 'logs.findLastIndex(({ zxid }) => zxid <= this.#lastZxid + 2)',
  },
  'purge-one-log-more': {
    description: 'purging deletes the log file in which the oldest kept snapshot was taken',
    symbol: 'purge',
    original: 'logs.slice(0, Math.max(0, needed))',
    replacement: 'logs.slice(0, Math.max(0, needed + 1))',
  },
  'path-index-hole-not-closed': {
    description: 'the path index does not fill a hole with the entry whose home slot it is',
    symbol: 'PathIndex.remove',
    original: 'if (((at - home) & mask) >= ((at - hole) & mask)) {',
    replacement: 'if (((at - home) & mask) > ((at - hole) & mask)) {',
  },
  'quota-one-more': {
    description: 'a hard quota admits one more than its limit',
    symbol: 'violationOf',
    original: 'usage <= limit)',
    replacement: 'usage <= limit + 1)',
  },
  'half-group-weight-suffices': {
    description: 'half the weight of a group is enough for a quorum',
    symbol: 'HierarchicalQuorum.containsQuorum',
    original: 'present * 2 > group.total',
    replacement: 'present * 2 >= group.total',
  },
  'half-of-groups-suffices': {
    description: 'half of the groups are enough for a quorum',
    symbol: 'HierarchicalQuorum.containsQuorum',
    original: 'agreeing * 2 > this.#groups.length',
    replacement: 'agreeing * 2 >= this.#groups.length',
  },
  'owner-table-hole-not-closed': {
    description: 'the table of owners does not fill a hole with the entry whose home slot it is',
    symbol: 'EphemeralTable.#forget',
    original: '((at - home) & mask) >= ((at - hole) & mask)',
    replacement: '((at - home) & mask) > ((at - hole) & mask)',
  },
  'owner-table-grows-without-first': {
    description: 'the first owner in a shard is lost when the shard grows',
    symbol: 'EphemeralTable.#resize',
    original: 'for (let at = 0; at < old.length; at += entryInts) {',
    replacement: 'for (let at = entryInts; at < old.length; at += entryInts) {',
  },
  'path-index-grows-without-last': {
    description: 'the last znode in a shard of the path index is lost when the shard grows',
    symbol: 'PathIndex.#resize',
    original: 'for (let slot = 0; slot < old.length; slot += 2) {',
    replacement: 'for (let slot = 0; slot < old.length - 2; slot += 2) {',
  },
  'sweep-with-a-child': {
    description: 'a container that meanwhile has a child is swept',
    symbol: 'ContainerManager.#isDue',
    original: 'if (znode.childCount > 0) return false;',
    replacement: 'if (znode.childCount > 1) return false;',
  },
  'count-up-to-excludes-own-zxid': {
    description: 'a txn in memory is not counted among those up to its own zxid',
    symbol: 'CommittedLog.#countUpTo',
    original: 'if (this.#zxidAt(middle) <= zxid) low = middle + 1;',
    replacement: 'if (this.#zxidAt(middle) < zxid) low = middle + 1;',
  },
  'quota-recount-one-short': {
    description: 'a new usage znode counts one znode too few',
    symbol: 'QuotaUsage.recountStep',
    original: 'this.#table.setUsage(quota, recount.count, recount.bytes);',
    replacement: 'this.#table.setUsage(quota, recount.count - 1, recount.bytes);',
  },
  'ttl-of-sequential-forgotten': {
    description: 'a sequential TTL znode is not treated as a TTL znode',
    symbol: 'isTtlMode',
    original: 'mode === CreateMode.persistentWithTtl || mode === CreateMode.persistentSequentialWithTtl',
    replacement: 'mode === CreateMode.persistentWithTtl',
  },
  'epoch-promised-twice': {
    description: 'a learner accepts an epoch that it has accepted before',
    symbol: 'Learner.#onLeaderInfo',
    original: '} else if (this.#epoch <= acceptedEpoch) {',
    replacement: '} else if (this.#epoch < acceptedEpoch) {',
  },
};

/** An owner or an earlier value is kept. */
const staleStateKept: Readonly<Record<string, RandomMutant>> = {
  'open-acl-kept': {
    description: 'the id of the open ACL stays in use after the table has released it',
    symbol: 'AclTable.#drop',
    original: 'if (id === this.#openId) this.#openId = 0;',
    replacement: '',
  },
  'session-touch-repeated-forever': {
    description: 'a learner that received something from a session reports it with every later PING',
    symbol: 'SessionTracker.takeTouched',
    original: 'this.#touched.clear();',
    replacement: '',
  },
  'session-bucket-keeps-head': {
    description: 'a session that leaves the head of its bucket stays its head',
    symbol: 'ExpiryQueue.#unlink',
    original: 'if (this.#first.get(due) === slot) this.#first.set(due, next);',
    replacement: '',
  },
  'failed-multi-keeps-outstanding-change': {
    description: 'a failed multi leaves its pending change of a znode that an earlier txn changed',
    symbol: 'OutstandingChanges.rollback',
    original: 'else this.#latestByPath.set(path, before);',
    replacement: '',
  },
  'later-outstanding-change-dropped': {
    description: 'when a txn is applied, the pending change of the same znode by a later txn is dropped too',
    symbol: 'OutstandingChanges.#removeUpTo',
    original: 'if (this.#latestByPath.get(recorded.path) === recorded.znode) this.#latestByPath.delete(recorded.path);',
    replacement: 'this.#latestByPath.delete(recorded.path);',
  },
  'session-owner-kept': {
    description: 'a session that moved from a learner to its leader is still owned by the learner',
    symbol: 'SessionTracker.setOwner',
    original: 'if (owner === localOwner) this.#owners.delete(slot);\n    else',
    replacement: 'if (owner !== localOwner)',
  },
  'session-kept-after-end': {
    description: 'an ended session stays in the session table of the replica',
    symbol: 'Replica.#closeSession',
    original: 'if (slot !== -1) this.sessions.remove(slot);\n    this.listener.sessionClosed',
    replacement: 'this.listener.sessionClosed',
  },
  'container-candidate-index-stale': {
    description: 'a sweep candidate that is moved to the place of another keeps its old index',
    symbol: 'SweepList.remove',
    original: '    this.#rows.set(last, sweepField, at);\n',
    replacement: '',
  },
  'committed-log-start-kept-when-grown': {
    description: 'the buffer of txns in memory keeps its old start index when it grows',
    symbol: 'CommittedLog.#grow',
    original: 'this.#txns = txns;\n    this.#start = 0;',
    replacement: 'this.#txns = txns;',
  },
  'accepted-epoch-counts-as-synced': {
    description: 'a voter that accepted the epoch counts as having the history with which it begins',
    symbol: 'EpochStages.epochSaved',
    original: "this.#stage = 'synchronisation';\n      this.#joinedVoters = new Set(this.#isVoter ? [this.#options.sid] : []);",
    replacement: "this.#stage = 'synchronisation';",
  },
};

/** Only one half of a pair is compared or updated. */
const halfOfPair: Readonly<Record<string, RandomMutant>> = {
  'digest-carry-lost': {
    description: 'rolling back a change does not carry from the lower half of the tree digest into the upper half',
    symbol: 'OutstandingChanges.rollback',
    original: 'this.#addToDigest(-digestDelta);',
    replacement: 'this.digestLow = ((this.digestLow >>> 0) - digestDelta) | 0;',
  },
  'ephemeral-of-another-session': {
    description: 'closing a session deletes an ephemeral that another session has recreated if the upper halves of their ids are equal',
    symbol: 'PendingClose.removeEphemerals',
    original: 'future.ownerHigh === high && future.ownerLow === low) this.#removeEphemeral',
    replacement: 'future.ownerHigh === high) this.#removeEphemeral',
  },
  'new-ephemerals-by-low-half': {
    description: 'closing a session deletes new ephemerals of another session if the lower halves of their ids are equal',
    symbol: 'OutstandingChanges.newEphemerals',
    original: 'if (znode.ownerHigh !== ownerHigh || this.#latestByPath.get(path) !== znode) continue;',
    replacement: 'if (this.#latestByPath.get(path) !== znode) continue;',
  },
  'sync-completed-at-head-only': {
    description: 'the answer to a sync that is not at the head of its queue is lost',
    symbol: 'SessionQueue.replySyncs',
    original:
      'sync.isDone = true;\n      const cnxn = this.#cnxns.get(sync.cnxn);\n      if (cnxn === undefined || cnxn.pendingRequests.peek() !== sync) continue;',
    replacement:
      'const cnxn = this.#cnxns.get(sync.cnxn);\n      if (cnxn === undefined || cnxn.pendingRequests.peek() !== sync) continue;\n      sync.isDone = true;',
  },
  'parent-event-suppressed-by-znode-event': {
    description: 'a watcher that received the event of a znode does not receive that of its parent',
    symbol: 'WatchStages.dispatchNumber',
    original: 'return this.onParent ? this.#dispatchNumber : this.#dispatchNumber - 1;',
    replacement: 'return this.#dispatchNumber;',
  },
  'mark-in-one-slot': {
    description: 'all marks of a log are written to one slot',
    symbol: 'MarkWriter.#writeSlot',
    original: 'sequence: this.#written.sequence + 1, offset',
    replacement: 'sequence: this.#written.sequence + 2, offset',
  },
  'mark-of-own-log-removed': {
    description: 'a TRUNC removes the mark of the log file that it cuts, and lowers that of another one',
    symbol: 'lowerMark',
    original: 'mark.firstChecksum !== end.firstChecksum) {',
    replacement: 'mark.firstChecksum === end.firstChecksum) {',
  },
  'empty-committed-log-taken-as-complete': {
    description: 'a leader without txns in memory assumes that it holds everything a learner may lack',
    symbol: 'LearnerSyncer.#catchUp',
    original: 'newest === undefined ? sent < last : !this.#committed.hasAllAbove(sent)',
    replacement: 'newest !== undefined && !this.#committed.hasAllAbove(sent)',
  },
  'leader-pause-before-serving-ignored': {
    description: 'a leader that was paused before it served continues without a check',
    symbol: 'Leader.resumedAfterPause',
    original: "this.#stages.stage !== 'over' &&",
    replacement: "this.#stages.stage === 'broadcast' &&",
  },
  'reply-by-txn-of-another-server': {
    description: "a learner takes a txn of a client of another server for the reply to its own client's request with the same xid",
    symbol: 'Learner.#onProposal',
    original: 'const mayBeLocal = this.#localTxnFilter.mayBeLocal(packet);',
    replacement: 'const mayBeLocal = true;',
  },
  'snapshot-misses-deleted-znode': {
    description: 'a znode is deleted before running snapshots that lack it have written it',
    symbol: 'DataTree.remove',
    original: 'this.snapshots.beforeChange(node);\n    this.changedNamespace = this.namespaceOf(node);',
    replacement: 'this.changedNamespace = this.namespaceOf(node);',
  },
  'preserved-without-parents': {
    description: 'a znode that is about to change is written to a snapshot before its parents',
    symbol: 'TreeSnapshots.#preserveFor',
    original: 'for (let at = node; at !== 0 && !walk.isWritten(at); at = this.#rows.get(at, parentField)) chain.push(at);',
    replacement: 'chain.push(node);',
  },
  'refused-leader-not-redialled': {
    description: 'a learner does not dial again if its leader refused the connection or closed one that it accepted early',
    symbol: 'LeaderConnector.attemptFailed',
    original: 'else this.#retryMs = now.elapsedMs + Math.min',
    replacement: "else if (outcome !== 'refused') this.#retryMs = now.elapsedMs + Math.min",
  },
  'leader-pause-judged-by-init-limit': {
    description: 'after a pause a leader applies initLimit instead of syncLimit',
    symbol: 'Leader.resumedAfterPause',
    original: 'silentMs > syncLimitTicks * tickTimeMs',
    replacement: 'silentMs > this.#options.initLimitTicks * tickTimeMs',
  },
};

/** Something is counted twice, released twice, or not released. */
const miscounted: Readonly<Record<string, RandomMutant>> = {
  'child-counted-twice': {
    description: 'a delete subtracts two from the pending number of children of the parent',
    symbol: 'WriteValidator.removeZnode',
    original: 'parentAfter.childCount--;',
    replacement: 'parentAfter.childCount -= 2;',
  },
  'throttled-request-never-released': {
    description: 'a request that was parked counts as outstanding forever',
    symbol: 'Load.unparked',
    original: 'unparked(frame: ParkedFrame, address: AddressLoad): void {\n    this.requests--;',
    replacement: 'unparked(frame: ParkedFrame, address: AddressLoad): void {',
  },
  'acl-of-snapshot-counted-once': {
    description: 'after a start each ACL has a reference count of one',
    symbol: 'SnapshotLoader.#aclOfKey',
    original: 'acls.retain(known);\n      return known;',
    replacement: 'return known;',
  },
  'event-repeated-per-watch': {
    description: 'a client with two watches on a znode receives the event twice',
    symbol: 'Watchers.markNotified',
    original: 'if (this.#lastDispatch.get(watcher) >= dispatch) return false;',
    replacement: 'if (this.#lastDispatch.get(watcher) > dispatch) return false;',
  },
  'acl-entry-perms-not-united': {
    description: 'of two entries for one identity in a long ACL only the second counts',
    symbol: 'AclIndex.#add',
    original: 'this.#rows[row + 2]! |= perms;',
    replacement: 'this.#rows[row + 2]! = perms;',
  },
  'deleted-znode-counts-for-quota': {
    description: 'deleted znodes still count for their quota',
    symbol: 'QuotaTable.addUsage',
    original: 'quota.usedCount + count,',
    replacement: 'quota.usedCount + Math.max(0, count),',
  },
  'address-share-released-early': {
    description: 'an address with one outstanding request counts as having none',
    symbol: 'Load.#requestEnded',
    original: 'if (--address.requests === 0) this.#addresses--;',
    replacement: 'if (--address.requests <= 1) this.#addresses--;',
  },
  'only-one-request-waits-behind-long-write': {
    description: "of a learner's session, only one request waits for a long write that is delayed, and the next overtakes it",
    symbol: 'LongWriteQueue.hasRequestsOf',
    original: 'return this.#forwardedCount > 0 && (this.#flows',
    replacement: 'return this.#forwardedCount > 1 && (this.#flows',
  },
  'preserved-for-one-snapshot': {
    description: 'before a znode changes, only the first of two running snapshots writes it',
    symbol: 'TreeSnapshots.#preserve',
    original: 'for (const walk of this.#walks) {',
    replacement: 'for (const walk of this.#walks.slice(0, 1)) {',
  },
};

/**
 * Memory that is not released, or is measured by the wrong rule; noticed only where limits are low.
 */
const resourceAccounting: Readonly<Record<string, RandomMutant>> = {
  'held-input-never-released': {
    description: 'input that was held for a client counts forever, even after its connection is closed',
    symbol: 'HeldBytes.countInput',
    original: 'const more = cnxn.decoder.retainedBytes - cnxn.countedInputBytes;',
    replacement: 'const more = Math.max(0, cnxn.decoder.retainedBytes - cnxn.countedInputBytes);',
  },
  'closed-connection-counts-for-address': {
    description: 'a closed connection still counts for its address',
    symbol: 'ClientCnxns.remove',
    original: 'if (--cnxn.address.cnxnCount === 0)',
    replacement: 'if (cnxn.address.cnxnCount === 0)',
  },
  'txn-load-never-released': {
    description: 'the bytes of an outstanding txn count forever',
    symbol: 'Load.applied',
    original: 'this.bytes -= proposalBytes(proposal);',
    replacement: 'void proposalBytes(proposal);',
  },
  'restored-watches-limited-as-new': {
    description: 'watches that a client restores are limited as strictly as new ones',
    symbol: 'MemoryLimits.canKeepWatches',
    original: 'this.#watches.countOf(cnxn.id) <= max;',
    replacement: 'this.#watches.countOf(cnxn.id) < this.#watchesPerCnxnMax;',
  },
  'requests-after-rejected-write-carried-out': {
    description: 'after a refused write of a closed connection, its later requests are carried out',
    symbol: 'Admission.#submitStaleWrite',
    original: 'cnxn.hasDroppedRequest = true;\n      return;',
    replacement: 'return;',
  },
};

export const randomMutants: Readonly<Record<string, Mutant>> = Object.fromEntries(
  Object.entries({
    'wrong field': wrongField,
    'one step early': oneStepEarly,
    'off by one': offByOne,
    'old owner kept': staleStateKept,
    'wrong half of a pair': halfOfPair,
    'counted twice': miscounted,
    'little room': resourceAccounting,
  }).flatMap(([kind, mutants]) => Object.entries(mutants).map(([name, mutant]) => [name, { origin: `random: ${kind}`, ...mutant }])),
);
