/**
 * Mutants at places that were drawn at random over core and runtime: no guard is taken away, but something is a little wrong where nobody looks for it.
 * A field beside the right one is compared, a step is taken one too early, a count is off by one, an owner is kept, one half of a pair is
 * looked at, something is counted twice or forgotten. All of them are the seeds': no scenario tells of them.
 */
import type { Mutant } from './mutant.ts';

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
const loader = 'packages/core/src/snapshot/snapshot-loader.ts';
const recovery = 'packages/runtime/src/storage/recovery.ts';
const syncedMark = 'packages/runtime/src/storage/synced-mark.ts';
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
    replace:
      'if (request.version !== -1 && request.version !== znode.version) return ErrorCode.BadVersion;\n    return { type: OpCode.check',
    by: 'if (request.version !== -1 && request.version !== znode.cversion) return ErrorCode.BadVersion;\n    return { type: OpCode.check',
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
};

/** Only one half of a pair is looked at. */
const wrongHalf: Readonly<Record<string, Drawn>> = {
  'digest-carry-lost': {
    what: 'the lower half of the tree digest does not carry into the upper half when a change is taken back',
    file: outstanding,
    replace: 'this.#addToDigest(-digestDelta);',
    by: 'this.digestLow = ((this.digestLow >>> 0) - digestDelta) | 0;',
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
};

export const drawnMutants: Readonly<Record<string, Mutant>> = Object.fromEntries(
  Object.entries({
    'wrong field': wrongField,
    'one step early': early,
    'off by one': offByOne,
    'old owner kept': kept,
    'wrong half of a pair': wrongHalf,
    'counted twice': counted,
  }).flatMap(([kind, mutants]) => Object.entries(mutants).map(([name, mutant]) => [name, { from: `drawn: ${kind}`, ...mutant }])),
);
