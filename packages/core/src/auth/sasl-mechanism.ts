/**
 * The server's side of SASL: a client proves an identity in an exchange of tokens, which it sends in
 * requests of opcode 102. The identity has the scheme `sasl`; sasl-provider.ts matches it with ACLs.
 */
import type { CnxnContext } from '../cnxn-context.ts';
import type { AuthOutcome, AuthTicket } from './auth-provider.ts';

/** The exchange of one connection. It ends with a result that is neither `continue` nor `later`. */
export interface SaslExchange {
  /** Takes the next token of the client; the first one may be empty. */
  next(token: Buffer, ticket: AuthTicket): AuthOutcome;
}

export interface SaslMechanism {
  /** Its registered name: `DIGEST-MD5`. */
  readonly name: string;
  start(context: CnxnContext): SaslExchange;
}
