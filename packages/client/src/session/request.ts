/** A request, as the session machine sees it. Whoever submits one extends it by what is needed to settle it. */
import type { OpCode, Writer } from '@tskeeper/protocol';

export abstract class Request {
  abstract readonly opCode: OpCode;
  /** Writes the record behind the header. */
  abstract write(writer: Writer): void;

  /** The machine's: 0 until it is sent. */
  xid = 0;
  /** The machine's: its place among everything the session has sent, from 1; 0 until then. */
  order = 0;
  /** Nobody waits for the answer any more. A request that is already under way keeps its place in line, since its answer will come. */
  withdrawn = false;
  /** The machine's: written down, for as long as there is no connection to send it on. */
  frame: Buffer | undefined = undefined;
}
