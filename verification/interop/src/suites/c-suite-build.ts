/**
 * Compiles the C client with its own tests, as Makefile.am does, without autoconf and libtool: the
 * lists of files are short and the answers of configure are known. OpenSSL and Cyrus SASL are
 * omitted, so tests that need them do not exist.
 */
import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import type { JavaProgram, SourcePackage } from '../../../../scripts/foreign-programs.js';
import { buildOnce } from '../drivers/build.ts';

const run = promisify(execFile);

/** The client with threads and the one without. */
export type CProgram = 'mt' | 'st';

/** The rest of src/ belongs to Windows, SASL and other programs. */
const clientFiles = ['zookeeper', 'recordio', 'zk_log', 'zk_hashtable', 'addrvec', 'hashtable/hashtable', 'hashtable/hashtable_itr'];

/** What configure finds on a Linux with glibc. */
const foundHeaders = ['ARPA_INET_H', 'NETDB_H', 'NETINET_IN_H', 'STRING_H', 'SYS_SOCKET_H', 'SYS_TIME_H', 'SYS_UTSNAME_H', 'UNISTD_H'];
const foundFunctions = ['GETCWD', 'GETHOSTNAME', 'GETLOGIN', 'GETPWUID_R', 'GETUID', 'POLL'];
const configuration = [
  ...[...foundHeaders, ...foundFunctions].map((name) => `#define HAVE_${name} 1`),
  '#define POLL_NFDS_TYPE nfds_t',
  '#define PACKAGE_STRING "zookeeper C client"\n',
].join('\n');

/** Lines of the tests that make them fail with any server, or with none, and their replacements. */
const patchedLines = [
  {
    // A patch of Debian expects an answer within two milliseconds, which a busy machine does not
    // give. It guards against an answer after a third of the session timeout (ZOOKEEPER-770), so a
    // limit of one second detects that too.
    file: 'TestClient.cc',
    from: 'calculate_interval(&started, &completion_timestamp) < 2)',
    to: 'calculate_interval(&started, &completion_timestamp) < 1000)',
  },
  {
    // testHangingClient closes its client while a watcher sends another request. The client answers
    // a call after the close with this error, which ends the whole program.
    file: 'TestClient.cc',
    from: 'CPPUNIT_ASSERT(zrc == ZOK || zrc == ZCLOSING);',
    to: 'CPPUNIT_ASSERT(zrc == ZOK || zrc == ZCLOSING || zrc == ZMARSHALLINGERROR);',
  },
  {
    // The clock of these tests drops microseconds when it advances. It starts at the time of day,
    // so half of the runs find that the time for a ping has not come.
    file: 'LibCMocks.h',
    from: 'LIBC_SYMBOLS.gettimeofday(&tv,0);',
    to: 'LIBC_SYMBOLS.gettimeofday(&tv,0); tv.tv_usec=0;',
  },
];

async function copyTests(from: string, to: string): Promise<void> {
  await cp(from, to, { recursive: true });
  for (const { file, from: before, to: after } of patchedLines) {
    const text = await readFile(path.join(to, file), 'utf8');
    if (!text.includes(before)) throw new Error(`the tests of the C client have changed: ${file} does not contain ${before}`);
    await writeFile(path.join(to, file), text.replace(before, after));
  }
}

interface Compilation {
  readonly compiler: 'gcc' | 'g++';
  readonly file: string;
  readonly object: string;
}

async function compileAll(compilations: readonly Compilation[], options: readonly string[]): Promise<void> {
  const waiting = [...compilations];
  const worker = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const standard = next.compiler === 'g++' ? ['-std=c++11'] : [];
      await run(next.compiler, [...options, ...standard, '-c', next.file, '-o', next.object]);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
}

const commonOptions = [
  '-g',
  '-O2',
  // Their own warnings.
  '-w',
  // Util.cc lacks the header that declares nanosleep.
  '-include',
  'time.h',
  '-D_GNU_SOURCE',
  '-DHAVE_CONFIG_H',
  '-DUSE_STATIC_LIB',
  '-DZOO_IPV6_ENABLED',
  '-DZKSERVER_CMD="./tests/zkServer.sh"',
];

async function compile(program: CProgram, { source, include, library }: SourcePackage, java: JavaProgram, folder: string): Promise<void> {
  const client = path.join(source, 'zookeeper-client', 'zookeeper-client-c');
  const tests = path.join(folder, 'tests');
  await copyTests(path.join(client, 'tests'), tests);
  const generated = path.join(folder, 'generated');
  await mkdir(generated);
  const definitions = path.join(source, 'zookeeper-jute', 'src', 'main', 'resources', 'zookeeper.jute');
  await run('java', ['-cp', java.classpath, 'org.apache.jute.compiler.generated.Rcc', '-l', 'c', definitions], { cwd: generated });
  await writeFile(path.join(folder, 'config.h'), configuration);
  const inC = [
    path.join(generated, 'zookeeper.jute.c'),
    ...[...clientFiles, `${program}_adaptor`].map((name) => path.join(client, 'src', `${name}.c`)),
  ];
  const names = (await readdir(tests)).filter((name) => name.endsWith('.cc') && (program === 'mt' || name !== 'PthreadMocks.cc'));
  const inCpp = names.map((name) => path.join(tests, name));
  const compilations = [
    ...inC.map((file): Compilation => ({ compiler: 'gcc', file, object: path.join(folder, `${path.basename(file)}.o`) })),
    ...inCpp.map((file): Compilation => ({ compiler: 'g++', file, object: path.join(folder, `${path.basename(file)}.o`) })),
  ];
  const included = [
    folder,
    generated,
    tests,
    client,
    ...['include', 'src', 'src/hashtable'].map((name) => path.join(client, name)),
    include,
  ];
  await compileAll(compilations, [...commonOptions, ...(program === 'mt' ? ['-DTHREADED'] : []), ...included.map((each) => `-I${each}`)]);

  // The linker replaces these functions by the mock-ups of the tests.
  const wrapped: string[] = [];
  for (const name of program === 'mt' ? ['wrappers.opt', 'wrappers-mt.opt'] : ['wrappers.opt']) {
    wrapped.push(...(await readFile(path.join(tests, name), 'utf8')).split(/\s+/).filter((word) => word !== ''));
  }
  const objects = compilations.map(({ object }) => object);
  const libraries = [path.join(library, 'libcppunit.a'), '-lpthread', '-lm', '-ldl', '-rdynamic'];
  await run('g++', ['-o', path.join(folder, `zktest-${program}`), ...objects, ...wrapped, ...libraries]);
  for (const object of objects) await rm(object);
}

/**
 * The path of `zktest-mt` or `zktest-st`. Built once for each version of the source and of this
 * file.
 */
export async function buildCSuite(program: CProgram, suite: SourcePackage, java: JavaProgram): Promise<string> {
  const folder = await buildOnce(`c-suite-${program}`, [fileURLToPath(import.meta.url)], suite.source, (target) =>
    compile(program, suite, java, target),
  );
  return path.join(folder, `zktest-${program}`);
}
