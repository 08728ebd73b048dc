import { openAcl } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { NamespaceTable } from '../../src/tree/namespace-table.ts';
import { DataTree } from '../../src/tree/data-tree.ts';
import { load, snapshotOf } from '../snapshot/snapshots.ts';
import { treeOptions } from './tree-and-model.ts';

/** The number of numbers for namespaces of their own. */
const ownIds = 254;

function tableOf(count: number): { readonly table: NamespaceTable; readonly named: string[] } {
  const table = new NamespaceTable();
  const named: string[] = [];
  table.onAssigned = (id, name) => named.push(`${id} ${name}`);
  for (let n = 1; n <= count; n++) expect(table.acquire(`n${n}`)).toBe(n);
  return { table, named };
}

describe('numbers of namespaces', () => {
  it('are assigned from 1, and a known name keeps its number', () => {
    const { table, named } = tableOf(3);
    table.release(2);
    expect(table.acquire('n2')).toBe(2);
    expect(table.acquire('n4')).toBe(4);
    expect(named).toEqual(['1 n1', '2 n2', '3 n3', '4 n4']);
    expect([...table.entries()]).toEqual([
      [1, 'n1'],
      [2, 'n2'],
      [3, 'n3'],
      [4, 'n4'],
    ]);
  });

  it('are taken from the namespace unused for longest, only when none is left', () => {
    const { table, named } = tableOf(ownIds - 1);
    for (const id of [7, 3, 5]) table.release(id);
    expect(table.acquire('last')).toBe(ownIds);
    // Used again, so another is unused for longest.
    expect(table.acquire('n7')).toBe(7);
    named.length = 0;
    expect([table.acquire('x'), table.acquire('y')]).toEqual([3, 5]);
    expect(named).toEqual(['3 x', '5 y']);
    // The old name has lost its number.
    expect(table.find('n3')).toBe(ownIds + 1);
  });

  it('are exhausted at a limit: all further names share one number until a namespace is deleted', () => {
    const { table, named } = tableOf(ownIds);
    named.length = 0;
    expect([table.acquire('x'), table.acquire('y')]).toEqual([ownIds + 1, ownIds + 1]);
    expect(named).toEqual([`${ownIds + 1} /`]);
    table.release(ownIds + 1);
    expect(table.acquire('z')).toBe(ownIds + 1);
    table.release(9);
    expect(table.acquire('x')).toBe(9);
    expect([...table.entries()]).toHaveLength(ownIds + 1);
  });

  it('are not assigned to names longer than 256', () => {
    const { table } = tableOf(0);
    expect(table.acquire('x'.repeat(257))).toBe(ownIds + 1);
    expect(table.acquire('x'.repeat(256))).toBe(1);
  });
});

describe('a znode', () => {
  const tree = new DataTree(treeOptions);
  const create = (path: string): number => {
    expect(tree.create(path, null, tree.acls.intern(openAcl), 0, 0, -1, 1, 1, true)).toBe(0);
    return tree.namespaceOf(tree.find(path));
  };

  it('has the namespace of the first name of its path, and the root has none', () => {
    expect([tree.namespaceOf(tree.find('/')), tree.namespaceOf(tree.find('/zookeeper/quota'))]).toEqual([0, 1]);
    expect([create('/a'), create('/b'), create('/a/b'), create('/a/b/c'), create('/b/b')]).toEqual([2, 3, 2, 2, 3]);
    expect([tree.namespaceOfPath('/a/x/y'), tree.namespaceOfPath('/b')]).toEqual([2, 3]);
  });

  it('has the same namespace after loading a snapshot, and keeps it while a snapshot is taken', () => {
    const { tree: loaded } = load(snapshotOf(tree, 1));
    for (const path of ['/', '/zookeeper', '/a', '/b', '/a/b', '/a/b/c', '/b/b']) {
      const name = (of: DataTree): string | undefined => new Map(of.namespaces.entries()).get(of.namespaceOf(of.find(path)));
      expect(name(loaded)).toBe(name(tree));
      expect(name(tree)).toBe(path === '/' ? undefined : path.split('/')[1]);
    }
  });

  it('that is deleted below the root releases its number once all are assigned, and another name gets it', () => {
    for (let n = 4; n <= ownIds; n++) create(`/n${n}`);
    expect(create('/one-too-many')).toBe(ownIds + 1);
    expect(tree.remove('/a/b/c', 2)).toBe(0);
    expect(create('/two-too-many')).toBe(ownIds + 1);
    for (const path of ['/a/b', '/a']) expect(tree.remove(path, 3)).toBe(0);
    expect([create('/late'), create('/late/child'), create('/later')]).toEqual([2, 2, ownIds + 1]);
  });
});
