/**
 * Every command one-shot against a server: its answer, the stream, and the exit code. interop
 * compares the texts with zkCli.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { zkCommands } from '../../src/commands/zk/table.ts';
import { exitCodes } from '../../src/index.ts';
import { FakeTerminal } from '../support/fake-terminal.ts';
import { jsonLines, temporaryFolder } from '../support/tool.ts';
import { testServer, zkAt, type ZkServer } from '../support/zk.ts';

let server: ZkServer;
beforeAll(async () => {
  server = await testServer();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

/** Runs a command that succeeds and prints nothing but its answer, as JSON. */
const covered = new Set<string>();
async function json(...argv: readonly string[]): Promise<Record<string, unknown>> {
  covered.add(argv[0]!);
  const result = await server.zk('-o', 'json', ...argv);
  expect([argv, result.code, result.err]).toEqual([argv, exitCodes.done, '']);
  const lines = jsonLines(result.out);
  expect(lines).toHaveLength(1);
  return lines[0]!;
}

const someStat = expect.objectContaining({
  czxid: expect.stringMatching(/^0x[0-9a-f]+$/),
  version: expect.any(Number) as number,
}) as unknown;

describe('commands with -o json', () => {
  it('A87: answer with one object of the documented shape', async () => {
    expect(await json('create', '/j', 'one')).toEqual({ path: '/j' });
    expect(await json('create', '-s', '/j/s-', 'x')).toEqual({ path: '/j/s-0000000000' });
    expect(await json('create', '-t', '100000', '/j/ttl')).toEqual({ path: '/j/ttl' });
    expect(await json('create', '-c', '/j/container')).toEqual({ path: '/j/container' });
    expect(await json('get', '/j')).toEqual({ path: '/j', data: 'one', encoding: 'utf8', stat: someStat });
    expect(await json('get', '/j/ttl')).toEqual({ path: '/j/ttl', data: null, stat: someStat });
    expect(await json('set', '-b', '/j', '//79')).toEqual({ path: '/j', stat: someStat });
    expect(await json('get', '/j')).toMatchObject({ data: '//79', encoding: 'base64' });
    expect(await json('stat', '/j')).toEqual({ path: '/j', stat: someStat });
    expect(await json('ls', '/j')).toEqual({ path: '/j', children: ['container', 's-0000000000', 'ttl'] });
    expect(await json('ls', '-s', '/j')).toEqual({ path: '/j', children: ['container', 's-0000000000', 'ttl'], stat: someStat });
    expect(await json('getAllChildrenNumber', '/j')).toEqual({ path: '/j', number: 3 });
    expect(await json('getEphemerals')).toEqual({ prefix: '/', ephemerals: [] });
    expect(await json('sync', '/j')).toEqual({ path: '/j', synced: true });
    const open = [{ scheme: 'world', id: 'anyone', perms: 'cdrwa' }];
    expect(await json('getAcl', '/j')).toEqual({ path: '/j', acl: open, stat: someStat });
    expect(await json('setAcl', '/j', 'world:anyone:cdrwa')).toEqual({ path: '/j', stat: someStat });
    expect(await json('setAcl', '-R', '/j', 'world:anyone:cdrwa')).toEqual({ path: '/j', changed: 4, failed: 0 });
    expect(await json('setquota', '-n', '9', '/j')).toEqual({
      path: '/j',
      limits: { count: 9, bytes: -1, countHardLimit: -1, byteHardLimit: -1 },
    });
    expect(await json('setquota', '-B', '99', '/j')).toMatchObject({ limits: { count: 9, byteHardLimit: 99 } });
    expect(await json('delquota', '-n', '/j')).toMatchObject({ path: '/j', limits: { count: -1, byteHardLimit: 99 } });
    expect(await json('delquota', '/j')).toEqual({ path: '/j', limits: null });
    expect(await json('addauth', 'digest', 'ann:secret')).toEqual({ scheme: 'digest' });
    expect(await json('whoami')).toEqual({ identities: [{ scheme: 'ip', user: '127.0.0.1' }] });
    expect(await json('leader')).toEqual({ leader: null, epoch: 0 });
    covered.add('shed');
    expect(await server.zk('-o', 'json', 'shed', '50')).toMatchObject({ out: '' });
    expect(await json('config')).toEqual({ config: '', version: '', clients: [], stat: someStat });
    const { server: asked, answer } = await json('4lw', 'ruok');
    expect([asked, answer]).toEqual([server.connectString, 'imok']);
    expect(await json('version')).toEqual({ version: expect.stringMatching(/^\d+\.\d+\.\d+$/) as string });
    expect(await json('delete', '/j/ttl')).toEqual({ path: '/j/ttl' });
    expect(await json('deleteall', '/j')).toEqual({ path: '/j', deleted: 3 });
  });

  it('print one object per line when there are several', async () => {
    await server.zk('create', '/many');
    await server.zk('create', '/many/b');
    await server.zk('create', '/many/a');
    const { out } = await server.zk('ls', '-R', '-o', 'json', '/many');
    expect(out).toBe('{"path":"/many"}\n{"path":"/many/a"}\n{"path":"/many/b"}\n');
  });

  it('print the path of a quota on standard error in addition to the object', async () => {
    covered.add('listquota');
    await server.zk('create', '/quota', '123');
    await server.zk('setquota', '-b', '5', '/quota');
    const there = await server.zk('-o', 'json', 'listquota', '/quota');
    expect(jsonLines(there.out)).toEqual([
      { path: '/quota', limits: { count: -1, bytes: 5, countHardLimit: -1, byteHardLimit: -1 }, used: { count: 1, bytes: 3 } },
    ]);
    expect(there.err).toBe('absolute path is /zookeeper/quota/quota/zookeeper_limits\n');
    const none = await server.zk('-o', 'json', 'listquota', '/zookeeper');
    expect(jsonLines(none.out)).toEqual([{ path: '/zookeeper', limits: null, used: null }]);
  });

  it('print the error as JSON on standard error', async () => {
    covered.add('removewatches').add('reconfig');
    const failure = async (...argv: readonly string[]) => {
      const { code, out, err } = await server.zk('-o', 'json', ...argv);
      expect(out).toBe('');
      return [code, JSON.parse(err) as unknown];
    };
    expect(await failure('get', '/missing')).toEqual([
      exitCodes.noNode,
      { error: { code: 'NoNode', errno: -101, path: '/missing', message: 'Node does not exist: /missing' } },
    ]);
    expect(await failure('stat', '/missing')).toEqual([
      exitCodes.noNode,
      { error: { code: 'NoNode', path: '/missing', message: 'Node does not exist: /missing' } },
    ]);
    expect(await failure('removewatches', '/missing')).toMatchObject([exitCodes.failed, { error: { code: 'NoWatcher' } }]);
    expect(await failure('reconfig', '-remove', '1')).toMatchObject([exitCodes.failed, { error: { code: 'ReconfigDisabled' } }]);
    expect(await failure('get')).toMatchObject([exitCodes.refused, { error: { message: expect.stringMatching(/^get \[-s\]/) as string } }]);
  });

  it('A87: are all covered by these tests, except addWatch, which does not end', () => {
    const names = zkCommands.map(({ name }) => name);
    expect([...covered, 'addWatch'].toSorted()).toEqual(names.toSorted());
  });
});

describe('the exit code of a command', () => {
  it.each<[string, readonly string[], number, string]>([
    ['a missing znode', ['get', '/missing'], exitCodes.noNode, 'Node does not exist: /missing\n'],
    ['a znode that exists already', ['create', '/zookeeper'], exitCodes.nodeExists, 'Node already exists: /zookeeper\n'],
    ['a stale version', ['set', '-v', '77', '/zookeeper', 'x'], exitCodes.badVersion, 'version No is not valid : /zookeeper\n'],
    ['a znode with children', ['delete', '/full'], exitCodes.notEmpty, 'Node not empty: /full\n'],
    ['a znode without access', ['get', '/private'], exitCodes.noAuth, 'Insufficient permission : /private\n'],
    ['an ACL that says nothing', ['setAcl', '/full', 'x:y:'], exitCodes.failed, 'Acl is not valid : /full\n'],
    ['a relative path', ['ls', 'relative'], exitCodes.refused, 'Path must start with / character\n'],
    ['an unknown option', ['ls', '-q', '/'], exitCodes.refused, 'Unrecognized option: -q\n'],
    ['an invalid version', ['set', '-v', 'x', '/full', 'y'], exitCodes.refused, '-v must be followed by a whole number, not x\n'],
    ['data that are not base64', ['set', '-b', '/full', 'no?'], exitCodes.refused, 'the data are not base64: no?\n'],
    ['an unknown format', ['ls', '-o', 'xml', '/'], exitCodes.refused, '-o takes text or json, not xml\n'],
    [
      'a four letter word on its own',
      ['srvr'],
      exitCodes.noCommand,
      "error: unknown command 'srvr'\n(Did you mean tskeeper 4lw srvr?)\n(tskeeper --help lists commands and options)\n",
    ],
    [
      'a four letter word with more after it',
      ['ruok', '-x', 'y'],
      exitCodes.noCommand,
      "error: unknown command 'ruok'\n(Did you mean tskeeper 4lw ruok?)\n(tskeeper --help lists commands and options)\n",
    ],
    [
      'an unknown command',
      ['nonsense'],
      exitCodes.noCommand,
      "error: unknown command 'nonsense'\n(tskeeper --help lists commands and options)\n",
    ],
  ])('is as documented for %s', async (_what, argv, code, err) => {
    await server.zk('create', '/full');
    await server.zk('create', '/full/child');
    await server.zk('create', '/private', 'x', 'digest:nobody:x=:r');
    expect(await server.zk(...argv)).toEqual({ code, out: '', err });
  });

  it('is noConnection when no server answers before the timeout', async () => {
    const terminal = new FakeTerminal();
    const ended = zkAt('127.0.0.1:1', terminal, '--timeout', '300', 'ls', '/');
    await terminal.shows('trying again');
    terminal.clock.advance(300);
    const { code, err } = await ended;
    expect([code, err]).toEqual([exitCodes.noConnection, expect.stringMatching(/^cannot connect to 127\.0\.0\.1:1: connection refused/)]);
    expect((await zkAt('a:b:c', new FakeTerminal(), 'ls', '/')).err).toContain('connect string "a:b:c"');
  });
});

describe('options before a command', () => {
  it('A88: can be those of zkCli', async () => {
    const terminal = new FakeTerminal();
    const result = await zkAt(
      'ignored',
      terminal,
      '-server',
      server.connectString,
      '-timeout',
      '5000',
      '-waitforconnection',
      '-r',
      'ls',
      '/zookeeper',
    );
    expect(result).toEqual({ code: exitCodes.done, out: '[config, quota]\n', err: '' });
    const secure = await server.zk('-client-configuration', 'tls.properties', 'ls', '/');
    expect([secure.code, secure.err]).toEqual([exitCodes.refused, expect.stringContaining('is not supported')]);
  });

  it('authenticate, also from an environment variable, which other users cannot list', async () => {
    await server.zk('-a', 'digest:ann:secret', 'create', '/anns', 'mine', 'auth::cdrwa');
    expect((await server.zk('get', '/anns')).code).toBe(exitCodes.noAuth);
    expect((await server.zk('--auth', 'digest:ann:secret', 'get', '/anns')).out).toBe('mine\n');
    const terminal = new FakeTerminal();
    terminal.environment = { TSKEEPER_AUTH: 'digest:ann:secret' };
    expect((await zkAt(server.connectString, terminal, 'get', '/anns')).out).toBe('mine\n');
  });

  it('--jute-maxbuffer allows replies longer than the default of ZooKeeper', async () => {
    await server.zk('create', '/children');
    for (let i = 0; i < 5; i++) await server.zk('create', `/children/${i}${'n'.repeat(250_000)}`);
    // In pages the list is not too long; the znode hides that this server has them.
    const paged = await server.zk('ls', '/children');
    expect([paged.code, paged.out.length > 1_000_000]).toEqual([0, true]);
    expect((await server.zk('ls', '-R', '/children')).out.split('\n')).toHaveLength(7);
    await server.zk('create', '/zookeeper/tskeeper');
    const short = await server.zk('ls', '/children');
    expect([short.code, short.out]).toEqual([exitCodes.noConnection, '']);
    expect(short.err).toMatch(/^KeeperErrorCode = ConnectionLoss for \/children \(.*expected a frame of .* bytes, not 1250113.*\)\n$/);
    const long = await server.zk('--jute-maxbuffer', '4194304', 'ls', '/children');
    expect([long.code, long.out.length]).toEqual([exitCodes.done, 5 * 250_003 + 1]);
  });

  it('apply a chroot to all paths', async () => {
    await server.zk('create', '/inner');
    const inside = (...argv: readonly string[]) => zkAt(`${server.connectString}/inner`, new FakeTerminal(), ...argv);
    expect((await inside('create', '/a', 'x')).out).toBe('Created /a\n');
    expect((await server.zk('get', '/inner/a')).out).toBe('x\n');
    expect((await inside('setquota', '-n', '5', '/a')).err).toBe(
      '/zookeeper/quota does not exist; connect without a chroot to set quotas\n',
    );
  });
});

describe('single commands', () => {
  it('delete checks the version of its deprecated form', async () => {
    await server.zk('create', '/old');
    const stale = await server.zk('delete', '/old', '5');
    expect([stale.code, stale.err]).toEqual([
      exitCodes.badVersion,
      "'delete path [version]' has been deprecated. Please use 'delete [-v version] path' instead.\nversion No is not valid : /old\n",
    ]);
    expect((await server.zk('delete', '/old', '0')).code).toBe(exitCodes.done);
  });

  it('deleteall deletes large trees in batches, leaves first', async () => {
    await server.zk('create', '/tree');
    for (let i = 0; i < 7; i++) {
      await server.zk('create', `/tree/${i}`);
      await server.zk('create', `/tree/${i}/below`);
    }
    const { out } = await server.zk('-o', 'json', 'deleteall', '/tree', '-b', '4');
    expect(jsonLines(out)).toEqual([{ path: '/tree', deleted: 15 }]);
    expect((await server.zk('stat', '/tree')).code).toBe(exitCodes.noNode);
    // Long paths make smaller batches: together these would not fit into one request.
    for (const parent of ['/long', '/long/a', '/long/b']) {
      await server.zk('create', parent);
      if (parent === '/long') continue;
      for (let i = 0; i < 3; i++) await server.zk('create', `${parent}/${i}${'n'.repeat(250_000)}`);
    }
    expect((await server.zk('-o', 'json', 'deleteall', '/long')).out).toBe('{"path":"/long","deleted":9}\n');
    const refused = await server.zk('deleteall', '/zookeeper');
    expect([refused.code, refused.err]).toEqual([
      exitCodes.failed,
      expect.stringMatching(/^KeeperErrorCode = BadArguments .*\nFailed to delete some node\(s\) in the subtree!\n$/),
    ]);
  });

  it('setAcl -R names the znodes whose ACL cannot be set, and fails', async () => {
    await server.zk('create', '/mixed');
    await server.zk('create', '/mixed/locked', 'x', 'world:anyone:cdrw');
    const { code, err } = await server.zk('setAcl', '-R', '/mixed', 'world:anyone:cdrwa');
    expect([code, err]).toEqual([exitCodes.failed, 'Insufficient permission : /mixed/locked\ncannot set the ACL of 1 of 2 znodes\n']);
  });

  it('setquota rejects a quota inside another', async () => {
    await server.zk('create', '/outer');
    await server.zk('create', '/outer/inner');
    expect((await server.zk('setquota', '-n', '5', '/outer/inner')).code).toBe(exitCodes.done);
    expect((await server.zk('setquota', '-n', '5', '/outer')).err).toBe('/outer has a child /outer/inner which has a quota\n');
    await server.zk('delquota', '/outer/inner');
    expect((await server.zk('ls', '-R', '/zookeeper/quota')).out).not.toContain('outer');
    expect((await server.zk('setquota', '-n', '5', '/outer')).code).toBe(exitCodes.done);
    expect((await server.zk('setquota', '-n', '5', '/outer/inner')).err).toBe('/outer/inner has a parent /outer which has a quota\n');
  });

  it('create warns that an ephemeral znode ends with the command', async () => {
    const { out, err } = await server.zk('create', '-e', '/brief');
    expect([out, err]).toEqual(['Created /brief\n', expect.stringContaining('create ephemeral znodes in the shell')]);
    expect((await server.zk('stat', '/brief')).code).toBe(exitCodes.noNode);
  });

  it('reconfig reads the servers from a file', async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, 'members.cfg');
    writeFileSync(path, 'tickTime=2000\n');
    expect((await server.zk('reconfig', '-file', path)).err).toBe(`Error processing ${path}: it has no line server.<id>=...\n`);
    writeFileSync(path, 'tickTime=2000\nserver.1=a:1:2;3\n');
    // A standalone server cannot reconfigure; the error shows that the request reached it.
    expect((await server.zk('reconfig', '-file', path)).err).toBe('KeeperErrorCode = Reconfig is disabled\n');
  });

  it('print their usage with --help', async () => {
    for (const { name } of zkCommands) {
      const { code, out } = await server.zk(name, '--help');
      expect([code, out]).toEqual([exitCodes.done, expect.stringContaining(`Usage: tskeeper [-s host:port] ${name}`)]);
    }
  });
});
