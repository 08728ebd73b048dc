/**
 * Installs the foreign peers for comparisons: Apache ZooKeeper itself (with its Java client and
 * zkCli), kazoo for Python, the C client, ClickHouse, and the other clients on npm.
 *
 * Everything goes into `.cache/peers/<name>`; nothing outside the repository changes, and an
 * installed peer costs one look at the file system. A peer that cannot be installed on this machine
 * is returned with the reason, which the caller reports as skipped. Uses only Node's own modules,
 * since the bench and the tests run this before other packages are known to work.
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
const foreignFolder = path.join(cacheFolder, 'peers');

/** A registry may be slow; an installation that takes longer counts as failed. */
const installTimeoutMs = 300_000;

/**
 * What ZooKeeper needs besides its own jar to run as a server, as a client and as zkCli: its pom
 * marks these as provided, because the distribution contains them; and what Netty, which only a TLS
 * port needs, requires before it finds that it has no native part. The versions are those of each
 * distribution.
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
  // Only the server of this release is used.
  '3.5.10': ['ch.qos.logback:logback-classic:1.2.10'],
};

/**
 * Warnings only: at INFO a ZooKeeper server prints a line for every rejected request, which would
 * distort measurements. -Dlog.level overrides it.
 */
const logback = `<configuration>
  <appender name="CONSOLE" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target>
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5p [%t] %c{1} %m%n</pattern></encoder>
  </appender>
  <root level="\${log.level:-WARN}"><appender-ref ref="CONSOLE"/></root>
</configuration>
`;

/** Coordinates are `group:artifact:version`; the requested artifact comes first. */
function pomOf(pomName, coordinatesOfAll) {
  const dependencies = coordinatesOfAll.map((coordinates) => {
    const [group, artifact, artifactVersion] = coordinates.split(':');
    // Omits netty's native parts, by far the largest downloads: netty works without them, also for
    // TLS.
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

/**
 * Java programs with all their dependencies. Maven verifies each file against the checksum in its
 * repository.
 */
function javaInstaller(pomName, coordinates) {
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
function zookeeperInstaller(version) {
  return javaInstaller('zookeeper-peer', [`org.apache.zookeeper:zookeeper:${version}`, ...zookeeperExtras[version]]);
}

/**
 * Curator's recipes and service discovery, with the client of the ZooKeeper release that they are
 * tested with.
 */
const curatorVersion = '5.9.0';

const kazooVersion = '2.11.0';
/** With it kazoo speaks SASL. */
const pureSaslVersion = '0.6.2';

/**
 * What kazoo's own tests import, and the dependencies of these packages. pyOpenSSL 26.2.0 and later
 * lack what kazoo's harness needs to create certificates.
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
  `pure-sasl==${pureSaslVersion}`,
];

/**
 * Debian's source package of ZooKeeper, which contains the tests of the C client, and the packages
 * needed to compile and link them.
 */
const cSuiteSource = 'zookeeper';
const cSuitePackages = ['libcppunit-dev'];

/** Python packages. `version`: that of the program they are installed for. */
function pythonInstaller(version, packages) {
  return {
    text: packages.join(' '),
    /** @param {string} folder */
    async install(folder) {
      const target = path.join(folder, 'site');
      await run('python3', ['-m', 'pip', 'install', '--quiet', '--target', target, ...packages], { timeout: installTimeoutMs });
    },
    /** @param {string} folder */
    async facts(folder) {
      return { version, pythonPath: path.join(folder, 'site') };
    },
  };
}

/**
 * An npm package. `dependencies` are pinned too, since they are measured with it. `isNative`: it is
 * compiled here, which needs a C++ compiler, make, and the headers of Node.
 */
function npmInstaller(name, version, dependencies, { isNative = false } = {}) {
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

/**
 * Unpacks Debian packages into `folder`/root instead of installing them, which needs neither root
 * permissions nor a change of the machine.
 */
async function unpackDebianPackages(folder, packages) {
  const options = { cwd: folder, timeout: installTimeoutMs };
  try {
    await run('apt-get', ['-qq', 'download', ...packages], options);
  } catch {
    // A fresh machine, or one whose package lists are outdated.
    await run('apt-get', ['-qq', 'update'], options);
    await run('apt-get', ['-qq', 'download', ...packages], options);
  }
  for (const name of await readdir(folder)) {
    if (name.endsWith('.deb')) await run('dpkg-deb', ['-x', name, 'root'], options);
  }
}

/**
 * The folder of libraries in what `unpackDebianPackages` unpacked. Its name depends on the
 * processor.
 */
async function libraryFolderOf(folder) {
  const libraries = path.join(folder, 'root', 'usr', 'lib');
  const [triplet] = (await readdir(libraries)).filter((name) => name.includes('-linux-'));
  if (triplet === undefined) throw new Error(`no library folder in ${libraries}`);
  return path.join(libraries, triplet);
}

/**
 * Unpacks a Debian source package, with Debian's patches, into `folder`/source. apt gets its own
 * list of sources: the Debian archives that this machine uses, for source packages.
 */
async function unpackDebianSource(folder, name) {
  const options = { cwd: folder, timeout: installTimeoutMs };
  const format = '$(ORIGIN) deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)';
  const { stdout } = await run('apt-get', ['indextargets', '--format', format, 'Created-By: Packages'], options);
  const lines = stdout.split('\n').flatMap((line) => (line.startsWith('Debian ') ? [line.slice('Debian '.length)] : []));
  if (lines.length === 0) throw new Error('error: apt-get has no Debian archive with source packages');
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
  // apt-get has compared the files with the checksums of the archive; not every machine has the
  // keys of the maintainers.
  await run('dpkg-source', ['--no-check', '-x', description, 'source'], options);
  await rm(path.join(folder, 'apt'), { recursive: true, force: true });
}

/**
 * @type {Record<import('./foreign-programs.js').ForeignProgramName, { text: string, install(folder: string):
 * Promise<void>, facts(folder: string): Promise<Record<string, string>> }>}
 */
const installers = {
  'zookeeper-3.9.5': zookeeperInstaller('3.9.5'),
  'zookeeper-3.8.0': zookeeperInstaller('3.8.0'),
  'zookeeper-3.5.10': zookeeperInstaller('3.5.10'),
  curator: javaInstaller('curator-peer', [
    `org.apache.curator:curator-x-discovery:${curatorVersion}`,
    `org.apache.curator:curator-recipes:${curatorVersion}`,
    'org.apache.zookeeper:zookeeper:3.9.5',
    ...zookeeperExtras['3.9.5'],
  ]),
  kazoo: pythonInstaller(kazooVersion, [`kazoo==${kazooVersion}`, `pure-sasl==${pureSaslVersion}`]),
  'kazoo-suite': pythonInstaller(kazooVersion, kazooSuitePackages),
  // The engine of ClickHouse 26.9 as a library: about 900 MB.
  clickhouse: pythonInstaller('26.9.0', ['chdb==4.4.0', 'chdb-core==26.9.0']),
  'node-zookeeper-client': npmInstaller('node-zookeeper-client', '1.1.3', { async: '3.2.6', underscore: '1.13.8' }),
  'zookeeper-npm': npmInstaller(
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
      // Its scripts find servers with ps.
      await run('ps', ['-p', String(process.pid)]);
      // Packages first: on a fresh machine this fetches the lists, which name the archives.
      await unpackDebianPackages(folder, cSuitePackages);
      await unpackDebianSource(folder, cSuiteSource);
    },
    async facts(folder) {
      const include = path.join(folder, 'root', 'usr', 'include');
      return { source: path.join(folder, 'source'), include, library: await libraryFolderOf(folder) };
    },
  },
};

/** The last meaningful line: registries and compilers print their reason there. */
function reasonOf(error) {
  const text = error instanceof Error ? `${error.stderr ?? ''}\n${error.message}` : String(error);
  if (error?.code === 'ENOENT' && error.syscall?.startsWith('spawn')) return `the command ${error.path} is not installed on this machine`;
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const telling = lines.find((line) => /error|E:|unable|fail/i.test(line)) ?? lines[0] ?? 'no reason given';
  return telling.slice(0, 300);
}

async function ensureForeignProgram(name, log) {
  const recipe = installers[name];
  const folder = path.join(foreignFolder, `${name}-${createHash('sha256').update(recipe.text).digest('hex').slice(0, 12)}`);
  if (!existsSync(folder)) {
    log(`installing ${name} into ${path.relative(repositoryFolder, folder)}`);
    const unfinished = `${folder}.${process.pid}.tmp`;
    await mkdir(unfinished, { recursive: true });
    try {
      await recipe.install(unfinished);
      // Another process may have installed the same peer first; its folder is as good.
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
 * Makes the named peers available, one after the other; returns for each its folder or the reason
 * why it is missing.
 *
 * @template {import('./foreign-programs.js').ForeignProgramName} Name
 * @param {readonly Name[]} names
 * @param {{ log?: (line: string) => void }} [options]
 */
export async function ensureForeignPrograms(names, { log = () => {} } = {}) {
  /** @type {Record<string, unknown>} */
  const peers = {};
  for (const name of names) peers[name] = await ensureForeignProgram(name, log);
  return peers;
}
