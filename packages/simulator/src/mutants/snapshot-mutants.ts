/** Snapshots that are written while the tree changes, several at once, with one thing wrong. */
import type { Mutant } from './mutant.ts';

const tree = 'packages/core/src/tree/data-tree.ts';

export const snapshotMutants: Readonly<Record<string, Mutant>> = {
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
};
