import { connect, createServer, isIPv6, type Server, type Socket } from 'node:net';
import {
  type Endpoint,
  type Listener,
  ListenError,
  type ListenOptions,
  type Logger,
  type Network,
  type NetworkSink,
  type SendBatch,
  type StreamId,
} from '@tskeeper/runtime';
import { ReceivedList, StreamTable } from '@tskeeper/runtime/internal';
import { NameResolver } from './name-resolver.ts';
import { type PortOwner, portOwner } from './port-owner.ts';

export interface NetNetworkOptions {
  readonly logger: Logger;
  /** zookeeper.clientTcpKeepAlive: the kernel probes accepted connections that are silent. */
  readonly keepAlive?: boolean;
  /** tcpKeepAlive: the same for connections with other servers, accepted or dialled. */
  readonly serverKeepAlive?: boolean;
}

const streamKey = Symbol('stream');
type NumberedSocket = Socket & { [streamKey]: Stream };

/** A connection. One object and one function each, because there may be tens of thousands. */
interface Stream {
  readonly id: StreamId;
  readonly socket: NumberedSocket;
  /**
   * Shared by all writes of the stream; notifies the sink when a write that had to wait is
   * complete.
   */
  readonly written: () => void;
  /** Output waits in the process because the system did not accept it at once. */
  isWritePending: boolean;
  /** The stream was reset: later events are ignored. */
  isDropped: boolean;
  error: string | undefined;
}

/**
 * A process without free descriptors fails to accept many times a second; one line per interval
 * reports it.
 */
const acceptWarningEveryMs = 10_000;

/**
 * TCP over node:net.
 *
 * Everything that arrives in a turn of the loop is gathered and delivered by one call in the turn's
 * check phase; the end of a stream is delivered after the bytes that arrived before it. Output is
 * written once per stream and turn: the cost of a small request is in system calls, not in bytes.
 */
export class NetNetwork implements Network {
  readonly #logger: Logger;
  readonly #keepAlive: boolean;
  readonly #serverKeepAlive: boolean;
  readonly #resolver = new NameResolver();
  #sink: NetworkSink | undefined;
  readonly #streams = new StreamTable<Stream>();
  #batch = new ReceivedList();
  #spare = new ReceivedList();
  /** Streams that ended or closed in this turn, in order. */
  #endings: { readonly stream: Stream; readonly closed: boolean }[] = [];
  #scheduled = false;
  readonly #deliver = () => this.#deliverTurn();
  readonly #isLive = (stream: StreamId) => !this.#streams.get(stream)!.isDropped;
  #lastAcceptWarning = -Infinity;

  constructor(options: NetNetworkOptions) {
    this.#logger = options.logger;
    this.#keepAlive = options.keepAlive ?? false;
    this.#serverKeepAlive = options.serverKeepAlive ?? false;
  }

  start(sink: NetworkSink): void {
    this.#sink = sink;
  }

  async listen(options: ListenOptions): Promise<Listener> {
    const keepAlive = options.forServers === true ? this.#serverKeepAlive : this.#keepAlive;
    const server = createServer({ allowHalfOpen: true, noDelay: true, keepAlive });
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, options)));
      // Without a host Node listens on ::, IPv4 included, and on 0.0.0.0 where the machine has no
      // IPv6.
      const host = options.address === undefined ? {} : { host: options.address };
      const backlog = options.backlog === undefined ? {} : { backlog: options.backlog };
      server.listen({ port: options.port, ...host, ...backlog }, resolve);
    });
    const listener: Listener = { endpoint: endpointOf(server), close: () => closeListener(server) };
    server.removeAllListeners('error');
    server.on('error', (error: NodeJS.ErrnoException) => this.#warnOfAccept(error, listener.endpoint));
    server.on('connection', (socket) => this.#accept(socket, listener));
    return listener;
  }

  connect(endpoint: Endpoint): StreamId {
    // The caller tries addresses one by one with its own time limit; Node's own racing of addresses
    // would cut attempts short.
    const socket = connect({
      host: endpoint.address,
      port: endpoint.port,
      allowHalfOpen: true,
      noDelay: true,
      // A server connects to other servers only.
      keepAlive: this.#serverKeepAlive,
      autoSelectFamily: false,
    });
    const stream = this.#number(socket);
    socket.once('connect', () => {
      if (!stream.isDropped) this.#started.connected(stream.id);
    });
    return stream.id;
  }

  resolve(host: string): Promise<string[]> {
    return this.#resolver.resolve(host);
  }

  send(batch: SendBatch): void {
    for (let index = 0; index < batch.count; index++) {
      const stream = this.#streams.get(batch.streams[index]!);
      batch.kept[index] = false;
      if (stream === undefined || stream.isDropped || !stream.socket.writable) continue;
      const whole = batch.buffers[index]!;
      const start = batch.starts[index]!;
      const end = batch.ends[index]!;
      if (start === end) continue;
      stream.socket.write(start === 0 && end === whole.length ? whole : whole.subarray(start, end), stream.written);
      // Nothing is left in the process when the system accepted all of it at once, which is the
      // common case.
      if (stream.socket.writableLength > 0) {
        stream.isWritePending = true;
        batch.kept[index] = true;
      }
    }
  }

  end(stream: StreamId): void {
    this.#streams.get(stream)?.socket.end();
  }

  reset(stream: StreamId): void {
    const found = this.#streams.get(stream);
    if (found === undefined || found.isDropped) return;
    found.isDropped = true;
    const { socket } = found;
    // Node would postpone the reset of a socket that is still connecting until it is connected.
    // While the system is asked to send the end of a stream it refuses a reset, and then Node would
    // neither close the socket nor report it: the descriptor would be lost.
    if (socket.connecting || (socket.writableEnded && socket.writableLength === 0)) socket.destroy();
    else socket.resetAndDestroy();
  }

  pause(stream: StreamId): void {
    this.#streams.get(stream)?.socket.pause();
  }

  resume(stream: StreamId): void {
    this.#streams.get(stream)?.socket.resume();
  }

  get #started(): NetworkSink {
    if (this.#sink === undefined) throw new Error('the network was used before it was started');
    return this.#sink;
  }

  #accept(socket: Socket, listener: Listener): void {
    const { remoteAddress, remotePort } = socket;
    // The connection was closed before this call.
    if (remoteAddress === undefined || remotePort === undefined) {
      socket.on('error', () => undefined);
      socket.destroy();
      return;
    }
    const stream = this.#number(socket);
    this.#started.accepted(stream.id, listener, { address: plainAddress(remoteAddress), port: remotePort });
  }

  #number(plain: Socket): Stream {
    const socket = plain as NumberedSocket;
    const stream = this.#streams.add((id) => this.#newStream(id, socket));
    socket[streamKey] = stream;
    // `this` of a listener is the socket, so all sockets share the listeners.
    socket.on('data', this.#onData);
    socket.on('end', this.#onEnd);
    socket.on('error', onError);
    socket.on('close', this.#onClose);
    return stream;
  }

  #newStream(id: StreamId, socket: NumberedSocket): Stream {
    const stream: Stream = {
      id,
      socket,
      written: () => this.#onWritten(stream),
      isWritePending: false,
      isDropped: false,
      error: undefined,
    };
    return stream;
  }

  readonly #onData = ((network: NetNetwork) =>
    function (this: Socket, bytes: Buffer): void {
      network.#batch.add((this as NumberedSocket)[streamKey].id, bytes);
      network.#schedule();
    })(this);

  readonly #onEnd = ((network: NetNetwork) =>
    function (this: Socket): void {
      network.#endings.push({ stream: (this as NumberedSocket)[streamKey], closed: false });
      network.#schedule();
    })(this);

  readonly #onClose = ((network: NetNetwork) =>
    function (this: Socket): void {
      network.#endings.push({ stream: (this as NumberedSocket)[streamKey], closed: true });
      network.#schedule();
    })(this);

  #onWritten(stream: Stream): void {
    if (!stream.isWritePending || stream.socket.writableLength > 0) return;
    stream.isWritePending = false;
    if (!stream.isDropped && !stream.socket.destroyed) this.#started.drained(stream.id);
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(this.#deliver);
  }

  #deliverTurn(): void {
    this.#scheduled = false;
    const sink = this.#started;
    const batch = this.#batch;
    this.#batch = this.#spare;
    this.#spare = batch;
    const endings = this.#endings;
    this.#endings = [];
    // A stream may have been reset after its bytes arrived.
    batch.keepOnly(this.#isLive);
    try {
      if (batch.count > 0) sink.received(batch);
    } finally {
      batch.clear();
    }
    for (const { stream, closed } of endings) {
      if (closed) {
        sink.closed(stream.id, stream.isDropped ? undefined : stream.error);
        // Only now may the number be used again.
        this.#streams.delete(stream.id);
      } else if (!stream.isDropped) {
        sink.ended(stream.id);
      }
    }
  }

  #warnOfAccept(error: NodeJS.ErrnoException, endpoint: Endpoint): void {
    const now = performance.now();
    if (now - this.#lastAcceptWarning < acceptWarningEveryMs) return;
    this.#lastAcceptWarning = now;
    const remedy = error.code === 'EMFILE' || error.code === 'ENFILE' ? ' Raise the limit of open files (ulimit -n, LimitNOFILE).' : '';
    this.#logger.warn(`connections to ${formatEndpoint(endpoint)} cannot be accepted (${error.code}).${remedy}`, {
      event: 'cnxn.accept-failed',
      address: formatEndpoint(endpoint),
      reason: error.code,
    });
  }
}

function onError(this: Socket, error: NodeJS.ErrnoException): void {
  (this as NumberedSocket)[streamKey].error ??= error.code ?? error.message;
}

function endpointOf(server: Server): Endpoint {
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('a TCP server listens without an address');
  return { address: plainAddress(bound.address), port: bound.port };
}

/**
 * Resolves once the port is free again. Node's own callback would also wait for the accepted
 * connections to end.
 */
function closeListener(server: Server): Promise<void> {
  server.close();
  return new Promise((resolve) => setImmediate(resolve));
}

/** `::ffff:10.0.0.1`, an IPv4 peer on a socket that takes both families, is written `10.0.0.1`. */
export function plainAddress(address: string): string {
  return /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(address) ? address.slice('::ffff:'.length) : address;
}

/** `10.0.0.1:2181`, `[::1]:2181` */
export function formatEndpoint({ address, port }: Endpoint): string {
  return isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`;
}

function listenError(error: NodeJS.ErrnoException, { address, port }: ListenOptions): ListenError {
  const owner = error.code === 'EADDRINUSE' ? portOwner(port) : undefined;
  const code = error.code ?? error.message;
  return new ListenError(code, listenSentence(code, address, port, owner), { cause: error });
}

export function listenSentence(code: string, address: string | undefined, port: number, owner: PortOwner | undefined): string {
  const where = address === undefined ? `port ${port}` : `port ${port} of ${address}`;
  switch (code) {
    case 'EADDRINUSE': {
      const by = owner === undefined ? 'by another process' : `by process ${owner.pid} (${owner.program})`;
      return `${where} is already in use ${by}. Stop that process or choose another port.`;
    }
    case 'EACCES':
      return `${where} may not be used by this user. Choose a port above 1023 or grant the right to bind it.`;
    case 'EADDRNOTAVAIL':
      return `${where} cannot be used because this machine has no such address. Correct the address to listen on, or leave it out to listen on all.`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `${where} cannot be used because the name does not resolve (${code}). Correct the address to listen on, or leave it out to listen on all.`;
    default:
      return `cannot listen on ${where} (${code}).`;
  }
}
