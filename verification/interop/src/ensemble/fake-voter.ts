/**
 * A voter that is not a server: it dials the election port of a server, or listens for it, sends
 * given messages and records what it receives. It can send the same bytes to a server of ZooKeeper
 * and to ours.
 */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

import {
  InitialMessageVersion,
  type Notification,
  Reader,
  readInitialMessage,
  readNotification,
  writeInitialMessage,
  writeNotification,
  Writer,
} from '@tskeeper/protocol';

import { until } from '@tskeeper/harness';

/**
 * Time limit for a message of the server, which repeats itself in shorter intervals while it looks
 * for a leader.
 */
const replyTimeoutMs = 20_000;
/**
 * A voter repeats itself until it receives something new, and dials again after a disconnect: so do
 * these.
 */
const repeatMs = 1000;

/** How a server introduces itself when it dials: as 3.4 did, with one address, or with several. */
export type Introduction = 'sid alone' | 'one address' | 'several addresses';
/** The format of a notification: as before 3.4, as in 3.4, with a version, with a configuration. */
export type NotificationForm = '28 bytes' | '40 bytes' | '44 bytes' | 'with a configuration';

const bytesOf: Readonly<Record<NotificationForm, number>> = {
  '28 bytes': 28,
  '40 bytes': 40,
  '44 bytes': 44,
  'with a configuration': Infinity,
};
const versionAt = 36;

function framed(body: Uint8Array): Buffer {
  const head = Buffer.alloc(4);
  head.writeInt32BE(body.length);
  return Buffer.concat([head, body]);
}

export class FakeVoter {
  readonly sid: number;
  readonly port: number;
  readonly received: Notification[] = [];
  /**
   * Open connections. ZooKeeper may dial twice at about the same time, and uses the connection that
   * it has recorded last: so read and write all of them.
   */
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  /** The first message of the server when it dialled. */
  introduction: string | undefined;
  #dialled: { readonly port: number; readonly introduction: Introduction } | undefined;

  /** `port`: where it can be reached, as in the server's configuration. */
  constructor(sid: number, port: number) {
    this.sid = sid;
    this.port = port;
  }

  /** Accepts the server's connection. */
  async listen(): Promise<void> {
    this.#server = createServer((socket) => this.#addSocket(socket, true));
    this.#server.listen(this.port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async dial(port: number, introduction: Introduction): Promise<void> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    this.#dialled = { port, introduction };
    this.#addSocket(socket, false);
    const address = { host: '127.0.0.1', port: this.port };
    const writer = new Writer(64);
    writeInitialMessage(writer, {
      sid: this.sid,
      protocolVersion: {
        'sid alone': undefined,
        'one address': InitialMessageVersion.oneAddress,
        'several addresses': InitialMessageVersion.addresses,
      }[introduction],
      addresses: introduction === 'several addresses' ? [address, address] : [address],
    });
    socket.write(writer.written());
  }

  send(notification: Notification, form: NotificationForm): void {
    const writer = new Writer(128);
    writeNotification(writer, notification);
    const body = Buffer.from(writer.written());
    if (form === '44 bytes') body.writeInt32BE(1, versionAt);
    for (const socket of this.#sockets) socket.write(framed(body.subarray(0, Math.min(body.length, bytesOf[form]))));
  }

  /** Sends it until an answer arrives. */
  async sendUntilAnswered(
    notification: Notification,
    form: NotificationForm,
    what: string,
    isMeant: (answer: Notification) => boolean,
  ): Promise<Notification> {
    let saidMs = -Infinity;
    return await until(
      `server ${this.sid} receives ${what}; it has received ${this.received.map(textOf).slice(-5).join(' / ')}`,
      async () => {
        if (performance.now() - saidMs > repeatMs) {
          if (this.#sockets.size === 0 && this.#dialled !== undefined) await this.dial(this.#dialled.port, this.#dialled.introduction);
          this.send(notification, form);
          saidMs = performance.now();
        }
        return this.received.find(isMeant);
      },
      replyTimeoutMs,
    );
  }

  /** The first notification that matches, among those received and later ones. */
  async waitFor(what: string, isMeant: (notification: Notification) => boolean): Promise<Notification> {
    return await until(
      `server ${this.sid} receives ${what}; it has received ${this.received.map(textOf).slice(-5).join(' / ')}`,
      async () => this.received.find(isMeant),
      replyTimeoutMs,
    );
  }

  end(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server?.close();
  }

  #addSocket(socket: Socket, wasDialled: boolean): void {
    let pending = Buffer.alloc(0);
    let awaitsIntroduction = wasDialled;
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('data', (chunk) => {
      pending = Buffer.concat([pending, chunk]);
      if (awaitsIntroduction) {
        // Version, sid, length of the text, text.
        if (pending.length < 20 || pending.length < 20 + pending.readInt32BE(16)) return;
        const reader = new Reader(pending);
        const { sid, protocolVersion, addresses } = readInitialMessage(reader);
        this.introduction = `sid ${sid}, version ${protocolVersion}, ${addresses.length} address`;
        pending = pending.subarray(reader.offset);
        awaitsIntroduction = false;
      }
      while (pending.length >= 4 && pending.length >= 4 + pending.readInt32BE(0)) {
        const length = pending.readInt32BE(0);
        this.received.push(readNotification(new Reader(pending.subarray(4, 4 + length))));
        pending = pending.subarray(4 + length);
      }
    });
  }
}

/**
 * All fields except the configuration, which differs between ensembles: of that its presence, and
 * its version.
 */
export function textOf({ state, leader, zxid, peerEpoch, electionEpoch, version, config }: Notification): string {
  const delivered = config === undefined ? 'no config' : `config ${/version=.*/.exec(config)?.[0] ?? 'without a version'}`;
  return `${state}, votes for ${leader}, zxid 0x${zxid.toString(16)}, epoch ${peerEpoch}, round ${electionEpoch}, version ${version}, ${delivered}`;
}
