/**
 * A snapshot in the stream from a leader to a learner: not a file, and followed by packets.
 */
import { type MultiMember, OpCode, ProtocolError, sessionIdOf, type Txn } from '@tskeeper/protocol';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { breadth, strided } from '../../../../test/breadth.ts';
import type { Notice } from '../../src/observer.ts';
import { Replica } from '../../src/request/replica.ts';
import { type LoadedSnapshot, SnapshotLoader } from '../../src/snapshot/snapshot-loader.ts';
import { SnapshotWriter } from '../../src/snapshot/snapshot-writer.ts';
import type { DataTree } from '../../src/tree/data-tree.ts';
import { fixtureBytes, type ListedNode, type ListedSnapshot } from '../fixtures.ts';
import { containerOwner, ttlMark } from '../tree/model.ts';
import { anyChange, type Change, expectSame, open, TreeAndModel, treeOptions } from '../tree/tree-and-model.ts';
import { drain, sessionList, snapshotOf } from './snapshots.ts';

const sessions = sessionList([
  [0x01000000, 5, 30_000],
  [-1, -2, 4000],
]);
const mark = Buffer.from('\0\0\0\x0aBenWasHere');
/** Packets after a snapshot: bytes that are not part of it, though they look like it. */
const packets = Buffer.concat([mark, Buffer.from('\0\0\0\x01/'), Buffer.alloc(40, 0xab)]);
const itemBytesMax = 100_000;

function everyKind(): TreeAndModel {
  const both = new TreeAndModel();
  const create = (path: string, data: Buffer | null, acl: string, owner = 0n): Change => {
    return { kind: 'create', path, data, acl, owner, cversion: -1, raise: true };
  };
  const changes: Change[] = [
    create('/plain', Buffer.from('data'), 'open'),
    create('/plain/null', null, 'open'),
    create('/plain/empty', Buffer.alloc(0), 'alice'),
    create('/plain/n0000000001', Buffer.from('é中😀'), 'two'),
    create('/é中', Buffer.alloc(70, 7), 'readOnly'),
    create('/ephemeral', Buffer.from('e'), 'open', 0x0100000000000005n),
    create('/container', null, 'open', containerOwner),
    create('/container/child', null, 'two'),
    create('/ttl', Buffer.from('t'), 'alice', ttlMark | 5000n),
    { kind: 'setData', path: '/plain', data: Buffer.from('new'), version: 1 },
    { kind: 'setAcl', path: '/ttl', acl: 'two', version: 1 },
    create('/gone', null, 'alice'),
    { kind: 'remove', path: '/gone', late: 0 },
  ];
  for (const change of changes) both.change(change);
  return both;
}

function streamOf(tree: DataTree, bytesTarget?: number): Buffer {
  return drain(SnapshotWriter.stream(tree, sessions, 9), bytesTarget);
}

interface Loaded extends LoadedSnapshot {
  /** How many bytes the loader took. */
  readonly taken: number;
}

/**
 * Feeds a stream in pieces that end at these offsets, and the rest. The bytes of a piece are
 * overwritten afterwards, like a read buffer.
 */
function loadStream(bytes: Buffer, cuts: readonly number[] = []): Loaded {
  const loader = new SnapshotLoader(treeOptions, { itemBytesMax });
  let taken = 0;
  let at = 0;
  for (const end of [...cuts, bytes.length]) {
    const piece = Buffer.from(bytes.subarray(at, end));
    const wasComplete = loader.isComplete;
    const count = loader.feed(piece);
    // All of a piece, unless the snapshot ends in it.
    expect(count).toBe(wasComplete ? 0 : loader.isComplete ? count : piece.length);
    piece.fill(0xee);
    taken += count;
    at = end;
  }
  return { ...loader.finish(), taken };
}

function fileOf({ tree, sessions: loaded }: LoadedSnapshot): string {
  return snapshotOf(tree, 9, sessionList(loaded.map(({ high, low, timeoutMs }) => [high, low, timeoutMs]))).toString('hex');
}

describe('a snapshot in a stream', () => {
  const both = everyKind();
  const file = snapshotOf(both.tree, 9, sessions, false);
  const bytes = streamOf(both.tree);

  it('consists of the middle of a snapshot file and a mark', () => {
    const fileHeader = 16;
    const seal = 13;
    const lastZxid = 8 + seal;
    expect(bytes.toString('hex')).toBe(Buffer.concat([file.subarray(fileHeader, file.length - seal - lastZxid), mark]).toString('hex'));
  });

  it('does not contain the zxid, which is in the packet before it', () => {
    const source = SnapshotWriter.stream(both.tree, sessions, 0x12_3456_789a);
    expect(source.zxid).toBe(0x12_3456_789a);
    expect(drain(source).toString('hex')).toBe(bytes.toString('hex'));
    expect(loadStream(bytes)).toMatchObject({ digest: undefined, lastZxid: undefined, missingAcls: undefined });
  });

  it('can be written in slices of any size', () => {
    for (const size of [1, 7, 100, 1000]) expect(streamOf(both.tree, size).equals(bytes)).toBe(true);
  });

  it('is separated from the packets after it wherever it is cut', () => {
    const whole = snapshotOf(both.tree, 9, sessions).toString('hex');
    const stream = Buffer.concat([bytes, packets]);
    const differs: number[] = [];
    for (const cut of strided(stream.length + 1, 11)) {
      const loaded = loadStream(stream, [cut]);
      if (loaded.taken !== bytes.length || fileOf(loaded) !== whole) differs.push(cut);
    }
    expect(differs).toEqual([]);
  });

  it('can arrive one byte at a time', () => {
    const stream = Buffer.concat([bytes, packets]);
    const loaded = loadStream(
      stream,
      Array.from(stream, (_, i) => i),
    );
    expect(loaded.taken).toBe(bytes.length);
    expectSame(loaded.tree, both.model);
    expect(loaded.sessions).toEqual([
      { high: 0x01000000, low: 5, timeoutMs: 30_000 },
      { high: -1, low: -2, timeoutMs: 4000 },
    ]);
  });

  it('contains the state at its start, whatever changes meanwhile', () => {
    fc.assert(
      fc.property(
        fc.array(anyChange, { maxLength: 30 }),
        fc.array(anyChange, { maxLength: 30 }),
        fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 8 }),
        (before, during, sizes) => {
          const changing = new TreeAndModel();
          for (const change of before) changing.change(change);
          const then = changing.model.copy();
          const source = SnapshotWriter.stream(changing.tree, sessions, changing.zxid);
          const stream = drain({
            next(writer) {
              for (const change of during.splice(0, 2)) changing.change(change);
              return source.next(writer, sizes[0]!);
            },
          });
          let at = 0;
          const cuts = sizes.map((size) => (at = Math.min(stream.length, at + size)));
          const loaded = loadStream(Buffer.concat([stream, packets]), cuts);
          expect(loaded.taken).toBe(stream.length);
          expectSame(loaded.tree, then);
        },
      ),
      { numRuns: breadth(10, 100) },
    );
  });

  it('is written by a replica from its state', () => {
    const replica = new Replica(treeOptions);
    replica.sessions.open(1, 2, 3000);
    replica.tree.create('/a', null, replica.tree.acls.intern(open), 0, 0, 1, 5, 1, true);
    replica.lastZxid = 5;
    const source = replica.snapshotStream();
    expect(source.zxid).toBe(5);
    const { tree, sessions: loaded } = loadStream(drain(source));
    expect(loaded).toEqual([{ high: 1, low: 2, timeoutMs: 3000 }]);
    expect(tree.czxidOf(tree.find('/a'))).toBe(5);
  });

  it('that begins in the middle of a txn has the zxid before it, and that txn leads to the same state again (ZOOKEEPER-3127)', () => {
    const leader = new Replica(treeOptions);
    const header = { clientHigh: 0, clientLow: 0, cxid: 1, time: 7, type: OpCode.multi };
    const create = (path: string, parentCVersion: number): MultiMember => {
      return {
        type: OpCode.create,
        txn: { kind: 'create', path, data: Buffer.from(path), acl: [...open], ephemeral: false, parentCVersion },
      };
    };
    const first: Txn = { kind: 'multi', txns: [create('/a', 1), create('/b', 2)] };
    expect(leader.apply({ ...header, zxid: 1 }, first, undefined)).toBeUndefined();
    const paths = Array.from({ length: 2000 }, (_, i) => `/a/n${i}`);
    const second: Txn = {
      kind: 'multi',
      txns: [
        ...paths.map((path, i) => create(path, i + 1)),
        ...paths.slice(500, 900).map((path): MultiMember => ({ type: OpCode.delete, txn: { kind: 'delete', path } })),
        { type: OpCode.setData, txn: { kind: 'setData', path: '/b', data: null, version: 1 } },
      ],
    };
    const moments: Buffer[] = [];
    const job = leader.apply({ ...header, zxid: 2 }, second, undefined)!;
    do {
      const source = leader.snapshotStream();
      expect(source.zxid).toBe(1);
      moments.push(drain(source));
    } while (job.next({ elapsedMs: 0, wallMs: 0 }).done !== true);
    expect(leader.lastZxid).toBe(2);
    expect(moments.length).toBeGreaterThan(2);
    expect(new Set(moments.map((each) => each.length)).size).toBeGreaterThan(2);

    const { digestHigh: high, digestLow: low } = leader.tree;
    for (const moment of moments) {
      const snapshot = loadStream(moment);
      const learner = new Replica(treeOptions, { snapshot, zxid: 1 });
      const notices: Notice[] = [];
      learner.onNotice = (notice) => notices.push(notice);
      const rest = learner.apply({ ...header, zxid: 2 }, second, { version: 2, high, low })!;
      while (rest.next({ elapsedMs: 0, wallMs: 0 }).done !== true);
      expect(notices).toEqual([]);
      expect([learner.lastZxid, learner.tree.nodeCount]).toEqual([2, leader.tree.nodeCount]);
      expect([learner.tree.digestHigh, learner.tree.digestLow]).toEqual([high, low]);
    }
  });

  it('is incomplete before its mark, and the error names the missing part', () => {
    for (const length of strided(bytes.length, 11)) {
      const loader = new SnapshotLoader(treeOptions, { itemBytesMax });
      expect(loader.feed(bytes.subarray(0, length))).toBe(length);
      expect(loader.isComplete).toBe(false);
      expect(() => loader.finish()).toThrow(ProtocolError);
    }
    expect(() => loadStream(bytes.subarray(0, -1))).toThrow(`expected more of the snapshot's mark at byte ${bytes.length - 1}`);
    expect(() => loadStream(bytes.subarray(0, 2))).toThrow("expected more of the snapshot's header at byte 2");
  });

  describe('with false contents', () => {
    const aclsAt = 4 + 2 * 12;
    const changed = (at: number, value: number): Buffer => {
      const copy = Buffer.from(bytes);
      copy.writeInt32BE(value, at);
      return copy;
    };
    const plainAt = bytes.indexOf('/plain') - 4;

    it.each<[string, Buffer, string]>([
      ['another mark', changed(bytes.length - 4, 0), `expected "BenWasHere" after a snapshot at byte ${bytes.length - 14}`],
      ['another length of its mark', changed(bytes.length - 14, 9), `expected "BenWasHere" after a snapshot at byte ${bytes.length - 14}`],
      ['a false number of entries of an ACL', changed(aclsAt + 4 + 8, -2), 'expected a number of ACL entries, not -2 at byte 40'],
      ['a false length of a scheme', changed(aclsAt + 4 + 16, -7), 'expected a scheme of a possible length, not -7 at byte 48'],
      ['a false length of a path', changed(plainAt, -1), `expected a path, not one of length -1 at byte ${plainAt}`],
      ['a false length of data', changed(plainAt + 4 + 6, -2), `expected data of a possible length, not -2 at byte ${plainAt + 10}`],
      ['a file header', snapshotOf(both.tree, 9, sessions), 'expected '],
    ])('is refused with the position of %s', (_, lie, message) => {
      expect(() => loadStream(lie)).toThrow(message);
      for (const cut of [1, 30, 45, 200, lie.length - 5]) expect(() => loadStream(lie, [cut])).toThrow(message);
    });

    it.each<[string, Buffer, number]>([
      ['a path', changed(plainAt, 0x7fffffff), plainAt],
      ['data', changed(plainAt + 4 + 6, 0x7fffffff), plainAt],
      ['a scheme', changed(aclsAt + 4 + 16, 0x7fffff00), aclsAt + 4],
    ])('with a false length of %s is refused at once, without collecting the bytes', (_, lie, at) => {
      const message = new RegExp(`expected a znode or ACL of at most ${itemBytesMax} bytes, not one of at least \\d+ at byte ${at}$`);
      const loader = new SnapshotLoader(treeOptions, { itemBytesMax });
      expect(() => loader.feed(lie.subarray(0, at + 40))).toThrow(message);
    });

    it('with ever more ACL entries is refused once their count is known', () => {
      const loader = new SnapshotLoader(treeOptions, { itemBytesMax: 5000 });
      const lie = changed(aclsAt + 4 + 8, 0x7fffffff).subarray(0, aclsAt + 4 + 12);
      expect(() => loader.feed(lie)).toThrow('expected a znode or ACL of at most 5000 bytes, not one of at least 25769803776');
    });

    it('with endless sessions is refused at a duplicate, or leaves the loader waiting, and is never taken for a snapshot', () => {
      const loader = new SnapshotLoader(treeOptions, { itemBytesMax });
      loader.feed(changed(0, 0x7fffffff).subarray(0, 4 + 2 * 12));
      expect(() => loader.finish()).toThrow("expected more of the snapshot's sessions");
      const zeros = new SnapshotLoader(treeOptions, { itemBytesMax });
      expect(() => zeros.feed(changed(0, 0x7fffffff))).toThrow('a new session, not 0x0 again');
    });

    it('with a flipped bit in any byte is refused with a ProtocolError, or leads to a tree', () => {
      let refused = 0;
      for (const at of strided(bytes.length, 7)) {
        const flipped = Buffer.from(bytes);
        flipped[at]! ^= 1 << (at % 8);
        try {
          loadStream(Buffer.concat([flipped, packets]), [at >> 1]);
        } catch (error) {
          refused++;
          expect(error, `byte ${at}`).toBeInstanceOf(ProtocolError);
          expect((error as ProtocolError).offset).toBeLessThanOrEqual(bytes.length + packets.length);
        }
      }
      expect(refused).toBeGreaterThan(breadth(14, 100));
    });
  });
});

interface RecordedMessage {
  readonly hex: string;
  readonly packet?: string;
  readonly snapshotBody?: Pick<ListedSnapshot, 'sessions' | 'aclCache'> & { readonly nodes: readonly ListedNode[] };
}

type RecordedBody = NonNullable<RecordedMessage['snapshotBody']>;

/** The streams of a Java leader, each with its content and the packet that followed. */
function recordedStreams(): [Buffer, RecordedBody, Buffer][] {
  const streams: [Buffer, RecordedBody, Buffer][] = [];
  const { connections } = JSON.parse(fixtureBytes('ensemble-mixed.json').toString('utf8')) as {
    connections: { messages: RecordedMessage[] }[];
  };
  for (const { messages } of connections) {
    for (const [i, { hex, snapshotBody }] of messages.entries()) {
      if (snapshotBody === undefined) continue;
      const next = messages.slice(i).find(({ packet }) => packet === 'NEWLEADER')!;
      streams.push([Buffer.from(hex, 'hex'), snapshotBody, Buffer.from(next.hex, 'hex')]);
    }
  }
  return streams;
}

const recorded = recordedStreams();

describe('a snapshot that a Java leader sent', () => {
  const hexOf = (value: bigint | number): string => `0x${BigInt.asUintN(64, BigInt(value)).toString(16)}`;

  it('exists in two recordings', () => {
    expect(recorded).toHaveLength(2);
  });

  it.each(recorded)('contains what the recording lists, wherever it is cut, and ends before NEWLEADER', (bytes, listed, newLeader) => {
    const stream = Buffer.concat([bytes, newLeader]);
    for (let cut = 0; cut <= stream.length; cut += breadth(101, 7)) {
      const { tree, sessions: loaded, taken } = loadStream(stream, [cut]);
      expect(taken).toBe(bytes.length);
      expect(loaded.map(({ high, low, timeoutMs }) => ({ id: hexOf(sessionIdOf(high, low)), timeout: timeoutMs }))).toEqual(
        listed.sessions,
      );
      expect(tree.nodeCount).toBe(listed.nodes.length + 1);
      for (const { path, data, acl, stat } of listed.nodes) {
        const node = tree.find(path);
        expect(tree.dataOf(node)?.toString('hex') ?? null).toBe(data?.hex ?? null);
        expect(tree.acls.get(tree.aclOf(node))).toEqual(acl === -1 ? open : listed.aclCache.find(({ key }) => key === acl)!.acl);
        expect({
          czxid: hexOf(tree.czxidOf(node)),
          mzxid: hexOf(tree.mzxidOf(node)),
          pzxid: hexOf(tree.pzxidOf(node)),
          ctime: tree.ctimeOf(node),
          mtime: tree.mtimeOf(node),
          version: tree.versionOf(node),
          cversion: tree.cversionOf(node),
          aversion: tree.aversionOf(node),
          ephemeralOwner: hexOf(sessionIdOf(tree.ownerHighOf(node), tree.ownerLowOf(node))),
        }).toEqual(stat);
      }
    }
  });

  it.each(recorded)('equals the snapshot that a replica sends after loading it', (bytes) => {
    const { tree, sessions: loaded } = loadStream(bytes);
    const list = sessionList(loaded.map(({ high, low, timeoutMs }) => [high, low, timeoutMs]));
    expect(drain(SnapshotWriter.stream(tree, list, 0x10000000a)).toString('hex')).toBe(bytes.toString('hex'));
  });
});
