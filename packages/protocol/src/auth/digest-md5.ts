/**
 * SASL DIGEST-MD5 (RFC 2831) as ZooKeeper uses it, for both sides: the form of the tokens, and the
 * hashes by which client and server prove to each other that they know the password.
 *
 * RFC 6331 declares the mechanism obsolete, and MD5 may be disabled in a Node that runs in FIPS
 * mode; on an untrusted network it belongs inside TLS.
 */
import { createHash } from 'node:crypto';

/** An exchange cannot continue. The message is a clause with the reason. */
export class SaslError extends Error {
  override readonly name = 'SaslError';
}

/** What a server of a kind calls itself, whatever its host. */
export interface DigestMd5Service {
  readonly realm: string;
  readonly digestUri: string;
}

export const clientPortService: DigestMd5Service = { realm: 'zk-sasl-md5', digestUri: 'zookeeper/zk-sasl-md5' };

/** What both sides hash. */
export interface DigestMd5Terms {
  readonly username: string;
  readonly realm: string;
  readonly password: string;
  readonly nonce: string;
  readonly cnonce: string;
  /** How often the nonce was used, as eight hexadecimal digits. */
  readonly nonceCount: string;
  /** The identity that the client asks for, if it names one. */
  readonly authzid: string | undefined;
  readonly digestUri: string;
  /** Both sides have agreed on charset=utf-8. */
  readonly isUtf8: boolean;
}

export interface DigestMd5Proofs {
  /** The client's, 32 hexadecimal digits. */
  readonly response: string;
  /** The server's. */
  readonly rspauth: string;
}

/** @throws SaslError if MD5 is disabled, or without UTF-8 a name or the password is not in ISO 8859-1. */
export function digestMd5Proofs(terms: DigestMd5Terms): DigestMd5Proofs {
  const { username, realm, password, nonce, cnonce, nonceCount, authzid, digestUri, isUtf8 } = terms;
  const part = (text: string, what: string): Buffer => inLatin1(text) ?? inUtf8(text, what, isUtf8);
  const secret = md5(Buffer.concat([part(username, 'username'), colon, part(realm, 'realm'), colon, part(password, 'password')]));
  const nonces = [nonce, cnonce, ...(authzid === undefined ? [] : [authzid])].map((each) => `:${each}`).join('');
  const a1 = hex(md5(Buffer.concat([secret, Buffer.from(nonces, isUtf8 ? 'utf8' : 'latin1')])));
  const proofOf = (a2: string): string => hex(md5(Buffer.from(`${a1}:${nonce}:${nonceCount}:${cnonce}:auth:${hex(md5(Buffer.from(a2)))}`)));
  return { response: proofOf(`AUTHENTICATE:${digestUri}`), rspauth: proofOf(`:${digestUri}`) };
}

/**
 * Reads `name=value,name="value"`: a quoted value may contain anything, with a backslash before
 * quotes and backslashes. All values of a name are kept, in order.
 *
 * @param what the token's name in a message: `the server's challenge`.
 * @throws SaslError with the position of what cannot be read.
 */
export function parseDirectives(token: Uint8Array, what: string): ReadonlyMap<string, readonly string[]> {
  const text = Buffer.from(token).toString('utf8');
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
  if (/[^\s,]/.test(text.slice(end))) throw new SaslError(`${what} is not valid for DIGEST-MD5 from character ${end} on`);
  return directives;
}

/** A value in quotes. */
export function quoted(text: string): string {
  return `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
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
  if (!isUtf8) throw new SaslError(`the exchange allows ISO 8859-1 only, and the ${what} contains other characters`);
  return Buffer.from(text, 'utf8');
}

function md5(bytes: Buffer): Buffer {
  let hash;
  try {
    hash = createHash('md5');
  } catch (cause) {
    throw new SaslError('MD5 is disabled in this Node, as in FIPS mode, and DIGEST-MD5 requires it', { cause });
  }
  return hash.update(bytes).digest();
}

function hex(bytes: Buffer): string {
  return bytes.toString('hex');
}
