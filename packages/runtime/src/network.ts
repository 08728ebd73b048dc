/**
 * The network as the runtime sees it: byte streams, numbered by small integers, in batches. One
 * call delivers everything that arrived in a turn of the loop, and one call takes everything the
 * turn produced, so that an adapter may use one system call for many connections. Framing,
 * dialling, buffering and time-outs are all above this interface, in `ports/`.
 */

/** A stream. A number is used again only after `closed` has been delivered for it. */
export type StreamId = number;

export interface Endpoint {
  /** Numeric address; IPv4 without the prefix of an address mapped into IPv6. */
  readonly address: string;
  readonly port: number;
}

/** The events of a network. All calls come from the loop, never from inside a call on `Network`. */
export interface NetworkSink {
  /** A peer has connected to `listener`. Nothing is read from it before the call returns. */
  accepted(stream: StreamId, listener: Listener, remote: Endpoint): void;
  /** A stream opened with `connect` is connected. */
  connected(stream: StreamId): void;
  /**
   * Everything that arrived in this turn, in order of arrival. The buffers belong to the receiver.
   */
  received(batch: ReceivedBatch): void;
  /** All output of the stream has reached the operating system. */
  drained(stream: StreamId): void;
  /** The peer has ended its side of the stream. */
  ended(stream: StreamId): void;
  /**
   * The stream is closed; `error` is the system's code (`ECONNRESET`, `ECONNREFUSED` ...) unless it
   * ended well.
   */
  closed(stream: StreamId, error: string | undefined): void;
}

/**
 * A list of (stream, bytes), reused from turn to turn: valid only during the call, except for the
 * buffers.
 */
export interface ReceivedBatch {
  readonly count: number;
  readonly streams: ArrayLike<StreamId>;
  readonly buffers: ArrayLike<Buffer>;
  readonly starts: ArrayLike<number>;
  readonly ends: ArrayLike<number>;
}

/**
 * Output of a turn. The adapter sets `kept` for each buffer it still needs after the call; the
 * others may be reused at once.
 */
export interface SendBatch {
  readonly count: number;
  readonly streams: ArrayLike<StreamId>;
  readonly buffers: ArrayLike<Buffer>;
  readonly starts: ArrayLike<number>;
  readonly ends: ArrayLike<number>;
  readonly kept: boolean[];
}

export interface Listener {
  /** With the actual port when port 0 was requested; `::` or `0.0.0.0` stands for every address. */
  readonly endpoint: Endpoint;
  close(): Promise<void>;
}

export interface ListenOptions {
  /** undefined: every address, IPv6 included. */
  readonly address: string | undefined;
  /** 0: any free port. */
  readonly port: number;
  /** Connections that wait to be accepted; undefined: the system's default. */
  readonly backlog: number | undefined;
  /** Other servers connect here, not clients. */
  readonly forServers?: boolean;
}

/** An address cannot be bound. The message is a sentence for the operator. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
  /** The system's code: `EADDRINUSE`, `EADDRNOTAVAIL` ... */
  readonly code: string;

  constructor(code: string, sentence: string, options?: ErrorOptions) {
    super(sentence, options);
    this.code = code;
  }
}

export interface Network {
  /** Called once, before all other methods. */
  start(sink: NetworkSink): void;
  /** Rejects with a `ListenError` that names the port, and its owner if known. */
  listen(options: ListenOptions): Promise<Listener>;
  /** Connects to a numeric address; `connected` or `closed` follows. */
  connect(endpoint: Endpoint): StreamId;
  /** Numeric addresses of a name, resolved anew. */
  resolve(host: string): Promise<string[]>;
  /** Sends all output of a turn. */
  send(batch: SendBatch): void;
  /** Sends the waiting output, then ends this side of the stream. */
  end(stream: StreamId): void;
  /** Closes the stream at once, without its waiting output. `closed` follows. */
  reset(stream: StreamId): void;
  /** Stops and resumes reading. */
  pause(stream: StreamId): void;
  resume(stream: StreamId): void;
}
