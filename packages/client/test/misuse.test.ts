/**
 * Typing mistakes, and habits from other clients: each call of the public API rejects them at once,
 * and says what to write.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as exported from '../src/index.ts';
import { Client, ClientView, connect, op } from '../src/index.ts';
import { ClientWorld } from './support/client-world.ts';

let world: ClientWorld;
let zk: any;

beforeAll(async () => {
  world = await ClientWorld.start();
  const client = await world.connect();
  await world.until(client.create('/a', 'kept'));
  zk = client;
});

afterAll(async () => {
  await world.close();
});

/** The thrown error or the reason of the promise, as `TypeError: message`. */
async function refusalOf(act: () => unknown): Promise<string> {
  try {
    const result = act();
    if (result instanceof Promise) await world.until(result);
    return 'nothing';
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`;
  }
}

/**
 * Wrong calls of each method. Methods that send a request have a row for options that are not an
 * object, and one for an unknown option.
 */
const calls: Readonly<Record<string, readonly (readonly [act: () => unknown, message: string])[]>> = {
  addAuth: [
    [() => zk.addAuth('digest', 'a:b', () => {}), 'options must be an object, not a function'],
    [() => zk.addAuth('digest', 'a:b', { timeout: 1 }), 'unknown option "timeout"; write timeoutMs'],
    [() => zk.addAuth('digest'), 'addAuth: the auth must be a Uint8Array or a string, not undefined'],
    [() => zk.addAuth({ scheme: 'digest' }), 'addAuth: the scheme must be a string, not an object'],
  ],
  addWatch: [
    [() => zk.addWatch('/a'), 'addWatch: options must be an object, not undefined: write addWatch(path, { watch: ... })'],
    [() => zk.addWatch('/a', () => {}), 'write addWatch(path, { watch: listener })'],
    [() => zk.addWatch('/a', {}), 'watch is missing'],
    [() => zk.addWatch('/a', { watch: true, recursive: true }), 'unknown option "recursive"'],
  ],
  chroot: [
    [() => zk.chroot(5), 'chroot: the path must be a string, as in "/app/config", not 5'],
    [() => zk.chroot('/a', {}), 'chroot(path) takes 1 argument, not 2'],
  ],
  close: [[() => zk.close(() => {}), 'close takes no callback']],
  ready: [[() => zk.ready(() => {}), 'ready() takes no argument, not 1']],
  create: [
    [() => zk.create('/b', 'x', 1), "options must be an object, not 1: write create(path, data, { mode: 'ephemeral' })"],
    [() => zk.create('/b', 'x', 'ephemeral'), "write create(path, data, { mode: 'ephemeral' })"],
    [() => zk.create('/b', 'x', [{ perms: 31 }]), 'write create(path, data, { acl: [...] })'],
    [() => zk.create('/b', 'x', { ephemeral: true }), 'unknown option "ephemeral"; write mode, which must be "persistent", "ephemeral"'],
    [() => zk.create('/b', 'x', { mode: 'EPHEMERAL' }), 'not "EPHEMERAL"'],
    [() => zk.create('/b', { a: 1 }), 'create: the data must be a Uint8Array, a string or null, not an object'],
    [
      () => zk.create('/b', 'x', { acl: [{ perms: 'r', id: { scheme: 'world', id: 'anyone' } }] }),
      'create: acl[0].perms must be a whole number, such as Perms.read | Perms.write, not "r"',
    ],
    [
      () => zk.create('/b', 'x', { acl: [{ perms: 1, scheme: 'world', id: 'anyone' }] }),
      'create: acl[0].id must be an object { scheme, id } of two strings, not "anyone"',
    ],
    [
      () => zk.create('/b', 'x', { acl: ['world:anyone:r'] }),
      'create: acl[0] must be an object { perms, id: { scheme, id } }, not "world:anyone:r"',
    ],
    [() => zk.create('/b', 'x', {}, () => {}), 'takes 3 arguments, not 4; calls return promises and take no callback'],
  ],
  createJson: [
    [() => zk.createJson('/b', 1, 1), 'options must be an object, not 1'],
    [() => zk.createJson('/b', 1, { flags: 1 }), 'unknown option "flags"; write mode'],
    [() => zk.createJson('/b', undefined), 'createJson: the value cannot be written as JSON: JSON has no undefined'],
    [() => zk.createJson('/b', 1n), 'the value cannot be written as JSON: Do not know how to serialize a BigInt'],
  ],
  delete: [
    [() => zk.delete('/a', 0), 'options must be an object, not 0: write delete(path, { version: 0 })'],
    [() => zk.delete('/a', { verison: 3 }), 'unknown option "verison"; write version'],
    [() => zk.delete('/a', { version: '3' }), 'version must be a whole number from -2147483648 to 2147483647, not "3"'],
    [() => zk.delete('/a', { version: Number.NaN }), 'RangeError: delete: version must be a whole number'],
  ],
  deleteRecursive: [
    [() => zk.deleteRecursive('/a', 0), 'options must be an object, not 0'],
    [() => zk.deleteRecursive('/a', { version: 0 }), 'unknown option "version"'],
  ],
  ensurePath: [
    [() => zk.ensurePath('/a', true), 'options must be an object, not true'],
    [() => zk.ensurePath('/a', { mode: 'ephemeral' }), 'mode must be "persistent" or "container", not "ephemeral"'],
    [() => zk.ensurePath('/a', { acls: [] }), 'unknown option "acls"; write acl'],
  ],
  exists: [
    [() => zk.exists('/a', true), 'write exists(path, { watch: true })'],
    [
      () =>
        zk.exists(
          '/a',
          () => {},
          () => {},
        ),
      'takes 2 arguments, not 3',
    ],
    [() => zk.exists('/a', { watcher: () => {} }), 'unknown option "watcher"; write watch'],
    [() => zk.exists('/a', { watch: 'yes' }), 'watch must be a function or true, not "yes"'],
  ],
  getACL: [
    [() => zk.getACL('/a', () => {}), 'options must be an object, not a function'],
    [() => zk.getACL('/a', { linearisable: true }), 'unknown option "linearisable"; write linearizable'],
  ],
  getAllChildrenNumber: [
    [() => zk.getAllChildrenNumber('/a', () => {}), 'options must be an object'],
    [() => zk.getAllChildrenNumber('/a', { watch: true }), 'unknown option "watch"'],
  ],
  getChildren: [
    [() => zk.getChildren('/a', () => {}), 'write getChildren(path, { watch: listener })'],
    [() => zk.getChildren('/a', { include_data: true }), 'unknown option "include_data"'],
  ],
  getChildrenWithData: [
    [() => zk.getChildrenWithData('/a', () => {}), 'options must be an object'],
    [() => zk.getChildrenWithData('/a', { data: true }), 'unknown option "data"'],
    [
      () => zk.getChildrenWithData('/a', { pageSize: 1.5 }),
      'RangeError: getChildrenWithData: pageSize must be a whole number >= 1, not 1.5',
    ],
  ],
  getConfig: [
    [() => zk.getConfig(true), 'write getConfig({ watch: true })'],
    [() => zk.getConfig({ watched: true }), 'unknown option "watched"; write watch'],
  ],
  getData: [
    [() => zk.getData(), 'getData: the path must be a string, as in "/app/config", not undefined'],
    [() => zk.getData('/a', AbortSignal.abort()), 'write getData(path, { signal })'],
    [() => zk.getData('/a', { signal: new AbortController() }), 'signal must be an AbortSignal (pass controller.signal)'],
    [() => zk.getData('/a', { timeoutMs: '5' }), 'timeoutMs must be a number of milliseconds >= 0, or Infinity, not "5"'],
    [() => zk.getData('/a', { retries: 5 }), 'unknown option "retries"; write retry'],
  ],
  getEphemerals: [
    [() => zk.getEphemerals('/', () => {}), 'options must be an object'],
    [() => zk.getEphemerals({ timeoutMs: 5 }), 'getEphemerals: the prefix must be a string, not an object'],
    [() => zk.getEphemerals('/', { path: '/' }), 'unknown option "path"'],
  ],
  getJson: [
    [() => zk.getJson('/a', () => {}), 'options must be an object'],
    [() => zk.getJson('/a', { reviver: null }), 'unknown option "reviver"'],
  ],
  getText: [
    [() => zk.getText('/a', 'utf8'), 'options must be an object, not "utf8"'],
    [() => zk.getText('/a', { encoding: 'utf8' }), 'unknown option "encoding"'],
  ],
  multi: [
    [() => zk.multi(op.create('/b')), 'multi: ops must be an array such as [op.create(path), op.delete(path)], not an object'],
    [
      () => zk.multi([op.getData('/a')]),
      'multi: ops[0] is not an operation of multi; create it with op.create, op.delete, op.setData, op.check',
    ],
    [() => zk.multi([{ op: 'delete', path: '/a', verison: 3 }]), 'multi: ops[0], op.delete: unknown option "verison"; write version'],
    [() => zk.multi([op.delete('/a')], 5), 'options must be an object, not 5'],
    [() => zk.multi([op.delete('/a')], { timeout: 5 }), 'unknown option "timeout"'],
  ],
  multiRead: [
    [() => zk.multiRead('/a'), 'multiRead: ops must be an array such as [op.getData(path)], not "/a"'],
    [() => zk.multiRead([op.delete('/a')]), 'not an operation of multiRead'],
    [() => zk.multiRead([op.getData('/a')], true), 'options must be an object, not true'],
    [() => zk.multiRead([op.getData('/a')], { watch: true }), 'unknown option "watch"'],
  ],
  on: [
    [
      () => zk.on('expired', () => {}),
      `on: there is no event "expired"; it is a state: write on('state', ({ state }) => ...), where state is 'Expired'`,
    ],
    [() => zk.on('connected', () => {}), `where state is 'SyncConnected'`],
    [() => zk.on('lost', () => {}), `where state is 'Expired'`],
    [() => zk.on('disconnected', () => {}), `where state is 'Disconnected'`],
    [() => zk.on('close', () => {}), `where state is 'Closed'`],
    [() => zk.on('SyncConnected', () => {}), `where state is 'SyncConnected'`],
    [() => zk.on('states', () => {}), `on: there is no event "states"; write on('state', listener)`],
    [() => zk.on('connectFail', () => {}), `write on('connectFailed', listener)`],
    [() => zk.on('nonsense', () => {}), 'on: the event must be "state", "event" or "connectFailed", not "nonsense"'],
    [() => zk.on('state'), 'on: the listener must be a function, not undefined'],
    [() => zk.on(() => {}), 'on: the event must be "state", "event" or "connectFailed", not a function'],
  ],
  reconfig: [
    [() => zk.reconfig(), 'options must be an object, not undefined'],
    [() => zk.reconfig({ joining: 'server.1=a:1:2' }), 'unknown option "joining"'],
    [() => zk.reconfig({ leavingServers: 5 }), 'leavingServers must be a string or an array, not 5'],
    [() => zk.reconfig({ leavingServers: '1', fromConfig: 5 }), 'fromConfig must be a bigint, not 5'],
  ],
  removeWatches: [
    [() => zk.removeWatches('/a', () => {}), 'write removeWatches(path, { watch: listener })'],
    [() => zk.removeWatches('/a', { types: 'any' }), 'unknown option "types"; write type'],
  ],
  setACL: [
    [
      () => zk.setACL('/a', [{ perms: 1, id: { scheme: 'world', id: 5 } }]),
      'setACL: the acl[0].id must be an object { scheme, id } of two strings, not an object',
    ],
    [() => zk.setACL('/a', {}), 'setACL: the acl must be an array of { perms: Perms.read, id: { scheme, id } }, not an object'],
    [() => zk.setACL('/a', [], 0), 'write setACL(path, acl, { version: 0 })'],
    [() => zk.setACL('/a', [], { aversion: 0 }), 'unknown option "aversion"; write version'],
  ],
  setData: [
    [() => zk.setData('/a', 'x', 0), 'write setData(path, data, { version: 0 })'],
    [() => zk.setData('/a', 'x', { ver: 0 }), 'unknown option "ver"'],
    [() => zk.setData('/a'), 'setData: the data must be a Uint8Array, a string or null, not undefined'],
    [() => zk.setData('/a', 5), 'setData: the data must be a Uint8Array, a string or null, not 5'],
    [() => zk.setData('/a', Promise.resolve('x')), 'not a promise; await it first'],
  ],
  setJson: [
    [() => zk.setJson('/a', 1, 0), 'write setJson(path, value, { version: 0 })'],
    [() => zk.setJson('/a', 1, { verion: 0 }), 'unknown option "verion"; write version'],
    [() => zk.setJson('/a', () => {}), 'JSON has no function'],
  ],
  sync: [
    [() => zk.sync('/a', () => {}), 'options must be an object'],
    [() => zk.sync({}), 'sync: the path must be a string, as in "/app/config", not an object'],
    [() => zk.sync('/a', { wait: 5 }), 'unknown option "wait"'],
  ],
  update: [
    [() => zk.update('/a', 'x'), 'update: the updater must be a function, not "x"'],
    [() => zk.update('/a', () => 'x', true), 'options must be an object, not true'],
    [() => zk.update('/a', () => 'x', { create: { modes: 'container' } }), 'update: create: unknown option "modes"; write mode'],
  ],
  updateServerList: [
    [() => zk.updateServerList(5), 'the list of servers must be a string such as "zk1:2181,zk2:2181" or an array'],
    [() => zk.updateServerList([5]), 'each element of the list of servers must be a string such as "zk1:2181" or an object'],
    [() => zk.updateServerList('a', 'b'), 'takes 1 argument, not 2'],
  ],
  children: [
    [() => zk.children('/a', () => {}), 'options must be an object'],
    [() => zk.children('/a', { pagesize: 5 }), 'unknown option "pagesize"; write pageSize'],
    [() => zk.children('/a', { pageSize: 0 }), 'RangeError: children: pageSize must be a whole number >= 1, not 0'],
  ],
  walk: [
    [() => zk.walk('/a', () => {}), 'options must be an object'],
    [() => zk.walk('/a', { parallelism: 5 }), 'unknown option "parallelism"'],
    [() => zk.walk('/a', { concurrency: 0 }), 'RangeError: walk: concurrency must be a whole number >= 1, not 0'],
  ],
  watch: [
    [() => zk.watch('/a', true), 'options must be an object, not true: write watch(path, { recursive: true })'],
    [() => zk.watch('/a', { recusive: true }), 'unknown option "recusive"; write recursive'],
    [() => zk.watch(), 'watch: the path must be a string, as in "/app/config", not undefined'],
  ],
  getLeader: [
    [() => zk.getLeader(() => {}), 'options must be an object'],
    [() => zk.getLeader({ timeOut: 5 }), 'unknown option "timeOut"; write timeoutMs'],
  ],
  transferLeader: [
    [() => zk.transferLeader(2), 'options must be an object'],
    [() => zk.transferLeader({ to: '2' }), 'to must be'],
    [() => zk.transferLeader({ target: 2 }), 'unknown option "target"'],
  ],
  shedConnections: [
    [() => zk.shedConnections(), 'share must be a number from 0 to 1'],
    [() => zk.shedConnections(50), 'share must be a number from 0 to 1, not 50'],
    [() => zk.shedConnections(0.5, () => {}), 'options must be an object'],
    [() => zk.shedConnections(0.5, { timeOut: 5 }), 'unknown option "timeOut"; write timeoutMs'],
  ],
  whoAmI: [
    [() => zk.whoAmI(() => {}), 'options must be an object'],
    [() => zk.whoAmI({ timeOut: 5 }), 'unknown option "timeOut"; write timeoutMs'],
  ],
};

describe('a method of the client', () => {
  it('has a row in this table', () => {
    const methods = [Client, ClientView].flatMap(({ prototype }) =>
      Object.entries(Object.getOwnPropertyDescriptors(prototype))
        .filter(([name, { value }]) => typeof value === 'function' && name !== 'constructor')
        .map(([name]) => name),
    );
    expect(Object.keys(calls).sort()).toEqual([...new Set(methods)].sort());
  });

  const local = ['chroot', 'close', 'on', 'ready', 'updateServerList'];

  it.each(Object.entries(calls))('%s rejects invalid arguments', async (name, rows) => {
    const messages: string[] = [];
    for (const [act, message] of rows) {
      const refusal = await refusalOf(act);
      expect(refusal).toContain(message);
      expect(refusal).toMatch(/^(?:Type|Range)Error: /);
      messages.push(refusal);
    }
    if (local.includes(name)) return;
    expect(messages.some((message) => message.includes('options must be an object'))).toBe(true);
    expect(messages.some((message) => message.includes('unknown option'))).toBe(true);
  });

  it.each(Object.keys(calls).filter((name) => !local.includes(name)))('%s rejects a surplus argument', async (name) => {
    const refusal = await refusalOf(() => zk[name]('/a', 'digest', undefined, undefined, undefined));
    expect(refusal).toMatch(
      new RegExp(`^TypeError: ${name}\\([^)]*\\) takes \\d arguments?, not 5; calls return promises and take no callback$`),
    );
  });

  it('changes nothing if it rejects its arguments', async () => {
    const { text, stat } = await world.until(zk.getText('/a') as ReturnType<Client['getText']>);
    expect([text, stat.version, stat.aversion, stat.numChildren]).toEqual(['kept', 0, 0, 0]);
    expect(await world.until(zk.exists('/b'))).toBe(null);
  });

  it('accepts options with undefined values', async () => {
    const none = { signal: undefined, timeoutMs: undefined, retry: undefined };
    const { stat } = await world.until(
      zk.getData('/a', { watch: undefined, linearizable: undefined, ...none }) as ReturnType<Client['getData']>,
    );
    expect(stat.version).toBe(0);
    expect(await refusalOf(() => zk.delete('/missing', { version: undefined, idempotent: undefined, ...none }))).toContain('NoNode');
  });
});

/** Without types, as in a JavaScript program. */
const loose = exported as any;

/** Wrong calls of each function. */
const functionCalls: readonly (readonly [title: string, act: () => unknown, message: string])[] = [
  [
    'connect(5)',
    () => loose.connect(5),
    'TypeError: the list of servers must be a string such as "zk1:2181,zk2:2181" or an array such as ["zk1:2181", { host: "zk2", port: 2181 }], not 5',
  ],
  ['connect()', () => loose.connect(), 'not undefined'],
  [
    'connect(servers, number)',
    () => loose.connect('a', 5000),
    'connect: options must be an object, not 5000: write connect(servers, { sessionTimeoutMs: 5000 })',
  ],
  [
    'connect with sessionTimeout',
    () => loose.connect('a', { sessionTimeout: 5 }),
    'unknown option "sessionTimeout"; write sessionTimeoutMs',
  ],
  ['connect with timeout', () => loose.connect('a', { timeout: 5 }), 'unknown option "timeout"; write sessionTimeoutMs'],
  ['connect with hosts', () => loose.connect('a', { hosts: 'a' }), 'the servers are the first argument'],
  ['connect with chroot', () => loose.connect('a', { chroot: '/a' }), 'write the chroot at the end of the connect string'],
  [
    'connect with auth',
    () => loose.connect('a', { auth: 'user:secret' }),
    'connect: auth must be an array with each element an object { scheme, auth }, not a string',
  ],
  [
    'connect with a session',
    () => loose.connect('a', { session: { id: 5n } }),
    'connect: session.password is missing: write { id, password }',
  ],
  ['connect with tls', () => loose.connect('a', { tls: { cafile: 'x' } }), 'connect: tls: unknown option "cafile"'],
  [
    'connect with sasl',
    () => loose.connect('a', { sasl: { mechanism: 'DIGEST-MD5', user: 'u', password: 'secret' } }),
    'connect: sasl: unknown option "user"; write username',
  ],
  [
    'connect with a transport',
    () => loose.connect('a', { transport: {} }),
    'transport must be a transport (an object with connect), not an object',
  ],
  ['connect with keepProcessAlive', () => loose.connect('a', { keepProcessAlive: 0 }), 'keepProcessAlive must be true or false, not 0'],
  ['createClient(servers, function)', () => loose.createClient('a', () => {}), 'createClient: options must be an object, not a function'],
  ['createClient with a chroot in a list', () => loose.createClient(['a/b']), 'a list of servers cannot have a chroot'],
  ['fourLetterWord', () => loose.fourLetterWord('a', 'ruok', 5), 'fourLetterWord: options must be an object, not 5'],
  ['fourLetterWord of nothing', () => loose.fourLetterWord('a'), 'fourLetterWord: the word must be a string, not undefined'],
  ['op.create', () => loose.op.create('/a', 'x', { parents: true }), 'op.create: unknown option "parents"'],
  ['op.delete', () => loose.op.delete('/a', 0), 'op.delete: options must be an object, not 0: write op.delete(path, { version: 0 })'],
  ['op.setData', () => loose.op.setData('/a'), 'op.setData: the data must be a Uint8Array, a string or null, not undefined'],
  ['op.check', () => loose.op.check('/a', { verison: 1 }), 'op.check: unknown option "verison"; write version'],
  ['op.getData', () => loose.op.getData('/a', {}), 'op.getData(path) takes 1 argument, not 2'],
  ['op.getChildren', () => loose.op.getChildren(), 'op.getChildren: the path must be a string'],
  ['KeeperError.is', () => loose.KeeperError.is(new Error('x'), 'NO_NODE'), 'KeeperError.is: unknown code "NO_NODE"; write NoNode'],
  [
    'KeeperError.is with an unknown word',
    () => loose.KeeperError.is(new Error('x'), 'Gone'),
    'unknown code "Gone"; use one of ZooKeeper\'s codes, such as NoNode',
  ],
  [
    'parseConnectString',
    () => loose.parseConnectString(['a']),
    'the connect string must be a string such as "zk1:2181,zk2:2181/app", not an array',
  ],
  ['sequenceOf', () => loose.sequenceOf('/a'), 'sequenceOf: the prefix must be a string, not undefined'],
  ['compareSequences', () => loose.compareSequences('/a', '/b'), 'compareSequences: the first number must be a whole number'],
  ['new NodeTransport', () => new loose.NodeTransport({ keepalive: true }), 'new NodeTransport: unknown option "keepalive"'],
  [
    'new TlsTransport',
    () => new loose.TlsTransport({ hostnameVerificaton: false }),
    'unknown option "hostnameVerificaton"; write hostnameVerification',
  ],
  ['new NodeTransport of a number', () => new loose.NodeTransport(5), 'new NodeTransport: options must be an object, not 5'],
  ['new TlsTransport of a number', () => new loose.TlsTransport(5), 'new TlsTransport: options must be an object, not 5'],
  [
    'new TlsTransport, the options of its sockets',
    () => new loose.TlsTransport({}, 5),
    'new TlsTransport: options must be an object, not 5: write new TlsTransport(tlsOptions, { keepProcessAlive: ... })',
  ],
  ['new Client', () => new loose.Client('zk1:2181'), "TypeError: cannot construct a Client with new; use await connect('zk1:2181')"],
  ['new ClientView', () => new loose.ClientView(zk, '/a'), 'TypeError: cannot construct a ClientView with new; use client.chroot(path)'],
  ['digestId of nothing', () => loose.digestId(), 'digestId: the text "user:password" must be a string, not undefined'],
  [
    'digestId of an object',
    () => loose.digestId({ user: 'u', password: 'secret' }),
    'the text "user:password" must be a string, not an object',
  ],
  ['digestId without a colon', () => loose.digestId('secret'), 'the text "user:password" must contain ":"'],
  [
    'digestId with an algorithm of another type',
    () => loose.digestId('a:b', 256),
    'digestId: the algorithm must be a string, as in "SHA-256", not 256',
  ],
  ['digestId with an unknown algorithm', () => loose.digestId('a:b', 'MD5'), 'RangeError: no digest algorithm "MD5": use one of SHA1'],
  [
    'formatServer of nothing',
    () => loose.formatServer(),
    'formatServer: the server must be an object such as { host: "zk1", port: 2181 }, not undefined',
  ],
  [
    'formatServer of a string',
    () => loose.formatServer('zk1:2181'),
    'must be an object such as { host: "zk1", port: 2181 }, not "zk1:2181"',
  ],
  [
    'formatServer without a port',
    () => loose.formatServer({ host: 'zk1' }),
    'must be an object such as { host: "zk1", port: 2181 }, not an object',
  ],
  ['formatZxid of nothing', () => loose.formatZxid(), 'formatZxid: the zxid must be a bigint or a number, not undefined'],
  ['formatZxid of a string', () => loose.formatZxid('5'), 'formatZxid: the zxid must be a bigint or a number, not "5"'],
  ['formatSessionId of a number', () => loose.formatSessionId(5), 'formatSessionId: the id must be a bigint, not 5'],
];

describe('a function of the package', () => {
  it('has a row in this table', () => {
    // Errors, which programs do not construct.
    const errors = ['ConnectOptionsError', 'ConnectStringError', 'DataFormatError', 'KeeperError'];
    const ofOp = Object.keys(exported.op).map((name) => `op.${name}`);
    const all = Object.entries(exported).flatMap(([name, each]) =>
      typeof each !== 'function' || errors.includes(name) ? [] : [/^class\b/.test(String(each)) ? `new ${name}` : name],
    );
    const tried = functionCalls.map(([title]) => title);
    const untried = [...all, ...ofOp].filter(
      (name) => !tried.some((title) => title === name || (/^[ ,(]/.test(title.slice(name.length)) && title.startsWith(name))),
    );
    expect(untried).toEqual([]);
    expect(all).toContain('digestId');
  });

  it.each(functionCalls)('rejects invalid arguments: %s', async (_, act, message) => {
    const refusal = await refusalOf(act);
    expect(refusal).toContain(message);
    expect(refusal).toMatch(/^(?:Type|Range|ConnectString)Error: /);
    expect(refusal).not.toContain('secret');
  });

  it('connect accepts an array of servers', async () => {
    const client = await world.until(connect(['nowhere:1', { host: 'server', port: 2181 }, 'server'], world.options()));
    expect(client.servers.toSorted()).toEqual(['nowhere:1', 'server:2181']);
    await world.until(client.close());
  });
});
