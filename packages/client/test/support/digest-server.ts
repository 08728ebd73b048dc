/**
 * The server side of DIGEST-MD5, implemented independently from RFC 2831, to compare with the
 * client's computation.
 */
import { createHash } from 'node:crypto';

const md5 = (...parts: readonly (string | Buffer)[]): Buffer =>
  createHash('md5')
    .update(Buffer.concat(parts.map(toBytes)))
    .digest();

function toBytes(part: string | Buffer): Buffer {
  return typeof part === 'string' ? Buffer.from(part, 'utf8') : part;
}

/** In ISO 8859-1 if possible, each on its own. */
function forHash(text: string): Buffer {
  const latin1 = Buffer.from(text, 'latin1');
  return latin1.toString('latin1') === text ? latin1 : Buffer.from(text, 'utf8');
}

/** Directives, parsed character by character instead of with a regular expression. */
export function fieldsOf(token: string): Record<string, string> {
  const fields: Record<string, string> = {};
  let at = 0;
  while (at < token.length) {
    const equals = token.indexOf('=', at);
    const name = token.slice(at, equals);
    let value = '';
    at = equals + 1;
    if (token[at] === '"') {
      for (at++; token[at] !== '"'; at++) {
        if (token[at] === '\\') at++;
        value += token[at]!;
      }
      at++;
    } else {
      for (; at < token.length && token[at] !== ','; at++) value += token[at]!;
    }
    fields[name] = value;
    // The comma.
    at++;
  }
  return fields;
}

/** The expected response of the client, and the server's answer to it. */
export function proofs(fields: Record<string, string>, password: string): { readonly response: string; readonly rspauth: string } {
  const { username, realm, nonce, cnonce, nc, qop, authzid } = fields;
  const identity = md5(forHash(username!), ':', forHash(realm!), ':', forHash(password));
  const a1 = md5(identity, ':', nonce!, ':', cnonce!, ...(authzid === undefined ? [] : [':', authzid])).toString('hex');
  const proof = (a2: string) => md5([a1, nonce, nc, cnonce, qop, md5(a2).toString('hex')].join(':')).toString('hex');
  const uri = fields['digest-uri']!;
  return { response: proof(`AUTHENTICATE:${uri}`), rspauth: proof(`:${uri}`) };
}
