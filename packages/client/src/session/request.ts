/** A request, as the session machine uses it. A subclass adds what is needed to settle it. */
import type { OpCode, Writer } from '@tskeeper/protocol';

export abstract class Request {
  abstract readonly opCode: OpCode;
  /** Writes the record after the header. */
  abstract write(writer: Writer): void;

  /** Set by the machine: 0 until the request is sent. */
  xid = 0;
  /**
   * Set by the machine: the position among all requests that the session has sent, from 1; 0 until
   * it is sent.
   */
  ordinal = 0;
  /**
   * The caller no longer waits. A request that was sent keeps its position, as its answer will
   * arrive.
   */
  isCancelled = false;
  /** Set by the machine: the written frame, while there is no connection to send it on. */
  frame: Buffer | undefined = undefined;
}
