/** Mutants of snapshots that are written while the tree changes, several at once. */
import type { Mutant } from './mutant.ts';

export const snapshotMutants: Readonly<Record<string, Mutant>> = {
  'snapshot-position-one-ahead': {
    description: 'a snapshot also marks the znode after the one it has just written as written',
    origin: 'several snapshots at once',
    symbol: 'TreeSnapshots.slice',
    original: 'walk.markWritten(node);',
    replacement: 'walk.markWritten(node);\n        walk.markWritten(this.#tree.nextBelow(node, this.#tree.root));',
  },
  'snapshot-takes-reused-row': {
    description: 'a znode created in the row of a deleted one is included in snapshots that began before',
    origin: 'several snapshots at once',
    symbol: 'TreeSnapshots.onCreated',
    original: 'for (const walk of this.#walks) walk.markWritten(node);',
    replacement: 'void this.#walks;',
  },
};
