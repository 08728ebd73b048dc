/**
 * Certificates and keys, in the forms in which ZooKeeper takes them: PEM, PKCS12, and Java's own JKS. The form is told by the content, not
 * by a name: many a `.jks` is PKCS12.
 *
 * PEM, and PKCS12 with a key, Node reads by itself. JKS, and PKCS12 that only holds certificates to be trusted, it does not: these are read by
 * the npm package `jks-js`, which is loaded when there is one to read.
 */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import * as tls from 'node:tls';
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import { type Kind, kinds, oneOf, optionKinds, secret } from '../arguments.ts';
import { ConnectOptionsError } from '../connect-options-error.ts';
import { optionalPackage } from './optional-package.ts';

/** PEM text, the bytes of a file, or the path of one. */
export type TlsSource = string | Uint8Array;

/** Whom to trust, and who to be (ZooKeeper Administrator's Guide, "Quorum TLS" and its `ssl.*` properties). */
export interface TlsOptions {
  /** Certificates of those who may sign a server's, in PEM. Default: those that Node knows, which are those of the public Internet. */
  readonly ca?: TlsSource | readonly TlsSource[] | undefined;
  /** The client's certificate in PEM, with those that lead from it to an authority that the servers trust. Goes with `key`. Default: none. */
  readonly cert?: TlsSource | undefined;
  /** The client's key in PEM. Goes with `cert`. Default: none. */
  readonly key?: TlsSource | undefined;
  /** What `key`, or the key in a PEM `keyStore`, is encrypted with. Default: it is not. */
  readonly keyPassword?: string | undefined;
  /** Instead of `cert` and `key`, as ZooKeeper's ssl.keyStore.location: PKCS12, JKS, or PEM with key and certificates in one. Default: none. */
  readonly keyStore?: TlsSource | undefined;
  /** As ssl.keyStore.password. Default: none. */
  readonly keyStorePassword?: string | undefined;
  /** Instead of `ca`, as ssl.trustStore.location: PKCS12, JKS or PEM. Default: none. */
  readonly trustStore?: TlsSource | undefined;
  /** As ssl.trustStore.password. Default: none. */
  readonly trustStorePassword?: string | undefined;
  /**
   * Whom the servers' certificates have to be for, all of them, and the name that they are asked for (SNI). Default: each server's name or
   * address in the connect string.
   */
  readonly serverName?: string | undefined;
  /**
   * Whether a server's certificate must be for its name, by its subjectAltName; the common name does not count. Default: true. With
   * `false`, as ssl.hostnameVerification=false, whoever has any certificate of a trusted authority can pose as a server. The certificate
   * itself is always verified.
   */
  readonly hostnameVerification?: boolean | undefined;
  /** Default: `TLSv1.2`. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined;
}

const sourceKind: Kind = secret({
  wanted: 'PEM text, the path of a file, or a Uint8Array',
  fits: (given) => typeof given === 'string' || given instanceof Uint8Array,
});
const passwordKind = secret(kinds.string);

/** What `tls` may hold. */
export const tlsOptionKinds = optionKinds({
  ca: secret({
    ...sourceKind,
    wanted: `${sourceKind.wanted}, or an array of these`,
    fits: (given) => [given].flat().every((each) => sourceKind.fits(each)),
  }),
  cert: sourceKind,
  key: sourceKind,
  keyPassword: passwordKind,
  keyStore: sourceKind,
  keyStorePassword: passwordKind,
  trustStore: sourceKind,
  trustStorePassword: passwordKind,
  serverName: kinds.string,
  hostnameVerification: kinds.boolean,
  minVersion: oneOf('TLSv1.2', 'TLSv1.3'),
});

/** What the package `jks-js` makes of a store: by alias, a key with its chain, or a certificate to be trusted. */
interface JksPackage {
  toPem(store: Buffer, password: string): Record<string, { readonly ca?: string; readonly cert?: string; readonly key?: string }>;
}

/** What one connection is made with. */
export interface TlsSetting {
  readonly context: SecureContext;
  /**
   * Who is to be trusted, where the context cannot be relied upon for that: Node trusts all that comes in one PKCS12 file with a key, though it
   * was only given to say who the client is. undefined: the context trusts whom it should.
   */
  readonly anchors: readonly X509Certificate[] | undefined;
}

type Loaded = Readonly<Record<'ca' | 'cert' | 'key' | 'keyStore' | 'trustStore', readonly Buffer[]>>;

/** What TLS connections are made with. Files are read anew for each, so that a certificate that was renewed is used from the next one on. */
export class TlsMaterial {
  readonly #options: TlsOptions;
  #last: { readonly loaded: Loaded; readonly setting: TlsSetting } | undefined;

  constructor(options: TlsOptions) {
    this.#options = options;
    const { ca, cert, key, keyStore, trustStore } = options;
    if (ca !== undefined && trustStore !== undefined) fail('ca and tls.trustStore say the same in two ways; give one of them');
    if (keyStore !== undefined && (cert ?? key) !== undefined)
      fail('keyStore and tls.cert with tls.key say the same in two ways; give one of them');
    if ((cert === undefined) !== (key === undefined))
      fail(`${cert === undefined ? 'key' : 'cert'} has to come with tls.${cert === undefined ? 'cert' : 'key'}`);
    if (ca !== undefined && [ca].flat().length === 0)
      fail('ca is an empty list, so that no server could be trusted; leave it out to trust those that Node knows');
  }

  get hasCertificate(): boolean {
    return this.#options.cert !== undefined || this.#options.keyStore !== undefined;
  }

  /** Rejects with a ConnectOptionsError. */
  async setting(): Promise<TlsSetting> {
    const loaded = await load(this.#options);
    if (this.#last !== undefined && isSame(this.#last.loaded, loaded)) return this.#last.setting;
    const setting = settingOf(loaded, this.#options);
    this.#last = { loaded, setting };
    return setting;
  }
}

function fail(complaint: string, cause?: unknown): never {
  throw new ConnectOptionsError(`tls.${complaint}`, cause === undefined ? undefined : { cause });
}

async function load(options: TlsOptions): Promise<Loaded> {
  const [ca, cert, key, keyStore, trustStore] = await Promise.all([
    all('ca', options.ca),
    all('cert', options.cert),
    all('key', options.key),
    all('keyStore', options.keyStore),
    all('trustStore', options.trustStore),
  ]);
  return { ca, cert, key, keyStore, trustStore };
}

async function all(name: string, sources: TlsSource | readonly TlsSource[] | undefined): Promise<Buffer[]> {
  if (sources === undefined) return [];
  const list = typeof sources === 'string' || sources instanceof Uint8Array ? [sources] : sources;
  return Promise.all(list.map((source) => bytesOf(name, source)));
}

async function bytesOf(name: string, source: TlsSource): Promise<Buffer> {
  if (typeof source !== 'string') return Buffer.from(source);
  if (source.includes('-----BEGIN')) return Buffer.from(source);
  try {
    return await readFile(source);
  } catch (cause) {
    return fail(
      `${name}: the file ${source} cannot be read (${(cause as NodeJS.ErrnoException).code}); give a path, PEM text, or bytes`,
      cause,
    );
  }
}

function isSame(one: Loaded, other: Loaded): boolean {
  return (Object.keys(one) as (keyof Loaded)[]).every(
    (name) => one[name].length === other[name].length && one[name].every((bytes, at) => bytes.equals(other[name][at]!)),
  );
}

function settingOf(loaded: Loaded, options: TlsOptions): TlsSetting {
  const minVersion = options.minVersion ?? 'TLSv1.2';
  const identity = identityOf(loaded, options);
  const trusted = trustedOf(loaded, options);
  const anchors = identity.context.pfx === undefined ? undefined : (trusted ?? knownToNode()).map((pem) => new X509Certificate(pem));
  try {
    return {
      context: createSecureContext({ minVersion, ...identity.context, ...(trusted === undefined ? {} : { ca: trusted }) }),
      anchors,
    };
  } catch (cause) {
    return fail(`${identity.name}: ${complaintOf(cause as NodeJS.ErrnoException, identity.name)}`, cause);
  }
}

/** Before Node 22.15 those of NODE_EXTRA_CA_CERTS cannot be asked for, and have to be given as tls.ca beside a PKCS12 key store. */
function knownToNode(): readonly string[] {
  const { getCACertificates, rootCertificates } = tls as typeof tls & { getCACertificates?: () => readonly string[] };
  return getCACertificates?.() ?? rootCertificates;
}

// --- The forms

type Form = 'pem' | 'pkcs12' | 'jks' | 'jceks' | 'unknown';

function formOf(bytes: Buffer): Form {
  if (bytes.includes('-----BEGIN')) return 'pem';
  if (bytes.length > 4 && bytes.readUInt32BE(0) === 0xfeedfeed) return 'jks';
  if (bytes.length > 4 && bytes.readUInt32BE(0) === 0xcececece) return 'jceks';
  // A sequence, as all that is DER begins.
  return bytes[0] === 0x30 ? 'pkcs12' : 'unknown';
}

function identityOf(
  { cert, key, keyStore }: Loaded,
  { keyPassword, keyStorePassword }: TlsOptions,
): { readonly name: string; readonly context: SecureContextOptions } {
  const passphrase = keyPassword === undefined ? {} : { passphrase: keyPassword };
  const [store] = keyStore;
  if (store === undefined) {
    for (const [name, [bytes]] of [['cert', cert] as const, ['key', key] as const]) {
      if (bytes !== undefined && formOf(bytes) !== 'pem') fail(`${name} is not PEM; give PKCS12 and JKS as tls.keyStore`);
    }
    return { name: 'key', context: cert.length === 0 ? {} : { cert: [...cert], key: [...key], ...passphrase } };
  }
  switch (formOf(store)) {
    case 'pem':
      return { name: 'keyStore', context: { cert: store, key: store, ...passphrase } };
    case 'pkcs12':
      return { name: 'keyStore', context: { pfx: store, passphrase: keyStorePassword ?? '' } };
    case 'jks': {
      const keys = Object.entries(storeOf('keyStore', store, keyStorePassword)).filter(([, entry]) => entry.key !== undefined);
      const [first] = keys;
      if (first === undefined || keys.length > 1) {
        const aliases = keys.map(([alias]) => alias).join(', ');
        fail(`keyStore holds ${first === undefined ? 'no key' : `several keys (${aliases})`}; give a store with the one to use`);
      }
      const [, { cert: chain, key: own }] = first;
      return { name: 'keyStore', context: { cert: chain!, key: own! } };
    }
    case 'jceks':
      return fail(`keyStore ${jceks}`);
    default:
      return fail('keyStore is neither PKCS12 nor JKS nor PEM');
  }
}

const jceks = 'is JCEKS, which is not read here; keytool -importkeystore -deststoretype PKCS12 makes PKCS12 of it';

/** In PEM, one by one; undefined when those that Node knows are to be trusted. */
function trustedOf({ ca, trustStore }: Loaded, { trustStorePassword }: TlsOptions): string[] | undefined {
  const [store] = trustStore;
  if (store === undefined) return ca.length === 0 ? undefined : ca.flatMap((bytes) => certificatesOf('ca', bytes));
  switch (formOf(store)) {
    case 'pem':
      return certificatesOf('trustStore', store);
    case 'pkcs12':
    case 'jks': {
      const entries = Object.values(storeOf('trustStore', store, trustStorePassword));
      // A certificate of one's own is trusted as well, as Java trusts it.
      const texts = entries.flatMap(({ ca: authority, cert: own }) => authority ?? own ?? []);
      if (texts.length === 0) fail('trustStore holds no certificate, so that no server could be trusted');
      return texts.flatMap((text) => certificatesOf('trustStore', Buffer.from(text)));
    }
    case 'jceks':
      return fail(`trustStore ${jceks}`);
    default:
      return fail('trustStore is neither PKCS12 nor JKS nor PEM');
  }
}

/** Node passes over what is no certificate without a word, and then trusts nobody; so each is looked at first. */
function certificatesOf(name: string, bytes: Buffer): string[] {
  const blocks =
    bytes.toString('latin1').match(/-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[\s\S]*?-----END (?:TRUSTED |X509 )?CERTIFICATE-----/g) ??
    [];
  // One certificate by itself, in DER.
  const parts: readonly (string | Buffer)[] = blocks.length === 0 && formOf(bytes) === 'pkcs12' ? [bytes] : blocks;
  if (parts.length === 0) fail(`${name} holds no certificate; it has to be PEM, with BEGIN CERTIFICATE`);
  return parts.map((part) => {
    try {
      return new X509Certificate(part).toString();
    } catch (cause) {
      return fail(`${name} holds a certificate that cannot be read (${(cause as Error).message})`, cause);
    }
  });
}

function storeOf(name: 'keyStore' | 'trustStore', bytes: Buffer, password: string | undefined): ReturnType<JksPackage['toPem']> {
  const form = formOf(bytes) === 'jks' ? 'JKS files' : 'PKCS12 files without a key';
  const jks = optionalPackage('jks-js', `tls.${name}: ${form} are read`) as JksPackage;
  try {
    return jks.toPem(bytes, password ?? '');
  } catch (cause) {
    const words = (cause as Error).message;
    if (/password/i.test(words)) return fail(`${name} does not open with tls.${name}Password (${words})`, cause);
    return fail(`${name} cannot be read (${words}); keytool -importkeystore makes one that can, and PEM does as well`, cause);
  }
}

function complaintOf({ code, message }: NodeJS.ErrnoException, name: string): string {
  const password = name === 'keyStore' ? 'tls.keyStorePassword (PKCS12) or tls.keyPassword (PEM)' : 'tls.keyPassword';
  if (/mac verify|bad decrypt|bad_decrypt|bad password|interrupted or cancel|empty password|password read/i.test(`${code} ${message}`)) {
    return `it does not open with ${password}`;
  }
  if (/values mismatch/i.test(message)) return 'key and certificate do not belong together';
  if (/unsupported/i.test(message)) {
    return 'it is encrypted in a way that is outdated; keytool -importkeystore of Java 17, or openssl pkcs12 of version 3, writes it anew';
  }
  if (/no certificate|unable to load pfx/i.test(message)) return 'it holds no key with a certificate';
  return `it cannot be used (${message})`;
}
