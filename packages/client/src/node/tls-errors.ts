/**
 * Readable clauses for failures of TLS: which certificate, what is wrong with it, and the remedy.
 */
import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';

/**
 * Whether a certificate is valid for this name or address, by its subjectAltName alone. The common
 * name does not count since RFC 6125, and is ignored.
 */
export function matchesName(certificate: X509Certificate, name: string): boolean {
  if (isIP(name) !== 0) return certificate.checkIP(name.replace(/%.*$/, '')) !== undefined;
  return certificate.checkHost(name.replace(/\.$/, ''), { subject: 'never', partialWildcards: false }) !== undefined;
}

/**
 * Whether a chain that starts with a server's certificate leads to one of these authorities.
 * Complements OpenSSL's verification, which has checked dates and purposes, where OpenSSL trusts
 * more than it should.
 */
export function reachesTrustAnchor(trustAnchors: readonly X509Certificate[], chain: readonly X509Certificate[]): boolean {
  const isBy = (certificate: X509Certificate, issuer: X509Certificate): boolean =>
    certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
  for (const [at, certificate] of chain.entries()) {
    if (at > 0 && !(certificate.ca && isBy(chain[at - 1]!, certificate))) return false;
    if (trustAnchors.some((anchor) => anchor.fingerprint256 === certificate.fingerprint256 || isBy(certificate, anchor))) return true;
  }
  return false;
}

export function nameMismatchText(certificate: X509Certificate, name: string): string {
  const { subjectAltName } = certificate;
  const whose = subjectAltName === undefined ? 'has no subjectAltName' : `is valid for ${subjectAltName}`;
  return `${certificateText(certificate)} ${whose}, and is not valid for ${name}; connect with a name it contains, get one with that name, or set tls.serverName`;
}

/** The failure of OpenSSL's verification of a server's certificate, by its code. */
export function chainErrorText(code: string, certificate: X509Certificate | undefined): string {
  const which = certificate === undefined ? 'a certificate of the server' : certificateText(certificate);
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return `${which}, or one of its issuers, has expired (it is valid until ${certificate?.validTo ?? 'an unknown date'}); renew it`;
    case 'CERT_NOT_YET_VALID':
      return `${which}, or one of its issuers, is not valid yet (from ${certificate?.validFrom ?? 'an unknown date'}); check the clock`;
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'CERT_UNTRUSTED': {
      const issuer = certificate === undefined ? '' : `, signed by ${subjectText(certificate.issuer)},`;
      return `${which}${issuer} does not lead to a trusted authority (${code}); give the authority's certificate as tls.ca or tls.trustStore`;
    }
    default:
      return `${which} was rejected (${code})`;
  }
}

function certificateText(certificate: X509Certificate): string {
  return `the server's certificate ${subjectText(certificate.subject)}`;
}

/** Subjects have one part per line. */
function subjectText(name: string | undefined): string {
  return name === undefined || name === '' ? '(no subject)' : `"${name.replaceAll('\n', ', ')}"`;
}

/**
 * The text of a socket's error. `secure`: whether the handshake had ended; `hasCertificate`:
 * whether the client has a certificate.
 */
export function tlsErrorText({ code, message }: NodeJS.ErrnoException, secure: boolean, hasCertificate: boolean): string {
  const [, alert] = /ALERT_([A-Z_]+)$/.exec(code ?? '') ?? [];
  if (alert !== undefined) return alertText(alert.toLowerCase().replaceAll('_', ' '), hasCertificate);
  if (/WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|RECORD_LAYER/.test(code ?? '')) {
    return `the server does not speak TLS on this port (${code}); use its secureClientPort`;
  }
  if (code === 'ERR_SSL_UNSUPPORTED_PROTOCOL') return `the server supports only TLS versions below tls.minVersion (${code})`;
  if (!secure && code === 'ECONNRESET') {
    return 'the server closed the connection during the TLS handshake (ECONNRESET); check that this is its secureClientPort, and that it accepts this client';
  }
  return code ?? message;
}

function alertText(alert: string, hasCertificate: boolean): string {
  if (alert === 'protocol version') return 'the server supports no TLS version from tls.minVersion on (alert: protocol version)';
  if (!/certificate|unknown ca|handshake failure|access denied/.test(alert)) return `the server closed TLS (alert: ${alert})`;
  return hasCertificate
    ? `the server rejected this client's certificate (alert: ${alert}); check that its trust store contains the authority that signed it`
    : `the server requires a client certificate (alert: ${alert}); give tls.cert and tls.key, or tls.keyStore`;
}
