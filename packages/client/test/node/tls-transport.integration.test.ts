/**
 * TLS over real sockets. Certificates are created for the run; the ensemble is our server, with a
 * TLS proxy in front of it.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TlsOptions as ServerOptions } from 'node:tls';
import { type Server, startServer } from '@tskeeper/server';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  type Clock,
  connect,
  ConnectOptionsError,
  fourLetterWord,
  KeeperError,
  type TlsOptions,
  TlsTransport,
  type TransportCnxn,
} from '../../src/index.ts';
import { systemClock } from '../../src/node/system-clock.ts';
import { identity, jks, pkcs12 } from '../support/certificates.ts';
import { type Front, TlsFronts } from '../support/tls-fronts.ts';

const ca = identity({ cn: 'authority', isAuthority: true });
const otherCa = identity({ cn: 'another authority', isAuthority: true });
const good = identity({ cn: 'zk', names: ['DNS:localhost', 'IP:127.0.0.1', 'IP:::1'], by: ca });
const client = identity({ cn: 'app', by: ca });
const trusting: TlsOptions = { ca: ca.cert };

let folder: string;
let keeper: Server;
const fronts = new TlsFronts();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tskeeper-tls-'));
  keeper = await startServer({ dataDir: folder, clientPort: 0 });
});

afterAll(async () => {
  await keeper.close();
  rmSync(folder, { recursive: true, force: true });
});

afterEach(() => fronts.close());

function front(options: ServerOptions = {}, host?: string): Promise<Front> {
  return fronts.before(keeper.connectString, { cert: good.cert, key: good.key, ...options }, host);
}

/** Why no connection was made, or it was lost at once; `undefined` if it holds. */
async function faultOf(
  port: number,
  tls: TlsOptions,
  name: string | undefined = 'localhost',
  host = '127.0.0.1',
): Promise<string | undefined> {
  let cnxn!: TransportCnxn;
  const fault = await new Promise<string | undefined>((resolve) => {
    cnxn = new TlsTransport(tls).connect(
      { host, port, name },
      {
        // With TLS 1.3 a server verifies the client's certificate after the client is done, so
        // something must come back.
        connected: () => cnxn.send(Buffer.from('ruok')),
        received: () => resolve(undefined),
        closed: (error) => resolve(error ?? 'closed'),
      },
    );
  });
  cnxn.destroy();
  return fault;
}

const optionsFault = (tls: TlsOptions) =>
  connect('localhost:1', { tls, connectTimeoutMs: 1 }).then(
    () => undefined,
    (error: unknown) => error,
  );

describe('A89, B41: TLS', () => {
  it('B56: carries a four letter word, but only to a trusted server', async () => {
    const { port } = await front();
    expect(await fourLetterWord(`localhost:${port}`, 'srvr', { tls: trusting })).toContain('Mode: standalone');
    const distrusting = fourLetterWord(`localhost:${port}`, 'srvr', { tls: { ca: otherCa.cert } });
    await expect(distrusting).rejects.toMatchObject({ code: 'ConnectionLoss', op: 'fourLetterWord' });
    await expect(fourLetterWord(keeper.connectString, 'srvr')).resolves.toContain('Mode: standalone');
  });

  it('carries a session, by name and by address, and across a reconnect', async () => {
    const { port, seen } = await front();
    await using zk = await connect(`localhost:${port}`, { tls: trusting });
    await zk.create('/tls', 'secret');
    const back = new Promise<void>((resolve) => void zk.on('state', ({ state }) => state === 'SyncConnected' && resolve()));
    fronts.cut();
    await back;
    expect(new TextDecoder().decode((await zk.getData('/tls')).data)).toBe('secret');
    expect(seen).toEqual([
      { servername: 'localhost', peer: undefined, protocol: 'TLSv1.3' },
      { servername: 'localhost', peer: undefined, protocol: 'TLSv1.3' },
    ]);
    await using byAddress = await connect(`127.0.0.1:${port}`, { tls: trusting });
    await byAddress.delete('/tls');
    expect(seen.at(-1)!.servername).toBe(false);
  });

  it('works over IPv6', async () => {
    const { port } = await front({}, '::1');
    await using zk = await connect(`[::1]:${port}`, { tls: trusting });
    expect(zk.state).toBe('connected');
  });

  it('verifies against the authorities of Node by default', async () => {
    const { port } = await front();
    expect(await faultOf(port, {})).toMatch(
      /^the server's certificate "CN=zk", signed by "CN=authority", does not lead to a trusted authority \(UNABLE_TO_[A-Z_]+\); give the authority's certificate as tls\.ca or tls\.trustStore$/,
    );
  });

  it('puts the reason of a failed handshake into the event and the error', async () => {
    const { port } = await front();
    const connectTimeoutMs = 5000;
    let giveUp = (): void => undefined;
    // The timeout passes when the first attempt has failed and the client pauses before the next,
    // however long that took.
    const after: Clock['after'] = (delayMs, callback) => {
      if (delayMs === connectTimeoutMs) giveUp = callback;
      else if (delayMs < connectTimeoutMs) giveUp();
      return systemClock.after(delayMs, callback);
    };
    async function theCallerThatWaits(): Promise<unknown> {
      try {
        return await connect(`localhost:${port}`, { tls: { ca: otherCa.cert }, connectTimeoutMs, clock: { ...systemClock, after } });
      } catch (thrown) {
        return thrown;
      }
    }
    const error = await theCallerThatWaits();
    expect(KeeperError.is(error, 'ConnectionLoss')).toBe(true);
    expect(error).toMatchObject({ errno: -4, op: 'connect', path: undefined, outcome: 'notSent', retryable: true });
    expect((error as Error).stack).toContain('theCallerThatWaits');
    expect((error as Error).message).toContain(
      `localhost:${port} at 127.0.0.1: connection failed: the server's certificate "CN=zk", signed by`,
    );
  });

  it('reports no connection before the certificate is verified', async () => {
    const { port } = await front({ cert: otherCa.cert, key: otherCa.key });
    const heard: string[] = [];
    await new Promise<void>((resolve) => {
      new TlsTransport(trusting).connect(
        { host: '127.0.0.1', port, name: 'localhost' },
        {
          connected: () => void heard.push('connected'),
          received: () => void heard.push('received'),
          closed: () => {
            heard.push('closed');
            resolve();
          },
        },
      );
    });
    expect(heard).toEqual(['closed']);
  });

  it.each([
    [
      'a self-signed certificate',
      { cn: 'zk', names: ['DNS:localhost'] },
      /does not lead to a trusted authority \(DEPTH_ZERO_SELF_SIGNED_CERT\)/,
    ],
    [
      'a certificate of another authority',
      { cn: 'zk', names: ['DNS:localhost'], by: otherCa },
      /does not lead to a trusted authority \(UNABLE_TO_/,
    ],
    [
      'an expired certificate',
      { cn: 'zk', names: ['DNS:localhost'], by: ca, days: [-9, -2] as const },
      /^the server's certificate "CN=zk", or one of its issuers, has expired \(it is valid until .*GMT\); renew it$/,
    ],
    [
      'a certificate that is not valid yet',
      { cn: 'zk', names: ['DNS:localhost'], by: ca, days: [2, 9] as const },
      /is not valid yet \(from .*GMT\); check the clock$/,
    ],
    ['a certificate signed without authority', { cn: 'zk', names: ['DNS:localhost'], by: client }, /^the server's certificate "CN=zk"/],
  ])('rejects %s, also if names are not verified', async (_what, wish, words) => {
    const own = identity(wish);
    const { port } = await front({ cert: own.cert, key: own.key });
    expect(await faultOf(port, trusting)).toMatch(words);
    expect(await faultOf(port, { ...trusting, hostnameVerification: false })).toMatch(words);
  });

  it.each([
    [{ cn: 'localhost' }, 'the server\'s certificate "CN=localhost" has no subjectAltName, and is not valid for localhost;'],
    [{ cn: 'localhost', names: ['IP:127.0.0.1'] }, 'is valid for IP Address:127.0.0.1, and is not valid for localhost;'],
    [{ cn: 'localhost', names: ['DNS:zk2.example.com'] }, 'is valid for DNS:zk2.example.com, and is not valid for localhost;'],
    [{ names: ['DNS:local*'] }, "the server's certificate (no subject) is valid for DNS:local*, and is not valid for localhost;"],
  ])('accepts only subjectAltName as a name: %o is not valid for localhost', async (wish, words) => {
    const own = identity({ ...wish, by: ca });
    const { port } = await front({ cert: own.cert, key: own.key });
    expect(await faultOf(port, trusting)).toContain(words);
    // Only on request, and the other checks still apply.
    expect(await faultOf(port, { ...trusting, hostnameVerification: false })).toBe(undefined);
    expect(await faultOf(port, { ca: otherCa.cert, hostnameVerification: false })).toContain('does not lead to a trusted authority');
  });

  it.each([
    ['zk1.example.com', undefined],
    ['ZK1.EXAMPLE.COM.', undefined],
    ['a.zk.example.com', undefined],
    ['a.b.zk.example.com', ', and is not valid for a.b.zk.example.com'],
    ['example.com', ', and is not valid for example.com'],
    ['10.1.2.3', undefined],
    ['10.1.2.4', ', and is not valid for 10.1.2.4'],
    ['fe80::1%eth0', undefined],
  ])('verifies against the name in the connect string, whichever address it has: %s', async (name, words) => {
    const own = identity({ names: ['DNS:zk1.example.com', 'DNS:*.zk.example.com', 'IP:10.1.2.3', 'IP:fe80::1'], by: ca });
    const { port } = await front({ cert: own.cert, key: own.key });
    const fault = await faultOf(port, trusting, name);
    expect(fault).toEqual(words === undefined ? undefined : expect.stringContaining(words));
  });

  it('verifies against serverName instead, and sends it as SNI', async () => {
    const own = identity({ names: ['DNS:ensemble'], by: ca });
    const { port, seen } = await front({ cert: own.cert, key: own.key });
    expect(await faultOf(port, trusting)).toContain(', and is not valid for localhost');
    expect(await faultOf(port, { ...trusting, serverName: 'ensemble' })).toBe(undefined);
    expect(seen.at(-1)!.servername).toBe('ensemble');
  });

  it('supports only TLS 1.2 and later', async () => {
    const old = await front({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' });
    const words = 'the server supports no TLS version from tls.minVersion on (alert: protocol version)';
    expect(await faultOf(old.port, trusting)).toBe(words);
    const twelve = await front({ maxVersion: 'TLSv1.2' });
    expect(await faultOf(twelve.port, trusting)).toBe(undefined);
    expect(await faultOf(twelve.port, { ...trusting, minVersion: 'TLSv1.3' })).toBe(words);
  });

  it('reports a port without TLS', async () => {
    const shy = createTcpServer((socket) => {
      fronts.keep(socket);
      socket.once('data', () => socket.end());
    });
    expect(await faultOf(await fronts.listening(shy), trusting)).toBe(
      'the server closed the connection during the TLS handshake (ECONNRESET); check that this is its secureClientPort, and that it accepts this client',
    );
    const talkative = createTcpServer((socket) => {
      fronts.keep(socket);
      socket.resume();
      socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    });
    const port = await fronts.listening(talkative);
    expect(await faultOf(port, trusting)).toMatch(/^the server does not speak TLS on this port/);
    await fronts.close();
    expect(await faultOf(port, trusting)).toBe('ECONNREFUSED');
  });

  it('leaves a server that never ends the handshake, within the time-out of an attempt', async () => {
    const mute = createTcpServer(fronts.keep);
    const stuck = await fronts.listening(mute);
    const { port } = await front();
    // Half of the servers tried first would do; with both orders, one of the two starts with the
    // silent one.
    for (const list of [`localhost:${stuck},localhost:${port}`, `localhost:${port},localhost:${stuck}`]) {
      await using zk = await connect(list, { tls: trusting, sessionTimeoutMs: 600, random: { uint32: () => 0 } });
      expect(zk.connectedServer).toBe(`localhost:${port}`);
    }
    expect(fronts.socketCount).toBeGreaterThan(4);
  });

  it('reports nothing if the connection is dropped before its certificates are read', async () => {
    const { port, seen } = await front();
    const cnxn = new TlsTransport(trusting).connect(
      { host: '127.0.0.1', port, name: 'localhost' },
      { connected: () => expect.unreachable(), received: () => expect.unreachable(), closed: () => expect.unreachable() },
    );
    cnxn.destroy();
    expect(await faultOf(port, trusting)).toBe(undefined);
    expect(seen).toHaveLength(1);
  });
});

describe('A89, B41: mutual TLS', () => {
  const asking: ServerOptions = { requestCert: true, rejectUnauthorized: true, ca: ca.cert };

  it.each<[string, () => TlsOptions]>([
    ['PEM', () => ({ ...trusting, cert: client.cert, key: client.key })],
    ['bytes of PEM', () => ({ ca: Buffer.from(ca.cert), cert: Buffer.from(client.cert), key: Buffer.from(client.key) })],
    ['several authorities', () => ({ ca: [otherCa.cert, ca.cert], cert: client.cert, key: client.key })],
    ['PEM stores', () => ({ trustStore: ca.cert, keyStore: client.key + client.cert })],
    ['PKCS12', () => ({ ...trusting, keyStore: pkcs12([client], 'changeit', client), keyStorePassword: 'changeit' })],
    [
      'PKCS12 without a key',
      () => ({ trustStore: pkcs12([ca], 'changeit', undefined, 'ca'), trustStorePassword: 'changeit', cert: client.cert, key: client.key }),
    ],
    [
      'JKS',
      () => ({
        trustStore: jks([otherCa, ca], 'changeit'),
        trustStorePassword: 'changeit',
        keyStore: jks([], 'other', [client]),
        keyStorePassword: 'other',
      }),
    ],
  ])('sends its certificate, given as %s', async (_form, options) => {
    const { port, seen } = await front(asking);
    expect(await faultOf(port, options())).toBe(undefined);
    expect(seen.at(-1)!.peer).toBe('CN=app');
  });

  it('does not trust the authorities in its own key store', async () => {
    const middle = identity({ cn: 'middle', by: ca, isAuthority: true });
    const own = identity({ cn: 'zk', names: ['DNS:localhost'], by: middle });
    const direct = await front();
    const chained = await front({ cert: own.cert + middle.cert, key: own.key });
    const store = { keyStore: pkcs12([client, ca], 'changeit', client), keyStorePassword: 'changeit' };
    for (const { port } of [direct, chained]) {
      expect(await faultOf(port, { ...store, ca: otherCa.cert })).toMatch(/does not lead to a trusted authority/);
      expect(await faultOf(port, store)).toMatch(/does not lead to a trusted authority/);
      expect(await faultOf(port, { ...store, ca: [otherCa.cert, ca.cert] })).toBe(undefined);
    }
  });

  it('accepts paths of files, and reads them again for each connection', async () => {
    const { port, seen } = await front(asking);
    const renewed = identity({ cn: 'renewed', by: ca });
    const [cert, key, authority] = ['client.pem', 'client.key', 'ca.pem'].map((name) => join(folder, name)) as [string, string, string];
    const write = (own: typeof client) => {
      writeFileSync(cert, own.cert);
      writeFileSync(key, own.key);
    };
    writeFileSync(authority, ca.cert);
    write(client);
    await using zk = await connect(`localhost:${port}`, { tls: { ca: authority, cert, key } });
    write(renewed);
    const back = new Promise<void>((resolve) => void zk.on('state', ({ state }) => state === 'SyncConnected' && resolve()));
    fronts.cut();
    await back;
    expect(seen.map(({ peer }) => peer)).toEqual(['CN=app', 'CN=renewed']);
  });

  it('treats a missing file as a failed attempt, and continues when it is back', async () => {
    const { port } = await front();
    const authority = join(folder, 'moved.pem');
    writeFileSync(authority, ca.cert);
    await using zk = await connect(`localhost:${port}`, { tls: { ca: authority } });
    rmSync(authority);
    fronts.cut();
    await expect(zk.exists('/')).rejects.toMatchObject({ code: 'ConnectionLoss' });
    const waiting: unknown = await zk.exists('/').catch((thrown: unknown) => thrown);
    expect((waiting as Error).message).toContain(`connection failed: tls.ca: cannot read the file ${authority} (ENOENT)`);
    writeFileSync(authority, ca.cert);
    expect(await zk.exists('/')).not.toBe(null);
  });

  it.each([
    [
      'TLSv1.2',
      {},
      /^the server requires a client certificate \(alert: handshake failure\); give tls\.cert and tls\.key, or tls\.keyStore$/,
    ],
    [
      'TLSv1.3',
      {},
      /^the server requires a client certificate \(alert: .*certificate required\); give tls\.cert and tls\.key, or tls\.keyStore$/,
    ],
    ['TLSv1.2', { cert: otherCa.cert, key: otherCa.key }, /; check that this is its secureClientPort, and that it accepts this client$/],
  ] as const)('reports that a server with %s rejects the client', async (version, own, words) => {
    const { port } = await front({ ...asking, minVersion: version, maxVersion: version });
    expect(await faultOf(port, { ...trusting, ...own })).toMatch(words);
  });
});

describe('invalid options of TLS', () => {
  const encrypted = () => pkcs12([client], 'changeit', client);
  it.each<[string, () => TlsOptions, RegExp | string]>([
    ['ca and trustStore', () => ({ ca: ca.cert, trustStore: ca.cert }), 'tls.ca and tls.trustStore exclude each other; give one of them'],
    [
      'a key in two ways',
      () => ({ keyStore: encrypted(), cert: client.cert, key: client.key }),
      /^tls\.keyStore excludes tls\.cert and tls\.key/,
    ],
    ['a certificate without a key', () => ({ cert: client.cert }), 'tls.cert requires tls.key'],
    ['a key without a certificate', () => ({ key: client.key }), 'tls.key requires tls.cert'],
    ['an empty list of authorities', () => ({ ca: [] }), /^tls\.ca is an empty list/],
    [
      'no such file',
      () => ({ ca: '/no/such/ca.pem' }),
      'tls.ca: cannot read the file /no/such/ca.pem (ENOENT); give a path, PEM text, or bytes',
    ],
    ['no certificate', () => ({ ca: client.key }), 'tls.ca contains no certificate; it must be PEM, with BEGIN CERTIFICATE'],
    [
      'a corrupt certificate',
      () => ({ ca: ca.cert.replace(/^(.{80})..../s, '$1AAAA') }),
      /^tls\.ca contains a certificate that cannot be read/,
    ],
    ['a key that does not match', () => ({ cert: client.cert, key: ca.key }), 'tls.key: key and certificate do not match'],
    [
      'a certificate that is not PEM',
      () => ({ cert: encrypted(), key: client.key }),
      'tls.cert is not PEM; pass PKCS12 and JKS as tls.keyStore',
    ],
    [
      'a wrong password of PKCS12',
      () => ({ keyStore: encrypted(), keyStorePassword: 'x' }),
      /^tls\.keyStore: it cannot be opened with tls\.keyStorePassword/,
    ],
    [
      'a wrong password of JKS',
      () => ({ trustStore: jks([ca], 'changeit'), trustStorePassword: 'x' }),
      /^tls\.trustStore cannot be opened with tls\.trustStorePassword/,
    ],
    [
      'a trust store without certificates',
      () => ({ trustStore: jks([], 'changeit'), trustStorePassword: 'changeit' }),
      /^tls\.trustStore contains no certificate/,
    ],
    [
      'a key store without a key',
      () => ({ keyStore: jks([ca], 'x'), keyStorePassword: 'x' }),
      /^tls\.keyStore contains no key; give a store/,
    ],
    [
      'two keys',
      () => ({ keyStore: jks([], 'x', [client, ca]), keyStorePassword: 'x' }),
      /^tls\.keyStore contains several keys \(key0, key1\)/,
    ],
    ['JCEKS', () => ({ keyStore: Buffer.from('cececece0000000200000000', 'hex') }), /^tls\.keyStore is JCEKS/],
    ['anything else', () => ({ trustStore: Buffer.from('hello') }), 'tls.trustStore is not PKCS12, JKS or PEM'],
  ])('are rejected: %s', async (_what, options, words) => {
    const error = await optionsFault(options());
    expect(error).toBeInstanceOf(ConnectOptionsError);
    expect((error as Error).message).toMatch(words);
  });

  it('are rejected: tls together with a transport', async () => {
    await expect(connect('localhost:1', { tls: true, transport: new TlsTransport() })).rejects.toThrow(
      'tls and transport exclude each other',
    );
  });
});
