/**
 * SASL: proves an identity in an exchange of tokens, before everything else on a connection.
 *
 * ZooKeeper carries the tokens in requests of type 102. The session machine sends and receives
 * them, and a mechanism defines their content. Creating a token may take time (GSSAPI asks a key
 * distribution centre), so it may return a promise.
 */
import type { ServerAddress } from '../transport.ts';

/** One proof, on one connection. */
export interface SaslExchange {
  /** The first token. Empty if the server speaks first: then it only asks for a challenge. */
  firstToken(): Uint8Array | Promise<Uint8Array>;
  /**
   * Processes the server's token; null if the server accepted without a token. Returns the answer,
   * or undefined when both sides have proved their identity. Throws if the server cannot be
   * trusted: the message is a clause with the reason.
   */
  nextToken(challenge: Uint8Array | null): Uint8Array | undefined | Promise<Uint8Array | undefined>;
}

export interface SaslMechanism {
  /** The name in SASL: `DIGEST-MD5`. */
  readonly name: string;
  startExchange(server: ServerAddress): SaslExchange;
}
