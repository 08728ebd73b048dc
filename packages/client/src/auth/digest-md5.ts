/**
 * SASL DIGEST-MD5 (RFC 2831) as ZooKeeper's own client implements it: the client proves a password
 * with a hash over nonces of both sides, and the server must prove that it knows the password too.
 *
 * A server with a DigestLoginModule in its JAAS section offers this mechanism.
 */
import { clientPortService, digestMd5Proofs, parseDirectives, quoted } from '@tskeeper/protocol/internal';
import type { Random } from '../clock.ts';
import type { SaslExchange, SaslMechanism } from './sasl.ts';

/** An identity to prove by SASL DIGEST-MD5 (RFC 2831), as in ZooKeeper. */
export interface DigestMd5Options {
  readonly mechanism: 'DIGEST-MD5';
  /** As in the server's JAAS section: `user_<username>="<password>"`. */
  readonly username: string;
  /** Never sent. But the exchange allows guessing it offline, so use TLS. */
  readonly password: string;
}

type Directives = ReturnType<typeof parseDirectives>;

/** The first and only use of the server's nonce. */
const nonceCount = '00000001';
/** As ZooKeeper's client: matters only for protection layers, and there is none. */
const maxBuf = 65_536;
const cnonceBytes = 30;
const challengeName = "the server's challenge";

export class DigestMd5 implements SaslMechanism {
  readonly name = 'DIGEST-MD5';
  readonly #options: DigestMd5Options;
  readonly #random: Random;

  constructor(options: DigestMd5Options, random: Random) {
    this.#options = options;
    this.#random = random;
  }

  startExchange(): SaslExchange {
    /** The proof that the server must send; known after the response has been created. */
    let rspauth: string | undefined;
    return {
      firstToken: () => new Uint8Array(),
      nextToken: (challenge) => {
        if (rspauth !== undefined) {
          verifyServerProof(challenge, rspauth);
          return undefined;
        }
        if (challenge === null) throw new Error('the server is not configured for SASL: its JAAS section has no DigestLoginModule');
        const made = computeResponse(parseDirectives(challenge, challengeName), this.#options, this.#cnonce());
        ({ rspauth } = made);
        return Buffer.from(made.response, 'utf8');
      },
    };
  }

  #cnonce(): string {
    const bytes = Buffer.alloc(Math.ceil(cnonceBytes / 4) * 4);
    for (let at = 0; at < bytes.length; at += 4) bytes.writeUInt32BE(this.#random.uint32(), at);
    return bytes.toString('base64', 0, cnonceBytes);
  }
}

/**
 * A server that has rejected the client may still accept it (zookeeper.allowSaslFailedClients), and
 * then sends no proof.
 */
function verifyServerProof(challenge: Uint8Array | null, rspauth: string): void {
  const proof = challenge === null ? undefined : parseDirectives(challenge, challengeName).get('rspauth');
  if (proof === undefined) throw new Error('the server did not prove that it knows the password; it may have rejected this client');
  if (proof.length !== 1 || proof[0] !== rspauth) throw new Error('the server does not know the password: its proof is wrong');
}

function computeResponse(
  challenge: Directives,
  { username, password }: DigestMd5Options,
  cnonce: string,
): { readonly response: string; readonly rspauth: string } {
  const one = (name: string): string | undefined => {
    const values = challenge.get(name) ?? [];
    if (values.length > 1) throw new Error(`the server's challenge contains ${name} more than once`);
    return values[0];
  };
  const nonce = one('nonce');
  if (nonce === undefined) throw new Error("the server's challenge contains no nonce");
  const algorithm = one('algorithm');
  if (algorithm !== 'md5-sess')
    throw new Error(`the server requires the algorithm ${algorithm ?? '(none)'}; DIGEST-MD5 supports only md5-sess`);
  const offered = one('qop') ?? 'auth';
  if (!offered.split(',').some((qop) => qop.trim() === 'auth')) {
    throw new Error(`the server requires a protection layer (${offered}), which ZooKeeper's protocol does not support; use TLS instead`);
  }
  const isUtf8 = one('charset') === 'utf-8';
  // A server may offer several realms; ZooKeeper's offers one.
  const realm = challenge.get('realm')?.[0] ?? '';
  const { digestUri } = clientPortService;
  const terms = { username, realm, password, nonce, cnonce, nonceCount, authzid: username, digestUri, isUtf8 };
  const { response, rspauth } = digestMd5Proofs(terms);
  const directives = [
    ...(isUtf8 ? ['charset=utf-8'] : []),
    `username=${quoted(username)}`,
    `realm=${quoted(realm)}`,
    `nonce=${quoted(nonce)}`,
    `nc=${nonceCount}`,
    `cnonce=${quoted(cnonce)}`,
    `digest-uri=${quoted(digestUri)}`,
    `maxbuf=${maxBuf}`,
    `response=${response}`,
    'qop=auth',
    `authzid=${quoted(username)}`,
  ];
  return { response: directives.join(','), rspauth };
}
