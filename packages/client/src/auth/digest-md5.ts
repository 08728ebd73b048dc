/**
 * SASL DIGEST-MD5 (RFC 2831) as ZooKeeper's own client speaks it: a password is proved by a hash over nonces of both sides, and the
 * server has to prove in turn that it knows the password as well.
 *
 * It is the mechanism that a server with a JAAS section of DigestLoginModule offers. RFC 6331 calls it outdated, and MD5 may be switched
 * off where a Node runs in FIPS mode; beside an untrusted network it belongs inside TLS.
 */
import { createHash } from 'node:crypto';
import type { Random } from '../clock.ts';
import type { SaslExchange, SaslMechanism } from './sasl.ts';

/** An identity to prove by SASL DIGEST-MD5 (RFC 2831), as ZooKeeper does it. */
export interface DigestMd5Options {
  readonly mechanism: 'DIGEST-MD5';
  /** As in the server's JAAS section: `user_<username>="<password>"`. */
  readonly username: string;
  /** Never sent; what is proved with it can be read off the wire and be guessed at, so use TLS. */
  readonly password: string;
}

/** What ZooKeeper's client and server call themselves here, whatever the host. */
const digestUri = 'zookeeper/zk-sasl-md5';
/** The first use of the server's nonce, and the only one. */
const nonceCount = '00000001';
/** As ZooKeeper's client: it matters only for layers that protect what follows, and there is none. */
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

  exchange(): SaslExchange {
    /** What the server has to answer; known when the response has been made. */
    let rspauth: string | undefined;
    return {
      begin: () => new Uint8Array(),
      respond: (challenge) => {
        if (rspauth !== undefined) {
          checkProof(challenge, rspauth);
          return undefined;
        }
        if (challenge === null) throw new Error('the server has not been set up for SASL: it has no JAAS section of DigestLoginModule');
        const made = respondTo(parseDirectives(challenge), this.#options, this.#cnonce());
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

/** A server that has refused the client may still let it in (zookeeper.allowSaslFailedClients), and then proves nothing. */
function checkProof(challenge: Uint8Array | null, rspauth: string): void {
  const proof = challenge === null ? undefined : parseDirectives(challenge).get('rspauth');
  if (proof === undefined)
    throw new Error('the server goes on without having proved that it knows the password, as one does that refuses it');
  if (proof.length !== 1 || proof[0] !== rspauth) throw new Error('the server does not know the password: its proof is wrong');
}

function respondTo(
  challenge: ReadonlyMap<string, readonly string[]>,
  { username, password }: DigestMd5Options,
  cnonce: string,
): { readonly response: string; readonly rspauth: string } {
  const one = (name: string): string | undefined => {
    const values = challenge.get(name) ?? [];
    if (values.length > 1) throw new Error(`the challenge of the server names its ${name} more than once`);
    return values[0];
  };
  const nonce = one('nonce');
  if (nonce === undefined) throw new Error('the challenge of the server has no nonce');
  const algorithm = one('algorithm');
  if (algorithm !== 'md5-sess') throw new Error(`the server asks for the algorithm ${algorithm ?? '(none)'}; DIGEST-MD5 has md5-sess only`);
  const offered = one('qop') ?? 'auth';
  if (!offered.split(',').some((qop) => qop.trim() === 'auth')) {
    throw new Error(`the server insists on protecting the connection (${offered}), which ZooKeeper's protocol cannot; TLS can`);
  }
  const isUtf8 = one('charset') === 'utf-8';
  // A server may offer several; ZooKeeper's has one.
  const realm = challenge.get('realm')?.[0] ?? '';
  const latin1 = (text: string, what: string): Buffer => inLatin1(text) ?? fallBack(text, what, isUtf8);

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

/** RFC 2831 hashes names and passwords in ISO 8859-1 where that has all of their letters, whatever the charset of the exchange. */
function inLatin1(text: string): Buffer | undefined {
  // oxlint-disable-next-line no-control-regex -- all of ISO 8859-1
  return /^[\u0000-\u00ff]*$/.test(text) ? Buffer.from(text, 'latin1') : undefined;
}

function fallBack(text: string, what: string, isUtf8: boolean): Buffer {
  if (!isUtf8) throw new Error(`the server takes ISO 8859-1 only, and the ${what} has letters beyond it`);
  return Buffer.from(text, 'utf8');
}

function md5(bytes: Buffer): Buffer {
  let hash;
  try {
    hash = createHash('md5');
  } catch (cause) {
    throw new Error('this Node has MD5 switched off, as in FIPS mode, and DIGEST-MD5 cannot do without', { cause });
  }
  return hash.update(bytes).digest();
}

function hex(bytes: Buffer): string {
  return bytes.toString('hex');
}

function quoted(text: string): string {
  return `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}

/** `name=value,name="value"`: a value that is quoted may hold anything, with a backslash ahead of quotes and backslashes. */
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
  if (/[^\s,]/.test(text.slice(end))) throw new Error(`the server sent what is no challenge of DIGEST-MD5, from character ${end} on`);
  return directives;
}
