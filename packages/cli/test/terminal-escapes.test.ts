/** Text from a server cannot control the user's terminal. */
import { connect, openAcl } from '@tskeeper/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { complete } from '../src/zk/completion.ts';
import { FakeTerminal } from './support/fake-terminal.ts';
import { testServer, zkAt, type ZkServer } from './support/zk.ts';

/**
 * Sets the title of a window, clears the screen and reverses the text after it; with C0, with C1,
 * and with a byte that is C1 to a terminal without UTF-8.
 */
const hostile = Buffer.concat([
  Buffer.from('\u001b]0;title\u0007 \u009b2J \u202egnp.exe \ud83d\ude00 tab\there\r\nlone\rreturn \udb40\udc41 '),
  Buffer.from([0x9b, 0x32, 0x4a, 0xff, 0xe2, 0x82]),
]);
const shown =
  '\\u001b]0;title\\u0007 \\u009b2J \\u202egnp.exe \ud83d\ude00 tab\there\r\nlone\\u000dreturn \\udb40\\udc41 \\x9b2J\\xff\\xe2\\x82';
/** A valid path, also in ZooKeeper. */
const path = '/\u202egnp.exe';

let server: ZkServer;
beforeAll(async () => {
  server = await testServer();
  await using client = await connect(server.connectString);
  await client.create('/hostile', hostile);
  await client.create(path, 'x', { acl: [...openAcl, { perms: 31, id: { scheme: 'digest', id: 'x:\u009b31m' } }] });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

async function bytesOf(terminal: FakeTerminal, ...argv: readonly string[]): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  terminal.write = (piece) => {
    pieces.push(piece);
    return Promise.resolve(true);
  };
  await zkAt(server.connectString, terminal, ...argv);
  return Buffer.concat(pieces);
}

describe('on a terminal', () => {
  it('data, paths and ACLs show control characters, C1, bidi overrides and invalid UTF-8 as escapes', async () => {
    expect((await bytesOf(new FakeTerminal(), 'get', '/hostile')).toString()).toBe(`${shown}\n`);
    expect((await bytesOf(new FakeTerminal(), 'ls', '/')).toString()).toBe('[hostile, zookeeper, \\u202egnp.exe]\n');
    expect((await bytesOf(new FakeTerminal(), 'getAcl', path)).toString()).toContain("'digest,'x:\\u009b31m\n");
    expect((await bytesOf(new FakeTerminal(), 'get', '-b', '/hostile')).toString()).toBe(`${hostile.toString('base64')}\n`);
  });

  it('errors and events on standard error show control characters as escapes too', async () => {
    const terminal = new FakeTerminal();
    await zkAt(server.connectString, terminal, 'get', `${path}/missing`);
    expect(terminal.errors).toBe('Node does not exist: /\\u202egnp.exe/missing\n');
    terminal.errors = '';
    terminal.errIsTty = false;
    await zkAt(server.connectString, terminal, 'get', `${path}/missing`);
    expect(terminal.errors).toBe(`Node does not exist: ${path}/missing\n`);
  });

  it('JSON with escapes stays valid and decodes to the same data', async () => {
    const text = (await bytesOf(new FakeTerminal(), '-o', 'json', 'ls', '/')).toString();
    expect(text).not.toContain('\u202e');
    expect(JSON.parse(text)).toEqual({ path: '/', children: ['hostile', 'zookeeper', '\u202egnp.exe'] });
  });

  it('TAB offers no name with control characters', async () => {
    await using client = await connect(server.connectString);
    expect(await complete('ls /', client, new FakeTerminal().clock)).toEqual([['/hostile', '/zookeeper'], '/']);
  });
});

describe('where standard output is not a terminal', () => {
  it('get prints the bytes unchanged', async () => {
    const terminal = new FakeTerminal();
    terminal.isTty = false;
    expect(await bytesOf(terminal, 'get', '/hostile')).toEqual(Buffer.concat([hostile, Buffer.from('\n')]));
  });
});
