/**
 * The output of an election port: what waits for each server, gathered into one call to the network
 * at the end of a turn, and after it the ends of the connections that close.
 *
 * A connection has one write in progress. What is sent meanwhile replaces what waits, because only
 * the newest notification counts.
 */
import { type Notification, writeNotification, Writer } from '@tskeeper/protocol';
import type { Network } from '../../network.ts';
import type { PeerStreams } from '../peer-streams.ts';
import { SendList } from '../send-list.ts';
import type { ElectionCnxn, ElectionLink } from './election-link.ts';
import type { ElectionLinkTable } from './election-link-table.ts';
import type { ElectionTurn } from './election-turn.ts';

export interface NotificationSenderDependencies {
  readonly network: Network;
  readonly links: ElectionLinkTable;
  readonly turn: ElectionTurn;
}

export class NotificationSender {
  readonly #network: Network;
  readonly #links: ElectionLinkTable;
  readonly #turn: ElectionTurn;
  readonly #sends = new SendList();
  /** Connections that close once their output has been sent. */
  #closingCnxns: ElectionCnxn[] = [];
  /** The last encoded notification: the same one goes to every server. */
  #encoded: { readonly notification: Notification; readonly frame: Buffer } | undefined;

  constructor({ network, links, turn }: NotificationSenderDependencies) {
    this.#network = network;
    this.#links = links;
    this.#turn = turn;
  }

  /** Sets the newest message to that server; sent at the end of a turn that has a connection. */
  put(link: ElectionLink, notification: Notification): void {
    if (this.#encoded?.notification !== notification) this.#encoded = { notification, frame: frameOf(notification) };
    link.pendingMessage = link.lastMessage = this.#encoded.frame;
  }

  /** Sends an initial message over a connection that carries nothing else. */
  introduce({ stream }: ElectionCnxn): void {
    this.#sends.add(stream, this.#links.initialMessage);
  }

  /** Sends the end of the connection once its output has been sent. */
  endAfterOutput(cnxn: ElectionCnxn): void {
    this.#closingCnxns.push(cnxn);
  }

  /** The network has accepted the write in progress. */
  drained(cnxn: ElectionCnxn): void {
    if (!cnxn.writePending) return;
    cnxn.writePending = false;
    if (cnxn.stage === 'closing') this.endAfterOutput(cnxn);
    else if (cnxn.link !== undefined) this.#links.markDirty(cnxn.link);
  }

  /** Adds what waits for this server to the output of the turn: one write for each stream. */
  flush({ cnxn }: ElectionLink): void {
    if (cnxn === undefined || cnxn.writePending) return;
    const { initialMessage, link } = cnxn;
    const waiting = link!.pendingMessage;
    cnxn.initialMessage = link!.pendingMessage = undefined;
    if (initialMessage !== undefined && waiting !== undefined) this.#sends.add(cnxn.stream, Buffer.concat([initialMessage, waiting]));
    else if (initialMessage !== undefined || waiting !== undefined) this.#sends.add(cnxn.stream, (initialMessage ?? waiting)!);
  }

  /** Sends the output of the turn, and the ends of connections without any. */
  send(streams: PeerStreams<ElectionCnxn>): void {
    this.#sends.send(this.#network, (stream) => {
      const cnxn = streams.get(stream);
      if (cnxn !== undefined) cnxn.writePending = true;
    });
    const closing = this.#closingCnxns;
    this.#closingCnxns = [];
    for (const cnxn of closing) if (!cnxn.writePending) streams.sendEnd(cnxn, this.#turn.now);
  }
}

function frameOf(notification: Notification): Buffer {
  const writer = new Writer(256);
  const start = writer.beginFrame();
  writeNotification(writer, notification);
  writer.endFrame(start);
  return Buffer.from(writer.written());
}
