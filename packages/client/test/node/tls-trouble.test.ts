import { describe, expect, it } from 'vitest';
import { chainFault, wordsOfTls } from '../../src/node/tls-trouble.ts';

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
