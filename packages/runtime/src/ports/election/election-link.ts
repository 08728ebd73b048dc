/**
 * The state that the election port keeps of another server, and of a connection. Each refers to the
 * other as long as they belong together.
 */
import {
  FrameDecoder,
  type HostPort,
  InitialMessageDecoder,
  type Millis,
  notificationBytesMax,
  notificationBytesMin,
  type Reader,
  type Sid,
} from '@tskeeper/protocol';
import type { Endpoint, StreamId } from '../../network.ts';
import type { Dial } from '../dialler.ts';
import { PeerStream } from '../peer-streams.ts';

/** The state that the election port keeps of one other server. */
export class ElectionLink {
  readonly sid: Sid;
  /** Configured; empty for a server that is not in the configuration. */
  addresses: readonly HostPort[] = [];
  /** The one at which the last connection was lost: it is dialled after the others. */
  lostAddress: HostPort | undefined;
  isConfigured = false;
  /** The only connection with it. */
  cnxn: ElectionCnxn | undefined;
  dial: Dial | undefined;
  /** The next message to it; a newer message replaces it. */
  pendingMessage: Buffer | undefined;
  /** The last message to it, sent or not: sent again over each new connection. */
  lastMessage: Buffer | undefined;
  /** When it is to be dialled, if there is no connection by then; Infinity when it is not. */
  dialDueMs: Millis = Infinity;
  /** Addresses for dialling it back, once the dial in progress has failed. */
  dialBack: readonly HostPort[] | undefined;
  /** When it was last asked to dial back. */
  dialBackRequestedMs: Millis = -Infinity;
  /** Earliest time to dial it because its connection has closed; increased each time. */
  redialMs: Millis = -Infinity;
  /**
   * When it should have dialled back after a connection, ended by it, that asked it to; Infinity
   * when there was none.
   */
  dialBackDueMs: Millis = Infinity;
  /**
   * Number of connections in a row that were accepted and then closed without a message; one that
   * asked it to dial back, without success, counts double.
   */
  silentCnxnCount = 0;
  /** Number of connections that were closed without a message: the next dial begins with another address. */
  silentDialCount = 0;
  /**
   * It was reported to the core as unreachable, or there has been nothing to report since it was
   * last reachable.
   */
  isUnreachableReported = true;
  /** The result of the last dial, so that repetitions are logged once. */
  lastFailure = '';
  isDirty = false;

  constructor(sid: Sid) {
    this.sid = sid;
  }
}

/** A connection on the election port, dialled by either side. */
export class ElectionCnxn extends PeerStream {
  /** Incremented with each connection: of two from one server the later one is the one it uses. */
  readonly order: number;
  /**
   * The link of its server; undefined before that is known, and once the connection has been
   * replaced.
   */
  link: ElectionLink | undefined;
  /** The server that this connection asks to dial back; it has no other purpose. */
  dialBackLink: ElectionLink | undefined;
  /**
   * A message of its server has arrived over it. Before that a dialled connection proves nothing: a
   * proxy may have accepted for a server that is not there.
   */
  hasReceived = false;
  /** The address that was dialled; undefined if the other side has dialled. */
  dialledAddress: HostPort | undefined;
  /** When the oldest message was sent after which none has arrived; undefined if there is none. */
  unansweredSinceMs: Millis | undefined;
  readonly initialMessageDecoder = new InitialMessageDecoder();
  readonly frameDecoder: FrameDecoder;
  /** The initial message, sent before anything else. */
  initialMessage: Buffer | undefined;
  /** The network still holds what it was given last. */
  writePending = false;

  constructor(stream: StreamId, remote: Endpoint, sinceMs: Millis, order: number, reader: Reader) {
    super(stream, remote, sinceMs);
    this.order = order;
    this.frameDecoder = new FrameDecoder(notificationBytesMax, reader, notificationBytesMin);
  }
}
