/** Creates the SASL mechanism that the options of `connect` select. */
import { DigestMd5, type DigestMd5Options } from '../auth/digest-md5.ts';
import { checkOptions, valueTypes, optionTypes, secret } from '../arguments.ts';
import type { SaslMechanism } from '../auth/sasl.ts';
import type { Random } from '../clock.ts';
import { ConnectOptionsError } from '../connect-options-error.ts';
import { Gssapi, type GssapiOptions, type KerberosPackage } from './gssapi.ts';
import { optionalPackage } from './optional-package.ts';

/** An identity to prove by SASL. */
export type SaslOptions = DigestMd5Options | GssapiOptions;

const saslOptionTypes = {
  'DIGEST-MD5': optionTypes({ mechanism: valueTypes.string, username: valueTypes.string, password: secret(valueTypes.string) }),
  GSSAPI: optionTypes({
    mechanism: valueTypes.string,
    serviceName: valueTypes.string,
    serviceHost: valueTypes.string,
    principal: valueTypes.string,
  }),
} as const;

/** Throws a TypeError for unknown options, and a ConnectOptionsError. */
export function createSaslMechanism(options: SaslOptions, random: Random): SaslMechanism {
  if (Object.hasOwn(saslOptionTypes, options.mechanism)) checkOptions(options, saslOptionTypes[options.mechanism], `connect: sasl`);
  switch (options.mechanism) {
    case 'DIGEST-MD5':
      if (typeof options.username !== 'string' || options.username === '' || typeof options.password !== 'string') {
        throw new ConnectOptionsError('sasl: the mechanism DIGEST-MD5 requires a username and a password');
      }
      return new DigestMd5(options, random);
    case 'GSSAPI':
      return new Gssapi(options, optionalPackage('kerberos', 'sasl: the mechanism GSSAPI requires') as KerberosPackage);
    default:
      options satisfies never;
      throw new ConnectOptionsError(
        `sasl: unknown mechanism "${String((options as { mechanism?: unknown }).mechanism)}"; use DIGEST-MD5 or GSSAPI`,
      );
  }
}
