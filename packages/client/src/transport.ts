/**
 * What carries a client's bytes. The default is TCP over node:net (src/node); TLS, a tunnel or a simulated wire are other transports.
 *
 * A transport knows nothing of ZooKeeper. It neither times out nor tries again: the session does both.
 */

/** A server as the connect string or a look-up names it. */
export interface ServerAddress {
  /** A name, or a numeric address; IPv6 without brackets. */
  readonly host: string;
  /** 1 .. 65535. */
  readonly port: number;
}

/** A server as it is dialled. */
export interface DialledAddress extends ServerAddress {
  /** What the connect string calls the server, where `host` is one of the addresses of that name: whom its certificate has to be for. */
  readonly name?: string | undefined;
}

/** One server of an SRV name, as RFC 2782 has it. */
export interface ServiceRecord extends ServerAddress {
  /** Servers of a higher number are tried when those of lower ones have been tried in vain. */
  readonly priority: number;
  /** Among servers of one priority, the chance to be tried first is in proportion to it. */
  readonly weight: number;
}

/** Who listens to a connection. Each call comes from the loop, never from inside a call on the transport. */
export interface TransportSink {
  /** The connection is open. */
  connected(): void;
  /** Bytes have arrived. They are the transport's again when the call returns. */
  received(bytes: Buffer): void;
  /**
   * The peer has ended or broken the connection, or it could not be made; `error` is the system's word for it (`ECONNREFUSED` ...), or a
   * clause for people. The last call.
   */
  closed(error: string | undefined): void;
}

/** A connection, or an attempt at one. */
export interface TransportCnxn {
  /** Takes bytes, which belong to the transport from here on. Only after `connected`. */
  send(bytes: Uint8Array): void;
  /** Lets what was sent leave, and ends the connection. The sink is not called any more. */
  end(): void;
  /** Drops the connection at once. The sink is not called any more. */
  destroy(): void;
}

/** What a client dials with. */
export interface Transport {
  /**
   * Numeric addresses of a name, looked up anew at each attempt to connect; all of them are dialled, one after the other, in an order by
   * chance, until one leads to a session. A transport without it is given names as they are.
   */
  resolve?(host: string): Promise<readonly string[]>;
  /** The servers of an SRV name (`srv:...` in a connect string), which a transport without it does not take. */
  resolveService?(name: string): Promise<readonly ServiceRecord[]>;
  /** Begins to connect; `connected` or `closed` follows. */
  connect(address: DialledAddress, sink: TransportSink): TransportCnxn;
}
