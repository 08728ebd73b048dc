/**
 * An authority, a server, clients and a stranger, in key stores that ZooKeeper reads, created by
 * keytool on demand.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import jks from 'jks-js';

const run = promisify(execFile);

export const storePassword = 'changeit';
export const clientName = 'CN=app,OU=clients,O=tskeeper';

export interface KeyStores {
  readonly serverJks: string;
  readonly trustJks: string;
  readonly trustPkcs12: string;
  readonly clientJks: string;
  readonly clientPkcs12: string;
  /** Self-signed. */
  readonly selfSignedPkcs12: string;
  /** PEM texts. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export async function makeKeyStores(folder: string): Promise<KeyStores> {
  const file = (name: string) => path.join(folder, name);
  const keytool = (...args: string[]) => run('keytool', [...args, '-storepass', storePassword], { cwd: folder });
  const makeKey = (store: string, type: 'JKS' | 'PKCS12', name: string, ...extensions: string[]) => {
    const key = ['-keyalg', 'RSA', '-keysize', '2048', '-dname', name, '-validity', '2', '-keypass', storePassword];
    return keytool(
      '-genkeypair',
      '-alias',
      'own',
      ...key,
      '-keystore',
      store,
      '-storetype',
      type,
      ...extensions.flatMap((each) => ['-ext', each]),
    );
  };
  /** Signs the key of a store with the authority. */
  const sign = async (store: string, ...extensions: string[]) => {
    const [request, signed] = [`${store}.csr`, `${store}.pem`];
    await keytool('-certreq', '-alias', 'own', '-keystore', store, '-file', request);
    const asked = extensions.flatMap((each) => ['-ext', each]);
    await keytool(
      '-gencert',
      '-rfc',
      '-alias',
      'own',
      '-keystore',
      'ca.p12',
      '-validity',
      '2',
      '-infile',
      request,
      '-outfile',
      signed,
      ...asked,
    );
    await keytool('-importcert', '-noprompt', '-alias', 'ca', '-keystore', store, '-file', 'ca.pem');
    await keytool('-importcert', '-noprompt', '-alias', 'own', '-keystore', store, '-file', signed);
  };

  await Promise.all([
    makeKey('ca.p12', 'PKCS12', 'CN=authority', 'bc:c=ca:true').then(() =>
      keytool('-exportcert', '-rfc', '-alias', 'own', '-keystore', 'ca.p12', '-file', 'ca.pem'),
    ),
    makeKey('server.jks', 'JKS', 'CN=zookeeper'),
    makeKey('client.p12', 'PKCS12', clientName),
    makeKey('stranger.p12', 'PKCS12', 'CN=stranger'),
  ]);
  await Promise.all([
    sign('server.jks', 'san=ip:127.0.0.1,dns:localhost'),
    sign('client.p12'),
    ...(['JKS', 'PKCS12'] as const).map((type) =>
      keytool(
        '-importcert',
        '-noprompt',
        '-alias',
        'ca',
        '-file',
        'ca.pem',
        '-keystore',
        `trust.${type.toLowerCase()}`,
        '-storetype',
        type,
      ),
    ),
  ]);
  const both = ['-srckeystore', 'client.p12', '-srcstorepass', storePassword, '-deststorepass', storePassword];
  await run('keytool', ['-importkeystore', ...both, '-srcalias', 'own', '-destkeystore', 'client.jks', '-deststoretype', 'JKS'], {
    cwd: folder,
  });
  const own = jks.toPem(await readFile(file('client.jks')), storePassword)['own'];
  if (own?.cert === undefined || own.key === undefined) throw new Error('keytool made a store without a key');
  return {
    serverJks: file('server.jks'),
    trustJks: file('trust.jks'),
    trustPkcs12: file('trust.pkcs12'),
    clientJks: file('client.jks'),
    clientPkcs12: file('client.p12'),
    selfSignedPkcs12: file('stranger.p12'),
    ca: await readFile(file('ca.pem'), 'utf8'),
    cert: own.cert,
    key: own.key,
  };
}
