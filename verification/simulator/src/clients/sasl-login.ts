import { clientPortService, digestMd5Proofs, parseDirectives, quoted } from '@tskeeper/protocol/internal';

/** A name and a password that a client proves by SASL DIGEST-MD5 on each connection. */
export interface SaslLogin {
  readonly username: string;
  readonly password: string;
}

const nonceCount = '00000001';
const cnonce = 'cnonce';

/** The answer of a client to the server's challenge; undefined if the token is not one. */
export function answerTo(token: Uint8Array, { username, password }: SaslLogin): Buffer | undefined {
  const nonce = parseDirectives(token, 'the challenge').get('nonce')?.[0];
  if (nonce === undefined) return undefined;
  const { realm, digestUri } = clientPortService;
  const terms = { username, realm, password, nonce, cnonce, nonceCount, authzid: undefined, digestUri, isUtf8: true };
  const { response } = digestMd5Proofs(terms);
  const names = [`username=${quoted(username)}`, `realm=${quoted(realm)}`, `nonce=${quoted(nonce)}`, `cnonce=${quoted(cnonce)}`];
  const others = [`nc=${nonceCount}`, 'qop=auth', 'charset=utf-8', `digest-uri=${quoted(digestUri)}`, `response=${response}`];
  return Buffer.from([...names, ...others].join(','));
}
