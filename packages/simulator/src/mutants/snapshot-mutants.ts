/** Mutants of snapshots that are written while the tree changes, several at once. */
import type { Mutant } from './mutant.ts';

const tree = 'packages/core/src/tree/data-tree.ts';

export const snapshotMutants: Readonly<Record<string, Mutant>> = {
  'znode-noted-early': {
    what: 'a snapshot also marks the znode after the one it has just written as written',
    from: 'several snapshots at once',
    file: tree,
    replace: '        walk.note(node);\n      }\n      node = this.#after(node, this.#root);',
    by: '        walk.note(node);\n        walk.note(this.#after(node, this.#root));\n      }\n      node = this.#after(node, this.#root);',
  },
  'new-znode-in-old-row': {
    what: 'a znode created in the row of a deleted one is included in snapshots that began before',
    from: 'several snapshots at once',
    file: tree,
    replace: 'for (const walk of this.#walks) walk.note(node);',
    by: 'void this.#walks;',
  },
};
