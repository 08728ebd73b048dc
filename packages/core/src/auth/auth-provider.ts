/**
 * Authentication schemes, behind one interface. A provider judges credentials when a client sends them, says which ids may stand in
 * an ACL, and matches ids with ACL entries when a znode is touched.
 */
import type { CnxnContext } from '../cnxn/cnxn-context.ts';
import type { AclKeys } from '../tree/acl-index.ts';
import type { Identity } from './identity.ts';

/** Names one authentication that is being decided elsewhere. Never used twice, so an answer that comes late cannot meet another client. */
export type AuthTicket = number;

/** What came of a client's credentials, or of one token of an exchange. */
export type AuthVerdict =
  /** `reply` is the last token of an exchange (opcode sasl); a plain auth request is answered without one. */
  | { readonly kind: 'done'; readonly identities: readonly Identity[]; readonly reply?: Buffer }
  | { readonly kind: 'refused' }
  /** The exchange goes on: `reply` is the next token for the client. */
  | { readonly kind: 'continue'; readonly reply: Buffer };

export type AuthOutcome =
  | AuthVerdict
  /**
   * Someone outside the core must be asked. The connection takes no further requests until `Server.authenticated` is called with the
   * ticket, which must happen once, whatever comes of it.
   */
  | { readonly kind: 'later' };

export interface AuthProvider {
  /** What an auth request names; `sasl` hears the tokens of sasl requests instead. */
  readonly scheme: string;
  /**
   * Whether an identity of this scheme proves who the client is. Only such identities stand in for the scheme `auth` of a requested
   * ACL; an address does not.
   */
  readonly provesIdentity: boolean;
  /** `credentials` are null when the client sent none. */
  authenticate(credentials: Buffer | null, context: CnxnContext, ticket: AuthTicket): AuthOutcome;
  /** Whether `id` may stand in an ACL. */
  isValidId(id: string): boolean;
  /** How the entries that match an identity are found in a long ACL; it must agree with `matches`. Without it they are compared one by one. */
  readonly keys?: AclKeys;
  /** Whether a connection's identity satisfies an ACL entry, both of this scheme. */
  matches(identity: string, aclId: string): boolean;
  /** The user as whoAmI and the audit log show it. */
  userName(identity: string): string;
}

/** The providers of a server, by scheme. `world` and `super` are no providers: the permission check knows them. */
export class AuthRegistry {
  readonly #providers = new Map<string, AuthProvider>();

  constructor(providers: readonly AuthProvider[]) {
    for (const provider of providers) this.#providers.set(provider.scheme, provider);
  }

  get(scheme: string): AuthProvider | undefined {
    return this.#providers.get(scheme);
  }

  userName(identity: Identity): string {
    return this.get(identity.scheme)?.userName(identity.id) ?? identity.id;
  }
}
