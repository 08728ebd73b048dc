import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import {
  adler32,
  type FileHeader,
  LogEntryCursor,
  type TxnLogEntry,
  logFileHeader,
  logMagic,
  OpCode,
  Reader,
  readFileHeader,
  readSeal,
  readSnapshotAcls,
  readSnapshotDigest,
  readSnapshotNode,
  readSnapshotSessions,
  readTxn,
  sessionIdOf,
  snapshotEnding,
  snapshotFileHeader,
  snapshotMagic,
  type SnapshotNode,
  snapshotPartAfterSeal,
  snapshotTerminator,
  snappyMagic,
  type Txn,
  Writer,
  writeFileHeader,
  writeLogEntry,
  writeSeal,
  writeSnapshotAcl,
  writeSnapshotDigest,
  writeSnapshotNode,
  writeSnapshotSession,
  writeTxn,
} from '../src/index.ts';
import { fixtureBytes, fixtureJson, plain } from './fixtures.ts';

interface ListedEntry {
  readonly offset: number;
  readonly checksum: string;
  readonly length: number;
  readonly TxnHeader: Record<string, unknown>;
  readonly TxnDigest?: { version: number; treeDigest: string };
}

interface ListedLog {
  readonly size: number;
  readonly FileHeader: FileHeader;
  readonly entries: readonly ListedEntry[];
  readonly firstPaddingOffset: number;
}

interface ListedSnapshot {
  readonly size: number;
  readonly FileHeader: FileHeader;
  readonly sessions: readonly { offset: number; id: string; timeout: number }[];
  readonly aclCache: readonly { key: number; acl: unknown }[];
  readonly nodes: readonly { offset: number; path: string; data: unknown; acl: number; stat: unknown }[];
  readonly terminator: { offset: number };
  readonly seal: { offset: number; checksum: string };
  readonly digest: { zxid: string; digestVersion: number; digest: number };
  readonly digestSeal: { offset: number; checksum: string };
  readonly lastProcessedZxid?: { zxid: string };
  readonly lastProcessedZxidSeal?: { offset: number; checksum: string };
}

/** The record of a listed txn, in the shape of our own type. */
function listedRecord(listed: Record<string, unknown>): unknown {
  const [name, record] = Object.entries(listed).find(([key]) => key.endsWith('Txn'))!;
  if (name === 'MultiTxn') {
    const { txns } = record as { txns: (Record<string, unknown> & { type: number })[] };
    return { txns: txns.map((member) => ({ type: member.type, txn: listedRecord(member) })) };
  }
  return record;
}

/** Our record without the kinds, which a listing does not have. */
function withoutKind(txn: Txn): unknown {
  const { kind, ...record } = txn;
  return kind === 'multi' ? { txns: txn.txns.map((member) => ({ type: member.type, txn: withoutKind(member.txn) })) } : record;
}

function listedHeader({ header }: TxnLogEntry): unknown {
  const { clientHigh, clientLow, ...rest } = header;
  return { clientId: sessionIdOf(clientHigh, clientLow), ...rest };
}

describe.each(['disk-3.9.5', 'disk-3.8.0'])('the files of %s', (folder) => {
  const { files } = fixtureJson(`${folder}/listing.json`) as {
    files: { 'log.1': ListedLog } & Record<string, ListedSnapshot | ListedLog>;
  };

  test('A65: the log decodes to the listed entries, one by one, and encodes to the same bytes', () => {
    const listed = files['log.1'];
    const log = fixtureBytes(`${folder}/log.1`);
    expect(log.length).toBe(listed.size);
    expect(listed.entries.length).toBeGreaterThan(30);
    const again = new Writer();
    writeFileHeader(again, logFileHeader);
    const reader = new Reader(log);
    expect(readFileHeader(reader)).toEqual(listed.FileHeader);
    expect(listed.FileHeader.magic).toBe(logMagic);

    const cursor = new LogEntryCursor(0xfffff);
    let at = reader.offset;
    for (const entry of listed.entries) {
      expect(at).toBe(entry.offset);
      expect(cursor.read(log, at, log.length)).toBe('entry');
      expect(cursor.txnEnd - cursor.txnStart).toBe(entry.length);
      expect(adler32(log, cursor.txnStart, cursor.txnEnd)).toBe(Number(entry.checksum));
      const txn = readTxn(new Reader(log, cursor.txnStart, cursor.txnEnd));
      expect(plain(listedHeader(txn))).toEqual(plain(entry.TxnHeader));
      expect(plain(withoutKind(txn.txn))).toEqual(withoutLengths(plain(listedRecord(entry as never))));
      const digest = txn.digest && { version: txn.digest.version, treeDigest: sessionIdOf(txn.digest.high, txn.digest.low) };
      expect(plain(digest)).toEqual(plain(entry.TxnDigest));
      const bytes = new Writer();
      writeTxn(bytes, txn);
      writeLogEntry(again, bytes.written());
      at = cursor.next;
    }
    expect(at).toBe(listed.firstPaddingOffset);
    expect(cursor.read(log, at, log.length)).toBe('padding');
    expect(again.written().equals(log.subarray(0, at))).toBe(true);
  });

  const snapshots = Object.keys(files).filter((name) => name.startsWith('snapshot.'));

  test.each(snapshots)('A66: %s decodes to the listed values and encodes to the same bytes', (name) => {
    expectSnapshot(fixtureBytes(`${folder}/${name}`), files[name] as ListedSnapshot);
  });
});

/** Listings contain the length of each record in a multi, which is not a field of ours. */
function withoutLengths(record: unknown): unknown {
  if (Array.isArray(record)) return record.map(withoutLengths);
  if (record === null || typeof record !== 'object') return record;
  return Object.fromEntries(
    Object.entries(record)
      .filter(([key]) => key !== 'dataLength')
      .map(([key, field]) => [key, withoutLengths(field)]),
  );
}

function listedNode({ path, data, aclKey, stat }: SnapshotNode): unknown {
  const { ephemeralOwnerHigh, ephemeralOwnerLow, ...rest } = stat;
  return { path, data, acl: aclKey, stat: { ...rest, ephemeralOwner: sessionIdOf(ephemeralOwnerHigh, ephemeralOwnerLow) } };
}

function expectSnapshot(bytes: Buffer, listed: ListedSnapshot): void {
  const reader = new Reader(bytes);
  const again = new Writer();
  const expectSeal = (seal: { offset: number; checksum: string }): void => {
    const at = reader.offset;
    expect(at).toBe(seal.offset);
    expect(readSeal(reader)).toBe(Number(seal.checksum));
    expect(adler32(bytes, 0, at)).toBe(Number(seal.checksum));
    writeSeal(again, adler32(again.bytes, 0, again.offset));
  };

  expect(bytes.length).toBe(listed.size);
  expect(readFileHeader(reader)).toEqual(listed.FileHeader);
  expect(listed.FileHeader.magic).toBe(snapshotMagic);
  writeFileHeader(again, snapshotFileHeader);

  const sessions = readSnapshotSessions(reader);
  const listedSessions = listed.sessions.map(({ id, timeout }) => ({ id, timeout }));
  expect(plain(sessions.map(({ high, low, timeOut }) => ({ id: sessionIdOf(high, low), timeout: timeOut })))).toEqual(
    plain(listedSessions),
  );
  again.vector(sessions, writeSnapshotSession);

  const acls = readSnapshotAcls(reader);
  expect(plain(acls)).toEqual(plain(listed.aclCache.map(({ key, acl }) => ({ key, acl }))));
  again.vector(acls, writeSnapshotAcl);

  for (const { offset, ...listedFields } of listed.nodes) {
    expect(reader.offset).toBe(offset);
    const node = readSnapshotNode(reader)!;
    expect(plain(listedNode(node))).toEqual(plain(listedFields));
    writeSnapshotNode(again, node);
  }
  expect(reader.offset).toBe(listed.terminator.offset);
  expect(readSnapshotNode(reader)).toBeUndefined();
  again.ustring(snapshotTerminator);
  expectSeal(listed.seal);

  expect(snapshotPartAfterSeal(reader.remaining)).toBe('digest');
  const digest = readSnapshotDigest(reader);
  const { zxid, digestVersion, digest: treeDigest } = listed.digest;
  expect(plain([digest.zxid, digest.version, sessionIdOf(digest.high, digest.low)])).toEqual(plain([zxid, digestVersion, treeDigest]));
  writeSnapshotDigest(again, digest);
  expectSeal(listed.digestSeal);

  const expectLastZxid = (zxidText: string, seal: { offset: number; checksum: string }): void => {
    expect(snapshotPartAfterSeal(reader.remaining)).toBe('lastZxid');
    const lastZxid = reader.int64();
    expect(plain(lastZxid)).toBe(plain(zxidText));
    again.int64(lastZxid);
    expectSeal(seal);
  };
  if (listed.lastProcessedZxid) expectLastZxid(listed.lastProcessedZxid.zxid, listed.lastProcessedZxidSeal!);
  expect(snapshotPartAfterSeal(reader.remaining)).toBe('end');
  expect(bytes.subarray(-5)).toEqual(Buffer.from(snapshotEnding));
  expect(again.written().equals(bytes)).toBe(true);
}

describe('compressed snapshots', () => {
  test('a gzip one decodes to the listed values', () => {
    const listing = fixtureJson('disk-compressed/listing.json') as { 'snapshot.6.gz': ListedSnapshot };
    expectSnapshot(gunzipSync(fixtureBytes('disk-compressed/snapshot.6.gz')), listing['snapshot.6.gz']);
  });

  test('a snappy one begins with the magic of its framing', () => {
    const bytes = fixtureBytes('disk-compressed/snapshot.6.snappy');
    expect(bytes.subarray(0, 8)).toEqual(Buffer.from(snappyMagic));
    expect([bytes.readInt32BE(8), bytes.readInt32BE(12)]).toEqual([1, 1]);
  });
});

describe('LogEntryCursor', () => {
  const log = fixtureBytes('disk-3.9.5/log.1');
  const cursor = new LogEntryCursor(0xfffff);
  cursor.read(log, 16, log.length);
  const end = cursor.next;

  test.each([
    ['no bytes', 16, 'end'],
    ['part of an entry head', 20, 'cut'],
    ['part of a txn', 40, 'cut'],
    ['an entry without its last byte', end - 1, 'cut'],
    ['a whole entry', end, 'entry'],
  ])('distinguishes an end, a cut and an entry: %s', (_title, limit, outcome) => {
    expect(cursor.read(log, 16, limit)).toBe(outcome);
  });

  test.each([
    ['another end byte', end - 1, 0x43, 'endByte'],
    ['a corrupted byte of the txn', 40, 0xff, 'checksum'],
    ['a corrupted byte of the checksum', 23, 0xff, 'checksum'],
    ['a bit in the upper half of the checksum', 16, 1, 'checksum'],
    ['a negative length', 24, 0xff, 'length'],
    ['a length beyond the limit', 24, 0x7f, 'length'],
    ['a length of 0', 27, 0, 'padding'],
  ])('reports the kind of damage: %s', (_title, at, byte, outcome) => {
    const bytes = Buffer.from(log.subarray(0, 256));
    bytes[at] = byte;
    expect(cursor.read(bytes, 16, bytes.length)).toBe(outcome);
  });
});

test('the number of bytes after a seal determines the next part of a snapshot', () => {
  expect([0, 21, 33, 54].map(snapshotPartAfterSeal)).toEqual(['end', 'lastZxid', 'digest', 'digest']);
});

test('a digest from before version 2 is text, and is skipped', () => {
  const writer = new Writer();
  writer.int64(5);
  writer.int32(1);
  writer.ustring('1f2e');
  writer.int32(7);
  const reader = new Reader(writer.written());
  expect(readSnapshotDigest(reader)).toEqual({ zxid: 5, version: 1, high: 0, low: 0 });
  expect(reader.int32()).toBe(OpCode.setACL);
});
