import { type Acl, Perms } from '@tskeeper/protocol';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DataTree } from '../../src/tree/data-tree.ts';
import { SnapshotLoader } from '../../src/snapshot/snapshot-loader.ts';
import { load, snapshotOf } from '../snapshot/snapshots.ts';
import { digestOf, treeOptions } from './tree-and-model.ts';

const open: readonly Acl[] = [{ perms: Perms.all, id: { scheme: 'world', id: 'anyone' } }];

/**
 * A tree with the operations of an administrator and of clients, each change under the next zxid.
 */
class Keeper {
  readonly tree = new DataTree(treeOptions);
  zxid = 0;

  create(path: string, text: string | null = ''): this {
    const data = text === null ? null : Buffer.from(text);
    this.zxid++;
    expect(this.tree.create(path, data, this.tree.acls.intern(open), 0, 0, -1, this.zxid, 1, true)).toBe(0);
    while (!this.tree.quotas.recountStep(1));
    return this;
  }

  set(path: string, text: string | null): this {
    this.zxid++;
    expect(this.tree.setData(path, text === null ? null : Buffer.from(text), 1, this.zxid, 1)).toBe(0);
    return this;
  }

  remove(path: string): this {
    expect(this.tree.remove(path, ++this.zxid)).toBe(0);
    return this;
  }

  /** Like `setquota`. */
  quota(path: string, limits: string): this {
    return this.create(`/zookeeper/quota${path}`)
      .create(`/zookeeper/quota${path}/zookeeper_limits`, limits)
      .create(`/zookeeper/quota${path}/zookeeper_stats`, 'whatever');
  }

  usage(path: string): string | undefined {
    return this.tree.dataOf(this.tree.find(`/zookeeper/quota${path}/zookeeper_stats`))?.toString();
  }
}

describe('quotas', () => {
  it('count the subtree when the usage znode is created, including its top', () => {
    const keeper = new Keeper().create('/a', 'four').create('/a/b', '12').create('/a/b/c', null).create('/ab', 'not counted');
    expect(keeper.quota('/a', 'count=10,bytes=-1').usage('/a')).toBe('count=3,bytes=6');
  });

  it('are updated by every change below, and change only the data of the usage znode', () => {
    const keeper = new Keeper().create('/a').quota('/a', 'count=10,bytes=-1');
    const { tree } = keeper;
    const stats = tree.find('/zookeeper/quota/a/zookeeper_stats');
    const before = [tree.versionOf(stats), tree.mzxidOf(stats), tree.mtimeOf(stats)];
    keeper.create('/a/b', 'abc').create('/a/b/c', 'defg').set('/a/b', 'x').set('/a', 'yz').remove('/a/b/c').create('/b', 'outside');
    expect(keeper.usage('/a')).toBe('count=2,bytes=3');
    expect([tree.versionOf(stats), tree.mzxidOf(stats), tree.mtimeOf(stats)]).toEqual(before);
    expect(tree.dataLengthOf(stats)).toBe('count=2,bytes=3'.length);
  });

  it('do not change the tree digest', () => {
    const keeper = new Keeper().create('/a');
    const plain = new Keeper().create('/a');
    keeper.quota('/a', 'count=10,bytes=-1');
    keeper.create('/a/b', 'abc');
    plain.zxid = 4;
    plain.create('/a/b', 'abc');
    expect(digestOf(keeper.tree)).toBe(digestOf(plain.tree));
  });

  it('keep other keys of the usage text, and write them as ZooKeeper does', () => {
    const keeper = new Keeper().create('/a').quota('/a', 'count=10,bytes=-1');
    keeper.set('/zookeeper/quota/a/zookeeper_stats', 'count=5,bytes=6=;zeta=+007;alpha=-3').create('/a/b', '1');
    expect(keeper.usage('/a')).toBe('count=6,bytes=7=;alpha=-3;zeta=7');
  });

  it.each(['', 'nonsense', 'count', 'count=,bytes=', 'count=1e9,bytes=x', '=', ',;,', 'count=99999999999999999999'])(
    'read %j as "unknown", where ZooKeeper would stop (ZOOKEEPER-1448)',
    (text) => {
      const keeper = new Keeper().create('/a').quota('/a', text);
      expect(keeper.tree.quotas.check('/a/b', 1_000_000, 1)).toBeUndefined();
      keeper.set('/zookeeper/quota/a/zookeeper_stats', text).create('/a/b', '12');
      expect(keeper.usage('/a')).toBe('count=0,bytes=1');
    },
  );

  describe('quota checks', () => {
    const limited = (limits: string): DataTree => new Keeper().create('/a', '1234').create('/a/b').quota('/a', limits).tree;

    it.each([
      // The tree has two znodes and four bytes.
      ['count=3,bytes=-1', 0, 1, undefined],
      ['count=2,bytes=-1', 0, 1, { isHard: false, isSoft: true, what: 'count', limit: 2, usage: 3 }],
      ['count=-1,bytes=5', 1, 1, undefined],
      ['count=-1,bytes=5', 2, 1, { isHard: false, isSoft: true, what: 'bytes', limit: 5, usage: 6 }],
      ['count=0,bytes=0=;byteHardLimit=5;countHardLimit=3', 1, 1, undefined],
      ['count=-1,bytes=-1=;countHardLimit=2', 0, 1, { isHard: true, isSoft: false, what: 'count', limit: 2, usage: 3 }],
      ['count=-1,bytes=-1=;byteHardLimit=5', 2, 1, { isHard: true, isSoft: false, what: 'bytes', limit: 5, usage: 6 }],
      ['count=2,bytes=-1=;byteHardLimit=5', 2, 1, { isHard: true, isSoft: true, what: 'bytes', limit: 5, usage: 6 }],
      ['count=2,bytes=5', 2, 1, { isHard: false, isSoft: true, what: 'count', limit: 2, usage: 3 }],
      // A change of 0 is not checked, one downwards is.
      ['count=0,bytes=0=;byteHardLimit=0;countHardLimit=0', 0, 0, undefined],
      ['count=-1,bytes=-1=;byteHardLimit=0', -1, 0, { isHard: true, isSoft: false, what: 'bytes', limit: 0, usage: 3 }],
    ])('under %s report a limit only if %i bytes and %i znodes more exceed it', (limits, bytes, count, verdict) => {
      const expected = verdict === undefined ? undefined : { ...verdict, path: '/a' };
      expect(limited(limits).quotas.check('/a/x', bytes, count)).toEqual(expected);
      expect(limited(limits).quotas.check('/a', bytes, count)).toEqual(expected);
      expect(limited(limits).quotas.check('/ab', bytes, count)).toBeUndefined();
    });

    it('use the nearest quota upwards only', () => {
      const keeper = new Keeper()
        .create('/a')
        .create('/a/b')
        .quota('/a', 'count=-1,bytes=-1=;countHardLimit=1')
        .quota('/a/b', 'count=9,bytes=-1');
      expect(keeper.tree.quotas.check('/a/b/c', 0, 1)).toBeUndefined();
      expect(keeper.tree.quotas.check('/a/c', 0, 1)).toMatchObject({ isHard: true, path: '/a' });
      keeper.create('/a/b/c');
      expect([keeper.usage('/a'), keeper.usage('/a/b')]).toEqual(['count=2,bytes=0', 'count=2,bytes=0']);
    });

    it('follow changes and removals of the limits', () => {
      const keeper = new Keeper().create('/a').quota('/a', 'count=-1,bytes=-1=;countHardLimit=1');
      expect(keeper.tree.quotas.check('/a/x', 0, 1)?.isHard).toBe(true);
      keeper.set('/zookeeper/quota/a/zookeeper_limits', 'count=-1,bytes=-1=;countHardLimit=2');
      expect(keeper.tree.quotas.check('/a/x', 0, 1)).toBeUndefined();
      expect(keeper.tree.quotas.hasQuotas).toBe(true);
      keeper.remove('/zookeeper/quota/a/zookeeper_limits');
      expect(keeper.tree.quotas.hasQuotas).toBe(false);
      keeper.create('/a/x');
      expect(keeper.usage('/a')).toBe('count=1,bytes=0');
    });

    it('report nothing without a usage znode, as in ZooKeeper', () => {
      const keeper = new Keeper()
        .create('/a')
        .quota('/a', 'count=-1,bytes=-1=;countHardLimit=0')
        .remove('/zookeeper/quota/a/zookeeper_stats');
      expect(keeper.tree.quotas.check('/a/x', 0, 1)).toBeUndefined();
      keeper.create('/a/x').create('/zookeeper/quota/a/zookeeper_stats');
      expect(keeper.usage('/a')).toBe('count=2,bytes=0');
    });
  });

  it('cannot be set on the root, nor by znodes with such names elsewhere', () => {
    const keeper = new Keeper()
      .create('/zookeeper/quota/zookeeper_limits', 'count=0,bytes=0=;countHardLimit=0')
      .create('/zookeeper/quota/zookeeper_stats')
      .create('/zookeeper/quotas')
      .create('/zookeeper/quotas/zookeeper_limits', 'count=0,bytes=0=;countHardLimit=0')
      .create('/zookeeper_limits', 'count=0,bytes=0=;countHardLimit=0');
    expect(keeper.tree.quotas.hasQuotas).toBe(false);
    expect(keeper.tree.quotas.check('/a', 1, 1)).toBeUndefined();
  });

  it('apply to a path that does not exist yet', () => {
    const keeper = new Keeper().quota('/later', 'count=-1,bytes=-1=;countHardLimit=1');
    expect(keeper.usage('/later')).toBe('count=0,bytes=0');
    keeper.create('/later', 'x');
    expect(keeper.usage('/later')).toBe('count=1,bytes=1');
    expect(keeper.tree.quotas.check('/later/a', 0, 1)?.isHard).toBe(true);
  });

  it('are the same after loading a snapshot, whatever the usage text was', () => {
    const keeper = new Keeper().create('/a', 'abc').create('/a/b').quota('/a', 'count=-1,bytes=-1=;countHardLimit=2');
    keeper.set('/zookeeper/quota/a/zookeeper_stats', 'count=77,bytes=1=;old=1');
    const { tree } = load(snapshotOf(keeper.tree, keeper.zxid));
    expect(tree.dataOf(tree.find('/zookeeper/quota/a/zookeeper_stats'))!.toString()).toBe('count=2,bytes=3');
    expect(tree.quotas.check('/a/x', 0, 1)).toMatchObject({ isHard: true, usage: 3 });
  });

  it('agree with a full count after any operations (ZOOKEEPER-1097)', () => {
    const name = fc.constantFrom('a', 'b', 'c');
    const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => `/top/${parts.join('/')}`);
    const step = fc.record({
      kind: fc.constantFrom('create', 'create', 'set', 'remove', 'snapshot'),
      path,
      text: fc.string({ maxLength: 9 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 50 }), (steps) => {
        const keeper = new Keeper().create('/top', 'x').quota('/top', 'count=5,bytes=5');
        const held = new Map([['/top', 1]]);
        const { tree } = keeper;
        for (const { kind, path: at, text } of steps) {
          const bytes = Buffer.from(text);
          keeper.zxid++;
          if (kind === 'create') {
            const outcome = tree.create(at, bytes, tree.acls.intern(open), 0, 0, -1, keeper.zxid, 1, true);
            if (outcome === 0) held.set(at, bytes.length);
          } else if (kind === 'set') {
            if (tree.setData(at, bytes, 1, keeper.zxid, 1) === 0) held.set(at, bytes.length);
          } else if (kind === 'remove') {
            tree.remove(at, keeper.zxid);
            for (const other of held.keys()) if (other === at || other.startsWith(`${at}/`)) held.delete(other);
          } else {
            expect(load(snapshotOf(tree, keeper.zxid)).tree.nodeCount).toBe(tree.nodeCount);
          }
        }
        const total = [...held.values()].reduce((sum, length) => sum + length, 0);
        expect(keeper.usage('/top')).toBe(`count=${held.size},bytes=${total}`);
      }),
    );
  });
});

describe('the quotas of a namespace', () => {
  const totals = (keeper: Keeper): string[] =>
    [...keeper.tree.quotas.totals()].map(
      ({ namespace, countLimit, bytesLimit, usedCount, usedBytes }) => `${namespace} ${countLimit} ${bytesLimit} ${usedCount} ${usedBytes}`,
    );

  it('are added up, where a hard limit replaces a soft one and an unset one counts as -1', () => {
    const keeper = new Keeper().create('/a', 'four').create('/a/b', '12').create('/b');
    keeper.quota('/a', 'count=10,bytes=-1=;countHardLimit=7').quota('/a/b', 'count=5,bytes=100').quota('/b', 'count=1,bytes=2');
    expect(totals(keeper)).toEqual(['a 12 99 3 8', 'b 1 2 1 0']);
    keeper.create('/a/b/c', 'xyz').set('/a', 'sixsix');
    // The nearest quota counts new znodes.
    expect(totals(keeper)[0]).toBe('a 12 99 4 13');
  });

  it('have no limit or usage while no quota has a znode for it, and are removed with the last', () => {
    const keeper = new Keeper().create('/a').quota('/a', 'count=10,bytes=20');
    keeper.remove('/zookeeper/quota/a/zookeeper_limits');
    expect(totals(keeper)).toEqual(['a undefined undefined 1 0']);
    keeper.create('/zookeeper/quota/a/zookeeper_limits', 'count=4').remove('/zookeeper/quota/a/zookeeper_stats');
    expect(totals(keeper)).toEqual(['a 4 -1 undefined undefined']);
    keeper.set('/zookeeper/quota/a/zookeeper_limits', 'count=5,bytes=6');
    expect(totals(keeper)).toEqual(['a 5 6 undefined undefined']);
    keeper.remove('/zookeeper/quota/a/zookeeper_limits');
    expect(totals(keeper)).toEqual([]);
  });

  it('are the sums of the single quotas after any operations', () => {
    const step = fc.record({
      act: fc.constantFrom('limits', 'stats', 'change', 'unlimit', 'unstat'),
      path: fc.constantFrom('/a', '/a/b', '/c'),
      count: fc.integer({ min: -1, max: 9 }),
      bytes: fc.integer({ min: -1, max: 9 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const keeper = new Keeper();
        for (const path of ['/a', '/a/b', '/c']) keeper.create(path).create(`/zookeeper/quota${path}`);
        const znode = (path: string, name: string): string => `/zookeeper/quota${path}/zookeeper_${name}`;
        const there = (path: string): boolean => keeper.tree.find(path) !== 0;
        const put = (path: string, text: string): Keeper => (there(path) ? keeper.set(path, text) : keeper.create(path, text));
        for (const { act, path, count, bytes } of steps) {
          if (act === 'limits') put(znode(path, 'limits'), `count=${count},bytes=${bytes}`);
          else if (act === 'stats') put(znode(path, 'stats'), `count=${count},bytes=${bytes}`);
          else if (act === 'change') put(`${path}/x`, 'x'.repeat(count + 1));
          else if (there(znode(path, act === 'unlimit' ? 'limits' : 'stats')))
            keeper.remove(znode(path, act === 'unlimit' ? 'limits' : 'stats'));
        }
        const expected = new Map<string, (number | undefined)[]>();
        for (const path of ['/a', '/a/b', '/c']) {
          for (const [name, at] of [
            ['limits', 0],
            ['stats', 2],
          ] as const) {
            if (!there(znode(path, name))) continue;
            const text = keeper.tree.dataOf(keeper.tree.find(znode(path, name)))!.toString();
            const [, count, bytes] = /^count=(-?\d+),bytes=(-?\d+)$/.exec(text)!;
            const sums = expected.get(path[1]!) ?? [undefined, undefined, undefined, undefined];
            sums[at] = (sums[at] ?? 0) + Number(count);
            sums[at + 1] = (sums[at + 1] ?? 0) + Number(bytes);
            expected.set(path[1]!, sums);
          }
        }
        expect(totals(keeper).toSorted()).toEqual(
          [...expected].map(([namespace, sums]) => [namespace, ...sums.map(String)].join(' ')).toSorted(),
        );
      }),
    );
  });

  it('are restored by loading a snapshot', () => {
    const keeper = new Keeper().create('/a', 'four').quota('/a', 'count=10,bytes=20');
    const { tree } = load(snapshotOf(keeper.tree, keeper.zxid));
    expect([...tree.quotas.totals()]).toEqual([...keeper.tree.quotas.totals()]);
  });
});

describe('quotas of a snapshot', () => {
  /** /p, /p/p ... to this depth, each with a quota, and a few znodes below each. */
  function nested(depth: number): Keeper {
    const keeper = new Keeper();
    let path = '';
    for (let level = 0; level < depth; level++) {
      path += '/p';
      keeper.create(path, 'x').create(`${path}/a`, '12').create(`${path}/q`, null);
      keeper.quota(path, 'count=10,bytes=20');
    }
    return keeper;
  }

  it('are counted in one walk, however they are nested, and the walk stops after the allowed number of znodes', () => {
    const depth = 40;
    const keeper = nested(depth);
    const loader = new SnapshotLoader(treeOptions);
    loader.feed(snapshotOf(keeper.tree, keeper.zxid));
    let steps = 1;
    while (!loader.finishStep(1)) steps++;
    const { tree } = loader.finish();
    for (let level = 1; level <= depth; level++) {
      const usage = tree.dataOf(tree.find(`/zookeeper/quota${'/p'.repeat(level)}/zookeeper_stats`))?.toString();
      const below = depth - level + 1;
      expect(usage).toBe(`count=${3 * below},bytes=${3 * below}`);
    }
    // Every znode once; besides, each quota is looked up, and closed, and the one above it found.
    expect(steps).toBeGreaterThan(tree.size / 2);
    expect(steps).toBeLessThan(tree.size + 4 * depth);
  });

  it('count nothing if their path has no znode, and equal separate counts', () => {
    const paths = ['/a', '/a/b', '/a/b/c', '/a/d', '/e', '/e/f'] as const;
    fc.assert(
      fc.property(fc.subarray([...paths]), fc.subarray([...paths]), (limited, gone) => {
        const keeper = new Keeper();
        for (const path of paths) keeper.create(path, path).create(`/zookeeper/quota${path}`);
        for (const path of limited) {
          keeper.create(`/zookeeper/quota${path}/zookeeper_limits`, 'count=3').create(`/zookeeper/quota${path}/zookeeper_stats`, '');
        }
        for (const path of gone.toReversed()) if (keeper.tree.childCountOf(keeper.tree.find(path)) === 0) keeper.remove(path);
        const { tree } = load(snapshotOf(keeper.tree, keeper.zxid));
        for (const path of limited) {
          const held = paths.filter((each) => (each === path || each.startsWith(`${path}/`)) && tree.find(each) !== 0);
          const bytes = held.reduce((sum, each) => sum + each.length, 0);
          const usage = tree.dataOf(tree.find(`/zookeeper/quota${path}/zookeeper_stats`))?.toString();
          expect(usage).toBe(`count=${held.length},bytes=${bytes}`);
        }
      }),
    );
  });
});
