/** Snapshots that are written while the tree changes, several at once, with one thing wrong. */
import type { Mutant } from './mutant.ts';

const tree = 'packages/core/src/tree/data-tree.ts';
const acls = 'packages/core/src/tree/acl-table.ts';

export const snapshotMutants: Readonly<Record<string, Mutant>> = {
  'ahead-to-first-snapshot-only': {
    what: 'a znode that is about to change is written ahead to the snapshot that began first, and to no other',
    from: 'several snapshots at once',
    file: tree,
    replace: 'if (walk.has(node)) continue;',
    by: 'if (walk !== this.#walks[0] || walk.has(node)) continue;',
  },
  'znode-noted-early': {
    what: 'a snapshot takes the znode behind the one that it has just written for written as well',
    from: 'several snapshots at once',
    file: tree,
    replace: '        walk.note(node);\n      }\n      node = this.#after(node, this.#root);',
    by: '        walk.note(node);\n        walk.note(this.#after(node, this.#root));\n      }\n      node = this.#after(node, this.#root);',
  },
  'new-znode-in-old-row': {
    what: 'a znode that comes into being in the row of one that is gone belongs to snapshots that began before',
    from: 'several snapshots at once',
    file: tree,
    replace: 'for (const walk of this.#walks) walk.note(node);',
    by: 'void this.#walks;',
  },
  'next-znode-is-gone': {
    what: 'only the snapshot that began first goes on behind a znode that is deleted where it stands',
    from: 'several snapshots at once',
    file: tree,
    replace: 'for (const walk of this.#walks) if (walk.next === node)',
    by: 'for (const walk of this.#walks) if (walk === this.#walks[0] && walk.next === node)',
  },
  'acl-goes-with-first-snapshot': {
    what: 'what a list of ACLs is kept for is the snapshot that ends first',
    from: 'ZOOKEEPER-2141',
    file: acls,
    replace: 'if (since >= oldest) return;',
    by: 'void oldest;',
  },
};
