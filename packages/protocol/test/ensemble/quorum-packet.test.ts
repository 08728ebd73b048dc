/**
 * Packets between leaders and learners, recorded and generated, and how their stream is cut.
 */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import {
  beginQuorumPacket,
  endQuorumPacket,
  openAcl,
  PacketDecoder,
  PacketType,
  packetTypeName,
  PacketView,
  ProtocolError,
  type QuorumPacket,
  Reader,
  readQuorumPacket,
  readSnapshotAcls,
  readSnapshotSignature,
  readSnapshotNode,
  readSnapshotSessions,
  type SnapshotNode,
  snapshotSignatureBytes,
  writeEmptyPacket,
  type Writer,
  writeQuorumPacket,
  writeSnapshotAcl,
  writeSnapshotSignature,
  writeSnapshotNode,
  writeSnapshotSession,
} from '../../src/index.ts';
import { bytes as anyBytes, id, int32, long } from '../arbitraries.ts';
import { plain, seeded, written } from '../fixtures.ts';
import { readPacketData, RecordingConsumer, recordedData, recordedStreams, type RecordedStream } from '../quorum-fixtures.ts';

const streams = recordedStreams('learner');
const packets = streams.flatMap(({ messages, fromInitiator }) => {
  return messages.filter(({ packet }) => packet !== undefined).map((message) => ({ ...message, fromLearner: fromInitiator }));
});
const snapshots = streams.flatMap(({ messages }) => messages.filter(({ snapshotBody }) => snapshotBody !== undefined));

function rawLengths({ messages }: RecordedStream): number[] {
  return messages.flatMap(({ snapshotBody, hex }) => (snapshotBody === undefined ? [] : [hex.length / 2]));
}

function packetBytes(packet: QuorumPacket): Buffer {
  return written((writer) => writeQuorumPacket(writer, packet));
}

const empty = { type: PacketType.COMMIT, zxid: 7, data: null, authinfo: null };
const withIdentities: QuorumPacket = {
  type: PacketType.REQUEST,
  zxid: -1,
  data: Buffer.from('data'),
  authinfo: [
    { scheme: 'ip', id: '10.0.0.1' },
    { scheme: 'digest', id: null },
  ],
};

describe('recorded packets', () => {
  test('contain many packets, and some of every type', () => {
    expect(packets.length).toBeGreaterThan(270);
    expect(snapshots.length).toBeGreaterThan(2);
    const seen = new Set(packets.map(({ packet }) => packet));
    // ZooKeeper does not have HANDOVER.
    expect(Object.keys(PacketType).filter((name) => !seen.has(name as keyof typeof PacketType))).toEqual(['HANDOVER']);
  });

  test('decode to the recorded values, down to the records in their data', () => {
    for (const message of packets) {
      const { packet, type, zxid, authinfo, hex, fromLearner } = message;
      const reader = new Reader(Buffer.from(hex, 'hex'));
      const read = readQuorumPacket(reader);
      expect(reader.remaining, hex).toBe(0);
      expect([read.type, PacketType[packet!], packetTypeName(read.type)], hex).toEqual([type, type, packet]);
      expect(plain(read.zxid), hex).toBe(plain(zxid));
      expect(read.authinfo, hex).toEqual(authinfo);
      const data = new Reader(Buffer.from(read.data ?? []));
      const { decoded } = readPacketData(read.type, fromLearner, data, read.data !== null);
      expect(plain(decoded), hex).toEqual(plain(recordedData(message)));
      expect(data.remaining, hex).toBe(0);
    }
  });

  test('encode to the same bytes, as a whole and record by record', () => {
    for (const { hex, fromLearner } of packets) {
      const bytes = Buffer.from(hex, 'hex');
      expect(packetBytes(readQuorumPacket(new Reader(bytes))).toString('hex')).toBe(hex);
      const view = new PacketView().wrap(bytes, 0, bytes.length);
      const { write } = readPacketData(view.type, fromLearner, view.data, view.hasData);
      const again = written((writer) => {
        const type = view.type as PacketType;
        if (write === undefined) return writeEmptyPacket(writer, type, view.zxid);
        const start = beginQuorumPacket(writer, type, view.zxid);
        write(writer);
        endQuorumPacket(writer, start, view.authinfo());
      });
      expect(again.toString('hex')).toBe(hex);
    }
  });

  test('have the same fields in a view', () => {
    const view = new PacketView();
    for (const { hex } of packets) {
      const inside = Buffer.concat([Buffer.from('before'), Buffer.from(hex, 'hex'), Buffer.from('behind')]);
      view.wrap(inside, 6, inside.length - 6);
      expect(view.toPacket()).toEqual(readQuorumPacket(new Reader(Buffer.from(hex, 'hex'))));
      // However much of the data has been read.
      expect(view.authinfo()).toEqual(view.toPacket().authinfo);
      const { type, zxid, hasData } = view;
      const data = hasData ? view.data.remainingBytes() : null;
      expect({ type, zxid, data, authinfo: view.authinfo() }).toEqual(view.toPacket());
    }
  });
});

describe('the snapshot after a packet SNAP', () => {
  test('is that of a file without header and seals, and ends with its mark', () => {
    for (const { hex, snapshotBody } of snapshots) {
      const reader = new Reader(Buffer.from(hex, 'hex'));
      const sessions = readSnapshotSessions(reader);
      const acls = readSnapshotAcls(reader);
      const nodes: SnapshotNode[] = [];
      for (let node = readSnapshotNode(reader); node !== undefined; node = readSnapshotNode(reader)) nodes.push(node);
      readSnapshotSignature(reader);
      expect(reader.remaining).toBe(0);
      expect(sessions).toHaveLength(snapshotBody!.sessions.length);
      expect(acls).toHaveLength(snapshotBody!.aclCache.length);
      expect(nodes.map(({ path }) => path)).toEqual(snapshotBody!.nodes.map(({ path }) => path));
      const again = written((writer: Writer) => {
        writer.vector(sessions, writeSnapshotSession);
        writer.vector(acls, writeSnapshotAcl);
        for (const node of nodes) writeSnapshotNode(writer, node);
        writer.ustring('/');
        writeSnapshotSignature(writer);
      });
      expect(again.toString('hex')).toBe(hex);
    }
  });

  test('with another end is refused', () => {
    expect(() => readSnapshotSignature(new Reader(Buffer.from(snapshotSignatureBytes)))).not.toThrow();
    for (const hex of ['0000000a42656e57617348657266', 'ffffffff', '0000000a42656e576173486572', '']) {
      expect(() => readSnapshotSignature(new Reader(Buffer.from(hex, 'hex')))).toThrow(ProtocolError);
    }
  });
});

describe('cutting', () => {
  test.each([1, 3, 64, 100_000])('recorded streams, including snapshots, are delivered completely in pieces of %i bytes', (size) => {
    for (const stream of streams) {
      const consumer = new RecordingConsumer(rawLengths(stream));
      for (let at = 0; at < stream.bytes.length; at += size) {
        const piece = Buffer.from(stream.bytes.subarray(at, at + size));
        expect(consumer.feed(piece)).toBe(true);
        piece.fill(0xee);
      }
      expect(consumer.taken, stream.title).toEqual(stream.messages.map(({ hex }) => hex));
      expect(consumer.cutter.retainedBytes).toBe(0);
    }
  });

  test('a packet that is complete in the input is delivered in place, one that began earlier is assembled', () => {
    const one = packetBytes(withIdentities);
    const chunk = Buffer.concat([one.subarray(30), one, packetBytes(empty)]);
    const inPlace: boolean[] = [];
    const cutter = new PacketDecoder(1000);
    const consumer = { packet: ({ bytes }: PacketView) => inPlace.push(bytes === chunk) > 0, raw: () => 0 };
    cutter.feed(one, 0, 30, consumer);
    cutter.feed(chunk, 0, chunk.length, consumer);
    expect(inPlace).toEqual([false, true, true]);
    expect(cutter.retainedBytes).toBe(0);
  });

  test('raw bytes are delivered in place, from the byte after the packet to the next packet', () => {
    const snap = packetBytes({ ...empty, type: PacketType.SNAP });
    const chunk = Buffer.concat([snap, Buffer.from('snapshot'), packetBytes(empty)]);
    const places: unknown[] = [];
    const cutter = new PacketDecoder(1000);
    const consumer = {
      packet: ({ start }: PacketView) => {
        places.push(start);
        if (places.length === 1) cutter.beginRaw();
        return true;
      },
      raw: (bytes: Buffer, start: number, end: number) => {
        places.push([bytes === chunk, start, end, cutter.isRaw]);
        cutter.endRaw();
        return start + 8;
      },
    };
    expect(cutter.feed(chunk, 0, chunk.length, consumer)).toBe(true);
    expect(places).toEqual([0, [true, 20, 48, true], 28]);
    expect(cutter.isRaw).toBe(false);
  });

  test('any packets with any snapshots are delivered as they were sent, in any pieces and with any pauses', () => {
    const packet: fc.Arbitrary<QuorumPacket> = fc.record({
      type: fc.oneof(int32, fc.integer({ min: 1, max: 19 })).filter((type) => type !== PacketType.SNAP),
      zxid: long,
      data: fc.option(anyBytes),
      authinfo: fc.option(fc.array(id, { maxLength: 4 })),
    });
    const snapshot = fc.uint8Array({ minLength: 1, maxLength: 200 });
    const part = fc.oneof({ weight: 4, arbitrary: packet }, { weight: 1, arbitrary: snapshot });
    const sizes = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), sizes, fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 250 }), (...args) => {
        const [parts, cuts, refuseEvery, appetite] = args;
        const sent: Buffer[] = [];
        const lengths: number[] = [];
        for (const each of parts) {
          if (each instanceof Uint8Array) {
            sent.push(packetBytes({ ...empty, type: PacketType.SNAP }), Buffer.from(each));
            lengths.push(each.length);
          } else sent.push(packetBytes(each));
        }
        const stream = Buffer.concat(sent);
        const consumer = new RecordingConsumer(lengths);
        let seen = 0;
        consumer.accepts = () => ++seen % refuseEvery !== 0;
        consumer.rawAppetite = appetite;
        let arrived = 0;
        for (let i = 0; arrived < stream.length; i++) {
          const piece = Buffer.from(stream.subarray(arrived, arrived + cuts[i % cuts.length]!));
          arrived += piece.length;
          consumer.feed(piece);
          piece.fill(0xee);
          expect(consumer.cutter.retainedBytes).toBeLessThanOrEqual(Math.max(128, 2 * arrived));
          // Like a port: sometimes at once, sometimes after more input.
          if (i % 2 === 0) while (consumer.cutter.isPaused) consumer.resume();
        }
        while (consumer.cutter.isPaused) consumer.resume();
        expect(consumer.taken).toEqual(sent.map((bytes) => bytes.toString('hex')));
        expect(consumer.cutter.retainedBytes).toBe(0);
      }),
    );
  });
});

describe('lengths', () => {
  const head = (dataLength: number): Buffer => {
    return written((writer) => {
      writer.int32(1);
      writer.int64(0);
      writer.int32(dataLength);
    });
  };
  const withAuthinfo = (write: (writer: Writer) => void): Buffer => Buffer.concat([head(-1), written(write)]);
  const lying: [string, Buffer][] = [
    ['data longer than the limit', head(101)],
    ['data of a huge length', head(0x7fffffff)],
    ['data of a negative length', head(-2)],
    ['more identities than possible', withAuthinfo((writer) => writer.int32(13))],
    ['a huge number of identities', withAuthinfo((writer) => writer.int32(0x7fffffff))],
    [
      'an identity longer than the limit',
      withAuthinfo((writer) => {
        writer.int32(1);
        writer.int32(101);
      }),
    ],
    [
      'an identity of a negative length',
      withAuthinfo((writer) => {
        writer.int32(1);
        writer.int32(-2);
      }),
    ],
    [
      'identities longer than the limit together',
      withAuthinfo((writer) => {
        writer.int32(2);
        writer.ustring('x'.repeat(60));
        writer.int32(60);
      }),
    ],
  ];

  test.each(lying)('that announce %s are refused as soon as they are known, in one piece or byte by byte', (_what, bytes) => {
    expect(() => new RecordingConsumer([], 100).feed(bytes)).toThrow(ProtocolError);
    const consumer = new RecordingConsumer([], 100);
    const feedAll = (): void => {
      for (let at = 0; at < bytes.length; at++) consumer.feed(bytes, at, at + 1);
    };
    expect(feedAll).toThrow(ProtocolError);
    expect(consumer.cutter.retainedBytes).toBeLessThanOrEqual(256);
    expect(consumer.taken).toEqual([]);
  });

  test('at the limit are accepted', () => {
    const most = packetBytes({ type: 1, zxid: 0, data: Buffer.alloc(100), authinfo: [{ scheme: 'x'.repeat(92), id: '' }] });
    const consumer = new RecordingConsumer([], 100);
    consumer.feed(most);
    expect(consumer.taken).toHaveLength(1);
  });

  test('below -1 count as no identities, as in ZooKeeper', () => {
    const consumer = new RecordingConsumer([], 100);
    consumer.feed(withAuthinfo((writer) => writer.int32(-5)));
    expect(consumer.taken).toHaveLength(1);
  });

  test('let memory grow with the bytes received, not with the announced length', () => {
    const consumer = new RecordingConsumer([], 0x1ffffe);
    consumer.feed(head(0x1ffffe));
    expect(consumer.cutter.retainedBytes).toBeLessThanOrEqual(128);
    const piece = Buffer.alloc(1000);
    for (let arrived = 16; arrived + piece.length < 0x1ffffe; arrived += piece.length) {
      expect(consumer.cutter.retainedBytes).toBeLessThanOrEqual(Math.max(128, 2 * arrived));
      consumer.feed(piece);
    }
    expect(consumer.taken).toHaveLength(0);
  });

  test('of very many identities, byte by byte, are each decoded once', () => {
    // Starting again with every byte would take some 10^10 steps.
    const ids = Array.from({ length: 60_000 }, () => ({ scheme: '', id: '' }));
    const bytes = packetBytes({ ...empty, authinfo: ids });
    const consumer = new RecordingConsumer([], 0x1ffffe);
    for (let at = 0; at < bytes.length; at++) consumer.feed(bytes, at, at + 1);
    expect(consumer.taken).toHaveLength(1);
  });

  test('that are valid do not suffice: a zxid of 2^53 or more is refused too', () => {
    const bytes = packetBytes(empty);
    bytes.writeInt32BE(0x200000, 4);
    expect(() => new RecordingConsumer().feed(bytes)).toThrow('expected a zxid below 2^53 at byte 4');
    expect(() => readQuorumPacket(new Reader(bytes))).toThrow(ProtocolError);
  });
});

describe('a consumer that returns false', () => {
  const three = [1, 2, 3].map((zxid) => packetBytes({ ...empty, zxid }));
  const hexes = three.map((bytes) => bytes.toString('hex'));

  test('gets nothing until it resumes, and loses no input meanwhile', () => {
    const consumer = new RecordingConsumer();
    consumer.accepts = () => false;
    expect(consumer.feed(Buffer.concat([three[0]!, three[1]!]))).toBe(false);
    consumer.feed(three[2]!, 0, 9);
    expect(consumer.taken).toEqual(hexes.slice(0, 1));
    expect(consumer.resume()).toBe(false);
    consumer.accepts = () => true;
    expect(consumer.resume()).toBe(true);
    expect(consumer.taken).toEqual(hexes.slice(0, 2));
    consumer.feed(three[2]!, 9);
    expect(consumer.taken).toEqual(hexes);
    expect(consumer.cutter.retainedBytes).toBe(0);
  });

  test('may stop before a packet', () => {
    const consumer = new RecordingConsumer();
    consumer.cutter.pause();
    expect(consumer.feed(three[0]!)).toBe(false);
    expect(consumer.taken).toEqual([]);
    expect(consumer.resume()).toBe(true);
    expect(consumer.taken).toEqual(hexes.slice(0, 1));
  });

  test('may stop in the middle of a snapshot, by leaving bytes', () => {
    const snap = packetBytes({ ...empty, type: PacketType.SNAP });
    const consumer = new RecordingConsumer([10]);
    consumer.rawAppetite = 4;
    expect(consumer.feed(Buffer.concat([snap, Buffer.from('0123456789'), three[0]!]))).toBe(false);
    expect(consumer.resume()).toBe(false);
    expect(consumer.taken).toHaveLength(1);
    expect(consumer.resume()).toBe(true);
    expect(consumer.taken.slice(1)).toEqual([Buffer.from('0123456789').toString('hex'), hexes[0]]);
  });

  test('releases the memory of all packets in the end', () => {
    const consumer = new RecordingConsumer();
    consumer.accepts = () => false;
    consumer.feed(Buffer.concat([three[0]!, packetBytes({ ...empty, data: Buffer.alloc(10_000) }), three[1]!.subarray(0, 5)]));
    expect(consumer.cutter.retainedBytes).toBeGreaterThan(10_000);
    consumer.accepts = () => true;
    consumer.resume();
    expect(consumer.cutter.retainedBytes).toBeLessThanOrEqual(128);
  });

  test('may close the cutter while it takes input, and gets nothing more', () => {
    const inPieces = new RecordingConsumer();
    inPieces.feed(three[0]!, 0, 7);
    const resumed = new RecordingConsumer();
    resumed.cutter.pause();
    resumed.feed(Buffer.concat(three));
    const plainly = new RecordingConsumer();
    for (const consumer of [inPieces, resumed, plainly]) {
      consumer.accepts = () => {
        consumer.cutter.close();
        return true;
      };
    }
    expect(inPieces.feed(Buffer.concat([three[0]!.subarray(7), ...three]))).toBe(false);
    expect(resumed.resume()).toBe(false);
    expect(plainly.feed(Buffer.concat(three))).toBe(false);
    for (const consumer of [inPieces, resumed, plainly]) {
      expect(consumer.feed(three[1]!)).toBe(false);
      expect(consumer.resume()).toBe(false);
      expect(consumer.taken).toEqual(hexes.slice(0, 1));
      expect(consumer.cutter.retainedBytes).toBe(0);
    }
  });
});

test('a cutter gives packets or a ProtocolError for any bytes in any pieces', () => {
  const below = seeded(20261121);
  let refused = 0;
  for (let i = 0; i < breadth(300, 3_000); i++) {
    const chosen = Array.from({ length: 1 + below(4) }, () => Buffer.from(packets[below(packets.length)]!.hex, 'hex'));
    const stream = Buffer.concat(chosen);
    for (let n = below(4); n >= 0; n--) {
      const at = below(stream.length - 4);
      if (below(2) === 0) stream[at]! ^= 1 << below(8);
      else stream.writeInt32BE([-0x80000000, -2, -1, 0x7fffffff, 0xfffff, 0][below(6)]!, at);
    }
    const consumer = new RecordingConsumer(Array.from({ length: 50 }, () => 1 + below(50)));
    try {
      for (let at = 0; at < stream.length;) {
        const end = Math.min(stream.length, at + 1 + below(60));
        consumer.feed(stream, at, end);
        expect(consumer.cutter.retainedBytes).toBeLessThanOrEqual(Math.max(128, 2 * end));
        at = end;
      }
    } catch (error) {
      expect(error).toBeInstanceOf(ProtocolError);
      refused++;
    }
  }
  // Both results must occur.
  expect(refused).toBeGreaterThan(breadth(30, 300));
  expect(refused).toBeLessThan(breadth(290, 2_900));
});

test('many cutters may share a view', () => {
  const view = new PacketView(1000);
  const seen: boolean[] = [];
  for (const cutter of [new PacketDecoder(1000, view), new PacketDecoder(1000, view)]) {
    const bytes = packetBytes({ ...empty, data: written((writer) => writer.vector(openAcl, (w, { perms }) => w.int32(perms))) });
    cutter.feed(bytes, 0, bytes.length, { packet: (packet) => seen.push(packet === view && packet.data.int32() === 1) > 0, raw: () => 0 });
  }
  expect(seen).toEqual([true, true]);
});
