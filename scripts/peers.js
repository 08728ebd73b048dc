/**
 * Installs the foreign peers: the programs written by others that we must get on with. Apache ZooKeeper itself (with its Java client and
 * zkCli), kazoo for Python, the C client, and the other clients of npm.
 *
 * Everything lands in `.cache/peers/<name>`, nothing outside the repository is changed, and a peer that is there already costs one look
 * at the file system. A peer that cannot be installed on this machine is named with the reason, for the caller to report as skipped.
 * Only Node's own modules are used, since the bench and the tests call this before anything else is known to work.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

export const repositoryFolder = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
export const cacheFolder = path.join(repositoryFolder, '.cache');
const peersFolder = path.join(cacheFolder, 'peers');

/** A registry may be slow; a peer that takes longer than this is reported as one that could not be installed. */
const installTimeoutMs = 300_000;

/**
 * What ZooKeeper needs besides its own jar to run as a server, as a client and as zkCli: its pom marks these as provided, because the
 * distribution brings them; and what Netty, which only a port with TLS needs, asks for before it finds that it has no native part. The
 * versions are those of each distribution.
 */
const zookeeperExtras = {
  '3.9.5': [
    'ch.qos.logback:logback-classic:1.3.15',
    'io.netty:netty-transport-classes-epoll:4.1.130.Final',
    'org.xerial.snappy:snappy-java:1.1.10.5',
    'io.dropwizard.metrics:metrics-core:4.1.12.1',
    'commons-cli:commons-cli:1.5.0',
    'jline:jline:2.14.6',
  ],
  '3.8.0': [
    'ch.qos.logback:logback-classic:1.2.10',
    'io.netty:netty-transport-classes-epoll:4.1.73.Final',
    'org.xerial.snappy:snappy-java:1.1.7.7',
    'io.dropwizard.metrics:metrics-core:4.1.12.1',
    'commons-cli:commons-cli:1.2',
    'jline:jline:2.14.6',
  ],
  // Of this one nothing but the server is used.
  '3.5.10': ['ch.qos.logback:logback-classic:1.2.10'],
};

/** Warnings at most: at INFO a ZooKeeper server prints a line for every refused request, which would be measured along with it. -Dlog.level overrides. */
const logback = `<configuration>
  <appender name="CONSOLE" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5p [%t] %c{1} %m%n</pattern></encoder>
  </appender>
  <root level="\${log.level:-WARN}"><appender-ref ref="CONSOLE"/></root>
</configuration>
`;

/** Coordinates are `group:artifact:version`, what is asked for first. */
function pomOf(pomName, coordinatesOfAll) {
  const dependencies = coordinatesOfAll.map((coordinates) => {
    const [group, artifact, artifactVersion] = coordinates.split(':');
    // The native parts of netty, by far the largest downloads, are left out: it does without, also for TLS.
    const exclusions = ['netty-tcnative-boringssl-static', 'netty-transport-native-epoll']
      .map((name) => `<exclusion><groupId>io.netty</groupId><artifactId>${name}</artifactId></exclusion>`)
      .join('');
    return `<dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${artifactVersion}</version><exclusions>${exclusions}</exclusions></dependency>`;
  });
  return `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tskeeper.interop</groupId><artifactId>${pomName}</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>
${dependencies.join('\n')}
</dependencies></project>
`;
}

/** Programs of Java, with all that they need. Maven compares each file with the checksum that its repository has for it. */
function javaRecipe(pomName, coordinates) {
  const pom = pomOf(pomName, coordinates);
  return {
    text: pom + logback,
    /** @param {string} folder */
    async install(folder) {
      await writeFile(path.join(folder, 'pom.xml'), pom);
      const lib = path.join(folder, 'lib');
      const options = { cwd: folder, timeout: installTimeoutMs };
      await run('mvn', ['-q', '-B', '-C', 'dependency:copy-dependencies', `-DoutputDirectory=${lib}`, '-DincludeScope=runtime'], options);
      await mkdir(path.join(folder, 'conf'));
      await writeFile(path.join(folder, 'conf', 'logback.xml'), logback);
    },
    /** @param {string} folder */
    async facts(folder) {
      const jars = (await readdir(path.join(folder, 'lib'))).filter((name) => name.endsWith('.jar')).toSorted();
      const classpath = [path.join(folder, 'conf'), ...jars.map((jar) => path.join(folder, 'lib', jar))].join(':');
      return { classpath };
    },
  };
}

/** @param {keyof typeof zookeeperExtras} version */
function zookeeperRecipe(version) {
  return javaRecipe('zookeeper-peer', [`org.apache.zookeeper:zookeeper:${version}`, ...zookeeperExtras[version]]);
}

/** Curator's recipes and service discovery, on the client of the ZooKeeper that they are tried with. */
const curatorVersion = '5.9.0';

const kazooVersion = '2.11.0';

/**
 * What kazoo's own tests import, and what these packages need. pyOpenSSL has no longer what kazoo's harness makes certificates with from
 * 26.2.0 on. pure-sasl is not among them, so kazoo skips its tests of SASL.
 */
const kazooSuitePackages = [
  `kazoo==${kazooVersion}`,
  'objgraph==3.6.2',
  'pytest==8.4.2',
  'pytest-timeout==2.4.0',
  'gevent>=24.2.1',
  'eventlet>=0.40.0',
  'pyjks==20.0.0',
  'pyOpenSSL>=24.2.1,<26.2.0',
];

/** Debian's source package of ZooKeeper, whose C client has the tests, and the packages they are compiled and linked with. */
const cSuiteSource = 'zookeeper';
const cSuitePackages = ['libcppunit-dev'];

/** kazoo with other packages of Python. */
function kazooRecipe(packages) {
  return {
    text: packages.join(' '),
    /** @param {string} folder */
    async install(folder) {
      const target = path.join(folder, 'site');
      await run('python3', ['-m', 'pip', 'install', '--quiet', '--target', target, ...packages], { timeout: installTimeoutMs });
    },
    /** @param {string} folder */
    async facts(folder) {
      return { version: kazooVersion, pythonPath: path.join(folder, 'site') };
    },
  };
}

/**
 * A package of npm. `dependencies` are pinned too, since they are measured along with it. `isNative`: it is compiled here, which needs a C++
 * compiler, make, and the headers of Node.
 */
function npmRecipe(name, version, dependencies, { isNative = false } = {}) {
  const manifest = JSON.stringify({ private: true, dependencies: { [name]: version }, overrides: dependencies });
  return {
    text: manifest,
    /** @param {string} folder */
    async install(folder) {
      await writeFile(path.join(folder, 'package.json'), manifest);
      const options = { cwd: folder, timeout: installTimeoutMs };
      await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], options);
      if (isNative) await run('npm', ['rebuild', name, '--foreground-scripts', '--ignore-scripts=false'], options);
    },
    /** @param {string} folder */
    async facts(folder) {
      return { version, packageFolder: path.join(folder, 'node_modules', name) };
    },
  };
}

/** Packages of Debian, unpacked into `folder`/root instead of installed, so that neither root nor a change to the machine is needed. */
async function unpackDebianPackages(folder, packages) {
  const options = { cwd: folder, timeout: installTimeoutMs };
  try {
    await run('apt-get', ['-qq', 'download', ...packages], options);
  } catch {
    // A fresh machine, or one whose lists are older than the archive.
    await run('apt-get', ['-qq', 'update'], options);
    await run('apt-get', ['-qq', 'download', ...packages], options);
  }
  for (const name of await readdir(folder)) {
    if (name.endsWith('.deb')) await run('dpkg-deb', ['-x', name, 'root'], options);
  }
}

/** The folder of libraries in what `unpackDebianPackages` unpacked. Its name depends on the processor. */
async function libraryFolderOf(folder) {
  const libraries = path.join(folder, 'root', 'usr', 'lib');
  const [triplet] = (await readdir(libraries)).filter((name) => name.includes('-linux-'));
  if (triplet === undefined) throw new Error(`no library folder in ${libraries}`);
  return path.join(libraries, triplet);
}

/**
 * Unpacks a source package of Debian, with Debian's patches, into `folder`/source. apt is given a list of sources of its own: the archives of
 * Debian that this machine takes its packages from, asked for sources.
 */
async function unpackDebianSource(folder, name) {
  const options = { cwd: folder, timeout: installTimeoutMs };
  const format = '$(ORIGIN) deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)';
  const { stdout } = await run('apt-get', ['indextargets', '--format', format, 'Created-By: Packages'], options);
  const lines = stdout.split('\n').flatMap((line) => (line.startsWith('Debian ') ? [line.slice('Debian '.length)] : []));
  if (lines.length === 0) throw new Error('error: apt-get knows no archive of Debian to take sources from');
  const list = path.join(folder, 'sources.list');
  await writeFile(list, `${lines.join('\n')}\n`);
  for (const needed of ['lists/partial', 'cache/archives/partial']) await mkdir(path.join(folder, 'apt', needed), { recursive: true });
  const settings = {
    'Dir::Etc::SourceList': list,
    'Dir::Etc::SourceParts': '/dev/null',
    'Dir::State::Lists': path.join(folder, 'apt', 'lists'),
    'Dir::Cache': path.join(folder, 'apt', 'cache'),
  };
  const apt = ['-qq', ...Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`])];
  await run('apt-get', [...apt, 'update'], options);
  await run('apt-get', [...apt, 'source', '--download-only', name], options);
  const description = (await readdir(folder)).find((file) => file.endsWith('.dsc'));
  // apt-get has compared the files with the checksums of the archive; the keys of the maintainers are not on every machine.
  await run('dpkg-source', ['--no-check', '-x', description, 'source'], options);
  await rm(path.join(folder, 'apt'), { recursive: true, force: true });
}

/** @type {Record<import('./peers.js').PeerName, { text: string, install(folder: string): Promise<void>, facts(folder: string): Promise<Record<string, string>> }>} */
const recipes = {
  'zookeeper-3.9.5': zookeeperRecipe('3.9.5'),
  'zookeeper-3.8.0': zookeeperRecipe('3.8.0'),
  'zookeeper-3.5.10': zookeeperRecipe('3.5.10'),
  curator: javaRecipe('curator-peer', [
    `org.apache.curator:curator-x-discovery:${curatorVersion}`,
    `org.apache.curator:curator-recipes:${curatorVersion}`,
    'org.apache.zookeeper:zookeeper:3.9.5',
    ...zookeeperExtras['3.9.5'],
  ]),
  kazoo: kazooRecipe([`kazoo==${kazooVersion}`]),
  'kazoo-suite': kazooRecipe(kazooSuitePackages),
  'node-zookeeper-client': npmRecipe('node-zookeeper-client', '1.1.3', { async: '3.2.6', underscore: '1.13.8' }),
  'zookeeper-npm': npmRecipe(
    'zookeeper',
    '7.3.0',
    { async: '3.2.6', nan: '2.30.0', 'node-gyp-build': '4.8.4', shelljs: '0.10.0', tar: '7.5.23' },
    { isNative: true },
  ),
  'zookeeper-c': {
    text: 'libzookeeper-mt-dev libzookeeper-mt2',
    install: (folder) => unpackDebianPackages(folder, ['libzookeeper-mt-dev', 'libzookeeper-mt2']),
    async facts(folder) {
      return { include: path.join(folder, 'root', 'usr', 'include', 'zookeeper'), library: await libraryFolderOf(folder) };
    },
  },
  'zookeeper-c-suite': {
    text: `source of ${cSuiteSource}, ${cSuitePackages.join(' ')}`,
    async install(folder) {
      // Its scripts watch over servers with ps.
      await run('ps', ['-p', String(process.pid)]);
      // Packages first: on a fresh machine that fetches the lists, which name the archives.
      await unpackDebianPackages(folder, cSuitePackages);
      await unpackDebianSource(folder, cSuiteSource);
    },
    async facts(folder) {
      const include = path.join(folder, 'root', 'usr', 'include');
      return { source: path.join(folder, 'source'), include, library: await libraryFolderOf(folder) };
    },
  },
};

/** The last line that says something: registries and compilers put their reason there. */
function reasonOf(error) {
  const text = error instanceof Error ? `${error.stderr ?? ''}\n${error.message}` : String(error);
  if (error?.code === 'ENOENT' && error.syscall?.startsWith('spawn')) return `the command ${error.path} is not on this machine`;
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const telling = lines.find((line) => /error|E:|unable|fail/i.test(line)) ?? lines[0] ?? 'no reason given';
  return telling.slice(0, 300);
}

async function ensurePeer(name, log) {
  const recipe = recipes[name];
  const folder = path.join(peersFolder, `${name}-${createHash('sha256').update(recipe.text).digest('hex').slice(0, 12)}`);
  if (!existsSync(folder)) {
    log(`installing ${name} into ${path.relative(repositoryFolder, folder)}`);
    const unfinished = `${folder}.${process.pid}.tmp`;
    await mkdir(unfinished, { recursive: true });
    try {
      await recipe.install(unfinished);
      // Whoever else was installing the same may have been first; their folder is as good.
      if (!existsSync(folder)) await rename(unfinished, folder);
    } catch (error) {
      return { name, installed: false, reason: reasonOf(error) };
    } finally {
      await rm(unfinished, { recursive: true, force: true });
    }
  }
  return { name, installed: true, folder, ...(await recipe.facts(folder)) };
}

/**
 * Makes the named peers available, one after the other, and says for each where it is or why it is not there.
 *
 * @template {import('./peers.js').PeerName} Name
 * @param {readonly Name[]} names
 * @param {{ log?: (line: string) => void }} [options]
 */
export async function ensurePeers(names, { log = () => {} } = {}) {
  /** @type {Record<string, unknown>} */
  const peers = {};
  for (const name of names) peers[name] = await ensurePeer(name, log);
  return peers;
}
