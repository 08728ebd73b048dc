/**
 * Reads notifications out of the bytes of a connection and delivers them to the core, a limited
 * number at a time so that no server keeps the others waiting.
 */
import type { Observer } from '@tskeeper/core';
import { type Notification, ProtocolError, Reader, readNotification } from '@tskeeper/protocol';
import type { RateLimitedLog } from '../rate-limited-log.ts';
import type { ElectionCnxn } from './election-link.ts';
import type { ElectionPortOptions } from './election-port-options.ts';
import type { ElectionTurn } from './election-turn.ts';

export interface NotificationReaderDependencies {
  readonly options: ElectionPortOptions;
  readonly limitObserver: Pick<Observer, 'limitReached'>;
  readonly log: RateLimitedLog;
  readonly turn: ElectionTurn;
}

export class NotificationReader {
  readonly #options: ElectionPortOptions;
  readonly #limitObserver: Pick<Observer, 'limitReached'>;
  readonly #log: RateLimitedLog;
  readonly #turn: ElectionTurn;
  /** Placed over each frame of any connection, one after the other. */
  readonly frameReader = new Reader();
  #cnxn: ElectionCnxn | undefined;
  #quantumMessagesLeft = 0;

  readonly #onFrame = (reader: Reader): boolean => this.#onNotificationFrame(reader);

  constructor({ options, limitObserver, log, turn }: NotificationReaderDependencies) {
    this.#options = options;
    this.#limitObserver = limitObserver;
    this.#log = log;
    this.#turn = turn;
  }

  /**
   * Delivers the messages in these bytes; `bytes` undefined: in the retained ones. Returns false
   * when the connection has more than it may pass now. Throws a `ProtocolError` for bytes that are
   * not frames.
   */
  feed(cnxn: ElectionCnxn, bytes: Buffer | undefined, start: number, end: number): boolean {
    this.#cnxn = cnxn;
    this.#quantumMessagesLeft = this.#options.messagesPerQuantum;
    try {
      if (bytes === undefined) return cnxn.frameDecoder.resume(this.#onFrame);
      return cnxn.frameDecoder.feed(bytes, start, end, this.#onFrame);
    } finally {
      this.#cnxn = undefined;
    }
  }

  /** The frame decoder's consumer. Returns whether the connection may pass another message. */
  #onNotificationFrame(reader: Reader): boolean {
    const cnxn = this.#cnxn!;
    const { sid } = cnxn.link!;
    let notification: Notification;
    try {
      notification = readNotification(reader);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      // Only the message is lost: a server that is disconnected for a message that this one does
      // not understand would never vote again (ZOOKEEPER-3769).
      this.#log.warn(this.#turn.now.elapsedMs, `A notification of server ${sid} at ${cnxn.name} was dropped: ${error.message}.`, {
        event: 'peer.notification-dropped',
        address: cnxn.name,
        peer: sid,
        reason: error.message,
      });
      return this.#hasQuantumLeft();
    }
    this.#turn.core.notified(sid, notification, this.#turn.now);
    return this.#hasQuantumLeft() && cnxn.stage === 'open';
  }

  #hasQuantumLeft(): boolean {
    if (--this.#quantumMessagesLeft > 0) return true;
    this.#limitObserver.limitReached('messagesPerQuantum');
    return false;
  }
}
