/** What the election port keeps of another server, and of a connection. Each knows the other for as long as they belong together. */
import {
  FrameCutter,
  type HostPort,
  InitialMessageCollector,
  type Millis,
  notificationBytesMax,
  notificationBytesMin,
  type Reader,
  type Sid,
} from '@tskeeper/protocol';
import type { Endpoint, StreamId } from '../network.ts';
import type { Dial } from './dialler.ts';
import { PeerStream } from './peer-streams.ts';

/** What the election port keeps of one other server. */
export class ElectionLink {
  readonly sid: Sid;
  /** Configured; empty for a server that is not in the configuration. */
  addresses: readonly HostPort[] = [];
  isListed = false;
  /** The one connection with it. */
  cnxn: ElectionCnxn | undefined;
  dial: Dial | undefined;
  /** What it is to be told; a newer message takes its place. */
  waiting: Buffer | undefined;
  /** What it was told last, or is to be told: said again over each new connection. */
  last: Buffer | undefined;
  /** From when on it is to be dialled, if there is no connection by then; Infinity when it is not. */
  dialDueMs: Millis = Infinity;
  /** Where it says it can be dialled back, once the dial under way has failed. */
  dialBack: readonly HostPort[] | undefined;
  /** When it was last asked to dial back. */
  askedMs: Millis = -Infinity;
  /** From when on it may be dialled because its connection has closed; raised each time. */
  redialMs: Millis = -Infinity;
  /** By when it is to have dialled back, which it was asked to over a connection that it has ended; Infinity when it was not. */
  dialBackDueMs: Millis = Infinity;
  /** Connections in a row that were accepted and then closed, with nothing said; one that asked it to dial back, which it did not, counts double. */
  unheard = 0;
  /** The core was told that it is unreachable, or there was nothing to tell since it last was reachable. */
  isUnreachableTold = true;
  /** What came of the last dial, so that one line says it and not one for each repetition. */
  lastFailure = '';
  isDirty = false;

  constructor(sid: Sid) {
    this.sid = sid;
  }
}

/** A connection on the election port, from whichever side. */
export class ElectionCnxn extends PeerStream {
  /** Raised with each connection: of two from one server the later one is the one it uses. */
  readonly order: number;
  /** Whose connection this is; undefined before that is known, and once it has been replaced. */
  link: ElectionLink | undefined;
  /** The server that is asked over this connection to dial back, and for nothing else. */
  asks: ElectionLink | undefined;
  /**
   * Something of its server has come over it. Before that a connection that was dialled says nothing: a proxy may have accepted for a server that is not
   * there.
   */
  isHeard = false;
  readonly collector = new InitialMessageCollector();
  readonly cutter: FrameCutter;
  /** Leaves before anything else: the initial message. */
  greeting: Buffer | undefined;
  /** The network still holds what it was given last. */
  isHeld = false;

  constructor(stream: StreamId, remote: Endpoint, sinceMs: Millis, order: number, reader: Reader) {
    super(stream, remote, sinceMs);
    this.order = order;
    this.cutter = new FrameCutter(notificationBytesMax, reader, notificationBytesMin);
  }
}
