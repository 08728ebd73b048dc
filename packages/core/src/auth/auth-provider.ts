/**
 * The interface of authentication schemes. A provider validates the credentials of clients, decides
 * which ids are valid in an ACL, and matches ids with ACL entries when a znode is accessed.
 */
import type { CnxnContext } from '../cnxn-context.ts';
import type { AclKeys } from '../tree/acl-index.ts';
import type { Identity } from './identity.ts';

/**
 * Stands for one authentication that may be decided elsewhere. It is known by its identity as an
 * object, so a late result cannot reach another client.
 */
export interface AuthTicket {
  readonly scheme: string;
}

/** The result of a client's credentials, or of one token of an exchange. */
export type AuthResult =
  /**
   * `reply` is the last token of an exchange (opcode sasl); a plain auth request is answered
   * without one.
   */
  | { readonly kind: 'done'; readonly identities: readonly Identity[]; readonly reply?: Buffer }
  | {
      readonly kind: 'refused';
      /** For the log, a clause; the client does not see it. */
      readonly reason?: string;
    }
  /** The client shall connect to another server: its connection is closed without an answer. */
  | { readonly kind: 'elsewhere'; readonly reason: string }
  /** The exchange continues: `reply` is the next token for the client. */
  | { readonly kind: 'continue'; readonly reply: Buffer };

export type AuthOutcome =
  | AuthResult
  /**
   * The result comes from outside the core. The connection accepts no further requests until
   * `Server.authenticated` is called with the ticket, whatever the result.
   */
  | { readonly kind: 'later' };

export interface AuthProvider {
  /** The scheme in auth requests and in ACLs. */
  readonly scheme: string;
  /**
   * Whether an identity of this scheme proves who the client is. Only such identities replace the
   * scheme `auth` in a requested ACL; an address does not.
   */
  readonly provesIdentity: boolean;
  /** `credentials` is null if the client sent none. */
  authenticate(credentials: Buffer | null, context: CnxnContext, ticket: AuthTicket): AuthOutcome;
  /** Whether `id` is valid in an ACL. */
  isValidId(id: string): boolean;
  /**
   * How to find the entries that match an identity in a long ACL; it must agree with `matches`.
   * Without it, entries are compared one by one.
   */
  readonly keys?: AclKeys;
  /** Whether a connection's identity satisfies an ACL entry, both of this scheme. */
  matches(identity: string, aclId: string): boolean;
  /** The user name for whoAmI and the audit log. */
  userName(identity: string): string;
}

/**
 * The providers of a server, by scheme. `world` and `super` have no provider: the permission check
 * handles them.
 */
export class AuthRegistry {
  readonly #providers = new Map<string, AuthProvider>();

  constructor(providers: readonly AuthProvider[]) {
    for (const provider of providers) this.#providers.set(provider.scheme, provider);
  }

  get(scheme: string): AuthProvider | undefined {
    return this.#providers.get(scheme);
  }

  /** Empty if the scheme has no provider. */
  userName(identity: Identity): string {
    return this.get(identity.scheme)?.userName(identity.id) ?? '';
  }
}
