import { Perms } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../src/config/config-error.ts';
import { resolveConfig } from '../src/config/server-config.ts';
import type { AuthPlugin } from '../src/index.ts';
import { type VirtualClient, VirtualServer } from './support/virtual-server.ts';

const token: AuthPlugin = {
  scheme: 'token',
  authenticate: (credentials) => (credentials === null ? undefined : [`of ${Buffer.from(credentials).toString()}`]),
  isValidId: (id) => id.startsWith('of '),
};

const start = (plugin: unknown): Promise<VirtualServer> =>
  VirtualServer.start('authProvider.1=./plugin.js', { modules: { './plugin.js': plugin } });

const auth = (client: VirtualClient, text: string) => client.call('auth', { type: 0, scheme: 'token', auth: Buffer.from(text) });
const create = (client: VirtualClient, path: string, id: string) =>
  client.call('create', { path, data: null, acl: [{ perms: Perms.all, id: { scheme: 'token', id } }], flags: 0 });
const read = async (client: VirtualClient, path: string) => (await client.call('getData', { path, watch: false })).err;
const identities = async (client: VirtualClient) =>
  (await client.call('whoAmI', undefined)).body.clientInfo.map(({ authScheme, user }) => `${authScheme}:${user}`).slice(1);

describe('a plug-in for authentication', () => {
  it('A35: option authProvider.*: gives identities that ACLs may name', async () => {
    const server = await start(token);
    const [anna, bob] = [await server.join(), await server.join()];
    expect((await auth(anna, 'anna')).err).toBe('Ok');
    expect((await auth(bob, 'bob')).err).toBe('Ok');
    expect((await create(anna, '/a', 'of anna')).err).toBe('Ok');
    expect((await create(anna, '/b', 'anna')).err).toBe('InvalidACL');
    expect([await read(anna, '/a'), await read(bob, '/a')]).toEqual(['Ok', 'NoAuth']);
    expect(await identities(bob)).toEqual(['token:of bob']);
  });

  it('may have its own rules for ids, and be the result of a function', async () => {
    const server = await start({ default: () => ({ ...token, matches: () => true, userName: (id: string) => id.slice(3) }) });
    const client = await server.join();
    await auth(client, 'bob');
    await create(client, '/a', 'of anna');
    expect(await read(client, '/a')).toBe('Ok');
    expect(await identities(client)).toEqual(['token:bob']);
  });

  it('may replace the scheme digest', async () => {
    const server = await start({ ...token, scheme: 'digest' });
    const client = await server.join();
    await client.call('auth', { type: 0, scheme: 'digest', auth: Buffer.from('u:p') });
    expect((await client.call('whoAmI', undefined)).body.clientInfo.at(-1)).toEqual({ authScheme: 'digest', user: 'of u:p' });
  });

  it('may take its time: later requests of the client wait, and others do not', async () => {
    let decide = (_ids: readonly string[] | undefined): void => undefined;
    const server = await start({
      ...token,
      authenticate: () => new Promise<readonly string[] | undefined>((resolve) => (decide = resolve)),
    });
    const [slow, other] = [await server.join(), await server.join()];
    const answers = [auth(slow, 'x'), create(slow, '/a', 'of anna')];
    expect((await other.create('/b')).err).toBe('Ok');
    decide(['of anna']);
    expect((await Promise.all(answers)).map(({ err }) => err)).toEqual(['Ok', 'Ok']);
    expect(await read(slow, '/a')).toBe('Ok');
  });

  it.each<[string, AuthPlugin['authenticate'], string]>([
    ['returns undefined', () => undefined, 'its authentication provider refused it'],
    [
      'throws',
      () => {
        throw new Error('out of order');
      },
      'its authentication provider threw an error: out of order',
    ],
    ['rejects', () => Promise.reject(new Error('out of order')), 'its authentication provider threw an error: out of order'],
    ['returns a text', () => 'anna' as never, 'its authentication provider returned something else than a list of ids or undefined'],
    [
      'returns numbers',
      () => Promise.resolve([1] as never),
      'its authentication provider returned something else than a list of ids or undefined',
    ],
  ])('that %s refuses the client', async (_what, authenticate, reason) => {
    const server = await start({ ...token, authenticate });
    const client = await server.join();
    expect((await auth(client, 'x')).err).toBe('AuthFailed');
    await server.settle();
    expect(client.closed).toBe(true);
    expect(server.lines.find((line) => line.includes('could not authenticate'))).toMatch(
      new RegExp(`^warn .* could not authenticate with the scheme token: ${reason}\\.$`),
    );
    expect((await (await server.join()).create('/b')).err).toBe('Ok');
  });

  it('whose rules fail permits nothing, and the log says so', async () => {
    const fail = (): never => {
      throw new Error('out of order');
    };
    let mayFail = false;
    const server = await start({
      ...token,
      isValidId: () => (mayFail ? fail() : true),
      matches: () => (mayFail ? ('yes' as never) : true),
      userName: () => (mayFail ? fail() : 'x'),
    });
    const client = await server.join();
    await auth(client, 'anna');
    await create(client, '/a', 'of anna');
    mayFail = true;
    expect((await create(client, '/b', 'of anna')).err).toBe('InvalidACL');
    expect(await read(client, '/a')).toBe('NoAuth');
    expect(await identities(client)).toEqual(['token:']);
    expect(server.lines.filter((line) => line.includes('provider of the scheme'))).toEqual([
      'warn The authentication provider of the scheme token failed: isValidId threw an error: out of order.',
      'warn The authentication provider of the scheme token failed: matches returned a value of the type string.',
      'warn The authentication provider of the scheme token failed: userName threw an error: out of order.',
    ]);
  });

  const text = (...lines: readonly string[]) => ['dataDir=/d', 'clientPort=1', ...lines].join('\n');
  const refusal = (plugin: () => unknown, line = 'authProvider.1=./p.js'): string => {
    try {
      resolveConfig({ file: { name: 'zoo.cfg', text: text(line) }, loadModule: plugin });
    } catch (error) {
      if (error instanceof ConfigError) return error.message;
      throw error;
    }
    return 'accepted';
  };

  it.each<[unknown, string]>([
    [undefined, 'it is of the type undefined'],
    [{ default: null }, 'it is of the type object'],
    [{}, 'scheme is not a word'],
    [{ ...token, scheme: 'a b' }, 'scheme is not a word'],
    [{ ...token, scheme: 'world' }, 'the scheme world has a fixed meaning'],
    [{ ...token, authenticate: 1 }, 'authenticate is not a function'],
    [{ ...token, isValidId: undefined }, 'isValidId is not a function'],
    [{ ...token, matches: 1 }, 'matches is not a function'],
    [{ ...token, userName: 1 }, 'userName is not a function'],
  ])('%j keeps the server from starting', (plugin, complaint) => {
    const sentence = refusal(() => plugin);
    expect(sentence).toContain(
      'zoo.cfg:3: authProvider.1 names the module ./p.js, whose default export is not an authentication provider: ',
    );
    if (complaint !== 'it is of the type object') expect(sentence).toContain(complaint);
  });

  it('that throws as it is loaded keeps the server from starting', () => {
    const fail = (): never => {
      throw new Error('no such module');
    };
    const sentence = 'zoo.cfg:3: authProvider.1 names the module ./p.js, which cannot be loaded: no such module.';
    expect(refusal(fail)).toBe(sentence);
    expect(refusal(() => fail)).toBe(sentence);
    expect(refusal(() => token, 'authProvider.1=./a\nauthProvider.2=./b')).toBe(
      'zoo.cfg:4: authProvider.2 names a second provider of the scheme token. Remove one of them.',
    );
  });
});
