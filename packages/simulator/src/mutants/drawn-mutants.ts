/**
 * Mutants at places drawn at random over core and runtime. No guard is removed; something is
 * slightly wrong at an unobtrusive place: a neighbouring field is compared, a step is taken one too
 * early, a count is off by one, an owner is kept, only one half of a pair is compared, something is
 * counted twice or forgotten. Only seeds may catch them; no scenario covers them.
 */
import type { Mutant } from './mutant.ts';

const dataTree = 'packages/core/src/tree/data-tree.ts';
const hierarchicalQuorum = 'packages/core/src/quorum/hierarchical-quorum.ts';
const ephemeralTable = 'packages/core/src/tree/ephemeral-table.ts';
const quotaTable = 'packages/core/src/tree/quota-table.ts';
const forwarding = 'packages/core/src/request/forwarding.ts';
const replica = 'packages/core/src/request/replica.ts';
const server = 'packages/core/src/server.ts';
const sweep = 'packages/core/src/request/sweep.ts';
const sweepList = 'packages/core/src/tree/sweep-list.ts';
const aclIndex = 'packages/core/src/tree/acl-index.ts';
const multiParts = 'packages/core/src/request/multi-parts.ts';
const handshake = 'packages/core/src/session/handshake.ts';
const treeDigest = 'packages/core/src/tree/tree-digest.ts';
const truncation = 'packages/runtime/src/storage/truncation.ts';
const outstanding = 'packages/core/src/request/outstanding.ts';
const prepare = 'packages/core/src/request/prepare.ts';
const load = 'packages/core/src/request/load.ts';
const tracker = 'packages/core/src/session/session-tracker.ts';
const expiryQueue = 'packages/core/src/session/expiry-queue.ts';
const watchTable = 'packages/core/src/tree/watch-table.ts';
const aclTable = 'packages/core/src/tree/acl-table.ts';
const pathIndex = 'packages/core/src/tree/path-index.ts';
const committedLog = 'packages/core/src/zab/committed-log.ts';
const learner = 'packages/core/src/zab/learner.ts';
const leader = 'packages/core/src/zab/leader.ts';
const diskState = 'packages/core/src/zab/disk-state.ts';
const synchroniser = 'packages/core/src/zab/synchroniser.ts';
const dialling = 'packages/core/src/zab/dialling.ts';
const loader = 'packages/core/src/snapshot/snapshot-loader.ts';
const recovery = 'packages/runtime/src/storage/recovery.ts';
const syncedMark = 'packages/runtime/src/storage/synced-mark.ts';
const clientPort = 'packages/runtime/src/ports/client-port.ts';
const longWrites = 'packages/core/src/request/long-writes.ts';
const memoryLimits = 'packages/core/src/request/memory-limits.ts';
const purge = 'packages/runtime/src/storage/purge.ts';

type Drawn = Omit<Mutant, 'from' | 'hunter'>;

/** The wrong field is compared or used. */
const wrongField: Readonly<Record<string, Drawn>> = {
  'acl-version-by-data': {
    what: 'setACL compares its version with the version of the data',
    file: prepare,
    replace: 'request.version !== znode.aversion',
    by: 'request.version !== znode.version',
  },
  'check-by-children': {
    what: 'a check in a multi compares its version with the cversion',
    file: prepare,
    replace: 'const version = future === undefined ? tree.versionOf(node) : future.version;\n    if (request.version !== -1',
    by: 'const version = future === undefined ? tree.cversionOf(node) : future.cversion;\n    if (request.version !== -1',
  },
  'acl-version-of-today': {
    what: 'setACL sets the ACL version to the version of the data plus one',
    file: prepare,
    replace: 'const version = (znode.aversion + 1) | 0;',
    by: 'const version = (znode.version + 1) | 0;',
  },
  'mark-of-earlier-txn': {
    what: 'a mark holds the zxid of the mark before it',
    file: syncedMark,
    replace: 'offset: this.#offset, lastZxid: this.#lastZxid };',
    by: 'offset: this.#offset, lastZxid: this.#written.lastZxid };',
  },
  'sequential-by-bare-name': {
    what: 'a sequential create is refused if a znode with the name without the counter exists',
    file: prepare,
    replace: 'if (this.outstanding.find(path) !== undefined) return ErrorCode.NodeExists',
    by: 'if (this.outstanding.find(request.path) !== undefined) return ErrorCode.NodeExists',
  },
  'last-part-blamed': {
    what: 'a failed multi reports its last failed operation as the cause',
    file: replica,
    replace: 'txns.findIndex((member) => member.type === OpCode.error)',
    by: 'txns.findLastIndex((member) => member.type === OpCode.error)',
  },
  'digest-of-root-by-slash': {
    what: 'the digest includes the path of the root as a slash',
    file: treeDigest,
    replace: "const text = path === '/' ? '' : path;",
    by: 'const text = path;',
  },
  'moved-mark-keeps-its-txn': {
    what: 'a mark that a start has moved still holds its old zxid',
    file: recovery,
    replace: 'lastZxid: end.lastZxid ?? mark.lastZxid };',
    by: 'lastZxid: mark.lastZxid };',
  },
};

/** Something happens one step too early. */
const early: Readonly<Record<string, Drawn>> = {
  'ack-one-early': {
    what: 'a learner also acknowledges the txn after the last durable one',
    file: learner,
    replace: 'next !== undefined && next <= this.#durable;',
    by: 'next !== undefined && next <= this.#durable + 1;',
  },
  'changes-forgotten-early': {
    what: 'the pending changes of a txn are dropped when the txn before it is applied',
    file: outstanding,
    replace: 'if (recorded.zxid > zxid) break;',
    by: 'if (recorded.zxid > zxid + 1) break;',
  },
  'ttl-by-half': {
    what: 'a TTL znode is swept after half its time',
    file: sweep,
    replace: 'return ttlMs !== undefined && ageMs > ttlMs;',
    by: 'return ttlMs !== undefined && ageMs * 2 > ttlMs;',
  },
  'bucket-one-early': {
    what: 'sessions expire one tick too early',
    file: expiryQueue,
    replace: 'this.#tickMs) + 1) * this.#tickMs;',
    by: 'this.#tickMs)) * this.#tickMs;',
  },
  'settles-one-early': {
    what: 'a learner reports that it has the history before the last txn of it is durable',
    file: learner,
    replace: 'if (this.#durable < this.#historyEnd) return;',
    by: 'if (this.#durable + 1 < this.#historyEnd) return;',
  },
  'sync-not-waited-for': {
    what: 'a sync after a write is answered together with the write',
    file: server,
    replace: "(next.kind === 'sync' && !next.isDone)",
    by: "(next.kind === 'sync' && next.isDone && false)",
  },
  'reconnect-granted-no-time': {
    what: 'a session that is resumed over another connection is due at once',
    file: handshake,
    replace: 'this.#tracker.touch(slot, now.elapsedMs, cnxn.timeoutMs);\n    this.#welcome',
    by: 'this.#tracker.touch(slot, now.elapsedMs, 0);\n    this.#welcome',
  },
  'settled-before-last': {
    what: 'a server reports its last zxid in an election before that txn is durable',
    file: diskState,
    replace: 'return this.#durable >= this.#logged &&',
    by: 'return this.#durable + 1 >= this.#logged &&',
  },
  'synced-when-handed-over': {
    what: 'a learner answers a sync when the commits before it have arrived but are not applied',
    file: forwarding,
    replace: 'this.#answeredSyncs.push(sync, this.#handedOver);',
    by: 'this.#answeredSyncs.push(sync, 0);',
  },
  'walk-ends-at-the-deleted': {
    what: 'a snapshot ends when the znode it would write next is deleted',
    file: dataTree,
    replace: 'if (walk.next === node) walk.next = this.#afterSubtree(node, this.#root);',
    by: 'if (walk.next === node) walk.next = 0;',
  },
  'acl-under-the-walk': {
    what: 'setACL changes a znode before a running snapshot has written it',
    file: dataTree,
    replace: 'this.#beforeChange(node);\n    this.acls.release(this.#rows.get(node, aclField));',
    by: 'this.acls.release(this.#rows.get(node, aclField));',
  },
};

/** A count or a bound is off by one. */
const offByOne: Readonly<Record<string, Drawn>> = {
  'cut-keeps-one': {
    what: 'one of the txns in memory that a TRUNC removed is kept',
    file: committedLog,
    replace: 'while (this.#length > kept) this.#take',
    by: 'while (this.#length > kept + 1) this.#take',
  },
  'last-acl-left-out': {
    what: 'a snapshot lacks the last ACL of the table',
    file: aclTable,
    replace: 'for (let id = 1; id < this.#end; id++) {\n      if (this.#references.get(id) > 1 &&',
    by: 'for (let id = 1; id < this.#end - 1; id++) {\n      if (this.#references.get(id) > 1 &&',
  },
  'replay-from-later-log': {
    what: 'replay begins with a log file whose first txn is one after the first it needs',
    file: recovery,
    replace: 'logs.findLastIndex(({ zxid }) => zxid <= this.#lastZxid + 1)',
    by: 'logs.findLastIndex(({ zxid }) => zxid <= this.#lastZxid + 2)',
  },
  'purge-one-log-more': {
    what: 'purging deletes the log file in which the oldest kept snapshot was taken',
    file: purge,
    replace: 'logs.slice(0, Math.max(0, needed))',
    by: 'logs.slice(0, Math.max(0, needed + 1))',
  },
  'chain-closed-one-short': {
    what: 'the path index does not fill a hole with the entry whose home slot it is',
    file: pathIndex,
    replace: 'if (((at - home) & mask) >= ((at - hole) & mask)) {\n        shard[hole] = shard[at]!;',
    by: 'if (((at - home) & mask) > ((at - hole) & mask)) {\n        shard[hole] = shard[at]!;',
  },
  'quota-one-more': {
    what: 'a hard quota admits one more than its limit',
    file: quotaTable,
    replace: 'usage <= limit)',
    by: 'usage <= limit + 1)',
  },
  'group-by-half': {
    what: 'half the weight of a group is enough for a quorum',
    file: hierarchicalQuorum,
    replace: 'present * 2 > group.total',
    by: 'present * 2 >= group.total',
  },
  'groups-by-half': {
    what: 'half of the groups are enough for a quorum',
    file: hierarchicalQuorum,
    replace: 'agreeing * 2 > this.#groups.length',
    by: 'agreeing * 2 >= this.#groups.length',
  },
  'owners-closed-one-short': {
    what: 'the table of owners does not fill a hole with the entry whose home slot it is',
    file: ephemeralTable,
    replace: '((at - home) & mask) >= ((at - hole) & mask)',
    by: '((at - home) & mask) > ((at - hole) & mask)',
  },
  'owners-resized-short': {
    what: 'the first owner in a shard is lost when the shard grows',
    file: ephemeralTable,
    replace: 'for (let at = 0; at < old.length; at += entryInts) {\n      if (old[at + 3] === 0) continue;',
    by: 'for (let at = entryInts; at < old.length; at += entryInts) {\n      if (old[at + 3] === 0) continue;',
  },
  'index-resized-short': {
    what: 'the last znode in a shard of the path index is lost when the shard grows',
    file: pathIndex,
    replace: 'for (let slot = 0; slot < old.length; slot += 2) {',
    by: 'for (let slot = 0; slot < old.length - 2; slot += 2) {',
  },
  'sweep-with-a-child': {
    what: 'a container that meanwhile has a child is swept',
    file: sweep,
    replace: 'if (znode.childCount > 0) return false;',
    by: 'if (znode.childCount > 1) return false;',
  },
  'count-up-to-below': {
    what: 'a txn in memory is not counted among those up to its own zxid',
    file: committedLog,
    replace: 'if (this.#zxidAt(middle) <= zxid) low = middle + 1;',
    by: 'if (this.#zxidAt(middle) < zxid) low = middle + 1;',
  },
  'recounted-one-short': {
    what: 'a new usage znode counts one znode too few',
    file: dataTree,
    replace: 'this.#quotas.setUsage(quota, recount.count, recount.bytes);',
    by: 'this.#quotas.setUsage(quota, recount.count - 1, recount.bytes);',
  },
  'ttl-of-sequential-forgotten': {
    what: 'a sequential TTL znode is not treated as a TTL znode',
    file: multiParts,
    replace: 'mode === CreateMode.persistentWithTtl || mode === CreateMode.persistentSequentialWithTtl',
    by: 'mode === CreateMode.persistentWithTtl',
  },
  'epoch-promised-twice': {
    what: 'a learner accepts an epoch that it has accepted before',
    file: learner,
    replace: '} else if (this.#epoch <= acceptedEpoch) {',
    by: '} else if (this.#epoch < acceptedEpoch) {',
  },
};

/** An owner or an earlier value is kept. */
const kept: Readonly<Record<string, Drawn>> = {
  'open-acl-kept': {
    what: 'the id of the open ACL stays in use after the table has released it',
    file: aclTable,
    replace: 'if (id === this.#openId) this.#openId = 0;',
    by: '',
  },
  'touched-for-ever': {
    what: 'a learner that heard from a session reports it with every later PING',
    file: tracker,
    replace: 'this.#touched.clear();',
    by: '',
  },
  'bucket-keeps-its-first': {
    what: 'a session that leaves the head of its bucket stays its head',
    file: expiryQueue,
    replace: 'if (this.#first.get(due) === slot) this.#first.set(due, next);',
    by: '',
  },
  'earlier-future-kept': {
    what: 'a failed multi leaves its pending change of a znode that an earlier txn changed',
    file: outstanding,
    replace: 'else this.#byPath.set(path, before);',
    by: '',
  },
  'later-future-lost': {
    what: 'when a txn is applied, the pending change of the same znode by a later txn is dropped too',
    file: outstanding,
    replace: 'if (this.#byPath.get(recorded.path) === recorded.future) this.#byPath.delete(recorded.path);',
    by: 'this.#byPath.delete(recorded.path);',
  },
  'owner-kept': {
    what: 'a session that moved from a learner to its leader is still owned by the learner',
    file: tracker,
    replace: 'if (owner === ownerHere) this.#owners.delete(slot);\n    else',
    by: 'if (owner !== ownerHere)',
  },
  'session-kept-after-end': {
    what: 'an ended session stays in the session table of the replica',
    file: replica,
    replace: 'if (slot !== -1) this.sessions.remove(slot);\n    this.listener.sessionClosed',
    by: 'this.listener.sessionClosed',
  },
  'sweep-place-kept': {
    what: 'a sweep candidate that is moved to the place of another keeps its old index',
    file: sweepList,
    replace: '    this.#rows.set(last, sweepField, at);\n',
    by: '',
  },
  'start-kept-when-grown': {
    what: 'the buffer of txns in memory keeps its old start index when it grows',
    file: committedLog,
    replace: '    this.#txns = txns;\n    this.#start = 0;',
    by: '    this.#txns = txns;',
  },
  'accepted-counts-as-synchronised': {
    what: 'a voter that accepted the epoch counts as having the history with which it begins',
    file: leader,
    replace: "this.#stage = 'synchronisation';\n      this.#agreeing = new Set(this.#isVoter ? [this.#options.sid] : []);",
    by: "this.#stage = 'synchronisation';",
  },
};

/** Only one half of a pair is compared or updated. */
const wrongHalf: Readonly<Record<string, Drawn>> = {
  'digest-carry-lost': {
    what: 'rolling back a change does not carry from the lower half of the tree digest into the upper half',
    file: outstanding,
    replace: 'this.#addToDigest(-digestDelta);',
    by: 'this.digestLow = ((this.digestLow >>> 0) - digestDelta) | 0;',
  },
  'ephemeral-of-another-session': {
    what: 'closing a session deletes an ephemeral that another session has recreated if the upper halves of their ids are equal',
    file: prepare,
    replace: 'future.ownerHigh === high && future.ownerLow === low) this.#removeOne',
    by: 'future.ownerHigh === high) this.#removeOne',
  },
  'new-ephemerals-by-low-half': {
    what: 'closing a session deletes new ephemerals of another session if the lower halves of their ids are equal',
    file: outstanding,
    replace:
      'if (future.ownerHigh !== ownerHigh || this.#byPath.get(path) !== future) continue;\n      if (!this.#tree.isEphemeralOf(this.#tree.find(path), ownerHigh, ownerLow))',
    by: 'if (this.#byPath.get(path) !== future) continue;\n      if (!this.#tree.isEphemeralOf(this.#tree.find(path), ownerHigh, ownerLow))',
  },
  'reply-by-session-only': {
    what: 'a txn answers the oldest pending write of its session, whatever its xid',
    file: forwarding,
    replace: 'if (head !== undefined && head.cxid === cxid) return head;',
    by: 'if (head !== undefined) return head;',
  },
  'sync-done-at-head-only': {
    what: 'the answer to a sync that is not at the head of its queue is lost',
    file: server,
    replace:
      'sync.isDone = true;\n      const cnxn = this.#cnxns.get(sync.cnxn);\n      if (cnxn === undefined || cnxn.waiting.peek() !== sync) continue;',
    by: 'const cnxn = this.#cnxns.get(sync.cnxn);\n      if (cnxn === undefined || cnxn.waiting.peek() !== sync) continue;\n      sync.isDone = true;',
  },
  'parent-told-as-znode': {
    what: 'a watcher that received the event of a znode does not receive that of its parent',
    file: watchTable,
    replace: 'const telling = onParent ? this.#telling : this.#telling - 1;',
    by: 'const telling = this.#telling;',
  },
  'mark-in-one-slot': {
    what: 'all marks of a log are written to one slot',
    file: syncedMark,
    replace: 'sequence: this.#written.sequence + 1, offset',
    by: 'sequence: this.#written.sequence + 2, offset',
  },
  'mark-of-own-log-removed': {
    what: 'a TRUNC removes the mark of the log file that it cuts, and lowers that of another one',
    file: truncation,
    replace: 'mark.firstChecksum !== end.firstChecksum) {',
    by: 'mark.firstChecksum === end.firstChecksum) {',
  },
  'empty-memory-holds-all': {
    what: 'a leader without txns in memory assumes that it holds everything a learner may lack',
    file: synchroniser,
    replace: 'newest === undefined ? sent < last : !this.#committed.holdsAllAbove(sent)',
    by: 'newest !== undefined && !this.#committed.holdsAllAbove(sent)',
  },
  'standstill-before-serving': {
    what: 'a leader that was paused before it served continues without a check',
    file: leader,
    replace: "if (this.#stage !== 'over' && !this.#quorum.containsQuorum(new Set([this.#options.sid])) && silentMs",
    by: "if (this.#stage === 'broadcast' && !this.#quorum.containsQuorum(new Set([this.#options.sid])) && silentMs",
  },
  'txn-of-another-server': {
    what: "a learner takes a txn of a client of another server for the reply to its own client's request with the same xid",
    file: learner,
    replace: 'const mayBeOurs = this.#ownTxns.mayInclude(packet);',
    by: 'const mayBeOurs = true;',
  },
  'deleted-under-the-walk': {
    what: 'a znode is deleted before running snapshots that lack it have written it',
    file: dataTree,
    replace: 'this.#beforeChange(node);\n    this.changedNamespace = this.namespaceOf(node);',
    by: 'this.changedNamespace = this.namespaceOf(node);',
  },
  'ahead-without-parents': {
    what: 'a znode that is about to change is written to a snapshot before its parents',
    file: dataTree,
    replace: 'for (let at = node; at !== 0 && !walk.has(at); at = this.#rows.get(at, parentField)) chain.push(at);',
    by: 'chain.push(node);',
  },
  'refused-once': {
    what: 'a learner does not dial again if its leader refused the connection or closed one that it accepted early',
    file: dialling,
    replace: 'else this.#retryMs = now.elapsedMs + Math.min',
    by: "else if (outcome !== 'refused') this.#retryMs = now.elapsedMs + Math.min",
  },
  'standstill-by-init-limit': {
    what: 'after a pause a leader applies initLimit instead of syncLimit',
    file: leader,
    replace: 'silentMs > syncLimitTicks * tickTimeMs) {',
    by: 'silentMs > this.#options.initLimitTicks * tickTimeMs) {',
  },
};

/** Something is counted twice, released twice, or not released. */
const counted: Readonly<Record<string, Drawn>> = {
  'child-counted-twice': {
    what: 'a delete subtracts two from the pending number of children of the parent',
    file: prepare,
    replace:
      'parentAfter.childCount--;\n      parentAfter.pzxid = zxid;\n      this.outstanding.record(parentPath, zxid, parentAfter, parent.digest);\n    }\n    const after',
    by: 'parentAfter.childCount -= 2;\n      parentAfter.pzxid = zxid;\n      this.outstanding.record(parentPath, zxid, parentAfter, parent.digest);\n    }\n    const after',
  },
  'request-not-given-back': {
    what: 'a request that was parked counts as outstanding for ever',
    file: load,
    replace: '  unparked(frame: ParkedFrame, address: AddressLoad): void {\n    this.requests--;',
    by: '  unparked(frame: ParkedFrame, address: AddressLoad): void {',
  },
  'acl-of-snapshot-counted-once': {
    what: 'after a start each ACL has a reference count of one',
    file: loader,
    replace: '      acls.retain(known);\n      return known;',
    by: '      return known;',
  },
  'told-once-for-each-watch': {
    what: 'a client with two watches on a znode receives the event twice',
    file: watchTable,
    replace: 'this.#watcherTold.get(watcher) >= telling) continue;',
    by: 'this.#watcherTold.get(watcher) > telling) continue;',
  },
  'perms-not-added': {
    what: 'of two entries for one identity in a long ACL only the second counts',
    file: aclIndex,
    replace: 'this.#rows[row + 2]! |= perms;',
    by: 'this.#rows[row + 2]! = perms;',
  },
  'quota-of-deleted-kept': {
    what: 'deleted znodes still count for their quota',
    file: quotaTable,
    replace: 'quota.usedCount + count,',
    by: 'quota.usedCount + Math.max(0, count),',
  },
  'share-given-back-early': {
    what: 'an address with one outstanding request counts as having none',
    file: load,
    replace: 'if (--address.requests === 0) this.#addresses--;',
    by: 'if (--address.requests <= 1) this.#addresses--;',
  },
  'one-behind-a-long-write-waits': {
    what: "of a learner's session, only one request waits for a long write that is delayed, and the next overtakes it",
    file: longWrites,
    replace: 'return this.#requests > 0 && (this.#parties',
    by: 'return this.#requests > 1 && (this.#parties',
  },
  'ahead-for-one-walk': {
    what: 'before a znode changes, only the first of two running snapshots writes it',
    file: dataTree,
    replace: 'for (const walk of this.#walks) {\n      if (walk.has(node)) continue;',
    by: 'for (const walk of this.#walks.slice(0, 1)) {\n      if (walk.has(node)) continue;',
  },
};

/**
 * Memory that is not released, or is measured by the wrong rule; noticed only where limits are low.
 */
const littleRoom: Readonly<Record<string, Drawn>> = {
  'input-kept-in-total': {
    what: 'input that was held for a client counts for ever, even after its connection is closed',
    file: clientPort,
    replace: 'const more = cnxn.cutter.retainedBytes - cnxn.retainedCounted;',
    by: 'const more = Math.max(0, cnxn.cutter.retainedBytes - cnxn.retainedCounted);',
  },
  'place-of-closed-kept': {
    what: 'a closed connection still counts for its address',
    file: clientPort,
    replace: 'if (--cnxn.address.cnxnCount === 0)',
    by: 'if (cnxn.address.cnxnCount === 0)',
  },
  'txn-kept-in-load': {
    what: 'the bytes of an outstanding txn count for ever',
    file: load,
    replace: '  applied(proposal: Proposal): void {\n    this.bytes -= heldBy(proposal);',
    by: '  applied(proposal: Proposal): void {\n    void heldBy(proposal);',
  },
  'brought-watches-by-new': {
    what: 'watches that a client restores are limited as strictly as new ones',
    file: memoryLimits,
    replace: 'this.#watches.countOf(cnxn.id) <= max;',
    by: 'this.#watches.countOf(cnxn.id) < this.#watchesPerCnxnMax;',
  },
  'stale-refused-alone': {
    what: 'after a refused write of a closed connection, its later requests are carried out',
    file: server,
    replace: '      cnxn.hasDropped = true;\n      return;\n    }\n    const cxid = xid;',
    by: '      return;\n    }\n    const cxid = xid;',
  },
};

export const drawnMutants: Readonly<Record<string, Mutant>> = Object.fromEntries(
  Object.entries({
    'wrong field': wrongField,
    'one step early': early,
    'off by one': offByOne,
    'old owner kept': kept,
    'wrong half of a pair': wrongHalf,
    'counted twice': counted,
    'little room': littleRoom,
  }).flatMap(([kind, mutants]) => Object.entries(mutants).map(([name, mutant]) => [name, { from: `drawn: ${kind}`, ...mutant }])),
);
