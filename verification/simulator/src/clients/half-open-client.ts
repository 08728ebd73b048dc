/**
 * An address that opens connections to a client port, sends nothing or the beginning of a
 * handshake, and stays for a while.
 */
import { Writer, writeConnectRequest } from '@tskeeper/protocol';
import type { StreamId } from '@tskeeper/runtime';
import { type ClientMachine, type ClientWorld, serverPort } from './client-world.ts';

export interface HalfOpenClientOptions {
  readonly name: string;
  readonly address: string;
  readonly server: ClientWorld['servers'][number];
  /** By connection: how many bytes of a handshake it sends. */
  readonly bytesPerCnxn: readonly number[];
}

export class HalfOpenClient {
  readonly #network: ClientMachine;
  readonly #streams = new Set<StreamId>();

  constructor(world: ClientWorld, { name, address, server, bytesPerCnxn }: HalfOpenClientOptions) {
    this.#network = world.clientNetwork(name, address);
    const bytesOf = new Map<StreamId, number>();
    this.#network.start({
      accepted() {},
      connected: (stream) => this.#sendPartialHandshake(stream, bytesOf.get(stream) ?? 0),
      received() {},
      drained() {},
      ended: (stream) => this.#network.end(stream),
      closed: (stream) => void this.#streams.delete(stream),
    });
    if (server.address === undefined) return;
    for (const bytes of bytesPerCnxn) {
      const stream = this.#network.connect({ address: server.address, port: serverPort });
      this.#streams.add(stream);
      bytesOf.set(stream, bytes);
    }
  }

  #sendPartialHandshake(stream: StreamId, bytes: number): void {
    const writer = new Writer();
    const frame = writer.beginFrame();
    writeConnectRequest(writer, { protocolVersion: 0, lastZxidSeen: 0, timeOut: 1000, sessionId: 0n, passwd: null, readOnly: false });
    writer.endFrame(frame);
    const said = Buffer.from(writer.written().subarray(0, Math.min(bytes, writer.offset - 1)));
    if (said.length === 0) return;
    this.#network.send({ count: 1, streams: [stream], buffers: [said], starts: [0], ends: [said.length], kept: [] });
  }

  hangUp(): void {
    for (const stream of this.#streams) this.#network.reset(stream);
  }
}
