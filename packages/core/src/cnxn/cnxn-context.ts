/** What is known of a connection from the moment it opens; identities come on top of it as the client authenticates. */
export interface CnxnContext {
  /** The peer's address as text, IPv4 written plainly even when it arrived mapped into IPv6. This is the `ip` identity. */
  readonly remoteAddress: string;
  readonly remotePort: number;
  /** The port of ours it arrived at. */
  readonly localPort: number;
  /** Whether the bytes travel inside TLS. */
  readonly secure: boolean;
  /** The peer's certificate, DER encoded, when TLS asked for one and it was verified. */
  readonly peerCertificate: Buffer | undefined;
}
