import { EventType } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { Chroot } from '../../src/chroot.ts';
import { type WatchKind, type Watcher, watchKinds, WatchTable } from '../../src/watches/watch-table.ts';

const chroot = new Chroot('');
const named = new Map<string, Watcher>(watchKinds.map((kind) => [kind, { listener: () => {}, chroot }]));

/** A table with one watcher of each kind on the path. */
function everyKindOn(path: string): WatchTable {
  const table = new WatchTable();
  for (const kind of watchKinds) table.add(kind, path, named.get(kind)!);
  return table;
}

function received(table: WatchTable, type: number, path: string): string[] {
  const watchers = table.take(type, path);
  return [...named].filter(([, watcher]) => watchers.has(watcher)).map(([name]) => name);
}

describe('a watch table', () => {
  it.each<[name: keyof typeof EventType, received: WatchKind[]]>([
    ['nodeCreated', ['data', 'exist', 'persistent', 'persistentRecursive']],
    ['nodeDataChanged', ['data', 'exist', 'persistent', 'persistentRecursive']],
    ['nodeDeleted', ['data', 'exist', 'child', 'persistent', 'persistentRecursive']],
    ['nodeChildrenChanged', ['child', 'persistent']],
    ['dataWatchRemoved', []],
  ])('returns the watchers of %s, and removes one-shot ones', (name, kinds) => {
    const table = everyKindOn('/a/b');
    expect(received(table, EventType[name], '/a/b')).toEqual(kinds);
    expect(received(table, EventType[name], '/a/b')).toEqual(kinds.filter((kind) => kind.startsWith('persistent')));
    expect(received(everyKindOn('/a/b'), EventType[name], '/a')).toEqual([]);
  });

  it('returns recursive watchers for everything below them, up to the root', () => {
    for (const path of ['/', '/a', '/a/b', '/a/b/c']) {
      expect(received(everyKindOn(path), EventType.nodeCreated, '/a/b/c')).toContain('persistentRecursive');
    }
    expect(received(everyKindOn('/a/bb'), EventType.nodeCreated, '/a/b')).toEqual([]);
    expect(received(everyKindOn('/a'), EventType.nodeCreated, '/ab')).toEqual([]);
  });

  it('contains a watcher once per kind and path', () => {
    const table = new WatchTable();
    const watcher = named.get('data')!;
    table.add('data', '/a', watcher);
    table.add('data', '/a', watcher);
    table.add('child', '/a', watcher);
    expect([...table.all()]).toEqual([watcher]);
    expect(table.remove('data', '/a', watcher)).toEqual([watcher]);
    expect(table.remove('data', '/a', watcher)).toEqual([]);
    expect(table.has('child', '/a', watcher)).toBe(true);
    expect([...table.paths('data')]).toEqual([]);
    table.clear();
    expect([...table.all()]).toEqual([]);
  });

  it("B44: needs the server's watch while it has a listener or a pending request for it", () => {
    const table = new WatchTable();
    const [one, two] = [named.get('data')!, named.get('child')!];
    const toCome = { path: '/a', kinds: ['data', 'exist'] } as const;
    const needs = () => (['data', 'exist', 'child'] as const).filter((kind) => table.isNeeded(kind, '/a', one));
    table.add('data', '/a', one);
    table.add('child', '/b', two);
    expect(needs()).toEqual([]);
    table.addPending(toCome);
    table.addPending(toCome);
    table.removePending(toCome);
    expect(needs()).toEqual(['data', 'exist']);
    table.removePending(toCome);
    expect(needs()).toEqual([]);
    table.add('data', '/a', two);
    expect(needs()).toEqual(['data']);
  });
});
