/** One proof of who a connection belongs to. A connection collects them; they are never taken away while it lives. */
export interface Identity {
  readonly scheme: string;
  /** What an ACL entry of that scheme is matched with: an address, `user:base64`, a distinguished name. */
  readonly id: string;
}

/** Passes every ACL check. Given by a provider, never valid in an ACL. */
export const superIdentity: Identity = { scheme: 'super', id: '' };
