/**
 * The interface between a client and the network. The default is TCP over node:net (src/node); TLS,
 * a tunnel or a simulated network are other transports.
 *
 * A transport knows nothing of ZooKeeper. It neither times out nor retries: the session does both.
 */

/** A server as the connect string or a look-up names it. */
export interface ServerAddress {
  /** A name, or a numeric address; IPv6 without brackets. */
  readonly host: string;
  /** 1 to 65535. */
  readonly port: number;
}

/** The address to connect to. */
export interface ResolvedAddress extends ServerAddress {
  /**
   * The server's name in the connect string, if `host` is one of the addresses of that name. Its
   * certificate must be valid for this name.
   */
  readonly name?: string | undefined;
}

/** One server of an SRV name (RFC 2782). */
export interface SrvRecord extends ServerAddress {
  /**
   * The client tries servers with a higher number after all servers with lower ones have failed.
   */
  readonly priority: number;
  /**
   * Among servers of one priority, the probability to be tried first is proportional to the weight.
   */
  readonly weight: number;
}

/**
 * The receiver of a connection's events. The transport calls it from the event loop, never during a
 * call to the transport.
 */
export interface TransportSink {
  /** The connection is open. */
  connected(): void;
  /** Bytes have arrived. The transport reuses the buffer after this call returns. */
  received(bytes: Buffer): void;
  /**
   * The peer has closed or broken the connection, or the attempt has failed. `error` is the
   * system's code (`ECONNREFUSED` ...) or a readable clause. This is the last call.
   */
  closed(error: string | undefined): void;
}

/** A connection, or an attempt at one. */
export interface TransportCnxn {
  /** Sends bytes. The transport owns them from here on. Only after `connected`. */
  send(bytes: Uint8Array): void;
  /** Sends what is queued, and closes the connection. The sink is no longer called. */
  end(): void;
  /** Closes the connection at once. The sink is no longer called. */
  destroy(): void;
}

/** Opens the connections of a client. */
export interface Transport {
  /**
   * Resolves a name to numeric addresses. The client calls it at each attempt to connect, and tries
   * all addresses in random order until one leads to a session. A transport without this method
   * receives names as they are.
   */
  resolve?(host: string): Promise<readonly string[]>;
  /**
   * Resolves an SRV name (`srv:...` in a connect string). A transport without this method does not
   * support SRV names.
   */
  resolveSrv?(name: string): Promise<readonly SrvRecord[]>;
  /** Starts to connect; then calls `connected` or `closed`. */
  connect(address: ResolvedAddress, sink: TransportSink): TransportCnxn;
}
