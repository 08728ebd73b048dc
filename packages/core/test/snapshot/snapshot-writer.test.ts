import { sessionIdOf, Writer } from '@tskeeper/protocol';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { SnapshotWriter } from '../../src/snapshot/snapshot-writer.ts';
import { DataTree } from '../../src/tree/data-tree.ts';
import { fixtureBytes } from '../fixtures.ts';
import type { Model } from '../tree/model.ts';
import { anyChange, type Change, digestOf, expectSame, open, TreeAndModel, treeOptions } from '../tree/tree-and-model.ts';
import { drain, load, sessionList, snapshotOf } from './snapshots.ts';

const noSessions = sessionList([]);

/** Expects a snapshot to have exactly the content of the model, and that zxid. */
function expectHolds(bytes: Buffer, model: Model, zxid: number): void {
  const loaded = load(bytes);
  expectSame(loaded.tree, model);
  expect(loaded.lastZxid).toBe(zxid);
  expect(loaded.digest!.zxid).toBe(zxid);
  expect(sessionIdOf(loaded.digest!.high, loaded.digest!.low)).toBe(digestOf(loaded.tree));
}

describe('SnapshotWriter', () => {
  it('writes an empty tree byte for byte as a Java server does', () => {
    const tree = new DataTree(treeOptions);
    expect(snapshotOf(tree, 0).toString('hex')).toBe(fixtureBytes('disk-3.9.5/snapshot.0').toString('hex'));
  });

  it('writes the same bytes again for a tree loaded from them', () => {
    const fixture = fixtureBytes('disk-3.9.5/snapshot.22');
    const { tree, sessions } = load(fixture);
    const list = sessionList(sessions.map(({ high, low, timeoutMs }) => [high, low, timeoutMs]));
    expect(snapshotOf(tree, 0x22, list).toString('hex')).toBe(fixture.toString('hex'));
  });

  it('omits the digest on request, and writes an empty one if digests are disabled', () => {
    const without = new DataTree({ ...treeOptions, digestEnabled: false });
    without.create('/a', null, without.acls.intern(open), 0, 0, 1, 5, 1, true);
    expect(load(snapshotOf(without, 5)).digest).toBeUndefined();
    expect(snapshotOf(without, 5).length - snapshotOf(without, 5, noSessions, false).length).toBe(33);
    expect(load(snapshotOf(without, 5, noSessions, false)).lastZxid).toBe(5);
  });

  it('E15: contains the state at its start, whatever changes between two slices', () => {
    fc.assert(
      fc.property(
        fc.array(anyChange, { maxLength: 40 }),
        fc.array(fc.oneof(anyChange, fc.integer({ min: 1, max: 600 })), { maxLength: 60 }),
        (before, during) => {
          const both = new TreeAndModel();
          for (const change of before) both.change(change);
          const then = both.model.copy();
          const { zxid } = both;
          const source = new SnapshotWriter(both.tree, noSessions, zxid, true);
          const writer = new Writer();
          let done = false;
          for (const step of during) {
            if (typeof step !== 'number') both.change(step);
            else if (!done) done = source.next(writer, step);
          }
          while (!done) done = source.next(writer, 300);
          expectHolds(Buffer.from(writer.written()), then, zxid);
          expectSame(both.tree, both.model);
          // The lists that only the snapshot needed have been removed.
          expect(both.tree.acls.size).toBe(
            new Set([...both.model.nodes.values()].map(({ acl }) => acl).filter((acl) => acl !== 'system')).size,
          );
          expectHolds(snapshotOf(both.tree, both.zxid), both.model, both.zxid);
        },
      ),
      { numRuns: breadth(12, 120) },
    );
  });

  it('E15: contains the state at its start, even if other snapshots begin before and after it, whatever changes between slices', () => {
    const walks = 4;
    const step = fc.oneof(
      { weight: 3, arbitrary: anyChange },
      { weight: 3, arbitrary: fc.record({ walk: fc.nat({ max: walks - 1 }), bytes: fc.integer({ min: 1, max: 400 }) }) },
      { weight: 1, arbitrary: fc.record({ abandoned: fc.nat({ max: walks - 1 }) }) },
    );
    fc.assert(
      fc.property(fc.array(anyChange, { maxLength: 40 }), fc.array(step, { minLength: 20, maxLength: 120 }), (before, during) => {
        const both = new TreeAndModel();
        for (const change of before) both.change(change);
        const begin = () => ({
          source: new SnapshotWriter(both.tree, noSessions, both.zxid, true),
          model: both.model.copy(),
          zxid: both.zxid,
          writer: new Writer(),
          done: false,
        });
        type Taken = ReturnType<typeof begin>;
        const taken = new Map<number, Taken>();
        const goOn = (each: Taken, bytes: number): boolean => {
          each.done = each.source.next(each.writer, bytes);
          if (each.done) expectHolds(Buffer.from(each.writer.written()), each.model, each.zxid);
          return each.done;
        };
        for (const each of during) {
          if ('walk' in each) {
            const walk = taken.get(each.walk) ?? begin();
            taken.set(each.walk, walk);
            if (goOn(walk, each.bytes)) taken.delete(each.walk);
          } else if ('abandoned' in each) {
            taken.get(each.abandoned)?.source.abandon();
            taken.delete(each.abandoned);
          } else {
            both.change(each);
          }
        }
        for (const each of taken.values()) while (!goOn(each, 300));
        expectSame(both.tree, both.model);
        expect(both.tree.acls.size).toBe(
          new Set([...both.model.nodes.values()].map(({ acl }) => acl).filter((acl) => acl !== 'system')).size,
        );
      }),
      { numRuns: breadth(20, 200) },
    );
  });

  describe('with changes of every kind', () => {
    const start: Change[] = [
      ...['/a', '/a/x', '/a/y', '/b', '/b/x', '/b/x/y', '/c', '/d'].map((path): Change => ({
        kind: 'create',
        path,
        data: Buffer.from(path),
        acl: 'open',
        owner: 0n,
        cversion: -1,
        raise: true,
      })),
      { kind: 'create', path: '/e', data: null, acl: 'alice', owner: 0x100000cebc40000n, cversion: -1, raise: true },
    ];
    const burst: Change[] = [
      { kind: 'setData', path: '/b/x/y', data: Buffer.alloc(500, 1), version: 1 },
      { kind: 'setAcl', path: '/a/y', acl: 'two', version: 1 },
      { kind: 'remove', path: '/a/x', late: 0 },
      { kind: 'create', path: '/a/x', data: null, acl: 'alice', owner: 0x7fffffffffffffffn, cversion: -1, raise: true },
      { kind: 'remove', path: '/c', late: 0 },
      { kind: 'remove', path: '/e', late: 0 },
      { kind: 'create', path: '/d/new', data: Buffer.alloc(3), acl: 'two', owner: 0n, cversion: -1, raise: true },
      { kind: 'create', path: '/b', data: null, acl: 'alice', owner: 0n, cversion: 99, raise: true },
      { kind: 'remove', path: '/d', late: 0 },
      { kind: 'create', path: '/z', data: Buffer.alloc(3), acl: 'two', owner: 0n, cversion: -1, raise: true },
      { kind: 'setData', path: '', data: Buffer.from('root'), version: 1 },
    ];
    const sliceBytes = 40;

    function slices(): number {
      const both = new TreeAndModel();
      for (const change of start) both.change(change);
      const source = new SnapshotWriter(both.tree, noSessions, both.zxid, true);
      const writer = new Writer();
      let count = 1;
      while (!source.next(writer, sliceBytes)) count++;
      return count;
    }

    it.each(Array.from({ length: slices() + 1 }, (_, i) => i))('contains the state at its start if made after %i slices', (count) => {
      const both = new TreeAndModel();
      for (const change of start) both.change(change);
      const then = both.model.copy();
      const { zxid } = both;
      const source = new SnapshotWriter(both.tree, noSessions, zxid, true);
      const writer = new Writer();
      let done = false;
      for (let i = 0; i < count; i++) done = source.next(writer, sliceBytes);
      for (const change of burst) {
        both.change(change);
        if (!done) done = source.next(writer, 1);
      }
      while (!done) done = source.next(writer, sliceBytes);
      expectHolds(Buffer.from(writer.written()), then, zxid);
      expectSame(both.tree, both.model);
    });
  });

  it('contains the usage of a quota at its start', () => {
    const tree = new DataTree(treeOptions);
    let zxid = 0;
    const create = (path: string, text = ''): unknown =>
      tree.create(path, Buffer.from(text), tree.acls.intern(open), 0, 0, -1, ++zxid, 1, true);
    create('/a');
    create('/zookeeper/quota/a');
    create('/zookeeper/quota/a/zookeeper_limits', 'count=9,bytes=-1');
    create('/zookeeper/quota/a/zookeeper_stats');
    expect(tree.quotas.recountStep(Infinity)).toBe(true);
    const source = new SnapshotWriter(tree, noSessions, zxid, true);
    create('/a/b');
    const bytes = drain(source);
    // Not loaded for this, since loading recounts.
    expect(bytes.includes('count=1,bytes=0')).toBe(true);
    expect(bytes.includes('count=2,bytes=0')).toBe(false);
  });

  it('contains the sessions at its start', () => {
    const tree = new DataTree(treeOptions);
    const sessions: [number, number, number][] = Array.from({ length: 50 }, (_, i) => [0x01000000 + i, -1 - i, 1000 + i]);
    const now = sessions.map(([high, low, timeoutMs]) => ({ high, low, timeoutMs }));
    const source = new SnapshotWriter(tree, sessionList(sessions), 1, true);
    sessions.length = 3;
    expect(load(drain(source, 20)).sessions).toEqual(now);
  });

  it('writes slices of the requested size, plus at most one znode', () => {
    const tree = new DataTree(treeOptions);
    for (let i = 0; i < 2000; i++) tree.create(`/n${i}`, Buffer.alloc(50), tree.acls.intern(open), 0, 0, -1, i, 1, true);
    const source = new SnapshotWriter(tree, noSessions, 2000, true);
    const writer = new Writer();
    for (let done = false; !done; writer.clear()) {
      // A create among already written znodes adds nothing to write, but is visited nevertheless.
      tree.create(`/new${writer.offset}`, null, tree.acls.intern(open), 0, 0, -1, 2001, 1, true);
      done = source.next(writer, 4096);
      expect(writer.offset).toBeLessThan(4096 + 200);
    }
    expect(tree.snapshots.preservedBytes).toBe(0);
  });

  it('counts the memory of records written ahead of their turn, and releases it', () => {
    const tree = new DataTree(treeOptions);
    for (let i = 0; i < 5000; i++) tree.create(`/n${i}`, Buffer.alloc(100), tree.acls.intern(open), 0, 0, -1, i, 1, true);
    const memory = tree.memoryBytes();
    const source = new SnapshotWriter(tree, noSessions, 5000, true);
    for (let i = 0; i < 5000; i++) tree.setData(`/n${i}`, Buffer.alloc(100), 1, 5000 + i, 1);
    expect(tree.snapshots.preservedBytes).toBeGreaterThan(5000 * 180);
    expect(tree.memoryBytes()).toBe(memory + tree.snapshots.preservedBytes);
    expect(load(drain(source, 10_000)).tree.nodeCount).toBe(5005);
    expect(tree.memoryBytes()).toBe(memory);
  });

  it('can be abandoned, and another started', () => {
    const both = new TreeAndModel();
    both.change({ kind: 'create', path: '/a', data: null, acl: 'alice', owner: 0n, cversion: -1, raise: true });
    const source = new SnapshotWriter(both.tree, noSessions, both.zxid, true);
    source.next(new Writer(), 50);
    both.change({ kind: 'remove', path: '/a', late: 0 });
    expect(both.tree.acls.size).toBe(2);
    source.abandon();
    expect(both.tree.acls.size).toBe(1);
    expectHolds(snapshotOf(both.tree, both.zxid), both.model, both.zxid);
  });
});
