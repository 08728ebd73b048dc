/** The keys about authentication providers take effect, shown on a whole server, as in options-obeyed.test.ts. */
import { Perms } from '@tskeeper/protocol';
import { clientPortService, digestMd5Proofs, parseDirectives } from '@tskeeper/protocol/internal';
import { describe, expect, it } from 'vitest';
import { type VirtualClient, VirtualServer, type VirtualServerOptions } from './support/virtual-server.ts';

const module = 'org.apache.zookeeper.server.auth.DigestLoginModule required';
const files = {
  '/jaas.conf': [
    `Server { ${module} user_bob="secret" user_super="of the file" "user_zk/host@EXAMPLE.ORG"="x"; };`,
    `Other { ${module} user_bob="another"; };`,
    '',
  ].join('\n'),
  '/krb5.conf': '[libdefaults]\ndefault_realm = EXAMPLE.ORG\n',
  '/etc/krb5.conf': '',
};
const provider = 'authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider';

function start(lines: readonly string[] = [], definitions: readonly string[] = []): Promise<VirtualServer> {
  const options: VirtualServerOptions = { files, definitions: ['java.security.auth.login.config=/jaas.conf', ...definitions] };
  return VirtualServer.start([provider, ...lines], options);
}

/** The error of the last step of an exchange. */
async function login(client: VirtualClient, username: string, password: string): Promise<string> {
  const first = await client.call('sasl', { token: Buffer.alloc(0) });
  const nonce = parseDirectives(first.body.token!, 'the challenge').get('nonce')![0]!;
  const { realm, digestUri } = clientPortService;
  const terms = { username, realm, password, nonce, cnonce: 'c', nonceCount: '00000001', authzid: undefined, digestUri, isUtf8: true };
  const { response } = digestMd5Proofs(terms);
  const token = `charset=utf-8,username="${username}",realm="${realm}",nonce="${nonce}",cnonce="c",nc=00000001,digest-uri="${digestUri}",response=${response}`;
  const last = await client.call('sasl', { token: Buffer.from(token) });
  return last.err === 'Ok' && last.body?.token === null ? 'no identity' : last.err;
}

/** What a client is after an exchange, without its address. */
async function identitiesOf(server: VirtualServer, username: string, password: string): Promise<string[]> {
  const client = await server.join();
  await login(client, username, password);
  const { body } = await client.call('whoAmI', undefined);
  return body.clientInfo.filter(({ authScheme }) => authScheme !== 'ip').map(({ authScheme, user }) => `${authScheme}:${user}`);
}

/** The error of a read of a znode that only this id may read. */
async function readAs(server: VirtualServer, username: string, password: string, aclId: string): Promise<string> {
  const client = await server.join();
  await client.call('create', { path: '/secret', data: null, acl: [{ perms: Perms.all, id: { scheme: 'sasl', id: aclId } }], flags: 0 });
  await login(client, username, password);
  return (await client.call('getData', { path: '/secret', watch: false })).err;
}

describe('the ensemble provider', () => {
  const line = 'authProvider.2=org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider';
  const nameEnsemble = async (server: VirtualServer, name: string): Promise<string> => {
    const client = await server.join();
    const { err } = await client.call('auth', { type: 0, scheme: 'ensemble', auth: Buffer.from(name) });
    return client.closed ? 'closed' : err;
  };

  it('A35: option authProvider.*, ensembleAuthName: a client that means another ensemble is closed', async () => {
    const server = await VirtualServer.start([line, 'ensembleAuthName=north, south']);
    expect(await nameEnsemble(server, 'south')).toBe('Ok');
    expect(await nameEnsemble(server, '')).toBe('Ok');
    expect(await nameEnsemble(server, 'east')).toBe('closed');
    expect(server.lines.filter((each) => each.includes('could not authenticate'))).toEqual([
      expect.stringMatching(/ could not authenticate with the scheme ensemble: it means the ensemble "east"\.$/),
    ]);
    expect(await nameEnsemble(await VirtualServer.start(line), 'east')).toBe('Ok');
    expect(await nameEnsemble(await VirtualServer.start(), 'east')).toBe('closed');
  });

  it('gives no identity that an ACL could name', async () => {
    const client = await (await VirtualServer.start(line)).join();
    await client.call('auth', { type: 0, scheme: 'ensemble', auth: Buffer.from('x') });
    expect((await client.call('whoAmI', undefined)).body.clientInfo).toEqual([{ authScheme: 'ip', user: '10.0.9.1' }]);
    const acl = [{ perms: Perms.all, id: { scheme: 'ensemble', id: 'x' } }];
    expect((await client.call('create', { path: '/a', data: null, acl, flags: 0 })).err).toBe('InvalidACL');
  });
});

describe('SASL at the client port', () => {
  it('A39: option java.security.auth.login.config, sasl.serverconfig: users of that section of the file can authenticate', async () => {
    const server = await start();
    expect(await login(await server.join(), 'bob', 'secret')).toBe('Ok');
    const client = await server.join();
    expect(await login(client, 'bob', 'wrong')).toBe('AuthFailed');
    expect(client.closed).toBe(true);
    expect(server.lines.filter((line) => line.includes('could not authenticate'))).toEqual([
      expect.stringMatching(/^warn 10\.0\.9\.1:\d+ could not authenticate with the scheme sasl: the password of "bob" is wrong\.$/),
    ]);
    const other = await start(['sasl.serverconfig=Other']);
    expect(await login(await other.join(), 'bob', 'another')).toBe('Ok');
  });

  it('A35: option authProvider.*, letAnySaslUserDoX: ACLs may name users, or all of them', async () => {
    const server = await start();
    expect(await readAs(server, 'bob', 'secret', 'bob')).toBe('Ok');
    expect(await readAs(await start(), 'bob', 'secret', 'eve')).toBe('NoAuth');
    expect(await readAs(await start(['letAnySaslUserDoX=all']), 'bob', 'secret', 'all')).toBe('Ok');
    const without = await VirtualServer.start([], { files, definitions: ['java.security.auth.login.config=/jaas.conf'] });
    const client = await without.join();
    const acl = [{ perms: Perms.all, id: { scheme: 'sasl', id: 'bob' } }];
    expect((await client.call('create', { path: '/secret', data: null, acl, flags: 0 })).err).toBe('InvalidACL');
  });

  it('A35: option superUser, superUser.*, SASLAuthenticationProvider.superPassword: these users pass every ACL', async () => {
    const lines = ['superUser=bob', 'superUser.2=super', 'SASLAuthenticationProvider.superPassword=of the key'];
    const server = await start(lines);
    expect(await readAs(server, 'bob', 'secret', 'eve')).toBe('Ok');
    expect(await identitiesOf(server, 'super', 'of the key')).toEqual(['sasl:super', 'super:']);
    expect(await login(await server.join(), 'super', 'of the file')).toBe('AuthFailed');
  });

  it('A38: option sessionRequireClientSASLAuth: a client without such an identity is refused', async () => {
    const server = await start(['sessionRequireClientSASLAuth=true']);
    const [stranger, known] = [await server.join(), await server.join()];
    expect((await stranger.create('/a')).err).toBe('SessionClosedRequireSaslAuth');
    expect(await login(known, 'bob', 'secret')).toBe('Ok');
    expect((await known.create('/a')).err).toBe('Ok');
  });

  it('A39: option allowSaslFailedClients: a client whose exchange fails is served without an identity', async () => {
    const server = await start(['allowSaslFailedClients=true']);
    const client = await server.join();
    expect(await login(client, 'bob', 'wrong')).toBe('no identity');
    expect((await client.create('/a')).err).toBe('Ok');
  });

  it('A39: option security.auth_to_local, kerberos.removeHostFromPrincipal, kerberos.removeRealmFromPrincipal: how a name becomes an id', async () => {
    const name = 'zk/host@EXAMPLE.ORG';
    const rule = 'security.auth_to_local=RULE:[2:$1]s/^/x/';
    expect(await identitiesOf(await start(), name, 'x')).toEqual([`sasl:${name}`]);
    expect(await identitiesOf(await start([rule]), name, 'x')).toEqual([`sasl:x${name}`]);
    expect(await identitiesOf(await start([rule, 'kerberos.removeHostFromPrincipal=true']), name, 'x')).toEqual(['sasl:xzk@EXAMPLE.ORG']);
    expect(await identitiesOf(await start([rule, 'kerberos.removeRealmFromPrincipal=true']), name, 'x')).toEqual(['sasl:xzk/host']);
  });

  it('A39: option java.security.krb5.conf, java.security.krb5.realm, requireKerberosConfig: the realm whose names become short', async () => {
    const name = 'zk/host@EXAMPLE.ORG';
    const remove = ['kerberos.removeHostFromPrincipal=true', 'kerberos.removeRealmFromPrincipal=true'];
    expect(await identitiesOf(await start(remove), name, 'x')).toEqual([`sasl:${name}`]);
    for (const definition of ['java.security.krb5.conf=/krb5.conf', 'java.security.krb5.realm=EXAMPLE.ORG']) {
      expect(await identitiesOf(await start([...remove, 'requireKerberosConfig=true'], [definition]), name, 'x')).toEqual(['sasl:zk']);
    }
    await expect(start(['requireKerberosConfig=true'])).rejects.toThrow('/etc/krb5.conf has no line default_realm = <realm>');
  });
});
