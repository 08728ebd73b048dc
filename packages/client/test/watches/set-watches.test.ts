import { OpCode, Reader, readSetWatches2Request, readSetWatchesRequest, type SetWatches2Request, Writer } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { Chroot } from '../../src/chroot.ts';
import { setWatchesBytesMax, setWatchesBatches } from '../../src/watches/set-watches.ts';
import { type Watcher, WatchTable } from '../../src/watches/watch-table.ts';

const watcher: Watcher = { listener: () => {}, chroot: new Chroot('') };

interface Piece {
  readonly opCode: number;
  readonly bytes: number;
  readonly request: Partial<SetWatches2Request>;
}

function pieces(table: WatchTable, packetBytesMax = 1_048_575): Piece[] {
  return [...setWatchesBatches(table, 42, packetBytesMax)].map((piece) => {
    const writer = new Writer();
    piece.write(writer);
    const reader = new Reader(Buffer.from(writer.written()));
    const request = piece.opCode === OpCode.setWatches ? readSetWatchesRequest(reader) : readSetWatches2Request(reader);
    expect(reader.remaining).toBe(0);
    return { opCode: piece.opCode, bytes: writer.offset, request };
  });
}

describe('restoring watches', () => {
  it('sends nothing if there are no watches', () => {
    expect(pieces(new WatchTable())).toEqual([]);
  });

  it('uses the request of old servers while no watch needs the newer one', () => {
    const table = new WatchTable();
    table.add('data', '/d', watcher);
    table.add('exist', '/e', watcher);
    table.add('child', '/c', watcher);
    const old = { relativeZxid: 42, dataWatches: ['/d'], existWatches: ['/e'], childWatches: ['/c'] };
    expect(pieces(table)).toMatchObject([{ opCode: OpCode.setWatches, request: old }]);
    table.add('persistent', '/p', watcher);
    table.add('persistentRecursive', '/r', watcher);
    const both = { ...old, persistentWatches: ['/p'], persistentRecursiveWatches: ['/r'] };
    expect(pieces(table)).toMatchObject([{ opCode: OpCode.setWatches2, request: both }]);
  });

  it('sends every path once, in pieces of bounded size, whatever the paths are', () => {
    const table = new WatchTable();
    const paths = Array.from({ length: 3000 }, (_, index) => `/${'ä'.repeat(index % 200)}${index}`);
    paths.forEach((path, index) => table.add(index % 2 === 0 ? 'data' : 'persistent', path, watcher));
    const sent = pieces(table);
    expect(sent.length).toBeGreaterThan(4);
    for (const { bytes } of sent) expect(bytes).toBeLessThan(setWatchesBytesMax + 64);
    const named = sent.flatMap(({ request }) => [...request.dataWatches!, ...(request.persistentWatches ?? [])]);
    expect(named.toSorted()).toEqual(paths.toSorted());
  });

  it('B43, E20: keeps each packet below a small packet limit', () => {
    const table = new WatchTable();
    const kinds = ['data', 'exist', 'child', 'persistent', 'persistentRecursive'] as const;
    for (let index = 0; index < 500; index++) table.add(kinds[index % 5]!, `/a/path/of/${'x'.repeat(index % 50)}${index}`, watcher);
    for (const limit of [200, 1000, 5000]) {
      const sent = pieces(table, limit);
      // The header comes in addition to the request.
      for (const { bytes } of sent) expect(bytes + 8).toBeLessThanOrEqual(limit);
      expect(sent.some(({ bytes }) => bytes > limit / 2)).toBe(true);
    }
  });

  it('sends a path that is longer than a piece alone', () => {
    const table = new WatchTable();
    for (const path of ['/a', `/${'x'.repeat(500)}`, '/b']) table.add('child', path, watcher);
    expect(pieces(table, 136).map(({ request }) => request.childWatches!.map((path) => path.length))).toEqual([[2], [501], [2]]);
  });
});
