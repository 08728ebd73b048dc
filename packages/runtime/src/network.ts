/**
 * The network, as the runtime sees it: byte streams, numbered by small integers, in batches. One call delivers everything that
 * arrived in a turn of the loop and one call takes everything the turn produced, so that an adapter may use one system call for
 * many connections. Framing, dialling, buffering and time-outs are all above this interface, in `ports/`.
 */

/** A stream. A number is used again only after `closed` has been delivered for it. */
export type StreamId = number;

export interface Endpoint {
  /** Numeric address; IPv4 written plainly even when it arrived mapped into IPv6. */
  readonly address: string;
  readonly port: number;
}

/** What the runtime hears. All calls come from the loop, never from inside a call on `Network`. */
export interface NetworkSink {
  /** A peer has connected to `listener`. It is not read from before the call has returned. */
  accepted(stream: StreamId, listener: Listener, remote: Endpoint): void;
  /** A stream asked for with `connect` is open. */
  connected(stream: StreamId): void;
  /** Everything that arrived in this turn, in order of arrival. The buffers belong to the receiver. */
  received(batch: ReceivedBatch): void;
  /** All output handed over for the stream has reached the operating system. */
  drained(stream: StreamId): void;
  /** The peer will send nothing more. */
  ended(stream: StreamId): void;
  /** The stream is gone; `error` says why when it did not end well, as the system's code (`ECONNRESET`, `ECONNREFUSED` ...). */
  closed(stream: StreamId, error: string | undefined): void;
}

/** A list of (stream, bytes), reused from turn to turn: valid during the call only, the buffers excepted. */
export interface ReceivedBatch {
  readonly count: number;
  readonly streams: ArrayLike<StreamId>;
  readonly buffers: ArrayLike<Buffer>;
  readonly starts: ArrayLike<number>;
  readonly ends: ArrayLike<number>;
}

/** Output of a turn. The adapter sets `kept` for each buffer it still needs after the call; the others may be used again at once. */
export interface SendBatch {
  readonly count: number;
  readonly streams: ArrayLike<StreamId>;
  readonly buffers: ArrayLike<Buffer>;
  readonly starts: ArrayLike<number>;
  readonly ends: ArrayLike<number>;
  readonly kept: boolean[];
}

export interface Listener {
  /** With the port that was really given when 0 was asked for. */
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
  /** It is other servers that connect here, not clients. */
  readonly forServers?: boolean;
}

export interface Network {
  /** Called once, before anything else. */
  start(sink: NetworkSink): void;
  /** Rejects with a sentence that names the port, and who has it when that can be known. */
  listen(options: ListenOptions): Promise<Listener>;
  /** Dials a numeric address; `connected` or `closed` follows. */
  connect(endpoint: Endpoint): StreamId;
  /** Numeric addresses of a name, looked up anew. */
  resolve(host: string): Promise<string[]>;
  /** Takes all output of a turn. */
  send(batch: SendBatch): void;
  /** Sends what is waiting, then says that nothing more will come. */
  end(stream: StreamId): void;
  /** Drops the stream at once, with what is waiting. `closed` follows. */
  reset(stream: StreamId): void;
  /** Stops or goes on reading. */
  pause(stream: StreamId): void;
  resume(stream: StreamId): void;
}
