/** Decides whether an ACL lets a connection do something (client-protocol: "Check of a required permission"). */
import type { Acl } from '@tskeeper/protocol';
import type { AuthProvider, AuthRegistry } from './auth-provider.ts';
import type { Identities } from './identities.ts';

/**
 * One entry must share a permission bit with `perms` and match. An empty list lets everyone in; so does a `super` identity.
 */
export function isPermitted(acl: readonly Acl[], perms: number, identities: Identities, registry: AuthRegistry): boolean {
  if (acl.length === 0) return true;
  for (const entry of acl) {
    if ((entry.perms & perms) === 0) continue;
    const { scheme, id } = entry.id;
    if (scheme === 'world' && id === 'anyone') return true;
    const provider = scheme === null ? undefined : registry.get(scheme);
    if (provider === undefined) continue;
    if (provider.matchesEqual === true ? identities.has(scheme!, id ?? '') : isMatched(provider, id ?? '', identities)) return true;
  }
  return identities.isSuper;
}

function isMatched(provider: AuthProvider, aclId: string, identities: Identities): boolean {
  for (let i = 0; i < identities.count; i++) {
    const { scheme, id } = identities.at(i);
    if (scheme === provider.scheme && provider.matches(id, aclId)) return true;
  }
  return false;
}
