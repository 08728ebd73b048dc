/** Builds logs byte by byte. */
import { coreDefaults } from '@tskeeper/core';
import { Replica, replicaOptions } from '@tskeeper/core/internal';
import { runtimeDefaults, silentLogger, Storage } from '@tskeeper/runtime';
import { FsDisk, SystemClock, SystemRandom } from '@tskeeper/server/internal';
import {
  adler32,
  fileHeaderBytes,
  LogEntryCursor,
  logFileHeader,
  OpCode,
  writeFileHeader,
  writeLogEntry,
  Writer,
  writeTxn,
  type Zxid,
} from '@tskeeper/protocol';

/** A txn that sets /x. */
function setDataTxn(zxid: Zxid): Buffer {
  const txn = new Writer();
  writeTxn(txn, {
    header: { clientHigh: 0x1000000, clientLow: 7, cxid: 3, zxid, time: 1_000_000 + zxid, type: OpCode.setData },
    txn: { kind: 'setData', path: '/x', data: Buffer.from(`data of ${zxid}`), version: 1 },
    digest: undefined,
  });
  return Buffer.from(txn.written());
}

export function setDataEntry(zxid: Zxid): Buffer {
  const entry = new Writer();
  writeLogEntry(entry, setDataTxn(zxid));
  return Buffer.from(entry.written());
}

/** A log with these entries, and some preallocated space after them. */
export function logOf(zxids: readonly Zxid[], room = 100): Buffer {
  const header = new Writer();
  writeFileHeader(header, logFileHeader);
  return Buffer.concat([header.written(), ...zxids.map((zxid) => setDataEntry(zxid)), Buffer.alloc(room)]);
}

/** Writes a log with these txns as a tskeeper server does, with the mark beside it. */
export async function writeMarkedLog(dataDir: string, zxids: readonly Zxid[]): Promise<void> {
  let appended = 0;
  let wake = () => {};
  const storage = new Storage(
    { disk: new FsDisk(), clock: new SystemClock(), random: new SystemRandom() },
    { ...runtimeDefaults, dataDir, dataLogDir: dataDir, preAllocSizeBytes: 0, purgeIntervalMs: 0, txnBytesMax: 2 * 0xfffff },
    { logger: silentLogger, snappy: undefined },
    {
      appended: (zxid) => {
        appended = zxid;
        wake();
      },
      failed: (error) => {
        throw error;
      },
      snapshotDue: () => undefined,
      synced: () => undefined,
      flushed: () => undefined,
    },
  );
  await storage.open({ beginSnapshot: () => ({ feed: () => undefined, finish: () => undefined }), apply: () => undefined });
  const replica = new Replica(replicaOptions(coreDefaults, new SystemRandom()));
  await storage.takeSnapshot(0, replica.snapshot());
  for (const zxid of zxids) {
    const txn = setDataTxn(zxid);
    storage.append(zxid, txn, 0, txn.length);
  }
  storage.flush();
  while (appended < zxids.at(-1)!) {
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
  await storage.close();
}

/** A copy of a log in which the txn of one entry is changed and its checksum recomputed. */
export function withTxnChanged(log: Buffer, index: number, change: (txn: Buffer) => void): Buffer {
  const bytes = Buffer.from(log);
  const cursor = new LogEntryCursor(0x7fffffff);
  let at = fileHeaderBytes;
  for (let i = 0; i < index; i++) {
    cursor.read(bytes, at, bytes.length);
    at = cursor.next;
  }
  cursor.read(bytes, at, bytes.length);
  change(bytes.subarray(cursor.txnStart, cursor.txnEnd));
  bytes.writeUInt32BE(adler32(bytes, cursor.txnStart, cursor.txnEnd), at + 4);
  return bytes;
}
