/**
 * Authentication schemes, behind one interface. A provider judges credentials when a client sends them, says which ids may stand in
 * an ACL, and matches ids with ACL entries when a znode is touched.
 */
import type { CnxnContext } from '../cnxn/cnxn-context.ts';
import type { Identity } from './identity.ts';

/** What came of a client's credentials. */
export type AuthOutcome =
  | { readonly kind: 'done'; readonly identities: readonly Identity[] }
  | { readonly kind: 'refused' }
  /** The exchange goes on: `reply` is the next token for the client. */
  | { readonly kind: 'continue'; readonly reply: Buffer }
  /** Someone outside the core must be asked. The connection takes no further requests until `Standalone.authenticated` is called. */
  | { readonly kind: 'later' };

export interface AuthProvider {
  readonly scheme: string;
  /**
   * Whether an identity of this scheme proves who the client is. Only such identities stand in for the scheme `auth` of a requested
   * ACL; an address does not.
   */
  readonly provesIdentity: boolean;
  /** `credentials` are null when the client sent none. */
  authenticate(credentials: Buffer | null, context: CnxnContext): AuthOutcome;
  /** Whether `id` may stand in an ACL. */
  isValidId(id: string): boolean;
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
