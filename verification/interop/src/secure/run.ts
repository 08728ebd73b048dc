/**
 * Authentication at the client port: what our server answers is compared, outcome by outcome, with
 * what ZooKeeper's answers.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { connect, creatorAcl, KeeperError } from '@tskeeper/client';
import { type ServerKind, type ServerProcess, type Settings, startServer } from '@tskeeper/harness';
import { type JavaProgram, repositoryFolder } from '../../../../scripts/foreign-programs.js';
import { buildJavaProgram } from '../drivers/build.ts';
import type { Report } from '../report.ts';
import { exchanges, outcomeOf } from './exchanges.ts';

const run = promisify(execFile);

/** Longer than any attempts of a program take; only a failure takes this long. */
const programMs = 180_000;

const users: Readonly<Record<string, string>> = {
  bob: 'bobsecret',
  super: 'supersecret',
  root: 'rootsecret',
  jörg: 'schlüssel',
  maria: 'пароль€',
};
const credentials: Readonly<Record<string, { readonly user: string; readonly password: string } | undefined>> = {
  Right: { user: 'bob', password: 'bobsecret' },
  Wrong: { user: 'bob', password: 'wrong' },
  Unknown: { user: 'eve', password: 'secret' },
  Letters: { user: 'maria', password: 'пароль€' },
  '-': undefined,
};

const loginModule = 'org.apache.zookeeper.server.auth.DigestLoginModule required';
const jaas = [
  `Server { ${loginModule} ${Object.entries(users)
    .map(([user, password]) => `"user_${user}"="${password}"`)
    .join(' ')}; };`,
  ...Object.entries(credentials).flatMap(([section, login]) =>
    login === undefined ? [] : [`${section} { ${loginModule} username="${login.user}" password="${login.password}"; };`],
  ),
  '',
].join('\n');

const saslProvider = { 'authProvider.1': 'org.apache.zookeeper.server.auth.SASLAuthenticationProvider' };
const ensembleProvider = {
  'authProvider.2': 'org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider',
  ensembleAuthName: 'east,north',
};
/** How a server treats SASL. */
interface Setup {
  /** It has a JAAS file. */
  readonly hasUsers: boolean;
  readonly config: Settings;
  /**
   * With these credentials a client gets no identity and is answered as if it went on. kazoo then
   * sends empty tokens without end, except where our server closes its connection.
   */
  readonly loopsKazoo?: readonly string[];
}

const setups: Readonly<Record<string, Setup>> = {
  'with users': { hasUsers: true, config: { ...saslProvider, ...ensembleProvider } },
  'with users, without the provider': { hasUsers: true, config: {} },
  'that serves clients whose SASL failed': {
    hasUsers: true,
    config: { ...saslProvider, allowSaslFailedClients: true },
    loopsKazoo: ['Wrong', 'Unknown'],
  },
  'that requires SASL': { hasUsers: true, config: { ...saslProvider, sessionRequireClientSASLAuth: true } },
  'that requires SASL, or digest': {
    hasUsers: true,
    config: { ...saslProvider, 'enforce.auth.enabled': true, 'enforce.auth.schemes': 'sasl,digest', allowSaslFailedClients: true },
  },
  'without SASL': { hasUsers: false, config: saslProvider, loopsKazoo: ['Right', 'Wrong', 'Unknown'] },
};

/** Outcomes by the name of the attempt. */
type Outcomes = Readonly<Record<string, string>>;

async function outcomesOf(server: ServerProcess, { loopsKazoo = [] }: Setup, programs: Programs, jaasFile: string): Promise<Outcomes> {
  const outcomes: Record<string, string> = {};
  for (const [name, steps] of Object.entries(exchanges)) outcomes[`tokens: ${name}`] = await outcomeOf(server, steps);
  for (const [name, login] of Object.entries(credentials)) outcomes[`our client: ${name}`] = await outcomeOfOurs(server, login);
  return {
    ...outcomes,
    ...(await outcomesOfJava(server, programs, jaasFile)),
    ...(await outcomesOfKazoo(server, programs, loopsKazoo)),
  };
}

async function outcomeOfOurs(server: ServerProcess, login: (typeof credentials)[string]): Promise<string> {
  const sasl = login === undefined ? {} : { sasl: { mechanism: 'DIGEST-MD5', username: login.user, password: login.password } as const };
  try {
    const zk = await connect(server.connectString, { ...sasl, connectTimeoutMs: 20_000, sessionTimeoutMs: 10_000 });
    try {
      await zk.create('/ours', null, { acl: creatorAcl });
      const { acl } = await zk.getACL('/ours');
      await zk.delete('/ours');
      return `created with the ACL ${acl.map(({ id }) => `${id.scheme}:${id.id}`).join(' ')}`;
    } finally {
      await zk.close();
    }
  } catch (error) {
    if (!KeeperError.is(error)) throw error;
    return error.code;
  }
}

async function outcomesOfJava(server: ServerProcess, { java, classes }: Programs, jaasFile: string): Promise<Outcomes> {
  const attempts = Object.keys(credentials).flatMap((section) => [`Java: ${section}`, server.connectString, section, '/java']);
  const properties = [
    `-Djava.security.auth.login.config=${jaasFile}`,
    '-Dzookeeper.fips-mode=false',
    '-Dfile.encoding=UTF-8',
    '-Dlog.level=OFF',
  ];
  const { stdout } = await run('java', [...properties, '-cp', `${classes}:${java.classpath}`, 'SaslClient', ...attempts], {
    timeout: programMs,
  });
  const lines = stdout.split('\n').flatMap((line) => (line.includes('\t') ? [line.split('\t')] : []));
  return Object.fromEntries(lines.map(([name, outcome]) => [name!, outcome!]));
}

async function outcomesOfKazoo(server: ServerProcess, { pythonPath }: Programs, omitted: readonly string[]): Promise<Outcomes> {
  // kazoo hashes only what is in ISO 8859-1.
  const left = ['Letters', ...omitted];
  const attempts = Object.entries(credentials).flatMap(([name, login]) =>
    left.includes(name) ? [] : [{ name: `kazoo: ${name}`, connect: server.connectString, path: '/kazoo', ...login }],
  );
  const script = path.join(repositoryFolder, 'verification', 'interop', 'python', 'kazoo_sasl.py');
  const { stdout } = await run('python3', [script, JSON.stringify(attempts)], {
    env: { ...process.env, PYTHONPATH: pythonPath },
    timeout: programMs,
  });
  const lines = stdout.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as { name: string; outcome: string }] : []));
  return Object.fromEntries(lines.map(({ name, outcome }) => [name, outcome]));
}

/**
 * After the end of an exchange ZooKeeper answers each further token with an empty one; our server
 * closes the connection.
 */
function isJustified(setup: string, attempt: string, actual = '', wanted = ''): boolean {
  if (!attempt.startsWith('tokens: ')) return false;
  const untilEnd = setup === 'that serves clients whose SASL failed' ? 3 : Infinity;
  const begin = (outcome: string): string => outcome.split('; ').slice(0, untilEnd).join('; ');
  return begin(actual) === begin(wanted);
}

export interface Programs {
  readonly java: JavaProgram;
  /** The classes of SaslClient. */
  readonly classes: string;
  readonly pythonPath: string;
}

export async function buildSaslClient(java: JavaProgram, pythonPath: string): Promise<Programs> {
  return { java, classes: await buildJavaProgram('SaslClient', java), pythonPath };
}

/** Compares a server with the reference in each set-up. */
export async function runSecure(kind: ServerKind, expected: ServerKind, programs: Programs, report: Report): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tskeeper-interop-sasl-'));
  try {
    const jaasFile = path.join(folder, 'jaas.conf');
    await writeFile(jaasFile, jaas);
    for (const [index, [name, setup]] of Object.entries(setups).entries()) {
      const { hasUsers, config } = setup;
      const outcomes = async (each: ServerKind): Promise<Outcomes> => {
        const server = await startServer({
          kind: each,
          folder: path.join(folder, `${each}-${index}`),
          config: { tickTime: 500, superUser: 'root', ...config },
          properties: { ...(hasUsers ? { 'java.security.auth.login.config': jaasFile } : {}), 'file.encoding': 'UTF-8' },
        });
        try {
          return await outcomesOf(server, setup, programs, jaasFile);
        } finally {
          if (server.alive) await server.stop();
        }
      };
      const [actual, wanted] = [await outcomes(kind), await outcomes(expected)];
      for (const attempt of new Set([...Object.keys(wanted), ...Object.keys(actual)])) {
        const title = `authentication: ${attempt}, at a server ${name}`;
        if (actual[attempt] === wanted[attempt] || isJustified(name, attempt, actual[attempt], wanted[attempt])) report.pass(title);
        else report.fail(title, `${kind} gives "${actual[attempt]}", and ${expected} "${wanted[attempt]}"`);
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
