/** Decides whether an ACL lets a connection do something (client-protocol: "Check of a required permission"). */
import type { Acl } from '@tskeeper/protocol';
import type { AuthRegistry } from './auth-provider.ts';
import type { Identity } from './identity.ts';

/**
 * One entry must share a permission bit with `perms` and match. An empty list lets everyone in; so does a `super` identity.
 */
export function isPermitted(acl: readonly Acl[], perms: number, identities: readonly Identity[], registry: AuthRegistry): boolean {
  if (acl.length === 0) return true;
  for (const entry of acl) {
    if ((entry.perms & perms) === 0) continue;
    const { scheme, id } = entry.id;
    if (scheme === 'world' && id === 'anyone') return true;
    const provider = scheme === null ? undefined : registry.get(scheme);
    if (provider === undefined) continue;
    for (const identity of identities) {
      if (identity.scheme === scheme && provider.matches(identity.id, id ?? '')) return true;
    }
  }
  return identities.some((identity) => identity.scheme === 'super');
}
