/** Errors in the operations of ClickHouse Keeper. */
import type { Mutant } from './mutant.ts';

const origin = 'A20';

export const keeperMutants: Readonly<Record<string, Mutant>> = {
  'filtered-list-counts-containers': {
    description: 'a list of ephemerals has every child that is not persistent',
    origin,
    symbol: 'FilteredLists.#forEachListed',
    original: "(tree.kindOf(child) === 'ephemeral') === (filter === ListFilter.ephemeral)",
    replacement: "(tree.kindOf(child) !== 'persistent') === (filter === ListFilter.ephemeral)",
  },
  'filtered-list-reads-without-permission': {
    description: 'a filtered list shows children that the client may not read',
    origin: 'A20, P33',
    symbol: 'FilteredLists.#answer',
    original: 'showsContent && !this.#replies',
    replacement: '(withStat || withData) && !this.#replies',
  },
  'filtered-list-data-of-all': {
    description: 'the data of a filtered list are those of all children',
    origin,
    symbol: 'FilteredLists.#answer',
    original: 'if (withData) yield* this.#forEachListed(request, parent, filter, (child) => tree.writeData',
    replacement: 'if (withData) yield* this.#forEachListed(request, parent, ListFilter.all, (child) => tree.writeData',
  },
  'recursive-list-reads-without-permission': {
    description: 'a list of descendants has paths below a znode that the client may not read',
    origin: 'A20, P33',
    symbol: 'RecursiveLists.#answer',
    original: 'if (this.#replies.hasPermission(Perms.read, child, request.identities)) {',
    replacement: 'if (this.#replies.hasPermission(Perms.read, top, request.identities)) {',
  },
  'removal-from-the-top': {
    description: 'a recursive removal deletes parents before their children',
    origin,
    symbol: 'PendingRemoval.advance',
    original: 'this.deletes.push(',
    replacement: 'this.deletes.unshift(',
  },
  'removal-without-pending-creates': {
    description: 'a recursive removal does not see znodes that are created and not applied yet',
    origin,
    symbol: 'PendingRemoval.#begin',
    original: 'this.#changed = this.#outstandingChanges.entries();',
    replacement: 'this.#changed = this.#top === 0 ? this.#outstandingChanges.entries() : [].values();',
  },
  'removal-by-parent-acl': {
    description: 'a recursive removal checks the ACL of the parent only',
    origin: 'A20, P33',
    symbol: 'PendingRemoval.#collect',
    original: 'this.#mayRemoveAll &&= this.#mayRemove(acl);',
    replacement: '',
  },
  'try-remove-of-any-version': {
    description: 'tryRemove deletes a znode of another version',
    origin,
    symbol: 'KeeperWrites.tryRemove',
    original: 'this.#validator.delete(origin, request, zxid)',
    replacement: 'this.#validator.delete(origin, { ...request, version: -1 }, zxid)',
  },
  'create-if-not-exists-refuses': {
    description: 'createIfNotExists in a multi fails if the znode is there',
    origin,
    symbol: 'KeeperWrites.createIfNotExists',
    original: 'result === ErrorCode.NodeExists && path !== null',
    replacement: 'result === ErrorCode.NodeExists && path !== null && origin.keeperParts === undefined',
  },
  'check-stat-by-creates': {
    description: 'checkStat in a multi compares the cversion with the number of creates',
    origin,
    symbol: 'KeeperWrites.checkStat',
    original: 'cversion: (2 * znode.cversion - znode.childCount) | 0,',
    replacement: 'cversion: znode.cversion,',
  },
  'check-not-exists-of-any-version': {
    description: 'checkNotExists in a multi ignores the version',
    origin,
    symbol: 'KeeperWrites.checkNotExists',
    original: '(version === -1 || version === znode.version)',
    replacement: 'version !== undefined',
  },
  'keeper-multi-result-per-delete': {
    description: 'a recursive removal in a multi has a result for each znode',
    origin,
    symbol: 'Replica.#maybeWriteKeeperResult',
    original: "if ('path' in txn && txn.path !== path) return false;",
    replacement: '',
  },
  'keeper-multi-forwarded-as-multi': {
    description: 'a learner forwards a multi with operations of Keeper as an ordinary one',
    origin,
    symbol: 'LeaderForwarder.submitWrite',
    original: 'keeperParts === undefined ? origin.opCode : OpCode.keeperMulti',
    replacement: 'keeperParts === undefined ? origin.opCode : OpCode.multi',
  },
};
