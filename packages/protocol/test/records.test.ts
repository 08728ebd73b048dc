import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Codec,
  operationOf,
  OpCode,
  operations,
  type OperationName,
  readConnectRequest,
  readConnectResponse,
  Reader,
  readReplyBody,
  readSnapshotNode,
  readStatPersisted,
  readTxn,
  statBytes,
  statPersistedBytes,
  writeConnectRequest,
  writeConnectResponse,
  writeMultiEnd,
  writeSnapshotNode,
  writeStat,
  writeStatPersisted,
  writeTxn,
} from '../src/index.ts';
import * as any from './arbitraries.ts';
import { written } from './fixtures.ts';

/** Decoding an encoded value gives the value again, and consumes every byte. */
function expectRoundTrip<T>(arbitrary: fc.Arbitrary<T>, codec: Codec<T>): void {
  fc.assert(
    fc.property(arbitrary, (value) => {
      const reader = new Reader(written((writer) => codec.write(writer, value)));
      expect(codec.read(reader)).toStrictEqual(value);
      expect(reader.remaining).toBe(0);
    }),
  );
}

const names = Object.keys(operations) as OperationName[];

describe('every record is decoded as it was encoded', () => {
  test.each(names)('%s, request and reply', (name) => {
    const operation = operationOf(operations[name].opCode)!;
    expectRoundTrip<unknown>(any.records[name].request, operation.request);
    expectRoundTrip<unknown>(any.records[name].reply, operation.reply);
  });

  test('the handshake, with and without its last byte', () => {
    expectRoundTrip(any.connectRequest, { read: readConnectRequest, write: writeConnectRequest });
    expectRoundTrip(any.connectResponse, { read: readConnectResponse, write: writeConnectResponse });
  });

  test('txns of all types', () => {
    expectRoundTrip(any.loggedTxn, { read: readTxn, write: writeTxn });
  });

  test('the znodes of a snapshot', () => {
    expectRoundTrip(any.snapshotNode, { read: (reader) => readSnapshotNode(reader)!, write: writeSnapshotNode });
    expectRoundTrip(any.statPersisted, { read: readStatPersisted, write: writeStatPersisted });
  });
});

test('A10, D2: the operations are those of OpCode, and each is found by its number', () => {
  const internal = ['notification', 'createSession', 'error', 'keeperMulti'];
  expect(names.toSorted()).toEqual(
    Object.keys(OpCode)
      .filter((name) => !internal.includes(name))
      .toSorted(),
  );
  for (const name of names) expect(operationOf(OpCode[name])).toMatchObject({ name, opCode: OpCode[name] });
  expect(operationOf(999)).toBeUndefined();
  expect(operationOf(OpCode.notification)).toBeUndefined();
});

test('Stat takes 68 bytes and StatPersisted 60', () => {
  fc.assert(
    fc.property(any.stat, any.statPersisted, (stat, persisted) => {
      expect(written((writer) => writeStat(writer, stat))).toHaveLength(statBytes);
      expect(written((writer) => writeStatPersisted(writer, persisted))).toHaveLength(statPersistedBytes);
    }),
  );
});

describe('a reply with an error', () => {
  const withEnd = (): Reader => new Reader(written(writeMultiEnd));

  test('has no record', () => {
    expect(readReplyBody(new Reader(), operationOf(OpCode.getData)!, -101)).toBeUndefined();
  });

  test('has a record if a multiRead was refused because it contains writes', () => {
    expect(readReplyBody(withEnd(), operationOf(OpCode.multiRead)!, -5)).toEqual({ results: [] });
    expect(readReplyBody(new Reader(), operationOf(OpCode.multiRead)!, -5)).toBeUndefined();
  });

  test('has a record if SASL failed', () => {
    expect(readReplyBody(new Reader(Buffer.from('ffffffff', 'hex')), operationOf(OpCode.sasl)!, -115)).toEqual({ token: null });
  });
});

describe('null and empty', () => {
  test('are different data', () => {
    const writeData = (data: Uint8Array | null) =>
      written((writer) => operations.setData.request.write(writer, { path: '/a', data, version: -1 }));
    expect(operations.setData.request.read(new Reader(writeData(null))).data).toBeNull();
    expect(operations.setData.request.read(new Reader(writeData(Buffer.alloc(0)))).data).toHaveLength(0);
    expect(writeData(null)).not.toEqual(writeData(Buffer.alloc(0)));
  });

  test('are different ACLs of a request', () => {
    const bytes = written((writer) => {
      writer.ustring('/a');
      writer.int32(-1);
      writer.int32(0);
    });
    expect(operations.setACL.request.read(new Reader(bytes)).acl).toBeNull();
  });

  test('a null path cannot be decoded', () => {
    const bytes = written((writer) => {
      writer.ustring(null);
      writer.boolean(false);
    });
    expect(() => operations.getData.request.read(new Reader(bytes))).toThrow('expected a path, not null at byte 0');
  });
});
