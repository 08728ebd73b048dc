/**
 * The scheme `digest`: a client sends `user:password` in clear text, and gets the identity
 * `user:base64(hash(user:password))`. A client that sends the super user's password is super as
 * well.
 */
import { digestId } from '@tskeeper/protocol';
import { equalityKeys } from '../tree/acl-index.ts';
import type { AuthProvider } from './auth-provider.ts';
import { superIdentity } from './identity.ts';

/**
 * @param algorithm by Java's name: `SHA1`, ZooKeeper's default, or `SHA-256`; all servers of an
 * ensemble must use the same.
 * @param superDigest the identity that is super, `super:base64`; undefined for none.
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
    keys: equalityKeys,
    matches: (identity, aclId) => identity === aclId,
    userName: (identity) => identity.slice(0, Math.max(0, identity.indexOf(':'))),
  };
}

/** `user:hash`. Trailing colons do not count, since Java's split drops trailing empty parts. */
function hasTwoParts(id: string): boolean {
  let end = id.length;
  while (end > 0 && id[end - 1] === ':') end--;
  return id.slice(0, end).split(':').length === 2;
}
