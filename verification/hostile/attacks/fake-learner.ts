/**
 * An unconfigured process on the leader's quorum port. It can introduce itself as any server, join
 * as an observer, receive a snapshot as slowly as it likes, fall silent, and send requests that no
 * client of a well-behaved follower could send.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import {
  beginQuorumPacket,
  endQuorumPacket,
  PacketDecoder,
  PacketType,
  type PacketView,
  snapshotSignatureBytes,
  writeAckEpoch,
  writeEmptyPacket,
  writeLearnerRequest,
  writeLearnerInfo,
  Writer,
} from '@tskeeper/protocol';

const epochZxid = 2 ** 32;
const packetBytesMax = 64 << 20;

export interface FakeLearnerOptions {
  readonly port: number;
  readonly sid: number;
  readonly as: 'follower' | 'observer';
  /** The current epoch of the ensemble. */
  readonly epoch: number;
  /** The end of its log, as it claims; 0: the log is empty, and it needs a snapshot. */
  readonly lastZxid?: number;
}

export class FakeLearner {
  readonly socket: Socket;
  readonly #options: FakeLearnerOptions;
  readonly #cutter = new PacketDecoder(packetBytesMax);
  /** The last bytes of a snapshot: its end mark may arrive in two pieces. */
  #tail: Buffer = Buffer.alloc(0);
  /** It has received UPTODATE. */
  hasJoined = false;
  /** It receives a snapshot. */
  receivesSnapshot = false;
  packetsReceived = 0;

  private constructor(socket: Socket, options: FakeLearnerOptions) {
    this.socket = socket;
    this.#options = options;
    socket.on('error', () => {});
    socket.on('data', (bytes) => this.#take(bytes));
  }

  /** Connects and introduces itself. */
  static async connect(options: FakeLearnerOptions): Promise<FakeLearner> {
    const socket = connect({ host: '127.0.0.1', port: options.port, noDelay: true });
    await once(socket, 'connect');
    const learner = new FakeLearner(socket, options);
    const type = options.as === 'follower' ? PacketType.FOLLOWERINFO : PacketType.OBSERVERINFO;
    learner.#send(type, options.epoch * epochZxid, (to) => writeLearnerInfo(to, { serverId: options.sid, configVersion: 0 }));
    return learner;
  }

  get isClosed(): boolean {
    return this.socket.destroyed;
  }

  request(type: number, payload: Uint8Array, cxid: number): void {
    this.#send(PacketType.REQUEST, 0, (to) => writeLearnerRequest(to, { sessionHigh: 1, sessionLow: 1, cxid, type, payload }), []);
  }

  destroy(): void {
    this.socket.destroy();
  }

  #send(type: PacketType, zxid: number, data: (to: Writer) => void, authinfo: [] | null = null): void {
    const writer = new Writer(256);
    const start = beginQuorumPacket(writer, type, zxid);
    data(writer);
    endQuorumPacket(writer, start, authinfo);
    this.socket.write(Buffer.from(writer.written()));
  }

  #ack(zxid: number): void {
    const writer = new Writer(64);
    writeEmptyPacket(writer, PacketType.ACK, zxid);
    this.socket.write(Buffer.from(writer.written()));
  }

  #take(bytes: Buffer): void {
    try {
      this.#cutter.feed(bytes, 0, bytes.length, {
        packet: (packet) => this.#packet(packet),
        raw: (chunk, start, end) => this.#snapshot(chunk, start, end),
      });
    } catch {
      this.destroy();
    }
  }

  #packet({ type, zxid }: PacketView): boolean {
    const { lastZxid = 0, epoch } = this.#options;
    this.packetsReceived++;
    switch (type) {
      case PacketType.LEADERINFO:
        this.#send(PacketType.ACKEPOCH, lastZxid, (to) => writeAckEpoch(to, epoch));
        break;
      case PacketType.SNAP:
        this.receivesSnapshot = true;
        this.#cutter.beginRaw();
        break;
      case PacketType.NEWLEADER:
        this.#ack(zxid);
        break;
      case PacketType.UPTODATE:
        this.hasJoined = true;
        this.#ack(zxid);
        break;
      case PacketType.PING:
        this.#send(PacketType.PING, zxid, () => {});
        break;
      default:
    }
    return true;
  }

  #snapshot(chunk: Buffer, start: number, end: number): number {
    const seen = Buffer.concat([this.#tail, chunk.subarray(start, end)]);
    const at = seen.indexOf(snapshotSignatureBytes);
    if (at === -1) {
      this.#tail = Buffer.from(seen.subarray(-snapshotSignatureBytes.length));
      return end;
    }
    const behind = at + snapshotSignatureBytes.length - this.#tail.length;
    this.#tail = Buffer.alloc(0);
    this.receivesSnapshot = false;
    this.#cutter.endRaw();
    return start + behind;
  }
}
