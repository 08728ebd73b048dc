/** Authorities, certificates and stores, created when a test needs them. */
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto';
import forge from 'node-forge';

export interface Identity {
  /** PEM. */
  readonly cert: string;
  readonly key: string;
  readonly parsed: forge.pki.Certificate;
  readonly keys: { readonly privateKey: forge.pki.rsa.PrivateKey; readonly publicKey: forge.pki.rsa.PublicKey };
}

export interface Wish {
  readonly cn?: string | undefined;
  /** `DNS:zk1`, `IP:127.0.0.1`. */
  readonly names?: readonly string[];
  readonly days?: readonly [from: number, to: number];
  /** The issuer; undefined: self-signed. */
  readonly by?: Identity | undefined;
  readonly isAuthority?: boolean;
}

const dayMs = 86_400_000;

/**
 * Creating a key takes longer than everything else, so all authorities share one and all others
 * another.
 */
const keyPairs = new Map<boolean, { readonly publicKey: string; readonly privateKey: string }>();

function keyPair(isAuthority: boolean): { readonly publicKey: string; readonly privateKey: string } {
  const known = keyPairs.get(isAuthority);
  if (known !== undefined) return known;
  const made = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  keyPairs.set(isAuthority, made);
  return made;
}

export function identity({ cn, names = [], days = [-1, 1], by, isAuthority = false }: Wish): Identity {
  const pair = keyPair(isAuthority);
  const keys = { privateKey: forge.pki.privateKeyFromPem(pair.privateKey), publicKey: forge.pki.publicKeyFromPem(pair.publicKey) };
  const cert = forge.pki.createCertificate();
  cert.publicKey = keys.publicKey;
  cert.serialNumber = `01${randomBytes(8).toString('hex')}`;
  cert.validity.notBefore = new Date(Date.now() + days[0] * dayMs);
  cert.validity.notAfter = new Date(Date.now() + days[1] * dayMs);
  const subject = cn === undefined ? [] : [{ name: 'commonName', value: cn }];
  cert.setSubject(subject);
  cert.setIssuer(by === undefined ? subject : by.parsed.subject.attributes);
  const altNames = names.map((name) => {
    const [kind, value] = [name.slice(0, name.indexOf(':')), name.slice(name.indexOf(':') + 1)];
    return kind === 'IP' ? { type: 7, ip: value } : { type: 2, value };
  });
  cert.setExtensions([
    { name: 'basicConstraints', cA: isAuthority },
    ...(altNames.length === 0 ? [] : [{ name: 'subjectAltName', altNames }]),
  ]);
  cert.sign(by === undefined ? keys.privateKey : by.keys.privateKey, forge.md.sha256.create());
  return { cert: forge.pki.certificateToPem(cert), key: pair.privateKey, parsed: cert, keys };
}

function der(asn1: forge.asn1.Asn1): Buffer {
  return Buffer.from(forge.asn1.toDer(asn1).getBytes(), 'latin1');
}

/**
 * PKCS12 with a key and its certificate; without `key`, with a trusted certificate, under an alias
 * as keytool writes it.
 */
export function pkcs12(certs: readonly Identity[], password: string, key?: Identity, friendlyName?: string): Buffer {
  const bag = forge.pkcs12.toPkcs12Asn1(
    key?.keys.privateKey ?? null,
    certs.map(({ parsed }) => parsed),
    password,
    { algorithm: '3des', generateLocalKeyId: key !== undefined, ...(friendlyName === undefined ? {} : { friendlyName }) },
  );
  return der(bag);
}

/**
 * JKS as Java writes it: with trusted certificates and, if given, a key under its own old cipher.
 */
export function jks(trusted: readonly Identity[], password: string, keys: readonly Identity[] = []): Buffer {
  const parts: Buffer[] = [];
  const int = (value: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    parts.push(bytes);
  };
  const utf = (text: string) => parts.push(Buffer.from([0, text.length]), Buffer.from(text));
  const block = (bytes: Buffer) => {
    int(bytes.length);
    parts.push(bytes);
  };
  const certificate = ({ parsed }: Identity) => {
    utf('X.509');
    block(der(forge.pki.certificateToAsn1(parsed)));
  };
  const entry = (tag: number, alias: string) => {
    int(tag);
    utf(alias);
    parts.push(Buffer.alloc(8));
  };
  int(0xfeedfeed);
  int(2);
  int(trusted.length + keys.length);
  for (const [at, own] of keys.entries()) {
    entry(1, `key${at}`);
    block(protectedKey(own, password));
    int(1);
    certificate(own);
  }
  for (const [at, each] of trusted.entries()) {
    entry(2, `ca${at}`);
    certificate(each);
  }
  const body = Buffer.concat(parts);
  const check = createHash('sha1').update(wide(password)).update('Mighty Aphrodite').update(body).digest();
  return Buffer.concat([body, check]);
}

function wide(password: string): Buffer {
  return Buffer.from(password, 'utf16le').swap16();
}

/**
 * Sun's key protector: the key under a stream of SHA-1 digests, followed by a digest of the key.
 */
function protectedKey({ keys }: Identity, password: string): Buffer {
  const plain = der(forge.pki.wrapRsaPrivateKey(forge.pki.privateKeyToAsn1(keys.privateKey)));
  const secret = wide(password);
  const salt = randomBytes(20);
  const sealed = Buffer.alloc(plain.length);
  let pad = salt;
  for (let at = 0; at < plain.length; at++) {
    if (at % 20 === 0) pad = createHash('sha1').update(secret).update(pad).digest();
    sealed[at] = plain[at]! ^ pad[at % 20]!;
  }
  const check = createHash('sha1').update(secret).update(plain).digest();
  const { asn1 } = forge;
  const { UNIVERSAL } = asn1.Class;
  const make = (type: forge.asn1.Type, isList: boolean, value: string | forge.asn1.Asn1[]) => asn1.create(UNIVERSAL, type, isList, value);
  const oid = asn1.oidToDer('1.3.6.1.4.1.42.2.17.1.1').getBytes();
  return der(
    make(asn1.Type.SEQUENCE, true, [
      make(asn1.Type.SEQUENCE, true, [make(asn1.Type.OID, false, oid), make(asn1.Type.NULL, false, '')]),
      make(asn1.Type.OCTETSTRING, false, Buffer.concat([salt, sealed, check]).toString('latin1')),
    ]),
  );
}
