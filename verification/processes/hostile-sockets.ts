/**
 * Attacks of a socket beyond those of a frame: wrong lengths, stopping in the middle, dripping,
 * resetting, never reading. An honest client works beside it and must get its replies, correct and
 * in time.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { difference } from '../model/compare.ts';
import { honestOperation } from '../model/hostile.ts';
import { hostileHandshake, mutatedFrame, randomBytes } from '../model/malformed-frames.ts';
import type { AclEntry, ConnectRequest, Message, Operation } from '@tskeeper/simulator';
import { type Hints, Prng } from '../model/operations.ts';
import { digestId, ReferenceModel } from '@tskeeper/simulator';
import { encodeConnect, encodeRequest, type Endpoint, OperationClient, within } from '@tskeeper/harness';

export interface HostileSocketsOptions {
  readonly endpoint: Endpoint;
  readonly seed: number;
  /** Number of hostile frames and connections. */
  readonly attacks: number;
  readonly spoil?: (message: Message) => Message;
}

export interface HostileSocketsReport {
  readonly attacks: number;
  readonly connections: number;
  readonly honestReplies: number;
  readonly slowestReplyMs: number;
  readonly wrong: string | undefined;
}

/** Together with the dripping ones well below the 60 that a server allows one address. */
const attackers = 16;
const drippers = 12;
const neverReading = 2;
const framesPerConnection = 60;
const replyLimitMs = 10_000;
const identity = 'honest:work';
const privately: readonly AclEntry[] = [{ perms: 31, scheme: 'digest', id: digestId(identity) }];
const handshake: ConnectRequest = {
  protocolVersion: 0,
  lastZxidSeen: 0,
  timeOut: 40_000,
  sessionId: 0n,
  passwd: '\0'.repeat(16),
  readOnly: false,
};

/** Other clients use zxids, and the server has its own clock: ignore both here. */
function withoutStamps(message: Message): Message {
  return JSON.parse(
    JSON.stringify(message, (key, value: unknown) => {
      if (/^[cmp]?zxid$|^[cm]time$/.test(key)) return 0;
      return typeof value === 'bigint' ? value.toString() : value;
    }),
  ) as Message;
}

async function openSocket({ host, port }: Endpoint): Promise<Socket | undefined> {
  const socket = connect({ host, port });
  // Most of these connections provoke their own end.
  socket.on('error', () => {});
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => {});
  return socket.destroyed || socket.connecting ? undefined : socket;
}

function lyingLength(random: Prng): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(random.pick([-1, -0x80000000, 0x7fffffff, 0x100000, 0xfffff, 5000, 0]), 0);
  return Buffer.concat([length, randomBytes(random, random.below(64))]);
}

class Attack {
  readonly #options: HostileSocketsOptions;
  readonly #hints: Hints = { paths: [], zxid: 0, leaves: [] };
  attacks = 0;
  connections = 0;

  constructor(options: HostileSocketsOptions) {
    this.#options = options;
  }

  get over(): boolean {
    return this.attacks >= this.#options.attacks;
  }

  /** One attacker: connection after connection. */
  async run(random: Prng): Promise<void> {
    while (!this.over) {
      const socket = await openSocket(this.#options.endpoint);
      if (socket === undefined) {
        await delay(5);
        continue;
      }
      this.connections++;
      this.attacks++;
      socket.resume();
      await random.weighted<() => Promise<void> | void>([
        [3, () => void socket.write(randomBytes(random, 1 + random.below(300)))],
        [3, () => void socket.write(lyingLength(random))],
        [2, () => void socket.write(hostileHandshake(random).subarray(0, 1 + random.below(40)))],
        [1, () => void socket.write(random.pick(['ruok', 'zzzz', 'stmk', 'srvr', '\0\0\0\0']))],
        [8, () => this.#speak(socket, random)],
      ])();
      // Leave it a moment to be read, or none at all.
      if (random.chance(50)) await delay(random.below(5));
      if (random.chance(50)) socket.resetAndDestroy();
      else socket.destroy();
    }
  }

  /** A valid handshake, then invalid frames. */
  async #speak(socket: Socket, random: Prng): Promise<void> {
    socket.write(random.chance(85) ? encodeConnect({ ...handshake, timeOut: 4000 }) : hostileHandshake(random));
    for (let frames = 0; frames < framesPerConnection && !socket.destroyed && !this.over; frames++) {
      this.attacks++;
      const frame = random.chance(95) ? mutatedFrame(random, this.#hints) : lyingLength(random);
      const cut = random.below(frame.length + 1);
      socket.write(frame.subarray(0, cut));
      if (random.chance(1)) return;
      if (random.chance(10)) await delay(1);
      socket.write(frame.subarray(cut));
    }
  }

  /** One byte now and then, without end. */
  async drip(random: Prng): Promise<void> {
    const bytes = Buffer.concat([encodeConnect(handshake), encodeRequest(1, { kind: 'getData', path: '/', watch: false })]);
    while (!this.over) {
      const socket = await openSocket(this.#options.endpoint);
      if (socket === undefined) return;
      this.connections++;
      for (let at = 0; at < bytes.length && !socket.destroyed && !this.over; at++) {
        socket.write(bytes.subarray(at, at + 1));
        await delay(10 + random.below(40));
      }
      socket.destroy();
    }
  }

  /** Sends requests and never reads a reply. */
  async neverRead(): Promise<void> {
    const ask = encodeRequest(1, { kind: 'getData', path: '/big', watch: false });
    while (!this.over) {
      const socket = await openSocket(this.#options.endpoint);
      if (socket === undefined) return;
      this.connections++;
      socket.pause();
      socket.write(encodeConnect(handshake));
      for (let asked = 0; asked < 2000 && !socket.destroyed && !this.over; asked++) {
        if (!socket.write(ask)) await Promise.race([once(socket, 'drain').catch(() => {}), delay(100)]);
        if (asked % 20 === 0) await delay(1);
      }
      socket.resetAndDestroy();
    }
  }
}

export async function runHostileSockets(options: HostileSocketsOptions): Promise<HostileSocketsReport> {
  const { endpoint, seed, spoil } = options;
  const random = new Prng(seed);
  const attack = new Attack(options);
  const model = new ReferenceModel({ javaCompatible: true });
  const client = await OperationClient.open(endpoint);
  const session = await client.openSession(40_000);
  if (session === undefined) throw new Error('the server refused the honest client');
  model.connect(1, '127.0.0.1');
  model.handshake(1, handshake, session.sessionId);
  let honestReplies = 0;
  let slowestReplyMs = 0;

  const work = async (operation: Operation): Promise<string | undefined> => {
    const sentMs = performance.now();
    const xid = client.send(operation);
    const expected = model.perform(model.admit(1, xid, operation, 0));
    const answer = within(replyLimitMs, `answer to ${operation.kind}`, client.receive(xid));
    const messages = await answer.catch((error: unknown) => String(error));
    if (typeof messages === 'string') return messages;
    slowestReplyMs = Math.max(slowestReplyMs, performance.now() - sentMs);
    honestReplies++;
    const heard = spoil === undefined ? messages : messages.map(spoil);
    return difference(
      expected.map((one) => ({ ...one, message: withoutStamps(one.message) })),
      heard.map(withoutStamps),
    );
  };

  const workAll = async (): Promise<string | undefined> => {
    const first: Operation[] = [
      { kind: 'auth', scheme: 'digest', auth: identity },
      { kind: 'create', path: '/honest', data: '', acl: privately, flags: 0 },
      { kind: 'create', path: '/honest/keep', data: '', acl: privately, flags: 0 },
      {
        kind: 'create',
        path: '/big',
        data: 'x'.repeat(20_000),
        acl: privately.with(0, { perms: 1, scheme: 'world', id: 'anyone' }),
        flags: 0,
      },
    ];
    for (const operation of first) {
      const wrong = await work(operation);
      if (wrong !== undefined) return wrong;
    }
    const hostiles = [
      ...Array.from({ length: attackers }, (_, index) => attack.run(new Prng(seed + index + 1))),
      ...Array.from({ length: drippers }, (_, index) => attack.drip(new Prng(seed + index + 1000))),
      ...Array.from({ length: neverReading }, () => attack.neverRead()),
    ];
    let wrong: string | undefined;
    while (!attack.over && wrong === undefined) wrong = await work(honestOperation(random));
    // Whatever the honest client found, the attackers finish before the result is returned.
    attack.attacks = Math.max(attack.attacks, options.attacks);
    await Promise.all(hostiles);
    return wrong ?? work({ kind: 'whoAmI' });
  };

  const wrong = await workAll();
  client.destroy();
  return { attacks: attack.attacks, connections: attack.connections, honestReplies, slowestReplyMs, wrong };
}
