import type { Zxid } from '@tskeeper/protocol';
import type { SessionOwner } from './client-output.ts';

/**
 * Where a server that orders writes puts its txns: the log on its disk, or the leader, which
 * proposes them to a quorum. It never calls back.
 */
export interface TxnLog {
  /**
   * Appends one entry: header, record and digest, without checksum and frame. The bytes are copied
   * before the call returns. It completes as the input `appended(zxid)`; completions come in order
   * and one may stand for many. `owner` is the server whose client has asked for the txn.
   */
  append(zxid: Zxid, bytes: Buffer, start: number, end: number, owner: SessionOwner): void;
}
