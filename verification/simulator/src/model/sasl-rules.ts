/**
 * What a response of SASL DIGEST-MD5 proves, computed from RFC 2831 without code that is shared with
 * servers. A client sends it only after the server's challenge, with the nonce of that.
 */
import { createHash } from 'node:crypto';
import type { Data } from './operation-types.ts';

/** Passwords by user name. */
export type SaslUsers = Readonly<Record<string, string>>;

/** The user whose password the response proves; undefined if it proves none, or is not a response. */
export function provedUser(token: Data, users: SaslUsers): string | undefined {
  const fields = Object.fromEntries(
    [...(token ?? '').matchAll(/([a-z-]+)=(?:"([^"]*)"|([^,]*))/g)].map(([, name, a, b]) => [name, a ?? b]),
  );
  const { username, realm, nonce, cnonce, nc, qop, authzid, response } = fields;
  const password = username === undefined ? undefined : users[username];
  if (password === undefined) return undefined;
  const secret = createHash('md5').update(`${username}:${realm}:${password}`).digest();
  const a1 = createHash('md5')
    .update(secret)
    .update(['', nonce, cnonce, ...(authzid === undefined ? [] : [authzid])].join(':'))
    .digest('hex');
  const a2 = hex(`AUTHENTICATE:${fields['digest-uri']}`);
  return hex([a1, nonce, nc, cnonce, qop, a2].join(':')) === response ? username : undefined;
}

function hex(text: string): string {
  return createHash('md5').update(text).digest('hex');
}
