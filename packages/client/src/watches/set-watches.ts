/**
 * Sends the session's watches to a server after the handshake of a new connection. The server
 * compares each znode with the last txn that the client has seen, and sends at once what the client
 * has missed.
 *
 * The paths may exceed the size of a packet, so they are sent in pieces far below any server's
 * limit (ZOOKEEPER-706).
 */
import {
  OpCode,
  type SetWatches2Request,
  writeSetWatches2Request,
  writeSetWatchesRequest,
  type Writer,
  type Zxid,
} from '@tskeeper/protocol';
import { type WatchKind, watchKinds, type WatchTable } from './watch-table.ts';

/** As ZooKeeper's own client: 128 KiB of paths. */
export const setWatchesBytesMax = 128 * 1024;
/** Header, zxid and the lengths of five lists, which a packet contains besides the paths. */
const overheadBytes = 8 + 8 + 5 * 4;

export interface SetWatchesBatch {
  readonly opCode: OpCode;
  write(writer: Writer): void;
}

export function* setWatchesBatches(table: WatchTable, relativeZxid: Zxid, packetBytesMax: number): Iterable<SetWatchesBatch> {
  const bytesMax = Math.min(setWatchesBytesMax, packetBytesMax - overheadBytes);
  let batch = new Batch(relativeZxid);
  for (const kind of watchKinds) {
    for (const path of table.paths(kind)) {
      const bytes = Buffer.byteLength(path) + lengthBytes;
      if (batch.bytes > 0 && batch.bytes + bytes > bytesMax) {
        yield batch;
        batch = new Batch(relativeZxid);
      }
      batch.add(kind, path, bytes);
    }
  }
  if (batch.bytes > 0) yield batch;
}

/** The length before each path. */
const lengthBytes = 4;

class Batch implements SetWatchesBatch {
  readonly #zxid: Zxid;
  readonly #paths: Readonly<Record<WatchKind, string[]>> = { data: [], exist: [], child: [], persistent: [], persistentRecursive: [] };
  bytes = 0;

  constructor(relativeZxid: Zxid) {
    this.#zxid = relativeZxid;
  }

  add(kind: WatchKind, path: string, bytes: number): void {
    this.#paths[kind].push(path);
    this.bytes += bytes;
  }

  /** Servers before 3.6 know only the older request, which cannot contain persistent watches. */
  get opCode(): OpCode {
    const { persistent, persistentRecursive } = this.#paths;
    return persistent.length + persistentRecursive.length === 0 ? OpCode.setWatches : OpCode.setWatches2;
  }

  write(writer: Writer): void {
    const { data, exist, child, persistent, persistentRecursive } = this.#paths;
    const request: SetWatches2Request = {
      relativeZxid: this.#zxid,
      dataWatches: data,
      existWatches: exist,
      childWatches: child,
      persistentWatches: persistent,
      persistentRecursiveWatches: persistentRecursive,
    };
    if (this.opCode === OpCode.setWatches) writeSetWatchesRequest(writer, request);
    else writeSetWatches2Request(writer, request);
  }
}
