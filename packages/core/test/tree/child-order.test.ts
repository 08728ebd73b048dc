import { describe, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { SnapshotWriter } from '../../src/snapshot/snapshot-writer.ts';
import type { NodeId } from '../../src/tree/data-tree.ts';
import { DataTree } from '../../src/tree/data-tree.ts';
import { drain, load, sessionList, snapshotOf } from '../snapshot/snapshots.ts';
import { open, treeOptions } from './tree-and-model.ts';

/** A linear congruential generator: enough to vary small cases. */
class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  below(limit: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) | 0;
    return (this.#state >>> 8) % limit;
  }
}

function add(tree: DataTree, path: string, zxid: number): void {
  tree.create(path, null, tree.acls.intern(open), 0, 0, -1, zxid, 1, true);
}

const nameOf = (tree: DataTree, node: NodeId): string => tree.pathOf(node).split('/').at(-1)!;

/** Children in the order of pages: by czxid, then by the bytes of the name. */
function expectedOrder(tree: DataTree, parent: string): string[] {
  const children: [number, string][] = [];
  for (let at = tree.firstChildOf(tree.find(parent)); at !== 0; at = tree.nextSiblingOf(at))
    children.push([tree.czxidOf(at), nameOf(tree, at)]);
  return children.toSorted(([a, x], [b, y]) => a - b || Buffer.compare(Buffer.from(x), Buffer.from(y))).map(([, name]) => name);
}

/** Lists in pages of one child; `between` runs before each step of the ordering. */
function listed(tree: DataTree, parent: string, visitsMax: number, between: () => void = () => {}): string[] {
  const names: string[] = [];
  let czxid = -1;
  let name = '';
  for (;;) {
    const top = tree.find(parent);
    const ordering = tree.childOrder.after(top, czxid, Buffer.from(name), tree.find(`${parent}/${name}`), visitsMax);
    let step = ordering.next();
    for (; step.done !== true; step = ordering.next()) between();
    const from = step.value;
    if (from === 0) return names;
    const settling = czxid === tree.czxidOf(from) ? undefined : tree.childOrder.settle(top, from, visitsMax);
    let settled = settling?.next();
    for (; settled !== undefined && settled.done !== true; settled = settling?.next()) between();
    const child = settled === undefined ? from : settled.value;
    name = nameOf(tree, child);
    czxid = tree.czxidOf(child);
    names.push(name);
  }
}

/** Names of one to three letters, some of them not ASCII. */
function anyName(random: SeededRandom): string {
  return Array.from({ length: 1 + random.below(3) }, () => 'abcé\u{ffee}'[random.below(5)]!).join('');
}

/** Creates in txns of one to four children, and deletes; some txns are older than those before. */
function anyTree(random: SeededRandom, mayBeOlder: boolean): DataTree {
  const tree = new DataTree(treeOptions);
  add(tree, '/p', 1);
  let zxid = 1;
  for (let txns = random.below(30); txns > 0; txns--) {
    zxid = mayBeOlder && random.below(4) === 0 ? 2 + random.below(zxid) : zxid + 1;
    for (let parts = 1 + random.below(4); parts > 0; parts--) {
      const path = `/p/${anyName(random)}`;
      if (random.below(3) === 0) tree.remove(path, zxid);
      else add(tree, path, zxid);
    }
  }
  return tree;
}

describe('ChildOrder', () => {
  it('D10: lists children by czxid and name, whatever order they were added in', () => {
    for (let seed = 1; seed <= breadth(60, 600); seed++) {
      const random = new SeededRandom(seed);
      const tree = anyTree(random, seed % 2 === 0);
      const expected = expectedOrder(tree, '/p');
      const stat = tree.digestLow;
      expect(listed(tree, '/p', 1 + random.below(5))).toEqual(expected);
      expect(expectedOrder(tree, '/p')).toEqual(expected);
      expect(tree.childCountOf(tree.find('/p'))).toBe(expected.length);
      expect(tree.digestLow).toBe(stat);
      // The list can be changed afterwards.
      for (const name of expected) tree.remove(`/p/${name}`, 1000);
      expect(tree.firstChildOf(tree.find('/p'))).toBe(0);
    }
  });

  it('D10: finds the place of a child that was deleted, or never existed', () => {
    for (let seed = 1; seed <= breadth(60, 600); seed++) {
      const random = new SeededRandom(seed);
      const tree = anyTree(random, seed % 2 === 0);
      const children = expectedOrder(tree, '/p').map((name) => ({ name, czxid: tree.czxidOf(tree.find(`/p/${name}`)) }));
      const gone = random.below(2) === 0 ? children[random.below(children.length + 1)] : undefined;
      const { name, czxid } = gone ?? { name: anyName(random), czxid: 2 + random.below(40) };
      if (gone !== undefined) tree.remove(`/p/${name}`, 1000);
      const isAfter = (child: { readonly name: string; readonly czxid: number }): boolean =>
        child.czxid === czxid ? Buffer.compare(Buffer.from(child.name), Buffer.from(name)) > 0 : child.czxid > czxid;
      const finding = tree.childOrder.after(tree.find('/p'), czxid, Buffer.from(name), tree.find(`/p/${name}`), 1 + random.below(5));
      let step = finding.next();
      while (step.done !== true) step = finding.next();
      expect(step.value === 0 ? undefined : tree.czxidOf(step.value)).toBe(children.find(isAfter)?.czxid);
      const next = step.value === 0 ? undefined : nameOf(tree, step.value);
      // Children of another txn are not in order yet.
      if (next !== undefined && tree.czxidOf(step.value) === czxid) expect(next).toBe(children.find(isAfter)!.name);
    }
  });

  it('D10: lists the children of a snapshot whose writer had them in another order', () => {
    for (let seed = 1; seed <= breadth(30, 300); seed++) {
      const random = new SeededRandom(seed);
      const tree = anyTree(random, true);
      const loaded = load(snapshotOf(tree, 2000)).tree;
      expect(listed(loaded, '/p', 2)).toEqual(expectedOrder(tree, '/p'));
      // What is created later comes last.
      add(loaded, '/p/!', 2001);
      expect(listed(loaded, '/p', 2).at(-1)).toBe('!');
    }
  });

  it('D10: a page in the middle of a snapshot leaves no znode out of it and writes none twice', () => {
    for (let seed = 1; seed <= breadth(60, 600); seed++) {
      const random = new SeededRandom(seed);
      const tree = anyTree(random, true);
      for (const name of expectedOrder(tree, '/p')) if (random.below(2) === 0) add(tree, `/p/${name}/below`, 1500);
      const paths = (of: DataTree): string[] => {
        const found: string[] = [];
        for (let at = of.root; at !== 0; at = of.nextBelow(at, of.root)) found.push(of.pathOf(at));
        return found.toSorted();
      };
      const expected = paths(tree);
      const writer = new SnapshotWriter(tree, sessionList([]), 2000, true);
      const pieces: Buffer[] = [];
      let isComplete = false;
      /** Returns whether there is more. */
      const slice = (): boolean => {
        if (isComplete) return false;
        const piece = drainOnce(writer, 1 + random.below(300));
        pieces.push(piece.bytes);
        isComplete = piece.isLast;
        return !isComplete;
      };
      for (let slices = random.below(6); slices > 0; slices--) slice();
      expect(listed(tree, '/p', 1 + random.below(3), slice)).toEqual(expectedOrder(tree, '/p'));
      while (slice());
      expect(paths(load(Buffer.concat(pieces)).tree)).toEqual(expected);
    }
  });
});

function drainOnce(writer: SnapshotWriter, bytesTarget: number): { readonly bytes: Buffer; readonly isLast: boolean } {
  let isLast = false;
  const bytes = drain({ next: (to, _target) => ((isLast = writer.next(to, bytesTarget)), true) });
  return { bytes, isLast };
}
