/**
 * What is known of a connection when it opens; identities are added when the client authenticates.
 */
export interface CnxnContext {
  /**
   * The peer's address as text, in plain IPv4 form even if it arrived mapped into IPv6. This is the
   * `ip` identity.
   */
  readonly remoteAddress: string;
  readonly remotePort: number;
  /** The local port at which it arrived. */
  readonly localPort: number;
  /** Whether the connection uses TLS. */
  readonly secure: boolean;
  /** The peer's certificate, DER encoded, if TLS requested one and verified it. */
  readonly peerCertificate: Buffer | undefined;
}
