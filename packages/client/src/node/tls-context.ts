/**
 * Certificates and keys in the formats that ZooKeeper accepts: PEM, PKCS12, and Java's JKS. The
 * content determines the format, not the file name: many a `.jks` is PKCS12.
 *
 * Node reads PEM, and PKCS12 with a key. It does not read JKS, nor PKCS12 with only trusted
 * certificates; the npm package `jks-js` does, and is loaded when such a file is used.
 */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import * as tls from 'node:tls';
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import { type ValueType, valueTypes, oneOf, optionTypes, secret } from '../arguments.ts';
import { ConnectOptionsError } from '../connect-options-error.ts';
import { optionalPackage } from './optional-package.ts';

/** PEM text, the bytes of a file, or the path of one. */
export type TlsSource = string | Uint8Array;

/**
 * Trusted authorities, and the client's own identity (ZooKeeper Administrator's Guide, "Quorum TLS"
 * and its `ssl.*` properties).
 */
export interface TlsOptions {
  /**
   * Certificates of the authorities that may sign a server's certificate, in PEM. Default: the
   * authorities that Node trusts, which are those of the public Internet.
   */
  readonly ca?: TlsSource | readonly TlsSource[] | undefined;
  /**
   * The client's certificate in PEM, with those that lead from it to an authority that the servers
   * trust. Requires `key`. Default: none.
   */
  readonly cert?: TlsSource | undefined;
  /** The client's key in PEM. Requires `cert`. Default: none. */
  readonly key?: TlsSource | undefined;
  /**
   * The password of `key`, or of the key in a PEM `keyStore`. Default: none; the key is not
   * encrypted.
   */
  readonly keyPassword?: string | undefined;
  /**
   * Instead of `cert` and `key`, like ZooKeeper's ssl.keyStore.location: PKCS12, JKS, or PEM with
   * key and certificates in one file. Default: none.
   */
  readonly keyStore?: TlsSource | undefined;
  /** Like ssl.keyStore.password. Default: none. */
  readonly keyStorePassword?: string | undefined;
  /** Instead of `ca`, like ssl.trustStore.location: PKCS12, JKS or PEM. Default: none. */
  readonly trustStore?: TlsSource | undefined;
  /** Like ssl.trustStore.password. Default: none. */
  readonly trustStorePassword?: string | undefined;
  /**
   * The name that the certificates of all servers must be valid for, also sent as SNI. Default:
   * each server's name or address in the connect string.
   */
  readonly serverName?: string | undefined;
  /**
   * Whether a server's certificate must be valid for its name, by its subjectAltName; the common
   * name does not count. Default: true. With `false`, like ssl.hostnameVerification=false, the
   * owner of any certificate of a trusted authority can impersonate a server. The certificate
   * itself is always verified.
   */
  readonly hostnameVerification?: boolean | undefined;
  /** Default: `TLSv1.2`. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined;
}

const sourceType: ValueType = secret({
  expected: 'PEM text, the path of a file, or a Uint8Array',
  accepts: (given) => typeof given === 'string' || given instanceof Uint8Array,
});
const passwordType = secret(valueTypes.string);

/** The options of `tls`. */
export const tlsOptionTypes = optionTypes({
  ca: secret({
    ...sourceType,
    expected: `${sourceType.expected}, or an array of these`,
    accepts: (given) => [given].flat().every((each) => sourceType.accepts(each)),
  }),
  cert: sourceType,
  key: sourceType,
  keyPassword: passwordType,
  keyStore: sourceType,
  keyStorePassword: passwordType,
  trustStore: sourceType,
  trustStorePassword: passwordType,
  serverName: valueTypes.string,
  hostnameVerification: valueTypes.boolean,
  minVersion: oneOf('TLSv1.2', 'TLSv1.3'),
});

/**
 * The result of the package `jks-js` for a store: by alias, a key with its chain, or a trusted
 * certificate.
 */
interface JksPackage {
  toPem(store: Buffer, password: string): Record<string, { readonly ca?: string; readonly cert?: string; readonly key?: string }>;
}

/** The settings of one connection. */
export interface TlsContext {
  readonly context: SecureContext;
  /**
   * The trusted authorities, if the context does not enforce them: Node trusts all certificates in
   * a PKCS12 file that contains a key, although the file only identifies the client. undefined: the
   * context trusts the right ones.
   */
  readonly trustAnchors: readonly X509Certificate[] | undefined;
}

type LoadedSources = Readonly<Record<'ca' | 'cert' | 'key' | 'keyStore' | 'trustStore', readonly Buffer[]>>;

/**
 * The settings of TLS connections. Reads files again for each connection, so that a renewed
 * certificate is used from the next one on.
 */
export class TlsContextLoader {
  readonly #options: TlsOptions;
  #last: { readonly loaded: LoadedSources; readonly setting: TlsContext } | undefined;

  constructor(options: TlsOptions) {
    this.#options = options;
    const { ca, cert, key, keyStore, trustStore } = options;
    if (ca !== undefined && trustStore !== undefined) failOption('ca and tls.trustStore exclude each other; give one of them');
    if (keyStore !== undefined && (cert ?? key) !== undefined)
      failOption('keyStore excludes tls.cert and tls.key; give either the store or both of those');
    if ((cert === undefined) !== (key === undefined))
      failOption(`${cert === undefined ? 'key' : 'cert'} requires tls.${cert === undefined ? 'cert' : 'key'}`);
    if (ca !== undefined && [ca].flat().length === 0)
      failOption('ca is an empty list, so no server could be trusted; omit it to trust the authorities of Node');
  }

  get hasCertificate(): boolean {
    return this.#options.cert !== undefined || this.#options.keyStore !== undefined;
  }

  /** Rejects with a ConnectOptionsError. */
  async load(): Promise<TlsContext> {
    const loaded = await loadSources(this.#options);
    if (this.#last !== undefined && areSameSources(this.#last.loaded, loaded)) return this.#last.setting;
    const setting = createContext(loaded, this.#options);
    this.#last = { loaded, setting };
    return setting;
  }
}

function failOption(problem: string, cause?: unknown): never {
  throw new ConnectOptionsError(`tls.${problem}`, cause === undefined ? undefined : { cause });
}

async function loadSources(options: TlsOptions): Promise<LoadedSources> {
  const [ca, cert, key, keyStore, trustStore] = await Promise.all([
    readSources('ca', options.ca),
    readSources('cert', options.cert),
    readSources('key', options.key),
    readSources('keyStore', options.keyStore),
    readSources('trustStore', options.trustStore),
  ]);
  return { ca, cert, key, keyStore, trustStore };
}

async function readSources(name: string, sources: TlsSource | readonly TlsSource[] | undefined): Promise<Buffer[]> {
  if (sources === undefined) return [];
  const list = typeof sources === 'string' || sources instanceof Uint8Array ? [sources] : sources;
  return Promise.all(list.map((source) => readSource(name, source)));
}

async function readSource(name: string, source: TlsSource): Promise<Buffer> {
  if (typeof source !== 'string') return Buffer.from(source);
  if (source.includes('-----BEGIN')) return Buffer.from(source);
  try {
    return await readFile(source);
  } catch (cause) {
    return failOption(
      `${name}: cannot read the file ${source} (${(cause as NodeJS.ErrnoException).code}); give a path, PEM text, or bytes`,
      cause,
    );
  }
}

function areSameSources(one: LoadedSources, other: LoadedSources): boolean {
  return (Object.keys(one) as (keyof LoadedSources)[]).every(
    (name) => one[name].length === other[name].length && one[name].every((bytes, at) => bytes.equals(other[name][at]!)),
  );
}

function createContext(loaded: LoadedSources, options: TlsOptions): TlsContext {
  const minVersion = options.minVersion ?? 'TLSv1.2';
  const identity = identityOf(loaded, options);
  const trusted = trustedCertificatesOf(loaded, options);
  const trustAnchors =
    identity.context.pfx === undefined ? undefined : (trusted ?? nodeDefaultCertificates()).map((pem) => new X509Certificate(pem));
  try {
    return {
      context: createSecureContext({ minVersion, ...identity.context, ...(trusted === undefined ? {} : { ca: trusted }) }),
      trustAnchors,
    };
  } catch (cause) {
    return failOption(`${identity.name}: ${openSslErrorText(cause as NodeJS.ErrnoException, identity.name)}`, cause);
  }
}

/**
 * Before Node 22.15 those of NODE_EXTRA_CA_CERTS cannot be read, and must be passed as tls.ca
 * together with a PKCS12 key store.
 */
function nodeDefaultCertificates(): readonly string[] {
  const { getCACertificates, rootCertificates } = tls as typeof tls & { getCACertificates?: () => readonly string[] };
  return getCACertificates?.() ?? rootCertificates;
}

// --- Formats

type StoreFormat = 'pem' | 'pkcs12' | 'jks' | 'jceks' | 'unknown';

function formatOf(bytes: Buffer): StoreFormat {
  if (bytes.includes('-----BEGIN')) return 'pem';
  if (bytes.length > 4 && bytes.readUInt32BE(0) === 0xfeedfeed) return 'jks';
  if (bytes.length > 4 && bytes.readUInt32BE(0) === 0xcececece) return 'jceks';
  // A sequence, with which every DER file starts.
  return bytes[0] === 0x30 ? 'pkcs12' : 'unknown';
}

function identityOf(
  { cert, key, keyStore }: LoadedSources,
  { keyPassword, keyStorePassword }: TlsOptions,
): { readonly name: string; readonly context: SecureContextOptions } {
  const passphrase = keyPassword === undefined ? {} : { passphrase: keyPassword };
  const [store] = keyStore;
  if (store === undefined) {
    for (const [name, [bytes]] of [['cert', cert] as const, ['key', key] as const]) {
      if (bytes !== undefined && formatOf(bytes) !== 'pem') failOption(`${name} is not PEM; pass PKCS12 and JKS as tls.keyStore`);
    }
    return { name: 'key', context: cert.length === 0 ? {} : { cert: [...cert], key: [...key], ...passphrase } };
  }
  switch (formatOf(store)) {
    case 'pem':
      return { name: 'keyStore', context: { cert: store, key: store, ...passphrase } };
    case 'pkcs12':
      return { name: 'keyStore', context: { pfx: store, passphrase: keyStorePassword ?? '' } };
    case 'jks': {
      const keys = Object.entries(readJavaStore('keyStore', store, keyStorePassword)).filter(([, entry]) => entry.key !== undefined);
      const [first] = keys;
      if (first === undefined || keys.length > 1) {
        const aliases = keys.map(([alias]) => alias).join(', ');
        failOption(`keyStore contains ${first === undefined ? 'no key' : `several keys (${aliases})`}; give a store with exactly one`);
      }
      const [, { cert: chain, key: own }] = first;
      return { name: 'keyStore', context: { cert: chain!, key: own! } };
    }
    case 'jceks':
      return failOption(`keyStore ${jceksUnsupported}`);
    default:
      return failOption('keyStore is not PKCS12, JKS or PEM');
  }
}

const jceksUnsupported = 'is JCEKS, which is not supported; convert it with keytool -importkeystore -deststoretype PKCS12';

/** The trusted certificates in PEM, one by one; undefined for the authorities that Node trusts. */
function trustedCertificatesOf({ ca, trustStore }: LoadedSources, { trustStorePassword }: TlsOptions): string[] | undefined {
  const [store] = trustStore;
  if (store === undefined) return ca.length === 0 ? undefined : ca.flatMap((bytes) => certificatesOf('ca', bytes));
  switch (formatOf(store)) {
    case 'pem':
      return certificatesOf('trustStore', store);
    case 'pkcs12':
    case 'jks': {
      const entries = Object.values(readJavaStore('trustStore', store, trustStorePassword));
      // Trust the store's own certificates too, as Java does.
      const texts = entries.flatMap(({ ca: authority, cert: own }) => authority ?? own ?? []);
      if (texts.length === 0) failOption('trustStore contains no certificate, so no server could be trusted');
      return texts.flatMap((text) => certificatesOf('trustStore', Buffer.from(text)));
    }
    case 'jceks':
      return failOption(`trustStore ${jceksUnsupported}`);
    default:
      return failOption('trustStore is not PKCS12, JKS or PEM');
  }
}

/**
 * Node silently ignores text that is not a certificate, and then trusts none; so parse each one
 * first.
 */
function certificatesOf(name: string, bytes: Buffer): string[] {
  const blocks =
    bytes.toString('latin1').match(/-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[\s\S]*?-----END (?:TRUSTED |X509 )?CERTIFICATE-----/g) ??
    [];
  // A single certificate in DER.
  const parts: readonly (string | Buffer)[] = blocks.length === 0 && formatOf(bytes) === 'pkcs12' ? [bytes] : blocks;
  if (parts.length === 0) failOption(`${name} contains no certificate; it must be PEM, with BEGIN CERTIFICATE`);
  return parts.map((part) => {
    try {
      return new X509Certificate(part).toString();
    } catch (cause) {
      return failOption(`${name} contains a certificate that cannot be read (${(cause as Error).message})`, cause);
    }
  });
}

function readJavaStore(name: 'keyStore' | 'trustStore', bytes: Buffer, password: string | undefined): ReturnType<JksPackage['toPem']> {
  const form = formatOf(bytes) === 'jks' ? 'JKS files' : 'PKCS12 files without a key';
  const jks = optionalPackage('jks-js', `tls.${name}: ${form} require`) as JksPackage;
  try {
    return jks.toPem(bytes, password ?? '');
  } catch (cause) {
    const words = (cause as Error).message;
    if (/password/i.test(words)) return failOption(`${name} cannot be opened with tls.${name}Password (${words})`, cause);
    return failOption(`${name} cannot be read (${words}); convert it with keytool -importkeystore, or use PEM`, cause);
  }
}

function openSslErrorText({ code, message }: NodeJS.ErrnoException, name: string): string {
  const password = name === 'keyStore' ? 'tls.keyStorePassword (PKCS12) or tls.keyPassword (PEM)' : 'tls.keyPassword';
  if (/mac verify|bad decrypt|bad_decrypt|bad password|interrupted or cancel|empty password|password read/i.test(`${code} ${message}`)) {
    return `it cannot be opened with ${password}`;
  }
  if (/values mismatch/i.test(message)) return 'key and certificate do not match';
  if (/unsupported/i.test(message)) {
    return 'its encryption is outdated; write it again with keytool -importkeystore of Java 17, or openssl pkcs12 of version 3';
  }
  if (/no certificate|unable to load pfx/i.test(message)) return 'it contains no key with a certificate';
  return `it cannot be used (${message})`;
}
