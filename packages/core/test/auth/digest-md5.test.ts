import { readFileSync } from 'node:fs';
import { digestMd5Proofs } from '@tskeeper/protocol/internal';
import { describe, expect, it } from 'vitest';
import { DigestMd5Mechanism } from '../../src/auth/digest-md5.ts';
import { AuthToLocal } from '../../src/auth/kerberos-name.ts';
import { SaslNames } from '../../src/auth/sasl-names.ts';

const fixture = JSON.parse(readFileSync(new URL('../../../../fixtures/sasl-digest-md5.json', import.meta.url), 'utf8')) as Record<
  string,
  readonly { readonly token?: string | null }[]
>;
const tokensOf = (name: string): readonly (string | null | undefined)[] => fixture[name]!.map(({ token }) => token);

/** Random numbers that produce a recorded nonce. */
function recorded(nonce: string) {
  const bytes = Buffer.concat([Buffer.from(nonce, 'base64'), Buffer.alloc(4)]);
  let at = -4;
  return { uint32: () => bytes.readUInt32BE((at += 4)) };
}

const service = { realm: 'zk-sasl-md5', digestUri: 'zookeeper/zk-sasl-md5' };
const names = new SaslNames({
  rules: new AuthToLocal('DEFAULT', ''),
  removesHost: false,
  removesRealm: false,
  superUsers: new Set(['root']),
});
const nonce = 'wgPkuvs+GA/FmFXIoXXUHt2tX3rKdzUedgUFMIRb';

class Exchange {
  readonly #exchange;
  constructor(passwords: Readonly<Record<string, string>>) {
    const mechanism = new DigestMd5Mechanism({ service, passwords: new Map(Object.entries(passwords)), names, random: recorded(nonce) });
    this.#exchange = mechanism.start();
  }
  send(token: string): unknown {
    const outcome = this.#exchange.next(Buffer.from(token), { scheme: 'sasl' });
    return 'reply' in outcome && outcome.reply !== undefined ? { ...outcome, reply: outcome.reply.toString() } : outcome;
  }
}

/** A response to the challenge; `changes` are made after it was computed. */
function response(username: string, password: string, changes: Readonly<Record<string, string | undefined>> = {}): string {
  const terms = { username, password, realm: service.realm, nonce, cnonce: 'cn', nonceCount: '00000001', authzid: username };
  const proofs = digestMd5Proofs({ ...terms, digestUri: service.digestUri, isUtf8: true });
  const directives: Readonly<Record<string, string | undefined>> = {
    charset: 'utf-8',
    username: `"${username}"`,
    realm: `"${service.realm}"`,
    nonce: `"${nonce}"`,
    nc: '00000001',
    cnonce: '"cn"',
    'digest-uri': `"${service.digestUri}"`,
    response: proofs.response,
    qop: 'auth',
    authzid: `"${username}"`,
    ...changes,
  };
  return Object.entries(directives)
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))
    .join(',');
}

describe('A39: DIGEST-MD5 at a server', () => {
  it("exchanges the same bytes with ZooKeeper's client as ZooKeeper's server", () => {
    const [, , , challenge, answer, proof] = tokensOf('success (password bobsecret), then whoAmI');
    const exchange = new Exchange({ bob: 'bobsecret' });
    expect(exchange.send('')).toEqual({ kind: 'continue', reply: challenge });
    expect(exchange.send(answer!)).toEqual({ kind: 'done', identities: [{ scheme: 'sasl', id: 'bob' }], reply: proof });
  });

  it.each([
    ['letters of ISO 8859-1', 'jörg', 'schlüssel'],
    ['other letters', 'maria', 'пароль€'],
  ])('knows names and passwords with %s', (_what, username, password) => {
    const exchange = new Exchange({ [username]: password });
    exchange.send('');
    expect(exchange.send(response(username, password))).toMatchObject({ kind: 'done', identities: [{ scheme: 'sasl', id: username }] });
  });

  it('makes the names of superUser super', () => {
    const exchange = new Exchange({ root: 'x' });
    exchange.send('');
    expect(exchange.send(response('root', 'x'))).toMatchObject({
      identities: [
        { scheme: 'sasl', id: 'root' },
        { scheme: 'super', id: '' },
      ],
    });
  });

  it('gives the name that was proved, not the one that the client asks for', () => {
    const exchange = new Exchange({ bob: 'x' });
    exchange.send('');
    const terms = { username: 'bob', password: 'x', realm: service.realm, nonce, cnonce: 'cn', nonceCount: '00000001', authzid: 'root' };
    const proofs = digestMd5Proofs({ ...terms, digestUri: service.digestUri, isUtf8: true });
    const token = response('bob', 'x', { authzid: '"root"', response: proofs.response });
    expect(exchange.send(token)).toMatchObject({ kind: 'done', identities: [{ scheme: 'sasl', id: 'bob' }] });
  });

  it('sends its challenge whatever the first token is', () => {
    expect(new Exchange({ bob: 'x' }).send('abc')).toMatchObject({ kind: 'continue', reply: expect.stringContaining('nonce=') as string });
  });

  it.each<[string, string]>([
    [response('bob', 'y'), 'the password of "bob" is wrong'],
    [response('eve', 'x'), 'no user is called "eve"'],
    [response('eve', ''), 'no user is called "eve"'],
    [response('bob', 'x', { nonce: '"other"' }), `the client's response has the nonce "other" instead of "${nonce}"`],
    [response('bob', 'x', { nc: '00000002' }), 'the client\'s response has the nc "00000002" instead of "00000001"'],
    [response('bob', 'x', { realm: '"r"' }), 'the client\'s response has the realm "r" instead of "zk-sasl-md5"'],
    [response('bob', 'x', { realm: undefined }), 'the client\'s response has the realm "" instead of "zk-sasl-md5"'],
    [response('bob', 'x', { qop: 'auth-int' }), 'the client\'s response has the qop "auth-int" instead of "auth"'],
    [response('bob', 'x', { charset: 'latin1' }), 'the client\'s response has the charset "latin1" instead of "utf-8"'],
    [
      response('bob', 'x', { 'digest-uri': '"imap/h"' }),
      'the client\'s response has the digest-uri "imap/h" instead of "zookeeper/zk-sasl-md5"',
    ],
    [response('bob', 'x', { cnonce: undefined }), "the client's response contains no cnonce"],
    [response('bob', 'x', { response: undefined }), "the client's response contains no response"],
    [response('bob', 'x', { response: 'ab' }), 'the password of "bob" is wrong'],
    [`${response('bob', 'x')},nc=00000001`, "the client's response contains nc more than once"],
    [
      response('jörg', 'x', { charset: undefined, username: '"мария"' }),
      'the exchange allows ISO 8859-1 only, and the username contains other characters',
    ],
    [`${response('bob', 'x')},x="${'x'.repeat(4096)}"`, "the client's response is longer than 4096 bytes"],
    ['nonsense', "the client's response is not valid for DIGEST-MD5 from character 0 on"],
    ['', "the client's response contains no username"],
  ])('refuses the response %s', (token, reason) => {
    const exchange = new Exchange({ bob: 'x' });
    exchange.send('');
    expect(exchange.send(token)).toEqual({ kind: 'refused', reason });
  });
});
