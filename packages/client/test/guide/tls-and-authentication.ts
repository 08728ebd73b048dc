/** The program of docs/guides/tls-and-authentication.md. */
import { type Client, connect, ConnectOptionsError, creatorAcl, KeeperError } from '@tskeeper/client';

/** The servers prove their identity, and the traffic is encrypted. */
export function connectOverTls(servers: string, folder: string): Promise<Client> {
  return connect(servers, { tls: { ca: `${folder}/ca.pem` } });
}

/** The program authenticates with a certificate; its subject is the program's identity. */
export function connectWithCertificate(servers: string, folder: string): Promise<Client> {
  return connect(servers, { tls: { ca: `${folder}/ca.pem`, cert: `${folder}/app.pem`, key: `${folder}/app.key` } });
}

/** The same, with the stores of a Java program. */
export function connectWithStores(servers: string, folder: string, password: string): Promise<Client> {
  return connect(servers, {
    tls: {
      trustStore: `${folder}/trust.jks`,
      trustStorePassword: password,
      keyStore: `${folder}/app.p12`,
      keyStorePassword: password,
    },
  });
}

/** The program and the server prove to each other that they know a password. */
export function connectWithPassword(servers: string, username: string, password: string): Promise<Client> {
  return connect(servers, { sasl: { mechanism: 'DIGEST-MD5', username, password } });
}

/** Uses a secret of which servers store only a hash. */
export async function keepForOurselves(servers: string, folder: string, secret: string): Promise<Client> {
  const zk = await connect(servers, { tls: { ca: `${folder}/ca.pem` }, auth: [{ scheme: 'digest', auth: `app:${secret}` }] });
  await zk.create('/app', 'for our eyes', { acl: creatorAcl });
  return zk;
}

/** Returns why the connection failed, in one sentence, or undefined if it worked. */
export async function diagnose(opening: Promise<Client>): Promise<string | undefined> {
  try {
    await (await opening).close();
    return undefined;
  } catch (error) {
    if (KeeperError.is(error, 'AuthFailed')) return `not let in: ${error.message}`;
    if (KeeperError.is(error) || error instanceof ConnectOptionsError) return error.message;
    throw error;
  }
}
