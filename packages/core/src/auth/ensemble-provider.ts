/**
 * The scheme `ensemble`: a client names the ensemble that it means to talk to, so that one whose list
 * of servers is outdated does not write to another ensemble. It gives no identity, and no ACL can
 * name it.
 */
import type { Observer } from '../observer.ts';
import type { AuthProvider } from './auth-provider.ts';
import { shownText } from './shown-text.ts';

/** @param names zookeeper.ensembleAuthName; undefined: every name is right. */
export function ensembleProvider(names: readonly string[] | undefined, observer: Pick<Observer, 'ensembleNamed'>): AuthProvider {
  return {
    scheme: 'ensemble',
    provesIdentity: false,
    authenticate(credentials) {
      const name = credentials?.toString('utf8') ?? '';
      const verdict = name === '' || names === undefined ? 'not compared' : names.includes(name) ? 'right' : 'wrong';
      observer.ensembleNamed(verdict);
      if (verdict !== 'wrong') return { kind: 'done', identities: [] };
      return { kind: 'elsewhere', reason: `it means the ensemble ${shownText(name)}` };
    },
    isValidId: () => false,
    matches: () => false,
    userName: () => '',
  };
}
