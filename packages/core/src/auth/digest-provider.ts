/**
 * The scheme `digest`: a client shows `user:password` in the clear, and is known from then on as `user:base64(hash(user:password))`.
 * Whoever shows the super user's password is super as well.
 */
import { digestId } from '@tskeeper/protocol';
import { equality } from '../tree/acl-index.ts';
import type { AuthProvider } from './auth-provider.ts';
import { superIdentity } from './identity.ts';

/**
 * @param algorithm by Java's name, as `SHA1`, which is ZooKeeper's default, or `SHA-256`; all servers of an ensemble must agree.
 * @param superDigest the identity that is super, `super:base64`; undefined when there is none.
 */
export function digestProvider(algorithm: string, superDigest: string | undefined): AuthProvider {
  return {
    scheme: 'digest',
    provesIdentity: true,
    authenticate(credentials) {
      if (credentials === null) return { kind: 'refused' };
      const id = digestId(credentials.toString('utf8'), algorithm);
      const identity = { scheme: 'digest', id };
      return { kind: 'done', identities: id === superDigest ? [identity, superIdentity] : [identity] };
    },
    isValidId: hasTwoParts,
    keys: equality,
    matches: (identity, aclId) => identity === aclId,
    userName: (identity) => identity.slice(0, Math.max(0, identity.indexOf(':'))),
  };
}

/** `user:hash`. Colons at the end do not count, since Java's split drops what is empty there. */
function hasTwoParts(id: string): boolean {
  let end = id.length;
  while (end > 0 && id[end - 1] === ':') end--;
  return id.slice(0, end).split(':').length === 2;
}
