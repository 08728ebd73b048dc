import { X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { chainErrorText, reachesTrustAnchor, tlsErrorText } from '../../src/node/tls-errors.ts';
import { type Identity, identity } from '../support/certificates.ts';

const error = (code: string) => Object.assign(new Error('words of OpenSSL'), { code });

describe("B41: a server's error about this client", () => {
  const refused =
    "the server rejected this client's certificate (alert: ALERT); check that its trust store contains the authority that signed it";
  const missing = 'the server requires a client certificate (alert: ALERT); give tls.cert and tls.key, or tls.keyStore';

  it.each([
    ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'unknown ca'],
    ['ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE', 'bad certificate'],
    ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN', 'certificate unknown'],
    ['ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED', 'certificate expired'],
    ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'handshake failure'],
    ['ERR_SSL_TLSV1_ALERT_ACCESS_DENIED', 'access denied'],
  ])('with code %s is reported as a rejected or a missing client certificate', (code, alert) => {
    expect(tlsErrorText(error(code), true, true)).toBe(refused.replace('ALERT', alert));
    expect(tlsErrorText(error(code), true, false)).toBe(missing.replace('ALERT', alert));
  });

  it.each([
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'the server supports no TLS version from tls.minVersion on (alert: protocol version)'],
    ['ERR_SSL_UNSUPPORTED_PROTOCOL', 'the server supports only TLS versions below tls.minVersion (ERR_SSL_UNSUPPORTED_PROTOCOL)'],
    ['ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR', 'the server closed TLS (alert: internal error)'],
    ['EHOSTUNREACH', 'EHOSTUNREACH'],
    ['ECONNRESET', 'ECONNRESET'],
  ])('with code %s is reported without mention of the client certificate', (code, words) => {
    expect(tlsErrorText(error(code), true, true)).toBe(words);
  });
});

it('B41: a server without a certificate, and an error without a known code, are reported in words too', () => {
  expect(chainErrorText('CERT_REVOKED', undefined)).toBe('a certificate of the server was rejected (CERT_REVOKED)');
  expect(chainErrorText('UNABLE_TO_VERIFY_LEAF_SIGNATURE', undefined)).toContain('give the authority');
});

describe('B41: a chain of certificates', () => {
  const ca = identity({ cn: 'authority', isAuthority: true });
  const middle = identity({ cn: 'middle', isAuthority: true, by: ca });
  const app = identity({ cn: 'app', by: ca });
  /** Has the name, and a key of its own. */
  const impostor = identity({ cn: 'authority' });
  const leads = (anchors: readonly Identity[], chain: readonly Identity[]) => {
    const [tops, links] = [anchors, chain].map((list) => list.map(({ cert }) => new X509Certificate(cert)));
    return reachesTrustAnchor(tops!, links!);
  };

  it.each([
    ['of the authority itself', [ca], [ca], true],
    ['signed by an authority that is not sent', [ca], [app], true],
    ['signed by an authority that is sent', [ca], [app, ca], true],
    ['with an intermediate', [ca], [identity({ cn: 'zk', by: middle }), middle], true],
    ['that is trusted itself', [app], [app], true],
    ['without its intermediate', [ca], [identity({ cn: 'zk', by: middle })], false],
    ['signed by an impostor of the same name', [ca], [identity({ cn: 'zk', by: impostor })], false],
    ['signed by an impostor of the same name that is sent', [ca], [identity({ cn: 'zk', by: impostor }), ca], false],
    ['with an intermediate that is not an authority', [ca], [identity({ cn: 'zk', by: app }), app], false],
    ['that is empty', [ca], [], false],
    ['to no authority', [], [ca], false],
  ])('is trusted only if it leads to a trust anchor: %s', (_what, anchors, chain, isTrusted) => {
    expect(leads(anchors, chain)).toBe(isTrusted);
  });
});
