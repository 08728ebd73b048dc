/** The mechanism that the options of `connect` ask for. */
import { DigestMd5, type DigestMd5Options } from '../auth/digest-md5.ts';
import type { SaslMechanism } from '../auth/sasl.ts';
import type { Random } from '../clock.ts';
import { ConnectOptionsError } from '../connect-options-error.ts';
import { Gssapi, type GssapiOptions, type KerberosPackage } from './gssapi.ts';
import { optionalPackage } from './optional-package.ts';

/** How to prove an identity by SASL. */
export type SaslOptions = DigestMd5Options | GssapiOptions;

/** Throws a ConnectOptionsError. */
export function saslMechanism(options: SaslOptions, random: Random): SaslMechanism {
  switch (options.mechanism) {
    case 'DIGEST-MD5':
      if (typeof options.username !== 'string' || options.username === '' || typeof options.password !== 'string') {
        throw new ConnectOptionsError('sasl: the mechanism DIGEST-MD5 takes a username and a password');
      }
      return new DigestMd5(options, random);
    case 'GSSAPI':
      return new Gssapi(options, optionalPackage('kerberos', 'sasl: tokens of the mechanism GSSAPI are made') as KerberosPackage);
    default:
      options satisfies never;
      throw new ConnectOptionsError(
        `sasl: there is no mechanism "${String((options as { mechanism?: unknown }).mechanism)}"; there are DIGEST-MD5 and GSSAPI`,
      );
  }
}
