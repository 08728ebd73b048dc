/** What can go wrong between two ends of TLS, as clauses for people: which certificate, what is wrong with it, what helps. */
import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';

/** Whether a certificate is for this name or address, by its subjectAltName alone. A common name has not counted since RFC 6125, and never decides here. */
export function isFor(certificate: X509Certificate, name: string): boolean {
  if (isIP(name) !== 0) return certificate.checkIP(name.replace(/%.*$/, '')) !== undefined;
  return certificate.checkHost(name.replace(/\.$/, ''), { subject: 'never', partialWildcards: false }) !== undefined;
}

/**
 * Whether a chain, beginning with a server's certificate, leads to one of these authorities. Asked besides OpenSSL's own verification, which
 * has looked at dates and purposes, where that trusts more than it should.
 */
export function leadsTo(anchors: readonly X509Certificate[], chain: readonly X509Certificate[]): boolean {
  const isBy = (certificate: X509Certificate, issuer: X509Certificate): boolean =>
    certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
  for (const [at, certificate] of chain.entries()) {
    if (at > 0 && !(certificate.ca && isBy(chain[at - 1]!, certificate))) return false;
    if (anchors.some((anchor) => anchor.fingerprint256 === certificate.fingerprint256 || isBy(certificate, anchor))) return true;
  }
  return false;
}

export function nameFault(certificate: X509Certificate, name: string): string {
  const { subjectAltName } = certificate;
  const whose = subjectAltName === undefined ? 'names nobody in a subjectAltName' : `is for ${subjectAltName}`;
  return `${shown(certificate)} ${whose}, and not for ${name}; connect by a name it has, get one with that name, or set tls.serverName`;
}

/** What OpenSSL has to say against a server's certificate, by its code. */
export function chainFault(code: string, certificate: X509Certificate | undefined): string {
  const which = certificate === undefined ? 'a certificate of the server' : shown(certificate);
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return `${which}, or one that it hangs on, has expired (it is valid to ${certificate?.validTo ?? 'an unknown date'}); it has to be renewed`;
    case 'CERT_NOT_YET_VALID':
      return `${which}, or one that it hangs on, is not valid yet (from ${certificate?.validFrom ?? 'an unknown date'}); is the clock right?`;
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'CERT_UNTRUSTED': {
      const issuer = certificate === undefined ? '' : `, signed by ${oneLine(certificate.issuer)},`;
      return `${which}${issuer} hangs on no authority that is trusted here (${code}); give the authority's certificate as tls.ca or tls.trustStore`;
    }
    default:
      return `${which} is refused (${code})`;
  }
}

function shown(certificate: X509Certificate): string {
  return `the server's certificate ${oneLine(certificate.subject)}`;
}

/** Names come one part a line; a certificate without a subject is known by its number. */
function oneLine(name: string | undefined): string {
  return name === undefined || name === '' ? '(no subject)' : `"${name.replaceAll('\n', ', ')}"`;
}

/** What a socket tells of. `secure`: whether the handshake had ended; `hasCertificate`: whether this side has one to show. */
export function wordsOfTls({ code, message }: NodeJS.ErrnoException, secure: boolean, hasCertificate: boolean): string {
  const [, alert] = /ALERT_([A-Z_]+)$/.exec(code ?? '') ?? [];
  if (alert !== undefined) return wordsOfAlert(alert.toLowerCase().replaceAll('_', ' '), hasCertificate);
  if (/WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|RECORD_LAYER/.test(code ?? '')) {
    return `the server does not speak TLS on this port (${code}); TLS is on its secureClientPort`;
  }
  if (code === 'ERR_SSL_UNSUPPORTED_PROTOCOL') return `the server speaks only versions of TLS below tls.minVersion (${code})`;
  if (!secure && code === 'ECONNRESET') {
    return 'the server ended the connection during the TLS handshake (ECONNRESET); is this its secureClientPort, or does it refuse this client?';
  }
  return code ?? message;
}

function wordsOfAlert(alert: string, hasCertificate: boolean): string {
  if (alert === 'protocol version') return 'the server speaks no version of TLS from tls.minVersion on (alert: protocol version)';
  if (!/certificate|unknown ca|handshake failure|access denied/.test(alert)) return `the server ended TLS (alert: ${alert})`;
  return hasCertificate
    ? `the server does not accept this client's certificate (alert: ${alert}); does its trust store have the authority that signed it?`
    : `the server asks for a certificate of this client (alert: ${alert}); give tls.cert and tls.key, or tls.keyStore`;
}
