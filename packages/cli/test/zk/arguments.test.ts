/**
 * Surplus words on a command line: the command rejects them instead of ignoring them or changing
 * its meaning.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exitCodes } from '../../src/index.ts';
import { testServer, type ZkServer } from '../support/zk.ts';

let server: ZkServer;
beforeAll(async () => {
  server = await testServer();
  await server.zk('create', '/cfg', 'one');
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

describe('an argument that a command does not take', () => {
  it('fails at once with the usage: `ls / /cfg` sets no watch and does not wait', async () => {
    expect(await server.zk('ls', '/', '/cfg')).toEqual({
      code: exitCodes.refused,
      out: '',
      err: 'ls: unexpected argument "/cfg". Usage: ls [-s] [-w] [-R] path\n',
    });
    expect(server.watchCount()).toBe(0);
  });

  it.each<readonly [...string[]]>([
    ['get', '/cfg', '/zookeeper'],
    ['stat', '/cfg', '/zookeeper'],
    ['ls', '/cfg', 'true', 'more'],
    ['delete', '/cfg', '0', 'more'],
    ['deleteall', '/cfg', '/zookeeper'],
    ['set', '/cfg', 'two', 'words'],
    ['set', '/cfg', 'two', '0', 'more'],
    ['create', '/new', 'data', 'world:anyone:r', 'more'],
    ['getAcl', '/cfg', 'more'],
    ['setAcl', '/cfg', 'world:anyone:r', 'more'],
    ['sync', '/cfg', 'more'],
    ['config', 'more'],
    ['whoami', 'more'],
    ['getAllChildrenNumber', '/cfg', 'more'],
    ['getEphemerals', '/', 'more'],
    ['setquota', '-n', '1', '/cfg', 'more'],
    ['delquota', '/cfg', 'more'],
    ['listquota', '/cfg', 'more'],
    ['removewatches', '/cfg', 'more'],
    ['reconfig', '-remove', '1', 'more'],
    ['addauth', 'digest', 'ann:secret', 'more'],
  ])('appears in the error, and the command changes nothing: %s %s %s', async (...words) => {
    const { code, out, err } = await server.zk(...words);
    expect([code, out]).toEqual([exitCodes.refused, '']);
    expect(err).toMatch(new RegExp(`^${words[0]}: unexpected argument "${words.at(-1)}"\\. Usage: ${words[0]} ?.*\\n$`));
    expect((await server.zk('get', '/cfg')).out).toBe('one\n');
  });

  it('is the version of `set path data version` if it is a number, as in older zkClis', async () => {
    await server.zk('create', '/versioned', 'one');
    const stale = await server.zk('set', '/versioned', 'two', '7');
    expect([stale.code, stale.err]).toEqual([
      exitCodes.badVersion,
      "'set path data [version]' has been deprecated. Please use 'set [-s] [-v version] path data' instead.\nversion No is not valid : /versioned\n",
    ]);
    expect((await server.zk('set', '/versioned', 'two', '0')).code).toBe(exitCodes.done);
  });
});
