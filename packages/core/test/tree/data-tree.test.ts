import { type Acl, ErrorCode, Reader, readStat, sessionHigh, sessionIdOf, sessionLow, type Stat, Writer } from '@tskeeper/protocol';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { DataTree, nodeDigest } from '../../src/tree/data-tree.ts';
import { containerOwner, ttlMark } from './model.ts';
import { anyChange, childNames, expectSame, open, topPaths, TreeAndModel, treeOptions, written } from './tree-and-model.ts';

interface Extras {
  readonly data?: Buffer | null;
  readonly owner?: bigint;
  readonly parentCVersion?: number;
  readonly raise?: boolean;
}

function countBelow(tree: DataTree, path: string): number {
  const top = tree.find(path);
  let count = 0;
  for (let node = tree.nextBelow(top, top); node !== 0; node = tree.nextBelow(node, top)) count++;
  return count;
}

/** Creates a znode at 1000 ms times its zxid. */
function add(tree: DataTree, path: string, zxid: number, extras: Extras = {}): number {
  const { data = null, owner = 0n, parentCVersion = -1, raise = true } = extras;
  return tree.create(path, data, tree.acls.intern(open), sessionHigh(owner), sessionLow(owner), parentCVersion, zxid, zxid * 1000, raise);
}

describe('DataTree', () => {
  it('agrees with a plain map of paths after any operations', () => {
    fc.assert(
      fc.property(fc.array(anyChange, { maxLength: 120 }), (changes) => {
        const both = new TreeAndModel();
        for (const change of changes) both.change(change);
        expectSame(both.tree, both.model);
        for (const path of topPaths) both.change({ kind: 'remove', path, late: 0 });
        expectSame(both.tree, both.model);
        expect(both.tree.nodeCount).toBe(5);
        expect(both.tree.acls.size).toBe(1);
        expect(both.tree.sweepableCount).toBe(0);
      }),
      { numRuns: breadth(15, 150) },
    );
  });

  it('gives a znode the digest that was computed before the change', () => {
    const tree = new DataTree(treeOptions);
    add(tree, '/a', 7, { data: Buffer.from('one') });
    const counters = { version: 0, cversion: 0, aversion: 0, ownerHigh: 0, ownerLow: 0 };
    const stat = { czxid: 7, mzxid: 7, pzxid: 7, ctime: 7000, mtime: 7000, ...counters };
    expect(nodeDigest('/a', Buffer.from('one'), stat)).toBe(tree.digestOf(tree.find('/a')));
    expect(tree.digestAs(tree.find('/a'), stat)).toBe(tree.digestOf(tree.find('/a')));

    add(tree, '/a/b', 8);
    const after = { ...stat, cversion: 1, pzxid: 8 };
    expect(tree.digestAs(tree.find('/a'), after)).toBe(tree.digestOf(tree.find('/a')));
    expect(nodeDigest('/', Buffer.alloc(0), stat)).toBe(nodeDigest('', Buffer.alloc(0), stat));
    expect(nodeDigest('/zookeeper/quota', null, stat)).toBe(0);
    expect(tree.digestAs(tree.find('/zookeeper/quota'), stat)).toBe(0);
    expect(nodeDigest('/zookeeper', null, stat)).not.toBe(0);
  });

  it('keeps no digest if digests are disabled', () => {
    const tree = new DataTree({ ...treeOptions, digestEnabled: false });
    add(tree, '/a', 7);
    expect([tree.digestHigh, tree.digestLow, tree.digestOf(tree.find('/a'))]).toEqual([0, 0, 0]);
  });

  it('counts an empty tree as ZooKeeper does', () => {
    const tree = new DataTree(treeOptions);
    expect(tree.nodeCount).toBe(5);
    expect(tree.approximateDataBytes).toBe('/'.length + '/zookeeper'.length + '/zookeeper/quota'.length + '/zookeeper/config'.length);
    expect(countBelow(tree, '/')).toBe(3);
    expect(tree.acls.size).toBe(1);
  });

  describe('look-ups', () => {
    const tree = new DataTree(treeOptions);
    for (const [i, path] of ['/a', '/a/b', '/ab', '/a/é中😀'].entries()) add(tree, path, i + 1);

    it.each(['/a/', '//a', '/a//b', 'a', '/b', '/a/b/c', '//', ' ', '/A', '/a/é', '/a/b\0'])('find no znode at %j', (path) => {
      const bytes = Buffer.from(path);
      expect(tree.lookup(bytes, 0, bytes.length)).toBe(0);
      expect(tree.find(path)).toBe(0);
    });

    it('find the root at the empty path and /', () => {
      expect(tree.find('')).not.toBe(0);
      expect(tree.find('/')).toBe(tree.find(''));
      expect(tree.lookup(Buffer.from('x/y'), 1, 2)).toBe(tree.find(''));
      expect(tree.lookup(Buffer.from('xy'), 1, 1)).toBe(tree.find(''));
      expect(tree.pathOf(tree.find(''))).toBe('/');
      expect(tree.parentOf(tree.find(''))).toBe(0);
    });

    it('find no znode for malformed UTF-8, nor for half a character', () => {
      const bytes = Buffer.from('/a/é中😀');
      expect(tree.lookup(bytes, 0, bytes.length)).toBe(tree.find('/a/é中😀'));
      expect(tree.lookup(bytes, 0, bytes.length - 1)).toBe(0);
      bytes[4]! ^= 0x40;
      expect(tree.lookup(bytes, 0, bytes.length)).toBe(0);
    });

    it('return a handle that is valid while the znode exists, whatever changes beside it', () => {
      const node = tree.find('/a/b');
      for (let i = 0; i < 3000; i++) add(tree, `/ab/${i}`, 10 + i);
      tree.setData('/a/b', Buffer.alloc(100_000), 1, 9999, 1);
      for (let i = 0; i < 3000; i++) tree.remove(`/ab/${i}`, 10_000 + i);
      expect(tree.find('/a/b')).toBe(node);
      expect(tree.pathOf(node)).toBe('/a/b');
    });
  });

  describe('a deleted znode', () => {
    it('leaves nothing for one created at the same path (C3-8, C3-12)', () => {
      const tree = new DataTree(treeOptions);
      add(tree, '/a', 1, { data: Buffer.alloc(40, 1) });
      tree.setData('/a', Buffer.alloc(2000, 2), 1, 2, 2000);
      tree.setAcl('/a', tree.acls.intern([]), 1);
      tree.remove('/a', 3);
      add(tree, '/a', 4, { data: null });
      const node = tree.find('/a');
      expect([tree.versionOf(node), tree.aversionOf(node), tree.cversionOf(node), tree.dataLengthOf(node)]).toEqual([0, 0, 0, -1]);
      expect([tree.czxidOf(node), tree.mzxidOf(node), tree.pzxidOf(node), tree.mtimeOf(node)]).toEqual([4, 4, 4, 4000]);
    });
  });

  describe('Stat (C3-26, C3-29)', () => {
    const statOf = (tree: DataTree, path: string): Stat => {
      const bytes = Buffer.from(
        written((writer) => tree.writeStat(tree.find(path), writer)),
        'hex',
      );
      return readStat(new Reader(bytes));
    };

    it('shows a create and a delete of a child as two changes of cversion, and as one of the internal counter', () => {
      const tree = new DataTree(treeOptions);
      add(tree, '/p', 1);
      add(tree, '/p/c', 2);
      expect(statOf(tree, '/p')).toMatchObject({ cversion: 1, numChildren: 1, pzxid: 2 });
      tree.remove('/p/c', 3);
      expect(statOf(tree, '/p')).toMatchObject({ cversion: 2, numChildren: 0, pzxid: 3, mzxid: 1, version: 0 });
      expect(tree.cversionOf(tree.find('/p'))).toBe(1);
    });

    it('shows -1 as the cversion of a new root, which has a child that no client created', () => {
      expect(statOf(new DataTree(treeOptions), '/')).toMatchObject({ cversion: -1, numChildren: 1 });
    });

    it('shows the effects of a change of data and of the ACL, and nothing else', () => {
      const tree = new DataTree(treeOptions);
      add(tree, '/a', 1, { data: Buffer.from('one') });
      const before = statOf(tree, '/a');
      tree.setData('/a', Buffer.from('seven'), 1, 2, 2000);
      expect(statOf(tree, '/a')).toEqual({ ...before, version: 1, mzxid: 2, mtime: 2000, dataLength: 5 });
      tree.setAcl('/a', tree.acls.intern(open), 4);
      expect(statOf(tree, '/a')).toEqual({ ...before, version: 1, mzxid: 2, mtime: 2000, dataLength: 5, aversion: 4 });
      tree.setData('/a', null, 2, 3, 3000);
      expect(statOf(tree, '/a')).toMatchObject({ dataLength: 0, version: 2 });
    });

    it.each([
      ['persistent', 0n, 0n],
      ['ephemeral', 0x100000cebc40000n, 0x100000cebc40000n],
      ['container', 0x8000000000000000n, 0n],
      ['ttl', 0xff00000000001388n, 0n],
    ] as const)('shows the owner of a %s znode as clients see it', (kind, owner, visible) => {
      const tree = new DataTree(treeOptions);
      add(tree, '/a', 1, { owner });
      const node = tree.find('/a');
      expect(tree.kindOf(node)).toBe(kind);
      expect(statOf(tree, '/a').ephemeralOwner).toBe(visible);
      expect(tree.ttlOf(node)).toBe(kind === 'ttl' ? 5000 : 0);
      expect(BigInt.asUintN(64, sessionIdOf(tree.ownerHighOf(node), tree.ownerLowOf(node)))).toBe(owner);
    });

    it('shows a TTL as a session with extended types disabled, and reads the layout of 3.5.3 if configured', () => {
      const off = new DataTree({ ...treeOptions, extendedTypesEnabled: false });
      add(off, '/a', 1, { owner: 0xff00000000001388n });
      expect(off.kindOf(off.find('/a'))).toBe('ephemeral');
      const old = new DataTree({ ...treeOptions, emulate353TtlNodes: true });
      add(old, '/a', 1, { owner: 0x8000000000001388n });
      add(old, '/b', 2, { owner: 0x8000000000000000n });
      expect([old.kindOf(old.find('/a')), old.ttlOf(old.find('/a')), old.kindOf(old.find('/b'))]).toEqual(['ttl', 5000, 'container']);
    });
  });

  describe('the counter that names sequential znodes', () => {
    it('is separate for each parent, and not reset by deletes (C3-17, C3-19)', () => {
      const tree = new DataTree(treeOptions);
      for (const [i, path] of ['/a', '/b', '/a/x', '/a/y', '/b/x'].entries()) add(tree, path, i + 1);
      tree.remove('/a/x', 9);
      expect([tree.cversionOf(tree.find('/a')), tree.cversionOf(tree.find('/b'))]).toEqual([2, 1]);
    });

    it('continues from 2147483647 to -2147483648 (C3-20)', () => {
      const tree = new DataTree(treeOptions);
      add(tree, '/p', 1);
      add(tree, '/p/a', 2, { parentCVersion: 0x7fffffff });
      add(tree, '/p/b', 3, { parentCVersion: -0x80000000 });
      expect(tree.cversionOf(tree.find('/p'))).toBe(-0x80000000);
      expect(tree.pzxidOf(tree.find('/p'))).toBe(3);
      add(tree, '/p/c', 4, { parentCVersion: -1 });
      expect(tree.cversionOf(tree.find('/p'))).toBe(-0x7fffffff);
    });

    it('is not reset by a replay, on either side of the overflow (P25)', () => {
      const tree = new DataTree(treeOptions);
      add(tree, '/p', 1);
      add(tree, '/p/z', 2, { parentCVersion: 0x7ffffff0 });
      add(tree, '/p/a', 20, { parentCVersion: -0x80000000 + 5 });
      add(tree, '/p/b', 3, { parentCVersion: 0x7fffffff });
      expect(tree.cversionOf(tree.find('/p'))).toBe(-0x80000000 + 5);
      expect(tree.pzxidOf(tree.find('/p'))).toBe(20);
    });
  });

  describe('a replay of txns whose effects are in the tree', () => {
    it('raises cversion and pzxid of the parent of an existing znode, for txns of type create only (ZOOKEEPER-3249)', () => {
      const tree = new DataTree(treeOptions);
      add(tree, '/p', 1);
      add(tree, '/p/c', 2);
      expect(add(tree, '/p/c', 9, { parentCVersion: 5, raise: false })).toBe(ErrorCode.NodeExists);
      expect([tree.cversionOf(tree.find('/p')), tree.pzxidOf(tree.find('/p'))]).toEqual([1, 2]);
      expect(add(tree, '/p/c', 9, { parentCVersion: 5 })).toBe(ErrorCode.NodeExists);
      expect([tree.cversionOf(tree.find('/p')), tree.pzxidOf(tree.find('/p'))]).toEqual([5, 9]);
      expect(add(tree, '/p/c', 7, { parentCVersion: 4 })).toBe(ErrorCode.NodeExists);
      expect([tree.cversionOf(tree.find('/p')), tree.pzxidOf(tree.find('/p'))]).toEqual([5, 9]);
      expect([tree.czxidOf(tree.find('/p/c')), tree.childCountOf(tree.find('/p'))]).toEqual([2, 1]);
    });

    it('gives an existing znode the ACL of the txn', () => {
      const tree = new DataTree(treeOptions);
      add(tree, '/c', 2);
      const other: Acl[] = [{ perms: 1, id: { scheme: 'digest', id: 'a:b' } }];
      expect(tree.create('/c', null, tree.acls.intern(other), 0, 0, 1, 2, 2000, true)).toBe(ErrorCode.NodeExists);
      expect(tree.acls.get(tree.aclOf(tree.find('/c')))).toEqual(other);
      // The other list was removed with its last user, and /zookeeper/config has one of its own.
      expect(tree.acls.size).toBe(2);
    });

    it('raises the pzxid of a parent whose child is deleted already, and never lowers it (ZOOKEEPER-3125)', () => {
      const tree = new DataTree(treeOptions);
      add(tree, '/p', 5);
      expect(tree.remove('/p/gone', 9)).toBe(ErrorCode.NoNode);
      expect(tree.pzxidOf(tree.find('/p'))).toBe(9);
      expect(tree.remove('/p/gone', 7)).toBe(ErrorCode.NoNode);
      expect(tree.pzxidOf(tree.find('/p'))).toBe(9);
      expect(tree.remove('/no/parent', 10)).toBe(ErrorCode.NoNode);
    });

    it('changes nothing without a parent or znode, and keeps no ACL for it', () => {
      const tree = new DataTree(treeOptions);
      expect(add(tree, '/no/parent', 1)).toBe(ErrorCode.NoNode);
      expect(tree.setData('/no', null, 1, 1, 1)).toBe(ErrorCode.NoNode);
      expect(tree.setAcl('/no', tree.acls.intern(open), 1)).toBe(ErrorCode.NoNode);
      expect(tree.acls.size).toBe(1);
      expect(tree.nodeCount).toBe(5);
    });

    it('removes the children of a later znode of the same path', () => {
      const tree = new DataTree(treeOptions);
      for (const [i, path] of ['/a', '/a/b', '/a/b/c', '/a/d'].entries()) add(tree, path, 100 + i);
      expect(tree.remove('/a', 50)).toBe(ErrorCode.Ok);
      expect([tree.nodeCount, tree.find('/a/b/c')]).toEqual([5, 0]);
    });
  });

  it('neither creates nor removes the root', () => {
    const tree = new DataTree(treeOptions);
    expect(add(tree, '/', 7)).toBe(ErrorCode.NodeExists);
    expect(tree.remove('/', 7)).toBe(ErrorCode.BadArguments);
    expect(tree.remove('', 7)).toBe(ErrorCode.NoNode);
    expect(add(tree, '/a/', 7)).toBe(ErrorCode.NoNode);
    add(tree, '/a', 8);
    expect(add(tree, '/a/', 9)).toBe(ErrorCode.BadArguments);
    expect(tree.nodeCount).toBe(6);
  });

  it('lists children in order of creation', () => {
    const tree = new DataTree(treeOptions);
    for (const [i, name] of ['c', 'a', 'é', 'b'].entries()) add(tree, `/${name}`, i + 1);
    tree.remove('/a', 9);
    add(tree, '/a', 10);
    expect(childNames(tree, '')).toEqual(['zookeeper', 'c', 'é', 'b', 'a']);
  });

  it('counts descendants, also of a znode without any', () => {
    const tree = new DataTree(treeOptions);
    for (const [i, path] of ['/a', '/a/b', '/a/b/c', '/a/d', '/e'].entries()) add(tree, path, i + 1);
    expect(['/', '/a', '/a/b', '/a/b/c', '/zookeeper'].map((path) => countBelow(tree, path))).toEqual([8, 3, 1, 0, 2]);
  });

  it('supports a path of hundreds of names', () => {
    const both = new TreeAndModel();
    const { tree } = both;
    const depth = 600;
    let path = '';
    for (let i = 0; i < depth; i++) add(tree, (path += '/d'), i + 1);
    expect(countBelow(tree, '/d')).toBe(depth - 1);
    const walk = tree.snapshots.begin();
    tree.setData(path, Buffer.alloc(3), 1, depth + 1, 1);
    const writer = new Writer();
    while (!tree.snapshots.slice(walk, writer, 1 << 20));
    tree.snapshots.end(walk);
    tree.remove('/d', depth + 2);
    expect(tree.nodeCount).toBe(5);
  });

  describe('sweeps', () => {
    it('visit every childless container and TTL znode that stays, whatever is deleted meanwhile (C3-21, C3-23)', () => {
      fc.assert(
        fc.property(
          fc.integer({ min: 0, max: 60 }),
          fc.integer({ min: 1, max: 20 }),
          fc.array(fc.nat({ max: 59 })),
          (count, budget, gone) => {
            const tree = new DataTree(treeOptions);
            for (let i = 0; i < count; i++) add(tree, `/c${i}`, i + 1, { owner: i % 2 === 0 ? containerOwner : ttlMark | 9n });
            add(tree, '/plain', 1000);
            if (count > 0) add(tree, '/c0/child', 1001);
            const seen = new Set<string>();
            let cursor = 0;
            let calls = 0;
            do {
              let visited = 0;
              cursor = tree.sweepCandidates(cursor, budget, (node) => {
                visited++;
                seen.add(tree.pathOf(node));
              });
              expect(visited).toBeLessThanOrEqual(budget);
              const next = gone[calls++];
              if (next !== undefined) tree.remove(`/c${next}`, 2000);
            } while (cursor !== 0);
            const stayed = Array.from({ length: count }, (_, i) => `/c${i}`).filter((path) => tree.find(path) !== 0 && path !== '/c0');
            for (const path of stayed) expect(seen).toContain(path);
            expect(seen).not.toContain('/c0');
            expect(seen).not.toContain('/plain');
          },
        ),
      );
    });
  });

  it('D11: stores 200,000 znodes of 100 bytes in 310 bytes each, and releases the memory', () => {
    const tree = new DataTree(treeOptions);
    const empty = tree.memoryBytes();
    const data = Buffer.alloc(100);
    const count = breadth(50_000, 200_000);
    add(tree, '/bench', 1);
    for (let i = 0; i < count; i++) add(tree, `/bench/n${String(i).padStart(7, '0')}`, i + 2, { data });
    const full = tree.memoryBytes();
    expect(full / count).toBeLessThan(310);
    expect(full / count).toBeGreaterThan(100 + 8 + 68 + 64);
    for (let i = 0; i < count; i++) tree.remove(`/bench/n${String(i).padStart(7, '0')}`, count + i + 2);
    // Rows stay for later znodes; records and index are released, except for the pages kept in
    // reserve.
    expect(tree.memoryBytes() - empty).toBeLessThan(count * 64 + (5 << 20));
  });
});
