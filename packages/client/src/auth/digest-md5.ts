/**
 * SASL DIGEST-MD5 (RFC 2831) as ZooKeeper's own client implements it: the client proves a password
 * with a hash over nonces of both sides, and the server must prove that it knows the password too.
 *
 * A server with a DigestLoginModule in its JAAS section offers this mechanism. RFC 6331 declares it
 * obsolete, and MD5 may be disabled in a Node that runs in FIPS mode; on an untrusted network use
 * it only inside TLS.
 */
import { createHash } from 'node:crypto';
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

/** The digest-uri of ZooKeeper's client and server, whatever the host. */
const digestUri = 'zookeeper/zk-sasl-md5';
/** The first and only use of the server's nonce. */
const nonceCount = '00000001';
/** As ZooKeeper's client: matters only for protection layers, and there is none. */
const maxBuf = 65_536;
const cnonceBytes = 30;

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
        const made = computeResponse(parseDirectives(challenge), this.#options, this.#cnonce());
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
  const proof = challenge === null ? undefined : parseDirectives(challenge).get('rspauth');
  if (proof === undefined) throw new Error('the server did not prove that it knows the password; it may have rejected this client');
  if (proof.length !== 1 || proof[0] !== rspauth) throw new Error('the server does not know the password: its proof is wrong');
}

function computeResponse(
  challenge: ReadonlyMap<string, readonly string[]>,
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
  const latin1 = (text: string, what: string): Buffer => inLatin1(text) ?? inUtf8(text, what, isUtf8);

  const secret = md5(Buffer.concat([latin1(username, 'username'), colon, latin1(realm, 'realm'), colon, latin1(password, 'password')]));
  const a1 = hex(md5(Buffer.concat([secret, Buffer.from(`:${nonce}:${cnonce}:${username}`, isUtf8 ? 'utf8' : 'latin1')])));
  const proofFor = (a2: string): string =>
    hex(md5(Buffer.from(`${a1}:${nonce}:${nonceCount}:${cnonce}:auth:${hex(md5(Buffer.from(a2)))}`)));

  const directives = [
    ...(isUtf8 ? ['charset=utf-8'] : []),
    `username=${quoted(username)}`,
    `realm=${quoted(realm)}`,
    `nonce=${quoted(nonce)}`,
    `nc=${nonceCount}`,
    `cnonce=${quoted(cnonce)}`,
    `digest-uri=${quoted(digestUri)}`,
    `maxbuf=${maxBuf}`,
    `response=${proofFor(`AUTHENTICATE:${digestUri}`)}`,
    'qop=auth',
    `authzid=${quoted(username)}`,
  ];
  return { response: directives.join(','), rspauth: proofFor(`:${digestUri}`) };
}

const colon = Buffer.from(':');

/**
 * RFC 2831 hashes names and passwords in ISO 8859-1 if that contains all their characters, whatever
 * the charset of the exchange.
 */
function inLatin1(text: string): Buffer | undefined {
  // oxlint-disable-next-line no-control-regex -- all of ISO 8859-1
  return /^[\u0000-\u00ff]*$/.test(text) ? Buffer.from(text, 'latin1') : undefined;
}

function inUtf8(text: string, what: string, isUtf8: boolean): Buffer {
  if (!isUtf8) throw new Error(`the server supports only ISO 8859-1, and the ${what} contains other characters`);
  return Buffer.from(text, 'utf8');
}

function md5(bytes: Buffer): Buffer {
  let hash;
  try {
    hash = createHash('md5');
  } catch (cause) {
    throw new Error('MD5 is disabled in this Node, as in FIPS mode, and DIGEST-MD5 requires it', { cause });
  }
  return hash.update(bytes).digest();
}

function hex(bytes: Buffer): string {
  return bytes.toString('hex');
}

function quoted(text: string): string {
  return `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}

/**
 * `name=value,name="value"`: a quoted value may contain anything, with a backslash before quotes
 * and backslashes.
 */
function parseDirectives(bytes: Uint8Array): ReadonlyMap<string, string[]> {
  const text = Buffer.from(bytes).toString('utf8');
  const directive = /[\s,]*([^\s,="]+)\s*=\s*(?:"((?:[^"\\]|\\[\s\S])*)"|([^\s,"]+))\s*(?=,|$)/gy;
  const directives = new Map<string, string[]>();
  let end = 0;
  for (const match of text.matchAll(directive)) {
    const [whole, name, inQuotes, bare] = match;
    const value = inQuotes === undefined ? bare! : inQuotes.replaceAll(/\\([\s\S])/g, '$1');
    const known = directives.get(name!);
    if (known === undefined) directives.set(name!, [value]);
    else known.push(value);
    end = match.index + whole.length;
  }
  if (/[^\s,]/.test(text.slice(end))) throw new Error(`the server's challenge is not valid for DIGEST-MD5 from character ${end} on`);
  return directives;
}
