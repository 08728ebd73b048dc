import { describe, expect, test } from 'vitest';
import {
  type TxnLogEntry,
  OpCode,
  Reader,
  readTxn,
  type Txn,
  type TxnDigest,
  type TxnHeader,
  Writer,
  writeTxn,
  writeTxnHeader,
} from '../../src/index.ts';
import { written } from '../fixtures.ts';

function headerOf(type: number): TxnHeader {
  return { clientHigh: 1, clientLow: -2, cxid: 3, zxid: 0x100000004, time: 1_795_166_247_381, type };
}

const digest: TxnDigest = { version: 2, high: 1, low: -1 };

function entry(type: number, txn: Txn, withDigest = false): TxnLogEntry {
  return { header: headerOf(type), txn, digest: withDigest ? digest : undefined };
}

function bytesOf(type: number, write: (writer: Writer) => void): Buffer {
  return written((writer) => {
    writeTxnHeader(writer, headerOf(type));
    write(writer);
  });
}

function roundTrip(logged: TxnLogEntry): TxnLogEntry {
  return readTxn(new Reader(written((writer) => writeTxn(writer, logged))));
}

const writeCreateV0 = (writer: Writer): void => {
  writer.ustring('/a');
  writer.buffer(null);
  writer.int32(0);
  writer.boolean(true);
};

const createV0 = { kind: 'create', path: '/a', data: null, acl: [], ephemeral: true, parentCVersion: -1 };

describe('records of older servers', () => {
  test('a create that ends before parentCVersion is decoded with -1 for it', () => {
    expect(readTxn(new Reader(bytesOf(OpCode.create, writeCreateV0))).txn).toEqual(createV0);
  });

  test('only create may end early: create2 was added later', () => {
    expect(() => readTxn(new Reader(bytesOf(OpCode.create2, writeCreateV0)))).toThrow('expected an int');
  });

  test('a closeSession without a record has null paths, with or without a digest after it', () => {
    const txn: Txn = { kind: 'closeSession', paths2Delete: null };
    expect(roundTrip(entry(OpCode.closeSession, txn))).toEqual(entry(OpCode.closeSession, txn));
    expect(roundTrip(entry(OpCode.closeSession, txn, true))).toEqual(entry(OpCode.closeSession, txn, true));
  });

  test.each([[[]], [['/a']], [['/a', '/b']], [['/a', '/b', '/c', '/d']]])(
    'a closeSession that deletes %j is not mistaken for one without a record',
    (paths) => {
      for (const withDigest of [false, true]) {
        const logged = entry(OpCode.closeSession, { kind: 'closeSession', paths2Delete: paths }, withDigest);
        expect(roundTrip(logged)).toEqual(logged);
      }
    },
  );
});

describe('the bytes after a record', () => {
  const logged = entry(OpCode.setData, { kind: 'setData', path: '/a', data: null, version: 4 }, true);

  test('are decoded as a digest', () => {
    expect(roundTrip(logged)).toEqual(logged);
  });

  test('are ignored if they are shorter or longer than a digest', () => {
    const bytes = written((writer) => writeTxn(writer, logged));
    expect(readTxn(new Reader(Buffer.concat([bytes, Buffer.alloc(7)])))).toEqual(logged);
    expect(readTxn(new Reader(bytes, 0, bytes.length - 1)).digest).toBeUndefined();
  });

  test('are not read beyond the limit', () => {
    const bytes = written((writer) => writeTxn(writer, logged));
    expect(readTxn(new Reader(bytes, 0, bytes.length - 12)).digest).toBeUndefined();
  });
});

describe('types', () => {
  test.each([0, 3, 4, 6, 8, 9, 11, 12, 17, 18, 22, 100, 107, -2, 999])('%i is not the type of a txn', (type) => {
    expect(() => readTxn(new Reader(bytesOf(type, () => {})))).toThrow(`expected a txn of a known type, not ${type} at byte 32`);
  });

  test.each([
    [OpCode.delete, OpCode.deleteContainer, { kind: 'delete', path: '/a' }],
    [OpCode.setData, OpCode.reconfig, { kind: 'setData', path: '/a', data: null, version: 1 }],
    [OpCode.create, OpCode.create2, createV0],
  ] as [number, number, Txn][])('%i and %i share a record', (one, other, txn) => {
    expect(roundTrip(entry(one, txn)).txn).toEqual(txn);
    expect(roundTrip(entry(other, txn)).txn).toEqual(txn);
  });
});

describe('a multi', () => {
  const member = (type: number, record: Buffer | null): Buffer =>
    bytesOf(OpCode.multi, (writer) => {
      writer.int32(1);
      writer.int32(type);
      writer.buffer(record);
    });

  test.each([OpCode.multi, OpCode.setACL, OpCode.createSession, OpCode.closeSession])('rejects a member of type %i', (type) => {
    expect(() => readTxn(new Reader(member(type, Buffer.alloc(64))))).toThrow('expected a txn of a known type');
  });

  test('E9: that failed has error txns as members, and they are decoded as they were encoded', () => {
    const failed: Txn = {
      kind: 'multi',
      txns: [-101, -2].map((err) => ({ type: OpCode.error, txn: { kind: 'error', err } })),
    };
    expect(roundTrip(entry(OpCode.multi, failed)).txn).toEqual(failed);
  });

  test('rejects a null member', () => {
    expect(() => readTxn(new Reader(member(OpCode.delete, null)))).toThrow("expected a txn's record, not null");
  });

  test('does not let a member read beyond its own record', () => {
    const two = bytesOf(OpCode.multi, (writer) => {
      writer.int32(2);
      for (let i = 0; i < 2; i++) {
        writer.int32(OpCode.delete);
        writer.buffer(Buffer.from('00000010', 'hex'));
      }
    });
    expect(() => readTxn(new Reader(two))).toThrow('expected 16 bytes of text');
  });

  test('ignores the bytes of a member after its record', () => {
    const record = Buffer.concat([written((writer) => writer.ustring('/a')), Buffer.alloc(3)]);
    expect(readTxn(new Reader(member(OpCode.delete, record))).txn).toEqual({
      kind: 'multi',
      txns: [{ type: OpCode.delete, txn: { kind: 'delete', path: '/a' } }],
    });
  });
});
