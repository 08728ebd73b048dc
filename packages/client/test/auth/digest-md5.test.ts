import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DigestMd5 } from '../../src/auth/digest-md5.ts';
import type { SaslExchange } from '../../src/auth/sasl.ts';
import type { Random } from '../../src/index.ts';
import { fieldsOf, proofs } from '../support/digest-server.ts';

const fixture = JSON.parse(readFileSync(new URL('../../../../fixtures/sasl-digest-md5.json', import.meta.url), 'utf8')) as Record<
  string,
  readonly { readonly dir: string; readonly token?: string | null }[]
>;
const [, , , challenge, response, proof] = fixture['success (password bobsecret), then whoAmI']!.map(({ token }) => token);

/** Random numbers that produce a recorded cnonce. */
function recorded(cnonce: string): Random {
  const bytes = Buffer.concat([Buffer.from(cnonce, 'base64'), Buffer.alloc(4)]);
  let at = -4;
  return { uint32: () => bytes.readUInt32BE((at += 4)) };
}

function exchange(username = 'bob', password = 'bobsecret', cnonce = fieldsOf(response!)['cnonce']!): SaslExchange {
  return new DigestMd5({ mechanism: 'DIGEST-MD5', username, password }, recorded(cnonce)).startExchange();
}

const bytes = (text: string) => Buffer.from(text);
const said = (token: ReturnType<SaslExchange['nextToken']>) =>
  token === undefined ? undefined : Buffer.from(token as Uint8Array).toString();

describe('B42: DIGEST-MD5', () => {
  it("sends the same bytes as ZooKeeper's own client, and accepts the server's proof", () => {
    const sasl = exchange();
    expect(sasl.firstToken()).toEqual(new Uint8Array());
    expect(said(sasl.nextToken(bytes(challenge!)))).toBe(response);
    expect(sasl.nextToken(bytes(proof!))).toBe(undefined);
  });

  it('creates a new cnonce for each exchange', () => {
    let count = 0;
    const mechanism = new DigestMd5({ mechanism: 'DIGEST-MD5', username: 'bob', password: 'x' }, { uint32: () => count++ });
    const cnonces = [1, 2, 3].map(() => fieldsOf(said(mechanism.startExchange().nextToken(bytes(challenge!)))!)['cnonce']);
    expect(new Set(cnonces).size).toBe(3);
    expect(cnonces.every((cnonce) => Buffer.from(cnonce!, 'base64').length === 30)).toBe(true);
  });

  it.each([
    [
      'a proof of another password',
      'rspauth=5ebcab7c41c1fbbfec2881e787db07f4',
      'the server does not know the password: its proof is wrong',
    ],
    ['two proofs', `${proof},${proof}`, 'the server does not know the password: its proof is wrong'],
    ['no proof', null, 'the server did not prove that it knows the password; it may have rejected this client'],
    ['an empty word', '', 'the server did not prove that it knows the password; it may have rejected this client'],
    ['another challenge', challenge!, 'the server did not prove that it knows the password; it may have rejected this client'],
  ])('rejects a server without a valid proof: %s', (_what, token, words) => {
    const sasl = exchange();
    void sasl.nextToken(bytes(challenge!));
    expect(() => sasl.nextToken(token === null ? null : bytes(token))).toThrow(words);
  });

  it.each([
    ['realm="r",algorithm=md5-sess', "the server's challenge contains no nonce"],
    ['nonce="a",nonce="b",algorithm=md5-sess', "the server's challenge contains nonce more than once"],
    ['nonce="a"', 'the server requires the algorithm (none); DIGEST-MD5 supports only md5-sess'],
    ['nonce="a",algorithm=sha-256', 'the server requires the algorithm sha-256; DIGEST-MD5 supports only md5-sess'],
    ['nonce="a",algorithm=md5-sess,qop="auth-int,auth-conf"', 'the server requires a protection layer (auth-int,auth-conf)'],
    ['nonce="a', "the server's challenge is not valid for DIGEST-MD5 from character 0 on"],
    ['nonce="a",algorithm=md5-sess nonsense', "the server's challenge is not valid for DIGEST-MD5 from character"],
  ])('reports what is wrong with the challenge %s', (token, words) => {
    expect(() => exchange().nextToken(bytes(token))).toThrow(words);
  });

  it('reports that a server has no SASL', () => {
    expect(() => exchange().nextToken(null)).toThrow('the server is not configured for SASL');
  });

  it.each([
    ['quotes and backslashes', String.raw`a"b\c`, String.raw`"\"`],
    ['letters of ISO 8859-1', 'jörg', 'geheim'],
    ['other letters', 'мария', '密码'],
    ['a password of other letters', 'bob', 'schlüssel€'],
    ['no password at all', 'bob', ''],
  ])('computes the proof of names and passwords with %s as an independent computation does', (_what, username, password) => {
    const sasl = exchange(username, password);
    const token = said(sasl.nextToken(bytes(` realm="x\\"y" , nonce=abc,, qop="auth,auth-conf",charset=utf-8,algorithm=md5-sess,`)))!;
    const fields = fieldsOf(token);
    expect(fields).toMatchObject({ username, realm: 'x"y', nonce: 'abc', qop: 'auth', authzid: username });
    const { response: expected, rspauth } = proofs(fields, password);
    expect(fields['response']).toBe(expected);
    expect(sasl.nextToken(bytes(`rspauth=${rspauth}`))).toBe(undefined);
  });

  it('reports which text a server without UTF-8 cannot accept', () => {
    expect(() => exchange('bob', '€').nextToken(bytes('nonce=a,algorithm=md5-sess'))).toThrow(
      'the exchange allows ISO 8859-1 only, and the password contains other characters',
    );
    expect(said(exchange('bob', 'ü').nextToken(bytes('nonce=a,algorithm=md5-sess')))).not.toContain('charset');
  });
});
