/** What docs/guides/tls-and-authentication.md shows. */
import { type Client, connect, ConnectOptionsError, creatorAcl, KeeperError } from '@tskeeper/client';

/** The servers prove who they are, and nobody can listen. */
export function connectOverTls(servers: string, folder: string): Promise<Client> {
  return connect(servers, { tls: { ca: `${folder}/ca.pem` } });
}

/** The program proves who it is by a certificate, and is known by its subject. */
export function connectWithCertificate(servers: string, folder: string): Promise<Client> {
  return connect(servers, { tls: { ca: `${folder}/ca.pem`, cert: `${folder}/app.pem`, key: `${folder}/app.key` } });
}

/** The same with the stores of a Java program. */
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

/** The program proves by a password who it is, and so does the server. */
export function connectWithPassword(servers: string, username: string, password: string): Promise<Client> {
  return connect(servers, { sasl: { mechanism: 'DIGEST-MD5', username, password } });
}

/** A secret of the program's own, which servers know by its hash only. */
export async function keepForOurselves(servers: string, folder: string, secret: string): Promise<Client> {
  const zk = await connect(servers, { tls: { ca: `${folder}/ca.pem` }, auth: [{ scheme: 'digest', auth: `app:${secret}` }] });
  await zk.create('/app', 'for our eyes', { acl: creatorAcl });
  return zk;
}

/** Why not: one sentence, or undefined when all is well. */
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
