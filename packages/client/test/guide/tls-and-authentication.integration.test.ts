/** Runs the program of the guide against our server, with a TLS proxy in front of it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Server, startServer } from '@tskeeper/server';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { identity, jks, pkcs12 } from '../support/certificates.ts';
import { TlsFronts } from '../support/tls-fronts.ts';
import * as guide from './tls-and-authentication.ts';

const ca = identity({ cn: 'authority', isAuthority: true });
const zookeeper = identity({ names: ['DNS:localhost'], by: ca });
const app = identity({ cn: 'app', by: ca });
const fronts = new TlsFronts();
let folder: string;
let server: Server;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tskeeper-guide-'));
  server = await startServer({ dataDir: join(folder, 'data'), clientPort: 0 });
  const files = {
    'ca.pem': ca.cert,
    'app.pem': app.cert,
    'app.key': app.key,
    'trust.jks': jks([ca], 'changeit'),
    'app.p12': pkcs12([app], 'changeit', app),
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
});

afterAll(async () => {
  await fronts.close();
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

test('the program of the guide to TLS and authentication behaves as documented', async () => {
  const { port, seen } = await fronts.before(server.connectString, {
    cert: zookeeper.cert,
    key: zookeeper.key,
    requestCert: true,
    rejectUnauthorized: false,
    ca: ca.cert,
  });
  const servers = `localhost:${port}`;
  expect(await guide.diagnose(guide.connectOverTls(servers, folder))).toBe(undefined);
  expect(await guide.diagnose(guide.connectWithCertificate(servers, folder))).toBe(undefined);
  expect(await guide.diagnose(guide.connectWithStores(servers, folder, 'changeit'))).toBe(undefined);
  expect(seen.map(({ peer }) => peer)).toEqual([undefined, 'CN=app', 'CN=app']);

  const zk = await guide.keepForOurselves(servers, folder, 'secret');
  expect((await zk.getACL('/app')).acl.map(({ id }) => id.scheme)).toEqual(['digest']);
  await zk.close();

  expect(await guide.diagnose(guide.connectOverTls(servers, '/no/such/folder'))).toMatch(
    /^tls\.ca: cannot read the file \/no\/such\/folder\/ca\.pem/,
  );
  // Our server does not support SASL yet, and rejects it as ZooKeeper does.
  expect(await guide.diagnose(guide.connectWithPassword(server.connectString, 'bob', 'secret'))).toMatch(
    /^not let in: .*SASL DIGEST-MD5: the server is not configured for SASL/,
  );
});
