/**
 * Mutants at places that were drawn at random over core and runtime: no guard is taken away, but something is a little wrong where nobody looks for it.
 * A field beside the right one is compared, a step is taken one too early, a count is off by one, an owner is kept, one half of a pair is
 * looked at, something is counted twice or forgotten. All of them are the seeds': no scenario tells of them.
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

/** The wrong field is compared or taken. */
const wrongField: Readonly<Record<string, Drawn>> = {
  'acl-version-by-data': {
    what: 'a setACL with a version is judged by the version of the data',
    file: prepare,
    replace: 'request.version !== znode.aversion',
    by: 'request.version !== znode.version',
  },
  'check-by-children': {
    what: 'a check in a multi is judged by the count of creates below the znode',
    file: prepare,
    replace: 'const version = future === undefined ? tree.versionOf(node) : future.version;\n    if (request.version !== -1',
    by: 'const version = future === undefined ? tree.cversionOf(node) : future.cversion;\n    if (request.version !== -1',
  },
  'acl-version-of-today': {
    what: 'the next setACL gets the version of the data plus one',
    file: prepare,
    replace: 'const version = (znode.aversion + 1) | 0;',
    by: 'const version = (znode.version + 1) | 0;',
  },
  'mark-of-earlier-txn': {
    what: 'a mark names the txn that the mark before it named',
    file: syncedMark,
    replace: 'offset: this.#offset, lastZxid: this.#lastZxid };',
    by: 'offset: this.#offset, lastZxid: this.#written.lastZxid };',
  },
  'sequential-by-bare-name': {
    what: 'a sequential create is refused when there is a znode with the name without the counter',
    file: prepare,
    replace: 'if (this.outstanding.find(path) !== undefined) return ErrorCode.NodeExists',
    by: 'if (this.outstanding.find(request.path) !== undefined) return ErrorCode.NodeExists',
  },
  'last-part-blamed': {
    what: 'of a multi that has failed, the last part is told to be the reason',
    file: replica,
    replace: 'txns.findIndex((member) => member.type === OpCode.error)',
    by: 'txns.findLastIndex((member) => member.type === OpCode.error)',
  },
  'digest-of-root-by-slash': {
    what: 'the path of the root goes into the digest as a slash',
    file: treeDigest,
    replace: "const text = path === '/' ? '' : path;",
    by: 'const text = path;',
  },
  'moved-mark-keeps-its-txn': {
    what: 'a mark that a start has moved names the txn that it named before',
    file: recovery,
    replace: 'lastZxid: end.lastZxid ?? mark.lastZxid };',
    by: 'lastZxid: mark.lastZxid };',
  },
};

/** Something happens one step too early. */
const early: Readonly<Record<string, Drawn>> = {
  'ack-one-early': {
    what: 'the txn behind the last durable one is acknowledged too',
    file: learner,
    replace: 'next !== undefined && next <= this.#durable;',
    by: 'next !== undefined && next <= this.#durable + 1;',
  },
  'changes-forgotten-early': {
    what: 'what the next txn will change is forgotten with the txn before it',
    file: outstanding,
    replace: 'if (recorded.zxid > zxid) break;',
    by: 'if (recorded.zxid > zxid + 1) break;',
  },
  'ttl-by-half': {
    what: 'a TTL znode is swept when half its time is over',
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
    what: 'a learner says that it has the history when the last txn of it is not durable',
    file: learner,
    replace: 'if (this.#durable < this.#historyEnd) return;',
    by: 'if (this.#durable + 1 < this.#historyEnd) return;',
  },
  'sync-not-waited-for': {
    what: 'a sync behind a write is answered with the write',
    file: server,
    replace: "(next.kind === 'sync' && !next.isDone)",
    by: "(next.kind === 'sync' && next.isDone && false)",
  },
  'reconnect-granted-no-time': {
    what: 'who comes back over another connection is due at once',
    file: handshake,
    replace: 'this.#tracker.touch(slot, now.elapsedMs, cnxn.timeoutMs);\n    this.#welcome',
    by: 'this.#tracker.touch(slot, now.elapsedMs, 0);\n    this.#welcome',
  },
  'settled-before-last': {
    what: 'a server says in an election how far it is when the last txn of that is not durable',
    file: diskState,
    replace: 'return this.#durable >= this.#logged &&',
    by: 'return this.#durable + 1 >= this.#logged &&',
  },
  'synced-when-handed-over': {
    what: 'a learner answers a sync when the commits before it have come, and are not applied',
    file: forwarding,
    replace: 'this.#answeredSyncs.push(sync, this.#handedOver);',
    by: 'this.#answeredSyncs.push(sync, 0);',
  },
  'walk-ends-at-the-deleted': {
    what: 'a snapshot that stands at a znode which is deleted is at its end',
    file: dataTree,
    replace: 'if (walk.next === node) walk.next = this.#afterSubtree(node, this.#root);',
    by: 'if (walk.next === node) walk.next = 0;',
  },
  'acl-under-the-walk': {
    what: 'a znode whose ACL changes is changed before a snapshot has it',
    file: dataTree,
    replace: 'this.#beforeChange(node);\n    this.acls.release(this.#rows.get(node, aclField));',
    by: 'this.acls.release(this.#rows.get(node, aclField));',
  },
};

/** A count or an edge is off by one. */
const offByOne: Readonly<Record<string, Drawn>> = {
  'cut-keeps-one': {
    what: 'one of the txns in memory that a TRUNC has cut off is kept',
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
    what: 'the replay begins with a log that begins one txn behind the first it needs',
    file: recovery,
    replace: 'logs.findLastIndex(({ zxid }) => zxid <= this.#lastZxid + 1)',
    by: 'logs.findLastIndex(({ zxid }) => zxid <= this.#lastZxid + 2)',
  },
  'purge-one-log-more': {
    what: 'purging takes the log that the oldest kept snapshot was taken in',
    file: purge,
    replace: 'logs.slice(0, Math.max(0, needed))',
    by: 'logs.slice(0, Math.max(0, needed + 1))',
  },
  'chain-closed-one-short': {
    what: 'a hole in the path index is not closed by the entry whose place it is',
    file: pathIndex,
    replace: 'if (((at - home) & mask) >= ((at - hole) & mask)) {\n        shard[hole] = shard[at]!;',
    by: 'if (((at - home) & mask) > ((at - hole) & mask)) {\n        shard[hole] = shard[at]!;',
  },
  'quota-one-more': {
    what: 'a quota with a hard limit has room for one more',
    file: quotaTable,
    replace: 'usage <= limit)',
    by: 'usage <= limit + 1)',
  },
  'group-by-half': {
    what: 'half the weight of a group is enough',
    file: hierarchicalQuorum,
    replace: 'present * 2 > group.total',
    by: 'present * 2 >= group.total',
  },
  'groups-by-half': {
    what: 'half of the groups are enough',
    file: hierarchicalQuorum,
    replace: 'agreeing * 2 > this.#groups.length',
    by: 'agreeing * 2 >= this.#groups.length',
  },
  'owners-closed-one-short': {
    what: 'a hole in the table of owners is not closed by the entry whose place it is',
    file: ephemeralTable,
    replace: '((at - home) & mask) >= ((at - hole) & mask)',
    by: '((at - home) & mask) > ((at - hole) & mask)',
  },
  'owners-resized-short': {
    what: 'the first owner of a shard is lost when the shard grows',
    file: ephemeralTable,
    replace: 'for (let at = 0; at < old.length; at += entryInts) {\n      if (old[at + 3] === 0) continue;',
    by: 'for (let at = entryInts; at < old.length; at += entryInts) {\n      if (old[at + 3] === 0) continue;',
  },
  'index-resized-short': {
    what: 'the last znode of a shard is lost when the shard grows',
    file: pathIndex,
    replace: 'for (let slot = 0; slot < old.length; slot += 2) {',
    by: 'for (let slot = 0; slot < old.length - 2; slot += 2) {',
  },
  'sweep-with-a-child': {
    what: 'a container is swept that has got a child meanwhile',
    file: sweep,
    replace: 'if (znode.childCount > 0) return false;',
    by: 'if (znode.childCount > 1) return false;',
  },
  'count-up-to-below': {
    what: 'a txn in memory does not count among those up to its own zxid',
    file: committedLog,
    replace: 'if (this.#zxidAt(middle) <= zxid) low = middle + 1;',
    by: 'if (this.#zxidAt(middle) < zxid) low = middle + 1;',
  },
  'recounted-one-short': {
    what: 'a new usage znode counts one znode less than there are',
    file: dataTree,
    replace: 'this.#quotas.setUsage(quota, recount.count, recount.bytes);',
    by: 'this.#quotas.setUsage(quota, recount.count - 1, recount.bytes);',
  },
  'ttl-of-sequential-forgotten': {
    what: 'a sequential TTL znode is no TTL znode',
    file: multiParts,
    replace: 'mode === CreateMode.persistentWithTtl || mode === CreateMode.persistentSequentialWithTtl',
    by: 'mode === CreateMode.persistentWithTtl',
  },
  'epoch-promised-twice': {
    what: 'a learner accepts an epoch once more that it has accepted before',
    file: learner,
    replace: '} else if (this.#epoch <= acceptedEpoch) {',
    by: '} else if (this.#epoch < acceptedEpoch) {',
  },
};

/** An owner, or what stood in a place before, is kept. */
const kept: Readonly<Record<string, Drawn>> = {
  'open-acl-kept': {
    what: 'the id of the open ACL is still used for it when the table has let go of it',
    file: aclTable,
    replace: 'if (id === this.#openId) this.#openId = 0;',
    by: '',
  },
  'touched-for-ever': {
    what: 'a learner reports a session as heard of with every PING, once it was',
    file: tracker,
    replace: 'this.#touched.clear();',
    by: '',
  },
  'bucket-keeps-its-first': {
    what: 'a session that leaves the head of its bucket is still its first',
    file: expiryQueue,
    replace: 'if (this.#first.get(due) === slot) this.#first.set(due, next);',
    by: '',
  },
  'earlier-future-kept': {
    what: 'a multi that failed leaves what it made of a znode that was changed before',
    file: outstanding,
    replace: 'else this.#byPath.set(path, before);',
    by: '',
  },
  'later-future-lost': {
    what: 'when a txn has been applied, what a later one makes of the same znode is forgotten with it',
    file: outstanding,
    replace: 'if (this.#byPath.get(recorded.path) === recorded.future) this.#byPath.delete(recorded.path);',
    by: 'this.#byPath.delete(recorded.path);',
  },
  'owner-kept': {
    what: 'a session that has gone from a learner to its leader is still the learner’s',
    file: tracker,
    replace: 'if (owner === ownerHere) this.#owners.delete(slot);\n    else',
    by: 'if (owner !== ownerHere)',
  },
  'session-kept-after-end': {
    what: 'a session that has ended stays in the table of its replica',
    file: replica,
    replace: 'if (slot !== -1) this.sessions.remove(slot);\n    this.listener.sessionClosed',
    by: 'this.listener.sessionClosed',
  },
  'sweep-place-kept': {
    what: 'a candidate for sweeping that takes the place of another does not know its new place',
    file: sweepList,
    replace: '    this.#rows.set(last, sweepField, at);\n',
    by: '',
  },
  'start-kept-when-grown': {
    what: 'the txns in memory begin where they began before there was more room',
    file: committedLog,
    replace: '    this.#txns = txns;\n    this.#start = 0;',
    by: '    this.#txns = txns;',
  },
  'accepted-counts-as-synchronised': {
    what: 'who has accepted the epoch counts among those who have the history with which it begins',
    file: leader,
    replace: "this.#stage = 'synchronisation';\n      this.#agreeing = new Set(this.#isVoter ? [this.#options.sid] : []);",
    by: "this.#stage = 'synchronisation';",
  },
};

/** Only one half of a pair is looked at. */
const wrongHalf: Readonly<Record<string, Drawn>> = {
  'digest-carry-lost': {
    what: 'the lower half of the tree digest does not carry into the upper half when a change is taken back',
    file: outstanding,
    replace: 'this.#addToDigest(-digestDelta);',
    by: 'this.digestLow = ((this.digestLow >>> 0) - digestDelta) | 0;',
  },
  'ephemeral-of-another-session': {
    what: 'the end of a session takes an ephemeral that another one has made anew, if the upper halves of their ids are equal',
    file: prepare,
    replace: 'future.ownerHigh === high && future.ownerLow === low) this.#removeOne',
    by: 'future.ownerHigh === high) this.#removeOne',
  },
  'new-ephemerals-by-low-half': {
    what: 'the end of a session takes new ephemerals of another one, if the lower halves of their ids are equal',
    file: outstanding,
    replace:
      'if (future.ownerHigh !== ownerHigh || this.#byPath.get(path) !== future) continue;\n      if (!this.#tree.isEphemeralOf(this.#tree.find(path), ownerHigh, ownerLow))',
    by: 'if (this.#byPath.get(path) !== future) continue;\n      if (!this.#tree.isEphemeralOf(this.#tree.find(path), ownerHigh, ownerLow))',
  },
  'reply-by-session-only': {
    what: 'a txn answers the first write that its session waits for, whatever its xid',
    file: forwarding,
    replace: 'if (head !== undefined && head.cxid === cxid) return head;',
    by: 'if (head !== undefined) return head;',
  },
  'sync-done-at-head-only': {
    what: 'a sync that is answered while it stands behind others is not noted',
    file: server,
    replace:
      'sync.isDone = true;\n      const cnxn = this.#cnxns.get(sync.cnxn);\n      if (cnxn === undefined || cnxn.waiting.peek() !== sync) continue;',
    by: 'const cnxn = this.#cnxns.get(sync.cnxn);\n      if (cnxn === undefined || cnxn.waiting.peek() !== sync) continue;\n      sync.isDone = true;',
  },
  'parent-told-as-znode': {
    what: 'who was told of a znode is not told of its parent',
    file: watchTable,
    replace: 'const telling = onParent ? this.#telling : this.#telling - 1;',
    by: 'const telling = this.#telling;',
  },
  'mark-in-one-slot': {
    what: 'all marks of a log are written to one place',
    file: syncedMark,
    replace: 'sequence: this.#written.sequence + 1, offset',
    by: 'sequence: this.#written.sequence + 2, offset',
  },
  'mark-of-own-log-removed': {
    what: 'a TRUNC removes the mark of the log that it cuts, and would lower that of another log',
    file: truncation,
    replace: 'mark.firstChecksum !== end.firstChecksum) {',
    by: 'mark.firstChecksum === end.firstChecksum) {',
  },
  'empty-memory-holds-all': {
    what: 'a leader without a txn in memory takes that for all that a learner may lack',
    file: synchroniser,
    replace: 'newest === undefined ? sent < last : !this.#committed.holdsAllAbove(sent)',
    by: 'newest !== undefined && !this.#committed.holdsAllAbove(sent)',
  },
  'standstill-before-serving': {
    what: 'a leader that stood still before it served goes on as if nothing had been',
    file: leader,
    replace: "if (this.#stage !== 'over' && !this.#quorum.containsQuorum(new Set([this.#options.sid])) && silentMs",
    by: "if (this.#stage === 'broadcast' && !this.#quorum.containsQuorum(new Set([this.#options.sid])) && silentMs",
  },
  'txn-of-another-server': {
    what: 'a learner takes a txn that a client of another server has asked for as the answer to a request of its own client with that xid',
    file: learner,
    replace: 'const mayBeOurs = this.#ownTxns.mayInclude(packet);',
    by: 'const mayBeOurs = true;',
  },
  'deleted-under-the-walk': {
    what: 'a znode that is deleted is not written first to the snapshots that lack it',
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
    what: 'a leader that has refused a dial, or whose stream was accepted early and closed, is not dialled again',
    file: dialling,
    replace: 'else this.#retryMs = now.elapsedMs + Math.min',
    by: "else if (outcome !== 'refused') this.#retryMs = now.elapsedMs + Math.min",
  },
  'standstill-by-init-limit': {
    what: 'a leader that stood still goes by initLimit rather than syncLimit',
    file: leader,
    replace: 'silentMs > syncLimitTicks * tickTimeMs) {',
    by: 'silentMs > this.#options.initLimitTicks * tickTimeMs) {',
  },
};

/** Something is counted twice, or given back twice, or not at all. */
const counted: Readonly<Record<string, Drawn>> = {
  'child-counted-twice': {
    what: 'a delete takes two from the number of children that the next write is judged by',
    file: prepare,
    replace:
      'parentAfter.childCount--;\n      parentAfter.pzxid = zxid;\n      this.outstanding.record(parentPath, zxid, parentAfter, parent.digest);\n    }\n    const after',
    by: 'parentAfter.childCount -= 2;\n      parentAfter.pzxid = zxid;\n      this.outstanding.record(parentPath, zxid, parentAfter, parent.digest);\n    }\n    const after',
  },
  'request-not-given-back': {
    what: 'a request that has waited counts as under way for ever',
    file: load,
    replace: '  unparked(frame: ParkedFrame, address: AddressLoad): void {\n    this.requests--;',
    by: '  unparked(frame: ParkedFrame, address: AddressLoad): void {',
  },
  'acl-of-snapshot-counted-once': {
    what: 'after a start each ACL counts one znode as its user',
    file: loader,
    replace: '      acls.retain(known);\n      return known;',
    by: '      return known;',
  },
  'told-once-for-each-watch': {
    what: 'a client with two watches on a znode is told twice',
    file: watchTable,
    replace: 'this.#watcherTold.get(watcher) >= telling) continue;',
    by: 'this.#watcherTold.get(watcher) > telling) continue;',
  },
  'perms-not-added': {
    what: 'of two entries of a long ACL for one identity the second counts',
    file: aclIndex,
    replace: 'this.#rows[row + 2]! |= perms;',
    by: 'this.#rows[row + 2]! = perms;',
  },
  'quota-of-deleted-kept': {
    what: 'znodes that are deleted still count for their quota',
    file: quotaTable,
    replace: 'quota.usedCount + count,',
    by: 'quota.usedCount + Math.max(0, count),',
  },
  'share-given-back-early': {
    what: 'an address with one request left counts as one without',
    file: load,
    replace: 'if (--address.requests === 0) this.#addresses--;',
    by: 'if (--address.requests <= 1) this.#addresses--;',
  },
  'one-behind-a-long-write-waits': {
    what: 'of a session that a learner speaks for, one request alone waits behind a long write that waits, and the next overtakes it',
    file: longWrites,
    replace: 'return this.#requests > 0 && (this.#parties',
    by: 'return this.#requests > 1 && (this.#parties',
  },
  'ahead-for-one-walk': {
    what: 'a znode that changes is written ahead to the first of two snapshots alone',
    file: dataTree,
    replace: 'for (const walk of this.#walks) {\n      if (walk.has(node)) continue;',
    by: 'for (const walk of this.#walks.slice(0, 1)) {\n      if (walk.has(node)) continue;',
  },
};

/** Room that is not given back, or is measured by the wrong rule; only where there is little of it does anybody notice. */
const littleRoom: Readonly<Record<string, Drawn>> = {
  'input-kept-in-total': {
    what: 'input that was held for a client counts for ever, its connection may be closed or not',
    file: clientPort,
    replace: 'const more = cnxn.cutter.retainedBytes - cnxn.retainedCounted;',
    by: 'const more = Math.max(0, cnxn.cutter.retainedBytes - cnxn.retainedCounted);',
  },
  'place-of-closed-kept': {
    what: 'a connection that is gone still counts for its address',
    file: clientPort,
    replace: 'if (--cnxn.address.cnxnCount === 0)',
    by: 'if (cnxn.address.cnxnCount === 0)',
  },
  'txn-kept-in-load': {
    what: 'what a txn held while it was under way counts for ever',
    file: load,
    replace: '  applied(proposal: Proposal): void {\n    this.bytes -= heldBy(proposal);',
    by: '  applied(proposal: Proposal): void {\n    void heldBy(proposal);',
  },
  'brought-watches-by-new': {
    what: 'watches that a client brings along are counted as strictly as new ones',
    file: memoryLimits,
    replace: 'this.#watches.countOf(cnxn.id) <= max;',
    by: 'this.#watches.countOf(cnxn.id) < this.#watchesPerCnxnMax;',
  },
  'stale-refused-alone': {
    what: 'of a connection that has gone, what comes after a write that was refused is carried out',
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
