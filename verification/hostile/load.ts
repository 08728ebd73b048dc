/**
 * A load of writes, in its own process, that continues whatever happens to the servers. Closed:
 * each connection keeps a number of writes in flight. Open: a number per second over all
 * connections, evenly, whatever the replies; a closed load would hide a slow server, because it
 * waits for it.
 */
import { connect, type Socket } from 'node:net';
import { encodeConnect, encodeRequest, OperationClient } from '@tskeeper/harness';
import { openToAll } from '../processes/honest-client.ts';
import { helperMain } from './helper-process.ts';

export interface LoadOptions {
  readonly ports: readonly number[];
  readonly connections: number;
  readonly shape: { readonly inFlight: number } | { readonly perSecond: number };
}

export interface LoadReport {
  readonly acknowledged: number;
}

const path = '/load';
const valueBytes = 100;
const sessionTimeoutMs = 20_000;
const retryMs = 50;
/** A server that accepts a connection without opening a session is left after this time. */
const dialTimeoutMs = 2000;
const nodeExists = -110;
const handshake = encodeConnect({
  protocolVersion: 0,
  lastZxidSeen: 0,
  timeOut: sessionTimeoutMs,
  sessionId: 0n,
  passwd: '\0'.repeat(16),
  readOnly: false,
});
const write = encodeRequest(1, { kind: 'setData', path, data: 'x'.repeat(valueBytes), version: -1 });
/** Interval at which an open load sends what is due. */
const dueEveryMs = 2;

class Connection {
  readonly #ports: readonly number[];
  readonly #inFlight: number;
  readonly #acknowledged: (count: number) => void;
  #next: number;
  #socket: Socket | undefined;
  #isEstablished = false;
  #input: Buffer = Buffer.alloc(0);

  constructor(ports: readonly number[], first: number, inFlight: number, acknowledged: (count: number) => void) {
    this.#ports = ports;
    this.#next = first;
    this.#inFlight = inFlight;
    this.#acknowledged = acknowledged;
    this.#dial();
  }

  get isEstablished(): boolean {
    return this.#isEstablished;
  }

  write(): void {
    this.#socket!.write(write);
  }

  #dial(): void {
    const socket = connect({ port: this.#ports[this.#next++ % this.#ports.length]!, host: '127.0.0.1', noDelay: true });
    this.#socket = socket;
    this.#input = Buffer.alloc(0);
    const patience = setTimeout(() => socket.destroy(), dialTimeoutMs);
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      clearTimeout(patience);
      this.#received(bytes);
    });
    socket.on('close', () => {
      clearTimeout(patience);
      this.#isEstablished = false;
      setTimeout(() => this.#dial(), retryMs);
    });
    socket.write(handshake);
  }

  #received(bytes: Buffer): void {
    const input = this.#input.length === 0 ? bytes : Buffer.concat([this.#input, bytes]);
    let frames = 0;
    let at = 0;
    while (at + 4 <= input.length && at + 4 + input.readInt32BE(at) <= input.length) {
      at += 4 + input.readInt32BE(at);
      frames++;
    }
    this.#input = input.subarray(at);
    if (frames === 0) return;
    if (!this.#isEstablished) {
      this.#isEstablished = true;
      for (let count = 0; count < this.#inFlight; count++) this.write();
      frames--;
    }
    this.#acknowledged(frames);
    if (this.#inFlight > 0 && frames > 0) this.#socket!.write(Buffer.concat(Array.from({ length: frames }, () => write)));
  }
}

async function main({ ports, connections, shape }: LoadOptions): Promise<void> {
  const client = await OperationClient.open({ host: '127.0.0.1', port: ports[0]! });
  await client.openSession(sessionTimeoutMs);
  const made = await client.call({ kind: 'create', path, data: '', acl: openToAll, flags: 0 });
  if (made?.err !== 0 && made?.err !== nodeExists) throw new Error(`could not create ${path}: ${made?.err}`);
  client.destroy();
  let acknowledged = 0;
  const inFlight = 'inFlight' in shape ? shape.inFlight : 0;
  const all = Array.from(
    { length: connections },
    (_, index) => new Connection(ports, index, inFlight, (count) => void (acknowledged += count)),
  );
  if ('perSecond' in shape) {
    let sent = 0;
    const beganMs = performance.now();
    setInterval(() => {
      const due = ((performance.now() - beganMs) * shape.perSecond) / 1000;
      for (; sent < due; sent++) {
        const able = all.filter(({ isEstablished }) => isEstablished);
        able[sent % able.length]?.write();
      }
    }, dueEveryMs);
  }
  process.on('message', () => process.send!({ acknowledged } satisfies LoadReport));
  process.send!({ acknowledged } satisfies LoadReport);
}

// Importing the types of this module starts nothing.
if (process.argv[1]?.endsWith('load.ts') === true) helperMain((options) => main(options as LoadOptions));
