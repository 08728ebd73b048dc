/**
 * SASL: how an identity is proved in an exchange of tokens, ahead of everything else on a connection.
 *
 * ZooKeeper carries the tokens in requests of type 102. The session machine sends and takes them, and a mechanism says what is in them.
 * Making a token may take time (GSSAPI asks a key distribution centre), so it may come as a promise.
 */
import type { ServerAddress } from '../transport.ts';

/** One proof, on one connection. */
export interface SaslExchange {
  /** The first token. Empty where the server has the first word: then it only asks for a challenge. */
  begin(): Uint8Array | Promise<Uint8Array>;
  /**
   * Takes what the server has said; null when it said yes and nothing else. Returns what to say to that, or undefined when both sides have
   * proved what they had to. Throws when the server is not to be believed: the message is a clause that says why.
   */
  respond(challenge: Uint8Array | null): Uint8Array | undefined | Promise<Uint8Array | undefined>;
}

export interface SaslMechanism {
  /** As SASL knows it: `DIGEST-MD5`. */
  readonly name: string;
  exchange(server: ServerAddress): SaslExchange;
}
