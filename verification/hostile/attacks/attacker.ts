/**
 * An ordinary connection without any rights that sends anything, and counts the replies without
 * reading their content.
 */
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Operation } from '@tskeeper/simulator';
import { encodeConnect, encodeRequest } from '@tskeeper/harness';

/** The attackers' address; the honest clients use another one. */
export const attackerAddress = '127.0.0.2';
export const newClientAddress = '127.0.0.3';

const sessionTimeoutMs = 20_000;
const joinMaxMs = 10_000;
const retryMs = 50;

/** The length of a frame, and of a reply's header: xid, zxid, error. */
const lengthBytes = 4;
const headBytes = 20;
const errorAt = 16;

/** Counts the frames of a stream, and their errors, without keeping them. */
class FrameCount {
  frames = 0;
  readonly #head = Buffer.alloc(headBytes);
  /** Of the incoming frame: the bytes received, and its length once that is known. */
  #arrived = 0;
  #length = Infinity;

  /** `answered` receives the error of each reply. */
  take(bytes: Buffer, answered: (error: number) => void): void {
    let at = 0;
    while (at < bytes.length) {
      const part = this.#arrived < lengthBytes ? lengthBytes - this.#arrived : lengthBytes + this.#length - this.#arrived;
      const end = Math.min(bytes.length, at + part);
      if (this.#arrived < headBytes) bytes.copy(this.#head, this.#arrived, at, Math.min(end, at + headBytes - this.#arrived));
      this.#arrived += end - at;
      at = end;
      if (this.#arrived === lengthBytes) this.#length = this.#head.readInt32BE(0);
      if (this.#arrived < lengthBytes + this.#length) continue;
      // The first frame answers the handshake, and has no such header.
      if (this.frames++ > 0 && this.#arrived >= headBytes) answered(this.#head.readInt32BE(errorAt));
      this.#arrived = 0;
      this.#length = Infinity;
    }
  }
}

/** Replies to all strangers, by error. They show whether an attack was executed or rejected. */
export const answersByError = new Map<number, number>();

function countError(error: number): void {
  answersByError.set(error, (answersByError.get(error) ?? 0) + 1);
}

export class Attacker {
  readonly socket: Socket;
  readonly #count = new FrameCount();
  #requestCount = 0;
  /** Error of the last reply. */
  lastError = 0;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => {});
    socket.on('data', (bytes) =>
      this.#count.take(bytes, (error) => {
        countError(error);
        this.lastError = error;
      }),
    );
  }

  /** Opens a session. Rejects if the server does not accept it. */
  static async connect(port: number, localAddress: string = attackerAddress): Promise<Attacker> {
    const attacker = new Attacker(connect({ host: '127.0.0.1', port, localAddress, noDelay: true }));
    const passwd = '\0'.repeat(16);
    attacker.socket.write(
      encodeConnect({ protocolVersion: 0, lastZxidSeen: 0, timeOut: sessionTimeoutMs, sessionId: 0n, passwd, readOnly: false }),
    );
    attacker.#requestCount = 1;
    if (!(await attacker.untilAnswered(joinMaxMs))) {
      attacker.destroy();
      throw new Error(`port ${port} accepts no session`);
    }
    return attacker;
  }

  get isClosed(): boolean {
    return this.socket.destroyed;
  }

  /** Number of frames received, including the answer to the handshake. */
  get replyCount(): number {
    return this.#count.frames;
  }

  send(operation: Operation, xid?: number): Promise<void> {
    return this.write(encodeRequest(xid ?? this.#requestCount + 1, operation));
  }

  /** Writes one whole request; resolves when the socket accepts more. */
  async write(request: Buffer): Promise<void> {
    this.#requestCount++;
    if (this.isClosed) throw new Error('the connection is closed');
    if (this.socket.write(request)) return;
    await new Promise<void>((resolve) => {
      const goOn = (): void => {
        this.socket.off('drain', goOn);
        this.socket.off('close', goOn);
        resolve();
      };
      this.socket.on('drain', goOn);
      this.socket.on('close', goOn);
    });
  }

  /** Waits until every request is answered; false if the connection ends first, or on a timeout. */
  async untilAnswered(withinMs = 60_000): Promise<boolean> {
    const lateMs = performance.now() + withinMs;
    while (this.replyCount < this.#requestCount) {
      if (this.isClosed || performance.now() > lateMs) return false;
      await delay(2);
    }
    return true;
  }

  destroy(): void {
    this.socket.destroy();
  }
}

/** Repeats the work until the attack is over. Rejections and closed connections are expected. */
export async function repeatUntilAborted(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    try {
      await work();
    } catch {
      await delay(retryMs);
    }
  }
}

/** Runs this many at once, each with its own connection, which it opens again when it is closed. */
export async function runAttackers(
  count: number,
  port: number,
  signal: AbortSignal,
  work: (attacker: Attacker, index: number) => Promise<void>,
  localAddress: string = attackerAddress,
): Promise<void> {
  const one = async (index: number): Promise<void> => {
    await repeatUntilAborted(signal, async () => {
      const attacker = await Attacker.connect(port, localAddress);
      const stop = (): void => attacker.destroy();
      signal.addEventListener('abort', stop, { once: true });
      try {
        while (!signal.aborted && !attacker.isClosed) await work(attacker, index);
      } finally {
        signal.removeEventListener('abort', stop);
        attacker.destroy();
      }
    });
  };
  await Promise.all(Array.from({ length: count }, (_, index) => one(index)));
}
