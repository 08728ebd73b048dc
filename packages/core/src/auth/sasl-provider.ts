/**
 * The scheme `sasl` in ACLs. Its identities come from a SASL exchange (sasl-mechanism.ts), never
 * from an auth request.
 */
import type { AuthProvider } from './auth-provider.ts';
import { parseKerberosName } from './kerberos-name.ts';

const superUser = 'super';

/**
 * @param anyUsersId zookeeper.letAnySaslUserDoX: an ACL entry with this id admits every client that
 * has a SASL identity; undefined for none.
 */
export function saslProvider(anyUsersId: string | undefined): AuthProvider {
  return {
    scheme: 'sasl',
    provesIdentity: true,
    authenticate: () => ({ kind: 'refused', reason: 'SASL sends its tokens in requests of its own' }),
    isValidId: (id) => parseKerberosName(id) !== undefined,
    // The id `super` matches every entry, as in ZooKeeper.
    matches: (identity, aclId) => identity === aclId || identity === superUser || aclId === anyUsersId,
    keys: {
      aclKey: (aclId) => (aclId === anyUsersId ? 'of any user' : 'of one user'),
      identityKeys: (identity) => (identity === superUser ? ['of any user', 'of one user'] : ['of any user']),
    },
    userName: (identity) => identity,
  };
}
