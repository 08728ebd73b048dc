import {
  FrameCutter,
  InitialMessageCollector,
  type Millis,
  notificationBytesMax,
  notificationBytesMin,
  type Reader,
} from '@tskeeper/protocol';
import type { Endpoint, StreamId } from '../network.ts';
import type { ElectionLink } from './election-link.ts';

/** A connection on the election port, from whichever side. */
export class ElectionCnxn {
  readonly stream: StreamId;
  readonly remote: Endpoint;
  readonly sinceMs: Millis;
  /** Raised with each connection: of two from one server the later one is the one it uses. */
  readonly order: number;
  /** `initial`: who has dialled is not known yet. `closing`: what is still to be sent is sent, nothing is read. */
  stage: 'initial' | 'open' | 'closing' = 'initial';
  /** Whose connection this is; undefined before that is known, and once it has been replaced. */
  link: ElectionLink | undefined;
  readonly collector = new InitialMessageCollector();
  readonly cutter: FrameCutter;
  /** Leaves before anything else: the initial message. */
  greeting: Buffer | undefined;
  /** The network still holds what it was given last. */
  isHeld = false;
  /** Frames wait in the cutter for the next turn; the connection is not read meanwhile. */
  isStalled = false;
  /** The other side will say nothing more, and has not been heard to the end. */
  hasEnded = false;
  endSent = false;
  closingMs: Millis = 0;
  discardedBytes = 0;

  constructor(stream: StreamId, remote: Endpoint, sinceMs: Millis, order: number, reader: Reader) {
    this.stream = stream;
    this.remote = remote;
    this.sinceMs = sinceMs;
    this.order = order;
    this.cutter = new FrameCutter(notificationBytesMax, reader, notificationBytesMin);
  }
}
