import { X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { chainFault, leadsTo, wordsOfTls } from '../../src/node/tls-trouble.ts';
import { type Identity, identity } from '../support/certificates.ts';

const error = (code: string) => Object.assign(new Error('words of OpenSSL'), { code });

describe('B41: what a server says against this client', () => {
  const refused =
    "the server does not accept this client's certificate (alert: ALERT); does its trust store have the authority that signed it?";
  const missing = 'the server asks for a certificate of this client (alert: ALERT); give tls.cert and tls.key, or tls.keyStore';

  it.each([
    ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'unknown ca'],
    ['ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE', 'bad certificate'],
    ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN', 'certificate unknown'],
    ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED', 'certificate expired'],
    ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'handshake failure'],
    ['ERR_SSL_TLSV1_ALERT_ACCESS_DENIED', 'access denied'],
  ])('%s', (code, alert) => {
    expect(wordsOfTls(error(code), true, true)).toBe(refused.replace('ALERT', alert));
    expect(wordsOfTls(error(code), true, false)).toBe(missing.replace('ALERT', alert));
  });

  it.each([
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'the server speaks no version of TLS from tls.minVersion on (alert: protocol version)'],
    ['ERR_SSL_UNSUPPORTED_PROTOCOL', 'the server speaks only versions of TLS below tls.minVersion (ERR_SSL_UNSUPPORTED_PROTOCOL)'],
    ['ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR', 'the server ended TLS (alert: internal error)'],
    ['EHOSTUNREACH', 'EHOSTUNREACH'],
    ['ECONNRESET', 'ECONNRESET'],
  ])('%s', (code, words) => {
    expect(wordsOfTls(error(code), true, true)).toBe(words);
  });
});

it('B41: a server without a certificate, and a complaint without a name, are refused in words as well', () => {
  expect(chainFault('CERT_REVOKED', undefined)).toBe('a certificate of the server is refused (CERT_REVOKED)');
  expect(chainFault('UNABLE_TO_VERIFY_LEAF_SIGNATURE', undefined)).toContain('give the authority');
});

describe('B41: a chain of certificates', () => {
  const ca = identity({ cn: 'authority', isAuthority: true });
  const middle = identity({ cn: 'middle', isAuthority: true, by: ca });
  const app = identity({ cn: 'app', by: ca });
  /** Has the name, and a key of its own. */
  const impostor = identity({ cn: 'authority' });
  const leads = (anchors: readonly Identity[], chain: readonly Identity[]) => {
    const [tops, links] = [anchors, chain].map((list) => list.map(({ cert }) => new X509Certificate(cert)));
    return leadsTo(tops!, links!);
  };

  it.each([
    ['from an authority itself', [ca], [ca], true],
    ['by an authority that is not shown', [ca], [app], true],
    ['by one that is', [ca], [app, ca], true],
    ['over one in between', [ca], [identity({ cn: 'zk', by: middle }), middle], true],
    ['one that is trusted by itself', [app], [app], true],
    ['without the one in between', [ca], [identity({ cn: 'zk', by: middle })], false],
    ['by one of the same name', [ca], [identity({ cn: 'zk', by: impostor })], false],
    ['by one of the same name that is shown', [ca], [identity({ cn: 'zk', by: impostor }), ca], false],
    ['over what is no authority', [ca], [identity({ cn: 'zk', by: app }), app], false],
    ['of nothing', [ca], [], false],
    ['to nobody', [], [ca], false],
  ])('%s', (_what, anchors, chain, isTrusted) => {
    expect(leads(anchors, chain)).toBe(isTrusted);
  });
});
