/**
 * Input that no honest peer sends. Every decoder gives a ProtocolError or a record, and allocates
 * almost no memory.
 */
import { describe, expect, test } from 'vitest';
import { breadth, strided } from '../../../test/breadth.ts';
import {
  fixupAcl,
  FrameDecoder,
  LogEntryCursor,
  operationOf,
  PacketView,
  ProtocolError,
  readConnectRequest,
  readConnectResponse,
  Reader,
  readFileHeader,
  readInitialMessage,
  readNotification,
  readQuorumPacket,
  readReplyBody,
  readReplyHeader,
  readRequestHeader,
  readSeal,
  readSnapshotAcls,
  readSnapshotDigest,
  readSnapshotNode,
  readSnapshotSessions,
  readTxn,
  readWatcherEvent,
  Xid,
} from '../src/index.ts';
import { readPacketData, recordedStreams } from './quorum-fixtures.ts';
import { allCodecs, bodyOf, captureNames, captures, fixtureBytes, outcomeOf, saslFrames, seeded } from './fixtures.ts';

type Read = (reader: Reader) => unknown;

interface Sample {
  readonly title: string;
  readonly bytes: Buffer;
  readonly read: Read;
  /** A cut that is not an error, since the rest is optional. */
  readonly optionalFrom?: number;
}

function readRequest(reader: Reader): unknown {
  const { type } = readRequestHeader(reader);
  return operationOf(type)?.request.read(reader);
}

function readReplyTo(opCode: number): Read {
  return (reader) => {
    const { xid, err } = readReplyHeader(reader);
    if (xid === Xid.notification) return readWatcherEvent(reader);
    const operation = operationOf(opCode);
    return operation && readReplyBody(reader, operation, err);
  };
}

function readPacketAndData(fromLearner: boolean): Read {
  return (reader) => {
    const view = new PacketView(reader.lengthMax).wrap(reader.bytes, reader.offset, reader.limit);
    readQuorumPacket(reader);
    return readPacketData(view.type, fromLearner, view.data, view.hasData);
  };
}

/** Every recorded frame and log entry, with its decoder. */
function samples(): Sample[] {
  const found: Sample[] = [];
  const opCodes = new Map<number, number>();
  for (const name of captureNames) {
    for (const { dir, hex, step, decoded } of captures(name)) {
      const bytes = bodyOf(hex);
      const title = `${name} ${dir} ${step}`;
      if ('ConnectRequest' in decoded) found.push({ title, bytes, read: readConnectRequest, optionalFrom: 44 });
      else if ('ConnectResponse' in decoded) found.push({ title, bytes, read: readConnectResponse, optionalFrom: 36 });
      else if (dir === 'C>S') {
        const { xid, type } = readRequestHeader(new Reader(bytes));
        opCodes.set(xid, type);
        found.push({ title, bytes, read: readRequest });
      } else {
        found.push({ title, bytes, read: readReplyTo(opCodes.get(bytes.readInt32BE(0)) ?? 0) });
      }
    }
  }
  for (const { dir, hex, what } of saslFrames().flat()) {
    if (what === 'handshake') continue;
    const bytes = bodyOf(hex);
    if (dir === 'C>S') opCodes.set(bytes.readInt32BE(0), bytes.readInt32BE(4));
    const read = dir === 'C>S' ? readRequest : readReplyTo(opCodes.get(bytes.readInt32BE(0))!);
    // A refused token is sent as null, and might as well be omitted.
    const optionalFrom = what.includes('err=-115') ? 16 : bytes.length;
    found.push({ title: `sasl ${what}`, bytes, read, optionalFrom });
  }
  for (const { messages, title } of recordedStreams('election')) {
    for (const { hex, initial } of messages) {
      if (initial !== undefined) found.push({ title, bytes: Buffer.from(hex, 'hex'), read: readInitialMessage });
      // Ends where an older server would have ended it.
      else found.push({ title, bytes: bodyOf(hex), read: readNotification, optionalFrom: 28 });
    }
  }
  for (const { messages, title, fromInitiator } of recordedStreams('learner')) {
    for (const { hex, type } of messages) {
      if (type !== undefined) found.push({ title, bytes: Buffer.from(hex, 'hex'), read: readPacketAndData(fromInitiator) });
    }
  }
  for (const folder of ['disk-3.9.5', 'disk-3.8.0']) {
    const log = fixtureBytes(`${folder}/log.1`);
    const cursor = new LogEntryCursor(log.length);
    for (let at = 16; cursor.read(log, at, log.length) === 'entry'; at = cursor.next) {
      const bytes = Buffer.from(log.subarray(cursor.txnStart, cursor.txnEnd));
      const reader = new Reader(bytes);
      const { header, digest } = readTxn(reader);
      // Optional in a txn are the digest; the parentCVersion of a create; and all of a
      // closeSession.
      const recordEnd = reader.offset - (digest === undefined ? 0 : 12);
      const optionalFrom = header.type === -11 ? 32 : header.type === 1 ? recordEnd - 4 : recordEnd;
      found.push({ title: `${folder} txn ${header.zxid}`, bytes, read: readTxn, optionalFrom });
    }
  }
  return found;
}

function readSnapshot(reader: Reader): void {
  readFileHeader(reader);
  readSnapshotSessions(reader);
  readSnapshotAcls(reader);
  while (readSnapshotNode(reader) !== undefined);
  readSeal(reader);
  readSnapshotDigest(reader);
  readSeal(reader);
}

const recorded = samples();
/** False lengths and counts, at the limits of an int. */
const lies = [-0x80000000, -2, -1, 0x7fffffff, 0x7ffffffe, 0x40000000, 0x10000000, 0x00ffffff, 0x000fffff, 255];

function expectOnlyProtocolError(outcome: unknown, title: string): void {
  if (typeof outcome !== 'number' && !(outcome instanceof ProtocolError))
    throw new Error(`${title}: ${String(outcome)}`, { cause: outcome });
}

test('the samples are many, and each is decoded to its last byte', () => {
  expect(recorded.length).toBeGreaterThan(650);
  for (const { title, bytes, read } of recorded) expect(outcomeOf(read, new Reader(bytes)), title).toBe(bytes.length);
});

test('a record cut short at any length causes a ProtocolError, unless only an optional part is missing', () => {
  for (const { title, bytes, read, optionalFrom = bytes.length } of recorded) {
    // The bytes after the cut are still there: a decoder that reads beyond its limit would find
    // them.
    const lengths = [...strided(bytes.length, 7)];
    const outcomes = lengths.map((length) => outcomeOf(read, new Reader(bytes, 0, length)));
    for (const outcome of outcomes) expectOnlyProtocolError(outcome, title);
    const readable = lengths.filter((_length, index) => !(outcomes[index] instanceof ProtocolError));
    expect(
      readable.filter((length) => length < optionalFrom),
      title,
    ).toEqual([]);
  }
});

test('a snapshot cut short at any length causes a ProtocolError', () => {
  const snapshot = fixtureBytes('disk-3.8.0/snapshot.22');
  expect(outcomeOf(readSnapshot, new Reader(snapshot))).toBe(snapshot.length);
  for (let length = 0; length < snapshot.length; length++) {
    expect(outcomeOf(readSnapshot, new Reader(snapshot, 0, length))).toBeInstanceOf(ProtocolError);
  }
});

test('a false value in place of any int gives a ProtocolError or a record, and allocates no memory for it', () => {
  const before = process.memoryUsage();
  for (const { title, bytes, read } of recorded) {
    const lying = Buffer.from(bytes);
    for (const at of strided(bytes.length - 3, 11)) {
      const truth = bytes.readInt32BE(at);
      for (const lie of lies) {
        lying.writeInt32BE(lie, at);
        expectOnlyProtocolError(outcomeOf(read, new Reader(lying)), `${title}, ${lie} at ${at}`);
      }
      lying.writeInt32BE(truth, at);
    }
  }
  const after = process.memoryUsage();
  // The smallest of the large lengths, trusted once, would take 16 MiB outside the heap.
  expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(8 << 20);
});

describe('a false length', () => {
  const codecs = allCodecs();

  test.each(lies.filter((lie) => lie > 255 || lie < -1))('of %i without bytes is refused by every decoder that reads it first', (lie) => {
    const bytes = Buffer.alloc(64, 0x61);
    let refusals = 0;
    for (let at = 0; at <= 32; at += 4) {
      bytes.writeInt32BE(lie, at);
      for (const [name, codec] of codecs) {
        const outcome = outcomeOf((reader) => codec.read(reader), new Reader(bytes));
        expectOnlyProtocolError(outcome, name);
        if (outcome instanceof ProtocolError) refusals++;
      }
      bytes.fill(0, 0, at + 4);
    }
    expect(refusals).toBeGreaterThan(codecs.length);
  });

  test('is refused even if a buffer may have any length', () => {
    const reader = new Reader(Buffer.from('7fffffff00', 'hex'));
    expect(() => reader.buffer()).toThrow(ProtocolError);
    expect(reader.lengthMax).toBe(0x7fffffff);
  });

  test('of a text above the limit is refused although the bytes are there', () => {
    const reader = new Reader(Buffer.from('00000003616263', 'hex'));
    reader.lengthMax = 2;
    expect(() => reader.ustring()).toThrow('expected text of a reasonable length, not 3 at byte 0');
  });

  test('of a vector is refused before memory is allocated for its elements', () => {
    const reader = new Reader(Buffer.from('7fffffff00', 'hex'));
    expect(() => reader.vector(1, () => expect.fail('no element may be read'))).toThrow('expected 2147483647 elements');
  });
});

/** Changes a copy of the sample as a broken or hostile peer might. */
function mutate(source: Buffer, other: Buffer, below: (n: number) => number): Buffer {
  const bytes = Buffer.from(source);
  const at = below(bytes.length);
  switch (below(7)) {
    case 0:
      bytes[at]! ^= 1 << below(8);
      return bytes;
    case 1:
      bytes[at] = below(256);
      return bytes;
    case 2:
      if (at + 4 <= bytes.length) bytes.writeInt32BE(lies[below(lies.length)]!, at);
      return bytes;
    case 3:
      return bytes.subarray(0, at);
    case 4:
      return Buffer.concat([bytes, bytes.subarray(at)]);
    case 5:
      return Buffer.concat([bytes.subarray(0, at), other.subarray(below(other.length))]);
    default:
      for (let i = below(8); i >= 0; i--) bytes[below(bytes.length)] = below(256);
      return bytes;
  }
}

const mutantCount = breadth(20_000, 200_000);

test(`${mutantCount} mutated frames and txns give records or ProtocolErrors, nothing else`, () => {
  const below = seeded(20260817);
  const usual: Read[] = [
    readRequest,
    readConnectRequest,
    readTxn,
    ...allCodecs().map(
      ([, codec]): Read =>
        (reader) =>
          codec.read(reader),
    ),
  ];
  const reader = new Reader();
  reader.lengthMax = 0xfffff;
  let errors = 0;
  for (let i = 0; i < mutantCount; i++) {
    const sample = recorded[below(recorded.length)]!;
    const bytes = mutate(sample.bytes, recorded[below(recorded.length)]!.bytes, below);
    // Mostly its own decoder, which goes deepest; sometimes one that expects something else.
    const read = below(4) === 0 ? usual[below(usual.length)]! : sample.read;
    const outcome = outcomeOf(read, reader.wrap(bytes, 0, bytes.length));
    expectOnlyProtocolError(outcome, `mutant ${i} of ${sample.title}: ${bytes.toString('hex')}`);
    if (outcome instanceof ProtocolError) errors++;
  }
  // Both results must occur, or the mutator is useless.
  expect(errors).toBeGreaterThan(mutantCount / 10);
  expect(errors).toBeLessThan((mutantCount * 9) / 10);
});

test('the check of mutants detects a decoder that throws something else', () => {
  const broken: Read = () => Buffer.alloc(0).readInt32BE(0);
  expect(() => expectOnlyProtocolError(outcomeOf(broken, new Reader()), 'canary')).toThrow('canary');
});

test('a frame cutter gives frames or a ProtocolError for any bytes in any pieces', () => {
  const below = seeded(42);
  for (let i = 0; i < breadth(200, 2_000); i++) {
    const frames = Buffer.concat(
      Array.from({ length: 1 + below(4) }, () => {
        const { bytes } = recorded[below(recorded.length)]!;
        const head = Buffer.alloc(4);
        head.writeInt32BE(bytes.length);
        return Buffer.concat([head, bytes]);
      }),
    );
    const stream = mutate(frames, frames, below);
    const cutter = new FrameDecoder(0xfffff);
    const feedAll = (): void => {
      for (let at = 0; at < stream.length;) {
        const end = Math.min(stream.length, at + 1 + below(50));
        cutter.feed(stream, at, end, () => true);
        expect(cutter.retainedBytes).toBeLessThanOrEqual(Math.max(128, 2 * end));
        at = end;
      }
    };
    expectOnlyProtocolError(
      outcomeOf(() => feedAll(), new Reader()),
      stream.toString('hex'),
    );
  }
});

test('an ACL full of auth entries, from a client with many identities, is refused instead of expanding', () => {
  const requested = Array.from({ length: 40_000 }, (_, perms) => ({ perms, id: { scheme: 'auth', id: '' } }));
  const identities = Array.from({ length: 1_000 }, (_, i) => ({ scheme: 'digest', id: `user${i}:x` }));
  expect(fixupAcl(requested, identities, { accepts: () => true, isAuthenticated: () => true })).toBeUndefined();
});
