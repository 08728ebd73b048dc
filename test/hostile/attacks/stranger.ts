/** An ordinary connection without any rights, that sends what it likes and counts the answers without reading what is in them. */
import { once } from 'node:events';
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

/** Counts the frames of a stream. */
class FrameCount {
  frames = 0;
  #left = 0;
  #head = 0;
  #headBytes = 0;

  take(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#left > 0) {
        const taken = Math.min(this.#left, bytes.length - at);
        this.#left -= taken;
        at += taken;
        if (this.#left === 0) this.frames++;
        continue;
      }
      this.#head = this.#head * 256 + bytes[at++]!;
      if (++this.#headBytes < 4) continue;
      this.#left = this.#head;
      this.#head = 0;
      this.#headBytes = 0;
    }
  }
}

export class Stranger {
  readonly socket: Socket;
  readonly #count = new FrameCount();
  #asked = 0;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => {});
    socket.on('data', (bytes) => this.#count.take(bytes));
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
    await Promise.race([once(this.socket, 'drain'), once(this.socket, 'close')]);
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
