/**
 * One identity of a connection. A connection collects them; none is removed while it is open.
 */
export interface Identity {
  readonly scheme: string;
  /**
   * What an ACL entry of that scheme is matched with: an address, `user:base64`, a distinguished
   * name.
   */
  readonly id: string;
}

/** Passes every ACL check. Given by a provider, never valid in an ACL. */
export const superIdentity: Identity = { scheme: 'super', id: '' };
