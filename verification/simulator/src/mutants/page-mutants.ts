/** Errors in pages of children, at the server and in the client. */
import type { Mutant } from './mutant.ts';

const origin = 'D10';

export const pageMutants: Readonly<Record<string, Mutant>> = {
  'page-ends-by-czxid': {
    description: 'a page after a child skips the others that were created in the same txn',
    origin,
    symbol: 'ChildOrder.after',
    original: 'if (isThere) return rows.get(child, nextSiblingField);',
    replacement: 'name = undefined;',
  },
  'page-siblings-unsorted': {
    description: 'children of one txn are listed in the order of its parts',
    origin,
    symbol: 'ChildOrder.settle',
    original: 'if (!isOrdered) yield* this.#sort(parent, before, first, count, visitsMax);',
    replacement: '',
  },
  'page-position-by-name-only': {
    description: 'a page continues at a child that was deleted and created again',
    origin,
    symbol: 'ChildOrder.after',
    original: 'const isThere = child !== 0 && tree.czxidOf(child) === czxid;',
    replacement: 'const isThere = child !== 0; if (isThere) czxid = tree.czxidOf(child);',
  },
  'page-full-is-last': {
    description: 'a page that is exactly full says that it is the last',
    origin,
    symbol: 'ChildrenPages.#answer',
    original: 'if (count === countMax) {\n        isLast = false;',
    replacement: 'if (count === countMax) {\n        isLast = tree.nextSiblingOf(node) === 0;',
  },
  'page-size-without-stat': {
    description: 'the limit of bytes of a page counts data and names, and not the Stats',
    origin,
    symbol: 'ChildrenPages.#answer',
    original: 'size += err === ErrorCode.Ok ? childWithDataBytes - lengthBytes + dataBytes : lengthBytes;',
    replacement: 'size += err === ErrorCode.Ok ? 8 + dataBytes : lengthBytes;',
  },
  'page-data-by-parent-acl': {
    description: 'a page shows data of children that only the ACL of the parent permits to read',
    origin: 'D10, P33',
    symbol: 'ChildrenPages.#answer',
    original: 'if (!this.#replies.hasPermission(Perms.read, node, request.identities)) err = ErrorCode.NoAuth;',
    replacement: 'if (!this.#replies.hasPermission(Perms.read, parent, request.identities)) err = ErrorCode.NoAuth;',
  },
  'client-pages-from-first-czxid': {
    description: 'the client continues after the first child of a page',
    origin,
    symbol: 'childrenPageOperation',
    original: 'const last = children.at(-1);',
    replacement: 'const last = children.at(0);',
  },
  'client-pages-until-parent': {
    description: 'the client takes the czxid of the parent for that of its last child',
    origin,
    symbol: 'listChildren',
    original: 'if (untilZxid === -1) untilZxid = Number(parentStat.pzxid);',
    replacement: 'untilZxid = Number(parentStat.czxid);',
  },
};
