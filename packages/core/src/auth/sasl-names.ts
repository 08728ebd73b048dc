import type { Identity } from './identity.ts';
import { superIdentity } from './identity.ts';
import { type AuthToLocal, parseKerberosName } from './kerberos-name.ts';

export interface SaslNameOptions {
  /** zookeeper.security.auth_to_local */
  readonly rules: AuthToLocal;
  /** zookeeper.kerberos.removeHostFromPrincipal */
  readonly removesHost: boolean;
  /** zookeeper.kerberos.removeRealmFromPrincipal */
  readonly removesRealm: boolean;
  /** The ids in zookeeper.superUser and zookeeper.superUser.*: such clients are super as well. */
  readonly superUsers: ReadonlySet<string>;
}

/** Which identities a client has whose name a SASL mechanism has proved. */
export class SaslNames {
  readonly #options: SaslNameOptions;

  constructor(options: SaslNameOptions) {
    this.#options = options;
  }

  /**
   * A name to which no rule applies stays as it is. ZooKeeper takes the name that the client asks
   * for instead, which is the same with its own clients, and with others may be any name.
   */
  identitiesOf(provedName: string): readonly Identity[] {
    const id = this.#idOf(provedName);
    const identity = { scheme: 'sasl', id };
    return this.#options.superUsers.has(id) ? [identity, superIdentity] : [identity];
  }

  #idOf(provedName: string): string {
    const { rules, removesHost, removesRealm } = this.#options;
    const name = parseKerberosName(provedName);
    const short = name === undefined ? undefined : rules.shortName(name);
    if (name === undefined || short === undefined) return provedName;
    const host = removesHost || name.host === undefined ? '' : `/${name.host}`;
    const realm = removesRealm || name.realm === undefined ? '' : `@${name.realm}`;
    return `${short}${host}${realm}`;
  }
}
