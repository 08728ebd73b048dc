/** An ordinary connection without any rights, that sends what it likes and counts the answers without reading what is in them. */
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Operation } from '@tskeeper/simulator';
import { encodeConnect, encodeRequest } from '../../model/wire.ts';

/** Where attackers live, whose machine is not that of the honest clients. */
export const attackerAddress = '127.0.0.2';
export const newcomerAddress = '127.0.0.3';

const sessionTimeoutMs = 20_000;
const joinMaxMs = 10_000;
const retryMs = 50;

/** The length of a frame, and of a reply its header: xid, zxid, error. */
const lengthBytes = 4;
const headBytes = 20;
const errorAt = 16;

/** Counts the frames of a stream, and their errors, without keeping them. */
class FrameCount {
  frames = 0;
  readonly #head = Buffer.alloc(headBytes);
  /** Of the frame that is arriving: what has arrived, and how long it is once its length is known. */
  #arrived = 0;
  #length = Infinity;

  /** `answered` is told the error of each reply. */
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
      // The first answers the handshake, and has no such header.
      if (this.frames++ > 0 && this.#arrived >= headBytes) answered(this.#head.readInt32BE(errorAt));
      this.#arrived = 0;
      this.#length = Infinity;
    }
  }
}

/** What all strangers together were answered, by error. It shows whether an attack was carried out or refused. */
export const answersByError = new Map<number, number>();

function note(error: number): void {
  answersByError.set(error, (answersByError.get(error) ?? 0) + 1);
}

export class Stranger {
  readonly socket: Socket;
  readonly #count = new FrameCount();
  #asked = 0;
  /** Of the last reply. */
  lastError = 0;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => {});
    socket.on('data', (bytes) =>
      this.#count.take(bytes, (error) => {
        note(error);
        this.lastError = error;
      }),
    );
  }

  /** With a session. Fails where it is not let in. */
  static async join(port: number, localAddress: string = attackerAddress): Promise<Stranger> {
    const stranger = new Stranger(connect({ host: '127.0.0.1', port, localAddress, noDelay: true }));
    const passwd = '\0'.repeat(16);
    stranger.socket.write(
      encodeConnect({ protocolVersion: 0, lastZxidSeen: 0, timeOut: sessionTimeoutMs, sessionId: 0n, passwd, readOnly: false }),
    );
    stranger.#asked = 1;
    if (!(await stranger.answered(joinMaxMs))) {
      stranger.destroy();
      throw new Error(`port ${port} let nobody in`);
    }
    return stranger;
  }

  get isClosed(): boolean {
    return this.socket.destroyed;
  }

  /** Frames that have arrived, the answer to the handshake among them. */
  get answers(): number {
    return this.#count.frames;
  }

  send(operation: Operation, xid?: number): Promise<void> {
    return this.write(encodeRequest(xid ?? this.#asked + 1, operation));
  }

  /** One whole request; resolves when the socket takes more. */
  async write(request: Buffer): Promise<void> {
    this.#asked++;
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

  /** Waits until all that was asked is answered; false when the connection ends first, or the time is over. */
  async answered(withinMs = 60_000): Promise<boolean> {
    const lateMs = performance.now() + withinMs;
    while (this.answers < this.#asked) {
      if (this.isClosed || performance.now() > lateMs) return false;
      await delay(2);
    }
    return true;
  }

  destroy(): void {
    this.socket.destroy();
  }
}

/** Does it again and again until the attack is over. Being refused or cut off is the lot of an attacker. */
export async function again(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    try {
      await work();
    } catch {
      await delay(retryMs);
    }
  }
}

/** So many at once, each with a connection of its own, which it makes anew when it is cut off. */
export async function strangers(
  count: number,
  port: number,
  signal: AbortSignal,
  work: (stranger: Stranger, index: number) => Promise<void>,
  localAddress: string = attackerAddress,
): Promise<void> {
  const one = async (index: number): Promise<void> => {
    await again(signal, async () => {
      const stranger = await Stranger.join(port, localAddress);
      const stop = (): void => stranger.destroy();
      signal.addEventListener('abort', stop, { once: true });
      try {
        while (!signal.aborted && !stranger.isClosed) await work(stranger, index);
      } finally {
        signal.removeEventListener('abort', stop);
        stranger.destroy();
      }
    });
  };
  await Promise.all(Array.from({ length: count }, (_, index) => one(index)));
}
