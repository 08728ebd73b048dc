import type { CnxnContext, CnxnId, Inspect, Now } from '@tskeeper/core';
import type { Millis, Reader } from '@tskeeper/protocol';

/** A server's core, as far as a client port needs it. `Server` has this shape. */
export interface ClientCore {
  /** A client has begun to speak; its ConnectRequest follows as the first frame. */
  connect(cnxn: CnxnId, context: CnxnContext, now: Now): void;
  /** One frame without its length prefix. The reader and its bytes are valid during the call only. `arrivedMs`: it has waited since then. */
  frame(cnxn: CnxnId, reader: Reader, now: Now, arrivedMs: Millis): void;
  /** Bytes have arrived that make no whole frame yet, or one that has to wait: its client is alive. */
  heard(cnxn: CnxnId, now: Now): void;
  /** A first frame has arrived and has to wait, so that the core does not know the connection yet. */
  handshakeHeard(reader: Reader, now: Now): void;
  /** A frame that had arrived, and not been handed over, when its connection broke. `disconnected` follows. Comes while `busy`, too. */
  lastFrame(cnxn: CnxnId, reader: Reader, now: Now, arrivedMs: Millis): void;
  /** The last that is heard of a connection; its number may come back with a later `connect`. */
  disconnected(cnxn: CnxnId, now: Now): void;
  /** There is room again in the output of a connection that was said to be full. */
  drained(cnxn: CnxnId, now: Now): void;
  /** A long job is under way: no frames before it has ended. */
  readonly busy: boolean;
  /** For which connection that is; undefined when it is for none of ours. */
  readonly busyWith: CnxnId | undefined;
  /** Units of work done so far, long jobs included: by how much it grows tells what a request has cost. */
  readonly work: number;
  /** False while the connection has to wait: for the answer to its handshake, or because too many requests are outstanding. */
  wantsInput(cnxn: CnxnId): boolean;
  readonly inspect: Inspect;
}
