/**
 * A voter that is no server: it dials the election port of one, or listens for it, says what it is told to and keeps what it hears. With it
 * the same words can be said to a server of ZooKeeper and to ours.
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

import { until } from './until.ts';

/** For a server to say something. It repeats itself after at most so long while it looks for a leader and hears nothing new. */
const heardMs = 20_000;

/** How a dialler introduces itself: as 3.4 did, with one address, or with several. */
export type Introduction = 'sid alone' | 'one address' | 'several addresses';
/** How long a notification is: as before 3.4, as in 3.4, with a version, with a configuration. */
export type Form = '28 bytes' | '40 bytes' | '44 bytes' | 'with a configuration';

const bytesOf: Readonly<Record<Form, number>> = { '28 bytes': 28, '40 bytes': 40, '44 bytes': 44, 'with a configuration': Infinity };
const versionAt = 36;

function framed(body: Uint8Array): Buffer {
  const head = Buffer.alloc(4);
  head.writeInt32BE(body.length);
  return Buffer.concat([head, body]);
}

export class FakeVoter {
  readonly sid: number;
  readonly port: number;
  readonly heard: Notification[] = [];
  #socket: Socket | undefined;
  #server: Server | undefined;
  #pending = Buffer.alloc(0);
  #awaitsIntroduction = false;
  /** What the server said first when it dialled. */
  introduction: string | undefined;
  /** The server has ended the connection. */
  hungUp = false;

  /** `port`: where it can be reached, as the server's configuration says. */
  constructor(sid: number, port: number) {
    this.sid = sid;
    this.port = port;
  }

  /** Takes the server's dial. */
  async listen(): Promise<void> {
    this.#server = createServer((socket) => {
      this.#awaitsIntroduction = true;
      this.#pending = Buffer.alloc(0);
      this.#take(socket);
    });
    this.#server.listen(this.port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async dial(port: number, introduction: Introduction): Promise<void> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    this.#awaitsIntroduction = false;
    this.#pending = Buffer.alloc(0);
    this.hungUp = false;
    this.#take(socket);
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

  say(notification: Notification, form: Form): void {
    const writer = new Writer(128);
    writeNotification(writer, notification);
    const body = Buffer.from(writer.written());
    if (form === '44 bytes') body.writeInt32BE(1, versionAt);
    this.#socket!.write(framed(body.subarray(0, Math.min(body.length, bytesOf[form]))));
  }

  /** The first notification from now on, or among those heard, that is meant. */
  async hears(what: string, isMeant: (notification: Notification) => boolean): Promise<Notification> {
    return await until(
      `server ${this.sid} hears ${what}; it has heard ${this.heard.map(textOf).slice(-5).join(' / ')}`,
      async () => this.heard.find(isMeant),
      heardMs,
    );
  }

  end(): void {
    this.#socket?.destroy();
    this.#server?.close();
  }

  #take(socket: Socket): void {
    this.#socket?.destroy();
    this.#socket = socket;
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (this.#socket === socket) this.hungUp = true;
    });
    socket.on('data', (chunk) => {
      if (this.#socket === socket) this.#read(chunk);
    });
  }

  #read(chunk: Buffer): void {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    if (this.#awaitsIntroduction) {
      // Version, sid, length of the text, text.
      if (this.#pending.length < 20 || this.#pending.length < 20 + this.#pending.readInt32BE(16)) return;
      const reader = new Reader(this.#pending);
      const { sid, protocolVersion, addresses } = readInitialMessage(reader);
      this.introduction = `sid ${sid}, version ${protocolVersion}, ${addresses.length} address`;
      this.#pending = this.#pending.subarray(reader.offset);
      this.#awaitsIntroduction = false;
    }
    while (this.#pending.length >= 4 && this.#pending.length >= 4 + this.#pending.readInt32BE(0)) {
      const length = this.#pending.readInt32BE(0);
      this.heard.push(readNotification(new Reader(this.#pending.subarray(4, 4 + length))));
      this.#pending = this.#pending.subarray(4 + length);
    }
  }
}

/** All of it but the configuration, which differs from ensemble to ensemble: of that whether it is there, and its version. */
export function textOf({ state, leader, zxid, peerEpoch, electionEpoch, version, config }: Notification): string {
  const told = config === undefined ? 'no config' : `config ${/version=.*/.exec(config)?.[0] ?? 'without a version'}`;
  return `${state}, votes for ${leader}, zxid 0x${zxid.toString(16)}, epoch ${peerEpoch}, round ${electionEpoch}, version ${version}, ${told}`;
}
