import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/config/config-error.ts';
import { resolveConfig } from '../../src/config/server-config.ts';

const section = 'org.apache.zookeeper.server.auth.DigestLoginModule required user_super="one" user_bob="two";';
const files: Readonly<Record<string, string>> = {
  '/jaas.conf': `Server { ${section} };\nOther { ${section.replace('two', 'three')} };\nKerberos { com.sun.security.auth.module.Krb5LoginModule required; };`,
  '/no-users.conf': 'Server { org.apache.zookeeper.server.auth.DigestLoginModule required; };',
  '/strange.conf': 'Server { org.example.Login required; };',
  '/peers.conf': `QuorumServer { ${section} };`,
  '/empty.conf': '',
  '/bad.conf': 'Server {',
  '/krb5.conf': '[libdefaults]\n  default_realm = EXAMPLE.ORG\n',
};
const jaas = (file: string): string => `java.security.auth.login.config=${file}`;
const provider = 'authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider';

function read(lines: readonly string[], definitions: readonly string[] = []) {
  const text = ['dataDir=/data', 'clientPort=2181', ...lines].join('\n');
  const readFile = (path: string): string => {
    const found = files[path];
    if (found === undefined) throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
    return found;
  };
  return resolveConfig({ file: { name: 'zoo.cfg', text }, definitions, readFile });
}

function refusal(lines: readonly string[], definitions: readonly string[] = []): string {
  try {
    read(lines, definitions);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  throw new Error('the configuration was accepted');
}

const passwords = (lines: readonly string[], definitions: readonly string[]) =>
  Object.fromEntries(read(lines, definitions).core.sasl?.passwords ?? []);

describe('A39: SASL at the client port', () => {
  it('has the users of the section Server, or of the one that sasl.serverconfig names', () => {
    expect(passwords([], [jaas('/jaas.conf')])).toEqual({ super: 'one', bob: 'two' });
    expect(passwords(['sasl.serverconfig=Other'], [jaas('/jaas.conf')])).toEqual({ super: 'one', bob: 'three' });
  });

  it('has another password for the user super', () => {
    const line = 'SASLAuthenticationProvider.superPassword=four';
    expect(passwords([line], [jaas('/jaas.conf')])).toEqual({ super: 'four', bob: 'two' });
    expect(read([line], [jaas('/jaas.conf')]).changed).toMatchObject({ 'SASLAuthenticationProvider.superPassword': '(masked)' });
  });

  it('is off without a file, and where the file has sections for other purposes only', () => {
    expect(read([]).core.sasl).toBe(undefined);
    expect(read([]).warnings).toEqual([]);
    for (const [file, found] of [
      ['/peers.conf', 'the sections QuorumServer'],
      ['/empty.conf', 'no section'],
    ] as const) {
      const { core, warnings } = read([], [jaas(file)]);
      expect(core.sasl).toBe(undefined);
      expect(warnings).toEqual([
        `-Djava.security.auth.login.config: ${file} has ${found} and none called Server: clients cannot authenticate by SASL.`,
      ]);
    }
  });

  it('makes the names of superUser and superUser.* super, and shortens names by the rules', () => {
    const lines = [
      'superUser=root',
      'superUser.2=bob',
      'kerberos.removeHostFromPrincipal=true',
      'security.auth_to_local=RULE:[2:$1]s/^z/y/ DEFAULT',
    ];
    const { names } = read(lines, [jaas('/jaas.conf'), 'java.security.krb5.conf=/krb5.conf']).core.sasl!;
    const ids = (name: string) => names.identitiesOf(name).map(({ scheme, id }) => `${scheme}:${id}`);
    expect(ids('root')).toEqual(['sasl:root', 'super:']);
    expect(ids('bob')).toEqual(['sasl:bob', 'super:']);
    expect(ids('eve')).toEqual(['sasl:eve']);
    expect(ids('zk/h@R')).toEqual(['sasl:yk@R']);
    expect(ids('eve@EXAMPLE.ORG')).toEqual(['sasl:eve@EXAMPLE.ORG']);
  });

  it('reports names that have no effect without it', () => {
    expect(read(['superUser=root']).notices).toEqual([
      'zoo.cfg:3: superUser is accepted and has no effect: no client can authenticate by SASL.',
    ]);
  });

  it('A38: may be required', () => {
    expect(read([provider, 'sessionRequireClientSASLAuth=true'], [jaas('/jaas.conf')]).core.enforcedAuthSchemes).toEqual(['sasl']);
    const lines = [provider, 'enforce.auth.enabled=true', 'enforce.auth.schemes=sasl,digest'];
    expect(read(lines).core.enforcedAuthSchemes).toEqual(['sasl', 'digest']);
    expect(read([provider, 'allowSaslFailedClients=true'], [jaas('/jaas.conf')]).core.allowsFailedSasl).toBe(true);
  });

  it('A38: may be required without users, so that no client is served', () => {
    const { core, warnings } = read([provider, 'sessionRequireClientSASLAuth=true']);
    expect(core.enforcedAuthSchemes).toEqual(['sasl']);
    expect(warnings).toEqual([
      'zoo.cfg:4: sessionRequireClientSASLAuth asks for sasl only, and no JAAS section is for clients: every client is refused. Pass -Djava.security.auth.login.config=<file>.',
    ]);
  });

  it('A35: has a scheme of ACLs where its provider is named', () => {
    const schemes = (lines: readonly string[]) => read(lines).core.authProviders.map(({ scheme }) => scheme);
    expect(schemes([])).toEqual([]);
    expect(schemes([provider])).toEqual(['sasl']);
    expect(schemes(['authProvider.1=org.apache.zookeeper.server.auth.DigestAuthenticationProvider'])).toEqual([]);
    expect(read([provider, 'letAnySaslUserDoX=all']).core.authProviders[0]!.matches('bob', 'all')).toBe(true);
    expect(read([provider]).core.authProviders[0]!.matches('bob', 'all')).toBe(false);
  });

  it('A35: knows names of the ensemble where that provider is named', () => {
    const line = 'authProvider.2=org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider';
    expect(read([line, 'ensembleAuthName=a, b']).core.ensembleAuth).toEqual({ names: ['a', 'b'] });
    expect(read([line]).core.ensembleAuth).toEqual({ names: undefined });
    const { core, notices } = read(['ensembleAuthName=a']);
    expect(core.ensembleAuth).toBe(undefined);
    expect(notices).toEqual([
      'zoo.cfg:3: ensembleAuthName is accepted and has no effect: no authProvider.* names org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider.',
    ]);
  });

  it.each<[readonly string[], readonly string[], string]>([
    [[], [jaas('/none.conf')], '-Djava.security.auth.login.config: the JAAS file /none.conf cannot be read (ENOENT).'],
    [[], [jaas('/bad.conf')], '/bad.conf:1: the file ends where the class name of a login module belongs.'],
    [
      [],
      [jaas('/no-users.conf')],
      '/no-users.conf:1: the section names no user, so no client could authenticate. Add user_<name>="<password>".',
    ],
    [
      [],
      [jaas('/strange.conf')],
      '/strange.conf:1: org.example.Login is not a known login module. Use org.apache.zookeeper.server.auth.DigestLoginModule.',
    ],
    [
      ['sasl.serverconfig=Kerberos'],
      [jaas('/jaas.conf')],
      '/jaas.conf:3: com.sun.security.auth.module.Krb5LoginModule asks for Kerberos, which this version does not support yet. Use org.apache.zookeeper.server.auth.DigestLoginModule, or remove the section.',
    ],
    [
      ['sasl.serverconfig=Sever'],
      [jaas('/jaas.conf')],
      'zoo.cfg:3: sasl.serverconfig names the section Sever, and /jaas.conf has the sections Server, Other, Kerberos. Correct the name, or add the section.',
    ],
    [
      ['sasl.serverconfig=Server'],
      [],
      'zoo.cfg:3: sasl.serverconfig names the section Server of a JAAS file, and no file is given. Pass -Djava.security.auth.login.config=<file>.',
    ],
    [
      ['security.auth_to_local=RULE:[1:$2]'],
      [jaas('/jaas.conf')],
      'zoo.cfg:3: the rule RULE:[1:$2] has no component $2. Correct security.auth_to_local.',
    ],
    [
      ['requireKerberosConfig=true'],
      [jaas('/jaas.conf'), 'java.security.krb5.conf=/none'],
      'zoo.cfg:3: requireKerberosConfig is true, and /none cannot be read (ENOENT).',
    ],
    [
      ['requireKerberosConfig=true'],
      [jaas('/jaas.conf'), 'java.security.krb5.conf=/empty.conf'],
      'zoo.cfg:3: requireKerberosConfig is true, and /empty.conf has no line default_realm = <realm>. Add it.',
    ],
    [
      ['sessionRequireClientSASLAuth=true'],
      [jaas('/jaas.conf')],
      'zoo.cfg:3: sessionRequireClientSASLAuth asks for sasl, which this server does not offer. Add authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider.',
    ],
    [
      ['authProvider.1=org.apache.zookeeper.server.auth.X509AuthenticationProvider'],
      [],
      'zoo.cfg:3: authProvider.1 asks for the provider org.apache.zookeeper.server.auth.X509AuthenticationProvider, which this version does not support yet, and the server does not start with less protection than configured. Remove the setting to run without it.',
    ],
  ])('%j with %j is refused', (lines, definitions, sentence) => {
    expect(refusal(lines, definitions)).toBe(sentence);
  });
});
