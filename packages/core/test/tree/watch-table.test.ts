import { isDeepStrictEqual } from 'node:util';
import { EventType, WatcherType } from '@tskeeper/protocol';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { PagedDoubles, PagedInts } from '../../src/tables/paged-numbers.ts';
import { WatchMode } from '../../src/tree/watch-mode.ts';
import { WatchTable } from '../../src/tree/watch-table.ts';
import { NaiveWatchTable } from './naive-watch-table.ts';

const { data, child, persistent, recursive } = WatchMode;
const { nodeCreated, nodeDeleted, nodeDataChanged, nodeChildrenChanged } = EventType;

const newTable = () => new WatchTable({ hashSeed: 0x5eed });

/**
 * The events of one change: `cnxn event` about the znode, `cnxn event of parent` about its parent.
 */
function received(table: WatchTable, path: string, eventType: number): string[] {
  const events: string[] = [];
  const any = table.startDispatch(path, eventType);
  expect(table.dispatch((cnxn, type, onParent) => events.push(`${cnxn} ${nameOf(type)}${onParent ? ' of parent' : ''}`), 1e9)).toBe(true);
  expect(any || events.length === 0).toBe(true);
  return events;
}

function nameOf(type: number): string {
  return (
    { [nodeCreated]: 'created', [nodeDeleted]: 'deleted', [nodeDataChanged]: 'changed', [nodeChildrenChanged]: 'children' }[type] ?? '?'
  );
}

describe('events of watches', () => {
  const where = { N: '/p/n', P: '/p', ancestor: '/', child: '/p/n/c', sibling: '/p/m', prefix: '/p/nn' };
  it.each([
    // mode, where, on create, on set, on delete
    ['data', data, 'N', ['1 created'], ['1 changed'], ['1 deleted']],
    ['child', child, 'N', [], [], ['1 deleted']],
    ['child', child, 'P', ['1 children of parent'], [], ['1 children of parent']],
    ['data', data, 'P', [], [], []],
    ['persistent', persistent, 'N', ['1 created'], ['1 changed'], ['1 deleted']],
    ['persistent', persistent, 'P', ['1 children of parent'], [], ['1 children of parent']],
    ['persistent', persistent, 'ancestor', [], [], []],
    ['recursive', recursive, 'N', ['1 created'], ['1 changed'], ['1 deleted']],
    ['recursive', recursive, 'P', ['1 created'], ['1 changed'], ['1 deleted']],
    ['recursive', recursive, 'ancestor', ['1 created'], ['1 changed'], ['1 deleted']],
    ['recursive', recursive, 'child', [], [], []],
    ['recursive', recursive, 'sibling', [], [], []],
    ['recursive', recursive, 'prefix', [], [], []],
    ['data', data, 'prefix', [], [], []],
  ] as const)('a %s watch (%i) on %s fires only for the changes that it covers', (_name, mode, place, onCreate, onSet, onDelete) => {
    for (const [eventType, expected] of [
      [nodeCreated, onCreate],
      [nodeDataChanged, onSet],
      [nodeDeleted, onDelete],
    ] as const) {
      const table = newTable();
      table.addPath(1, where[place], mode);
      expect(received(table, '/p/n', eventType)).toEqual(expected);
      const oneShot = mode === data || mode === child;
      expect(received(table, '/p/n', eventType)).toEqual(oneShot ? [] : expected);
      expect(table.count).toBe(oneShot && expected.length > 0 ? 0 : mode === persistent ? 2 : 1);
    }
  });

  it('a recursive watch on the root matches everything, including the root and /zookeeper', () => {
    const table = newTable();
    table.addPath(1, '/', recursive);
    expect(received(table, '/', nodeDataChanged)).toEqual(['1 changed']);
    expect(received(table, '/zookeeper/config', nodeDataChanged)).toEqual(['1 changed']);
    expect(received(table, '/a/b/c/d', nodeDeleted)).toEqual(['1 deleted']);
  });

  it('a child watch on the root fires when a child of the root is created', () => {
    const table = newTable();
    table.addPath(1, '/', child);
    expect(received(table, '/a', nodeCreated)).toEqual(['1 children of parent']);
  });

  it('the data table of N fires first, then the child table of N, then that of its parent, in order of registration', () => {
    const table = newTable();
    table.addPath(9, '/p', child);
    table.addPath(8, '/p', persistent);
    table.addPath(7, '/p/n', child);
    table.addPath(6, '/', recursive);
    table.addPath(5, '/p', recursive);
    table.addPath(4, '/p/n', recursive);
    table.addPath(3, '/p/n', persistent);
    table.addPath(2, '/p/n', data);
    table.addPath(1, '/p/n', data);
    expect(received(table, '/p/n', nodeDeleted)).toEqual([
      '2 deleted',
      '1 deleted',
      '3 deleted',
      '4 deleted',
      '5 deleted',
      '6 deleted',
      '7 deleted',
      '9 children of parent',
      '8 children of parent',
    ]);
  });
});

describe('no connection is notified twice', () => {
  it('a connection with a data watch on N and a recursive one above is notified once, and its data watch is removed', () => {
    const table = newTable();
    table.addPath(1, '/a/b', data);
    table.addPath(1, '/a', recursive);
    table.addPath(1, '/', recursive);
    expect(received(table, '/a/b', nodeDataChanged)).toEqual(['1 changed']);
    expect(table.has(1, '/a/b', WatcherType.data)).toBe(false);
    expect(received(table, '/a/b', nodeDataChanged)).toEqual(['1 changed']);
  });

  it('a connection with every kind of watch on N is notified of its deletion once, and keeps its persistent watches', () => {
    const table = newTable();
    table.addPath(1, '/n', data | child | persistent | recursive);
    expect(received(table, '/n', nodeDeleted)).toEqual(['1 deleted']);
    expect([1, 2, 4, 5].map((type) => table.has(1, '/n', type))).toEqual([false, false, true, true]);
    expect(table.count).toBe(2);
  });

  it('a connection with a child and a persistent watch on the parent is notified once of its children', () => {
    const table = newTable();
    table.addPath(1, '/', child | persistent);
    expect(received(table, '/n', nodeCreated)).toEqual(['1 children of parent']);
  });

  it('a recursive watcher that also watches the children of the parent is notified of the child first, then of the children', () => {
    const table = newTable();
    table.addPath(1, '/p', child);
    table.addPath(1, '/', recursive);
    table.addPath(2, '/p', persistent | recursive);
    expect(received(table, '/p/n', nodeCreated)).toEqual(['2 created', '1 created', '1 children of parent', '2 children of parent']);
    expect(received(table, '/p/n', nodeDeleted)).toEqual(['2 deleted', '1 deleted', '2 children of parent']);
  });

  it('setting a watch again changes nothing', () => {
    const table = newTable();
    for (let i = 0; i < 3; i++) table.addPath(1, '/n', data | persistent);
    expect(table.count).toBe(2);
    expect(received(table, '/n', nodeDataChanged)).toEqual(['1 changed']);
  });
});

describe('checking and removing by WatcherType', () => {
  const kinds = [
    [WatcherType.children, child],
    [WatcherType.data, data],
    [WatcherType.persistent, persistent],
    [WatcherType.persistentRecursive, recursive],
  ] as const;
  const everything = data | child | persistent | recursive;

  it.each(kinds)('type %i selects mode %i only', (type, mode) => {
    const table = newTable();
    table.addPath(1, '/n', everything & ~mode);
    expect(table.has(1, '/n', type)).toBe(false);
    expect(table.remove(1, '/n', type)).toBe(false);
    table.addPath(1, '/n', mode);
    table.addPath(2, '/n', mode);
    expect(table.has(1, '/n', type)).toBe(true);
    expect(table.remove(1, '/n', type)).toBe(true);
    expect(table.remove(1, '/n', type)).toBe(false);
    for (const [other] of kinds) expect(table.has(1, '/n', other)).toBe(other !== type);
    expect(table.has(2, '/n', type)).toBe(true);
  });

  it('type 3 selects any mode, and removes every watch of that connection on that path', () => {
    for (const [, mode] of kinds) {
      const table = newTable();
      table.addPath(1, '/n', mode);
      expect(table.has(1, '/n', WatcherType.any)).toBe(true);
    }
    const table = newTable();
    table.addPath(1, '/n', everything);
    table.addPath(1, '/m', data);
    table.addPath(2, '/n', data);
    expect(table.remove(1, '/n', WatcherType.any)).toBe(true);
    expect(table.remove(1, '/n', WatcherType.any)).toBe(false);
    expect([table.has(1, '/m', WatcherType.data), table.has(2, '/n', WatcherType.data), table.count]).toEqual([true, true, 2]);
  });

  it('an unknown type, an unwatched path and a connection without watches return false', () => {
    const table = newTable();
    table.addPath(1, '/n', everything);
    for (const type of [0, 6, -1]) expect([table.has(1, '/n', type), table.remove(1, '/n', type)]).toEqual([false, false]);
    expect([table.has(1, '/x', 3), table.remove(1, '/x', 3)]).toEqual([false, false]);
    expect([table.has(2, '/n', 3), table.remove(2, '/n', 3)]).toEqual([false, false]);
    expect(table.has(70_000, '/n', 3)).toBe(false);
  });
});

describe('paths', () => {
  it.each(['', '/', 'a', '//', '/a/', 'über/żółw', '\u0000', '/😀', `/${'long/'.repeat(400)}`, '/'.repeat(600)])(
    'any text can be watched: %j',
    (path) => {
      const table = newTable();
      table.addPath(1, path, persistent);
      expect(table.has(1, path, WatcherType.persistent)).toBe(true);
      expect([...table.byPath()].map((entry) => entry.path)).toEqual([path]);
      expect(table.remove(1, path, WatcherType.any)).toBe(true);
      expect([...table.byPath()]).toEqual([]);
    },
  );

  it('a path is copied out of the middle of a request', () => {
    const table = newTable();
    const request = Buffer.from('xxx/a/byyy');
    table.add(1, request, 3, 7, data);
    request.fill(0);
    expect(received(table, '/a/b', nodeDataChanged)).toEqual(['1 changed']);
  });

  it('malformed UTF-8 is watched in its decoded form, and found by it', () => {
    const table = newTable();
    const bytes = Buffer.from([0x2f, 0xff, 0x61, 0xc3]);
    table.add(1, bytes, 0, 4, data);
    expect(table.has(1, bytes.toString('utf8'), WatcherType.data)).toBe(true);
    expect([...table.byPath()].map((entry) => entry.path)).toEqual(['/\ufffda\ufffd']);
  });
});

describe('a connection that closes', () => {
  it('removes all its watches and no other', () => {
    const table = newTable();
    for (const cnxn of [1, 2]) {
      table.addPath(cnxn, '/a', data | child | persistent | recursive);
      table.addPath(cnxn, '/b', data);
    }
    table.removeAll(1);
    table.removeAll(1);
    table.removeAll(77);
    expect(table.count).toBe(3);
    expect(table.summary()).toEqual({ cnxns: 1, paths: 2, watches: 2 });
    expect(received(table, '/a', nodeDeleted)).toEqual(['2 deleted']);
    table.removeAll(2);
    expect([table.count, table.summary()]).toEqual([0, { cnxns: 0, paths: 0, watches: 0 }]);
  });

  it('A28: is forgotten at once even with very many watches, and its id starts without any', () => {
    const table = newTable();
    for (let i = 0; i < 20_000; i++) table.addPath(1, `/n${i}`, i % 2 === 0 ? data : persistent);
    table.addPath(2, '/n1', data);
    table.removeAll(1);
    expect(table.count).toBe(1);
    expect(table.has(1, '/n19999', WatcherType.any)).toBe(false);
    table.addPath(1, '/n19998', data);
    expect([...table.byCnxn()].map(({ cnxn, paths }) => [cnxn, [...paths]])).toEqual([
      [2, ['/n1']],
      [1, ['/n19998']],
    ]);
    expect(received(table, '/n19997', nodeDataChanged)).toEqual([]);
    expect(received(table, '/n1', nodeDataChanged)).toEqual(['2 changed']);
    expect(table.reap(100)).toBe(false);
    expect(table.reap(Number.POSITIVE_INFINITY)).toBe(true);
    expect(received(table, '/n19998', nodeDataChanged)).toEqual(['1 changed']);
    expect([table.count, table.summary()]).toEqual([0, { cnxns: 0, paths: 0, watches: 0 }]);
  });

  it('does not make the table grow if reap is never called', () => {
    const table = newTable();
    const round = () => {
      for (let i = 0; i < 10_000; i++) table.addPath(1, `/n${i}`, data);
      table.removeAll(1);
    };
    round();
    round();
    const { bytes } = table;
    for (let i = 0; i < 20; i++) round();
    expect(table.bytes).toBeLessThanOrEqual(bytes * 1.2);
  });
});

describe('lists of watches', () => {
  it('show only the data table, each pair of connection and path once', () => {
    const table = newTable();
    table.addPath(1, '/a', data | persistent | recursive);
    table.addPath(1, '/b', child);
    table.addPath(2, '/b', persistent | child);
    table.addPath(2, '/a', recursive);
    table.addPath(3, '/c', child);
    expect(table.summary()).toEqual({ cnxns: 2, paths: 2, watches: 3 });
    expect(table.count).toBe(3 + 4);
    expect([...table.byCnxn()].map(({ cnxn, paths }) => [cnxn, [...paths]])).toEqual([
      [1, ['/a']],
      [2, ['/b', '/a']],
    ]);
    expect([...table.byPath()].map(({ path, cnxns }) => [path, [...cnxns]])).toEqual([
      ['/a', [1, 2]],
      ['/b', [2]],
    ]);
  });

  it('end early without an error if the table changes during the iteration', () => {
    const change: ((table: WatchTable) => void)[] = [
      (table) => received(table, '/a', nodeDeleted),
      (table) => table.startDispatch('/a', nodeDataChanged),
      (table) => table.removeAll(1),
      (table) => table.remove(1, '/a', WatcherType.any),
      (table) => {
        for (let cnxn = 1; cnxn < 30; cnxn++) table.removeAll(cnxn);
        for (let cnxn = 1; cnxn < 30; cnxn++) table.addPath(cnxn, '/other', data);
      },
    ];
    for (const apply of change) {
      const table = newTable();
      for (let cnxn = 1; cnxn < 30; cnxn++) {
        table.addPath(cnxn, '/a', data);
        table.addPath(cnxn, '/a/b', data);
      }
      const [byPath] = table.byPath();
      const [byCnxn] = table.byCnxn();
      const cnxns = byPath!.cnxns[Symbol.iterator]();
      const paths = byCnxn!.paths[Symbol.iterator]();
      expect([cnxns.next().value, paths.next().value]).toEqual([1, '/a']);
      apply(table);
      let more = 0;
      while (cnxns.next().done !== true) more++;
      while (paths.next().done !== true) more++;
      expect(more).toBeLessThan(32);
    }
  });
});

describe('dispatch in slices', () => {
  const slice = (table: WatchTable, budget: number) => {
    const cnxns: number[] = [];
    const done = table.dispatch((cnxn) => cnxns.push(cnxn), budget);
    return { cnxns, done };
  };

  it('continues exactly where it stopped', () => {
    const table = newTable();
    for (let cnxn = 1; cnxn <= 5; cnxn++) table.addPath(cnxn, '/a', cnxn < 4 ? data : persistent);
    table.startDispatch('/a', nodeDataChanged);
    expect(slice(table, 2)).toEqual({ cnxns: [1, 2], done: false });
    expect(slice(table, 2)).toEqual({ cnxns: [3, 4], done: false });
    expect(slice(table, 2)).toEqual({ cnxns: [5], done: true });
    expect(slice(table, 2)).toEqual({ cnxns: [], done: true });
  });

  it('counts a one-shot watch as fired from the start, so it can be set again before it is notified', () => {
    const table = newTable();
    table.addPath(1, '/a', data);
    table.addPath(2, '/a', data);
    table.startDispatch('/a', nodeDataChanged);
    expect(table.has(2, '/a', WatcherType.data)).toBe(false);
    expect(table.remove(2, '/a', WatcherType.data)).toBe(false);
    table.addPath(2, '/a', data);
    expect(table.has(2, '/a', WatcherType.data)).toBe(true);
    expect(slice(table, 10)).toEqual({ cnxns: [1, 2], done: true });
    expect(table.has(2, '/a', WatcherType.data)).toBe(true);
    expect(table.count).toBe(1);
    expect(received(table, '/a', nodeDataChanged)).toEqual(['2 changed']);
    expect(table.count).toBe(0);
  });

  it('does not notify a closed connection, nor one that reuses its id', () => {
    const table = newTable();
    for (const cnxn of [1, 2, 3]) table.addPath(cnxn, '/a', cnxn === 2 ? persistent : data);
    table.startDispatch('/a', nodeDataChanged);
    table.removeAll(3);
    table.removeAll(2);
    table.addPath(2, '/a', persistent);
    table.addPath(3, '/a', data);
    expect(slice(table, 10)).toEqual({ cnxns: [1], done: true });
    expect(received(table, '/a', nodeDataChanged)).toEqual(['3 changed', '2 changed']);
  });

  it('throws at a change while the previous one is being dispatched', () => {
    const table = newTable();
    table.addPath(1, '/a', data);
    table.startDispatch('/a', nodeDataChanged);
    expect(() => table.startDispatch('/b', nodeDataChanged)).toThrow('before the watchers of the previous one were notified');
  });

  it('lets a notified connection close others', () => {
    const table = newTable();
    for (const cnxn of [1, 2, 3, 4]) table.addPath(cnxn, '/a', persistent);
    const cnxns: number[] = [];
    table.startDispatch('/a', nodeDataChanged);
    table.dispatch((cnxn) => {
      cnxns.push(cnxn);
      table.removeAll(cnxn);
      table.removeAll(cnxn + 1);
    }, 100);
    expect(cnxns).toEqual([1, 3]);
    expect(table.count).toBe(0);
  });
});

describe('a comparison with a plain model', () => {
  const path = fc.constantFrom('/', '/a', '/b', '/a/a', '/a/b', '/a/b/a', '/ab');
  const cnxn = fc.integer({ min: 1, max: 5 });
  const alter = fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('add' as const), cnxn, path, modes: fc.integer({ min: 1, max: 15 }) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), cnxn, path, type: fc.integer({ min: 1, max: 5 }) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('removeAll' as const), cnxn }) },
  );
  const fire = fc.record({
    kind: fc.constant('fire' as const),
    path,
    eventType: fc.constantFrom(nodeCreated, nodeDeleted, nodeDataChanged),
    slices: fc.array(fc.record({ budget: fc.integer({ min: 0, max: 4 }), alter }), { maxLength: 6 }),
  });
  type Alter = typeof alter extends fc.Arbitrary<infer T> ? T : never;
  type Fire = typeof fire extends fc.Arbitrary<infer T> ? T : never;

  function change(target: WatchTable | NaiveWatchTable, step: Alter): boolean | undefined {
    switch (step.kind) {
      case 'add':
        target.addPath(step.cnxn, step.path, step.modes);
        return undefined;
      case 'remove':
        return target.remove(step.cnxn, step.path, step.type);
      case 'removeAll':
        target.removeAll(step.cnxn);
        return undefined;
      default:
        return step satisfies never;
    }
  }

  /** The results of both at each step, to be compared as a whole. */
  function histories(model: NaiveWatchTable, steps: readonly (Alter | Fire)[]): { real: unknown[]; expected: unknown[] } {
    const table = newTable();
    const real: unknown[] = [];
    const expected: unknown[] = [];
    for (const step of steps) {
      if (step.kind === 'fire') {
        const events: string[] = [];
        const visit = (to: number, type: number, onParent: boolean) => {
          events.push(`${to} ${type} ${onParent}`);
          model.wasTold(to, onParent);
        };
        table.startDispatch(step.path, step.eventType);
        model.begin(step.path, step.eventType);
        for (const { budget, alter: between } of step.slices) {
          table.dispatch(visit, budget);
          real.push(change(table, between));
          expected.push(change(model, between));
        }
        let done = false;
        while (!done) done = table.dispatch(visit, 3);
        const order = events.map((event) => event.endsWith('true'));
        real.push(order, [...events].sort());
        // First all events about the znode, then all about its parent.
        expected.push(
          [...order].sort((a, b) => Number(a) - Number(b)),
          model.end(),
        );
      } else {
        real.push(change(table, step));
        expected.push(change(model, step));
      }
      real.push(table.count, table.summary());
      expected.push(model.count, model.summary());
    }
    real.push([...table.byPath()].map(({ path: of, cnxns }) => `${of}: ${[...cnxns].map(String).sort().join()}`).sort());
    expected.push(model.byPath());
    real.push(new Map([...table.byCnxn()].map(({ cnxn: of, paths }) => [of, [...paths].sort()])));
    expected.push(model.byCnxn());
    for (let of = 1; of <= 5; of++) {
      for (const at of ['/', '/a', '/a/b']) {
        for (let type = 1; type <= 5; type++) {
          real.push(table.has(of, at, type));
          expected.push(model.has(of, at, type));
        }
      }
    }
    return { real, expected };
  }

  const steps = fc.array(fc.oneof({ weight: 3, arbitrary: alter }, { weight: 2, arbitrary: fire }), { maxLength: 60 });

  it('finds the same events, counts and lists, with changes between slices', () => {
    fc.assert(
      fc.property(steps, (chosen) => {
        const { real, expected } = histories(new NaiveWatchTable(), chosen);
        expect(real).toEqual(expected);
      }),
      { numRuns: breadth(70, 700) },
    );
  });

  it.each(['tells twice', 'keeps one-shots', 'counts persistent once'] as const)('detects a table with the fault: %s', (fault) => {
    const agree = fc.property(steps, (chosen) => {
      const { real, expected } = histories(new NaiveWatchTable(fault), chosen);
      return isDeepStrictEqual(real, expected);
    });
    expect(fc.check(agree, { numRuns: 500 }).failed).toBe(true);
  });
});

/**
 * The result of a slice and how often it reads numbers of its tables: its work, independent of the
 * machine.
 */
function workOf<Result>(slice: () => Result): { readonly result: Result; readonly work: number } {
  let work = 0;
  const spies = [PagedInts.prototype, PagedDoubles.prototype].map((prototype) => {
    const own = { get: original(prototype, 'get'), set: original(prototype, 'set') };
    Object.assign(prototype, {
      get(this: PagedInts, index: number) {
        work++;
        return own.get.call(this, index);
      },
      set(this: PagedInts, index: number, value: number) {
        work++;
        own.set.call(this, index, value);
      },
    });
    return () => Object.assign(prototype, own);
  });
  try {
    const result = slice();
    return { result, work };
  } finally {
    for (const restore of spies) restore();
  }
}

function original<Name extends 'get' | 'set'>(prototype: PagedInts | PagedDoubles, name: Name): PagedInts[Name] {
  return Object.getOwnPropertyDescriptor(prototype, name)!.value as PagedInts[Name];
}

/** The work for a table with only these watches. */
function workOfAll(watches: number): number {
  const table = newTable();
  const path = Buffer.from('/flag');
  for (let cnxn = 0; cnxn < watches; cnxn++) table.add(cnxn, path, 0, 5, data);
  table.startDispatch('/flag', nodeDataChanged);
  return workOf(() => table.dispatch(() => undefined, watches)).work;
}

describe('very many watches', () => {
  it('A28: on as many paths take less than 100 bytes each, and do not slow others down', () => {
    const count = breadth(200_000, 250_000);
    const before = process.memoryUsage().arrayBuffers;
    const table = newTable();
    const path = Buffer.alloc(64);
    for (let i = 0; i < count; i++) {
      const end = path.write(`/services/api/member-${i}`, 'latin1');
      table.add(i % 1000, path, 0, end, data);
    }
    const grown = process.memoryUsage().arrayBuffers - before;
    expect(table.count).toBe(count);
    expect(table.bytes / count).toBeLessThan(100);
    expect(grown / count).toBeLessThan(100);
    // A change finds its few watches among them, and costs nothing for the rest.
    expect(received(table, '/services/api/member-177777', nodeDeleted)).toEqual(['777 deleted']);
    const { bytes } = table;
    for (let cnxn = 0; cnxn < 1000; cnxn++) table.removeAll(cnxn);
    while (!table.reap(4096));
    expect([table.count, table.summary().paths]).toEqual([0, 0]);
    expect(table.bytes).toBeLessThan(bytes);
  });

  it('F33: on one path are notified in slices, and no slice is more work than in a table without other watches', () => {
    const table = newTable();
    const path = Buffer.from('/flag');
    const count = breadth(100_000, 1_000_000);
    for (let cnxn = 0; cnxn < count; cnxn++) table.add(cnxn, path, 0, 5, data);
    expect(table.bytes / count).toBeLessThan(100);
    table.startDispatch('/flag', nodeDataChanged);
    expect(table.has(count - 1, '/flag', WatcherType.data)).toBe(false);
    let sum = 0;
    let slices = 0;
    let mostWork = 0;
    for (let done = false; !done; slices++) {
      let inSlice = 0;
      const { result, work } = workOf(() => table.dispatch(() => inSlice++, 4096));
      done = result;
      mostWork = Math.max(mostWork, work);
      expect(inSlice).toBeLessThanOrEqual(4096);
      sum += inSlice;
    }
    expect([sum, slices]).toEqual([count, Math.ceil(count / 4096)]);
    // Chains of the index are a little longer in some places than in others.
    expect(mostWork / workOfAll(4096)).toBeLessThan(1.2);
    expect(table.count).toBe(0);
  });
});
