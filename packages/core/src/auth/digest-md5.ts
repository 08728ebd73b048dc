/**
 * The server's side of SASL DIGEST-MD5, which proves a password that the server has in its
 * JAAS file. The checks are those of RFC 2831 as Java makes them; the tokens are in ZooKeeper's
 * form.
 */
import { timingSafeEqual } from 'node:crypto';
import { digestMd5Proofs, type DigestMd5Service, parseDirectives, quoted, SaslError } from '@tskeeper/protocol/internal';
import type { Random } from '../random.ts';
import type { AuthOutcome } from './auth-provider.ts';
import type { SaslExchange, SaslMechanism } from './sasl-mechanism.ts';
import type { SaslNames } from './sasl-names.ts';
import { shownText } from './shown-text.ts';

/** A nonce is used for one proof, so its count is always one. */
const nonceCount = '00000001';
/** RFC 2831 allows no longer response. */
const responseBytesMax = 4096;
/** As many as Java's: 40 characters in base64. */
const nonceBytes = 30;

type Directives = ReturnType<typeof parseDirectives>;

export interface DigestMd5MechanismOptions {
  readonly service: DigestMd5Service;
  /** Passwords by user name. */
  readonly passwords: ReadonlyMap<string, string>;
  readonly names: SaslNames;
  readonly random: Random;
}

export class DigestMd5Mechanism implements SaslMechanism {
  readonly name = 'DIGEST-MD5';
  readonly #options: DigestMd5MechanismOptions;

  constructor(options: DigestMd5MechanismOptions) {
    this.#options = options;
  }

  start(): SaslExchange {
    return new DigestMd5Exchange(this.#options);
  }
}

class DigestMd5Exchange implements SaslExchange {
  readonly #options: DigestMd5MechanismOptions;
  /** Set once the challenge has been sent. */
  #nonce: string | undefined;

  constructor(options: DigestMd5MechanismOptions) {
    this.#options = options;
  }

  next(token: Buffer): AuthOutcome {
    try {
      if (this.#nonce === undefined) return this.#challenge();
      if (token.length > responseBytesMax) throw new SaslError(`the client's response is longer than ${responseBytesMax} bytes`);
      return this.#verify(parseDirectives(token, "the client's response"), this.#nonce);
    } catch (error) {
      if (!(error instanceof SaslError)) throw error;
      return { kind: 'refused', reason: error.message };
    }
  }

  /** The first token has no meaning; clients send an empty one. */
  #challenge(): AuthOutcome {
    this.#nonce = newNonce(this.#options.random);
    const { realm } = this.#options.service;
    const challenge = `realm=${quoted(realm)},nonce=${quoted(this.#nonce)},charset=utf-8,algorithm=md5-sess`;
    return { kind: 'continue', reply: Buffer.from(challenge) };
  }

  #verify(directives: Directives, nonce: string): AuthOutcome {
    const { service, passwords, names } = this.#options;
    const one = (name: string): string | undefined => {
      const values = directives.get(name) ?? [];
      if (values.length > 1) throw new SaslError(`the client's response contains ${name} more than once`);
      return values[0];
    };
    const required = (name: string): string => {
      const value = one(name);
      if (value === undefined) throw new SaslError(`the client's response contains no ${name}`);
      return value;
    };
    const expect = (name: string, value: string | undefined, expected: string): void => {
      if (value !== expected)
        throw new SaslError(`the client's response has the ${name} ${shownText(value ?? '')} instead of ${shownText(expected)}`);
    };
    const username = required('username');
    const response = required('response');
    const realm = one('realm') ?? '';
    expect('realm', realm, service.realm);
    expect('nonce', required('nonce'), nonce);
    expect('nc', required('nc'), nonceCount);
    expect('qop', one('qop') ?? 'auth', 'auth');
    expect('digest-uri', required('digest-uri').toLowerCase(), service.digestUri);
    const charset = one('charset');
    if (charset !== undefined) expect('charset', charset, 'utf-8');
    const password = passwords.get(username);
    const proofs = digestMd5Proofs({
      username,
      realm,
      // The same work for a name that is unknown: the time does not show which names exist.
      password: password ?? '',
      nonce,
      cnonce: required('cnonce'),
      nonceCount,
      authzid: one('authzid'),
      digestUri: required('digest-uri'),
      isUtf8: charset !== undefined,
    });
    const isRight = isEqual(response, proofs.response);
    if (password === undefined) throw new SaslError(`no user is called ${shownText(username)}`);
    if (!isRight) throw new SaslError(`the password of ${shownText(username)} is wrong`);
    return { kind: 'done', identities: names.identitiesOf(username), reply: Buffer.from(`rspauth=${proofs.rspauth}`) };
  }
}

function newNonce(random: Random): string {
  const bytes = Buffer.alloc(Math.ceil(nonceBytes / 4) * 4);
  for (let at = 0; at < bytes.length; at += 4) bytes.writeUInt32BE(random.uint32(), at);
  return bytes.toString('base64', 0, nonceBytes);
}

function isEqual(response: string, expected: string): boolean {
  const [a, b] = [Buffer.from(response), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
