#!/usr/bin/env node
/**
 * `npm run newcomer`: does what a new user does, exactly as the README files show it. It extracts
 * commands and programs from the pages, so that a page and the test cannot differ, except for the
 * port, as 2181 may be in use, and the folder of the project.
 *
 * - The tour of README.md against `npm start` in this clone, ended as by Ctrl+C.
 * - `npm run packages` into an empty project of ES modules; there the tour again, against the
 *   server of the installed package, ended by SIGTERM.
 * - The program of the picture in README.md, and the test for node:test of the guide, in that
 *   project.
 * - A project of CommonJS, which also runs Jest as its guide says; and one of TypeScript, which
 *   compiles and runs the first steps, and (NodeNext) the first example of each package README.
 *
 * Needs npm and its registry. Ends with a line of counts, and leaves no process and no folder.
 */
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packAll } from './pack.js';
import { installInto } from './install-packages.js';
import { commandsOf, firstExample, codeBlocksOf, sectionOf, withProject, withServer, outputPattern } from './doc-pages.js';
import { root } from './public-packages.js';
import { picture, program as pictured, shownIn } from './terminal-picture.js';

const commandTimeoutMs = 120_000;
const home = mkdtempSync(join(tmpdir(), 'tskeeper-newcomer-'));
const bin = join(home, 'bin');
/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();
const counts = { passed: 0, failed: 0, skipped: 0 };
const page = (path) => readFileSync(join(root, path), 'utf8');

async function check(name, trial) {
  const begun = performance.now();
  let failure;
  try {
    await trial();
  } catch (error) {
    failure = error;
  }
  counts[failure === undefined ? 'passed' : 'failed']++;
  const seconds = ((performance.now() - begun) / 1000).toFixed(1).padStart(6);
  console.log(`${failure === undefined ? 'ok    ' : 'FAILED'} ${seconds} s  ${name}`);
  if (failure !== undefined) console.log(String(failure.message).trimEnd().replaceAll(/^/gm, '    '));
}

/**
 * Runs a line in a shell, and resolves with its standard output. Rejects if it fails, or ends
 * before it has printed `until`.
 */
function run(line, { cwd, port, until }) {
  return new Promise((resolve, reject) => {
    const child = begin(line, { cwd, port });
    const patience = setTimeout(() => end('SIGKILL'), commandTimeoutMs);
    let isSeen = false;
    const end = (signal) => signalAll(child, signal);
    child.printed((output) => {
      if (until === undefined || isSeen || !until.test(output)) return;
      isSeen = true;
      end('SIGTERM');
    });
    child.on('close', (code, signal) => {
      clearTimeout(patience);
      if (code === 0 || isSeen) resolve(child.printedText);
      else reject(new Error(`${line}\nended with ${signal ?? code}. Its output:\n${child.output}`));
    });
  });
}

/** Starts a line in a shell, in its own process group. */
function begin(line, { cwd, port }) {
  const env = { ...process.env, TSKEEPER_SERVER: `127.0.0.1:${port}`, PATH: [process.env.PATH, bin].join(delimiter) };
  // Variables of npm scripts must not reach the programs that they start.
  for (const name of Object.keys(env)) if (/^(?:npm_|INIT_CWD)/i.test(name)) delete env[name];
  const child = spawn('sh', ['-c', `exec ${line}`], { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  child.output = '';
  child.printedText = '';
  const listeners = [];
  child.printed = (listener) => listeners.push(listener);
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes) => {
      child.output += bytes;
      // npm prints its own warnings on standard error.
      if (stream === child.stdout) child.printedText += bytes;
      for (const listener of listeners) listener(child.output);
    });
  }
  child.on('close', () => running.delete(child));
  return child;
}

function signalAll(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/**
 * Resolves when the server accepts clients, with the function that ends it: `toAll` signals the
 * process group as Ctrl+C does, otherwise only the started process.
 */
function serve(line, { cwd, port }) {
  return new Promise((resolve, reject) => {
    const child = begin(line, { cwd, port });
    const patience = setTimeout(() => signalAll(child, 'SIGKILL'), commandTimeoutMs);
    const closed = new Promise((done) => child.on('close', (code, signal) => done(code ?? signal)));
    child.printed((output) => {
      if (!/serving (?:clients )?on 127\.0\.0\.1/.test(output)) return;
      clearTimeout(patience);
      resolve({
        end: (signal, { toAll = false } = {}) => end(signal, toAll),
        get output() {
          return child.output;
        },
      });
    });
    void closed.then((code) => reject(new Error(`${line}\nended with ${code}. Its output:\n${child.output}`)));

    async function end(signal, toAll) {
      if (toAll) signalAll(child, signal);
      else child.kill(signal);
      const late = setTimeout(() => signalAll(child, 'SIGKILL'), commandTimeoutMs);
      const code = await closed;
      clearTimeout(late);
      if (await isTaken(port))
        throw new Error(`${line}\nended with ${code} after ${signal}, but its port ${port} is still in use:\n${child.output}`);
      return code;
    }
  });
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

function isTaken(port) {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.on('connect', () => socket.destroy());
    socket.on('close', (hadError) => resolve(!hadError));
    socket.on('error', () => {});
  });
}

/**
 * The tour of README.md: runs each command, saves each program, and compares the output with the
 * page.
 */
async function runTour(cwd, port) {
  mkdirSync(cwd, { recursive: true });
  const section = sectionOf(page('README.md'), 'Tour');
  for (const { language, code } of codeBlocksOf(section)) {
    if (language === 'js') writeFileSync(join(cwd, 'hello.mjs'), withServer(code, port));
    if (language !== 'console') continue;
    for (const { command, printed } of commandsOf(code)) {
      const output = await run(withServer(command, port), { cwd, port });
      if (!outputPattern(printed).test(output)) throw new Error(`$ ${command}\nprinted:\n${output}\nREADME.md has:\n${printed}`);
    }
  }
}

/** `nc`, for machines without it. */
function provideNc() {
  mkdirSync(bin);
  const program = `#!${process.execPath}
const socket = require('node:net').connect(Number(process.argv[3]), process.argv[2]);
process.stdin.pipe(socket, { end: false });
socket.pipe(process.stdout);
`;
  writeFileSync(join(bin, 'nc'), program);
  chmodSync(join(bin, 'nc'), 0o755);
}

function makeProject(name, manifest) {
  const folder = join(home, name);
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, ...manifest }));
  return folder;
}

async function checkInClone() {
  const port = await freePort();
  const clone = join(root, '.cache', 'newcomer');
  rmSync(clone, { recursive: true, force: true });
  const data = join(home, 'data');
  const server = await serve(`npm start -- --client-port ${port} --data-dir ${data}`, { cwd: root, port });
  try {
    await runTour(clone, port);
  } finally {
    await server.end('SIGINT', { toAll: true });
    rmSync(clone, { recursive: true, force: true });
  }
}

/** The section "Install" of README.md, then the tour against that server. */
async function checkInProject() {
  const port = await freePort();
  const project = join(home, 'my-app');
  let cwd = root;
  let server;
  const consoles = codeBlocksOf(sectionOf(page('README.md'), 'Install')).filter(({ language }) => language === 'console');
  for (const { command, printed } of consoles.flatMap(({ code }) => commandsOf(code))) {
    const typed = withProject(command, project);
    if (typed.startsWith('cd ')) cwd = typed.slice('cd '.length);
    else if (typed.includes(' serve')) {
      writeFileSync(join(cwd, 'zoo.cfg'), `dataDir=${join(home, 'project-data')}\nclientPort=${port}\nclientPortAddress=127.0.0.1\n`);
      server = await serve(typed, { cwd, port });
    } else {
      const output = await run(typed, { cwd, port });
      if (!outputPattern(printed).test(output)) throw new Error(`$ ${command}\nprinted:\n${output}\nREADME.md has:\n${printed}`);
    }
  }
  if (server === undefined) throw new Error('README.md starts no server in its section "Install"');
  let code;
  try {
    await runTour(project, port);
  } finally {
    code = await server.end('SIGTERM');
  }
  if (code !== 0) throw new Error(`the server ended with ${code} after SIGTERM, not 0:\n${server.output}`);
}

/** Runs in the project of README.md, where everything is installed. */
async function checkTerminalPicture() {
  const cwd = join(home, 'my-app');
  writeFileSync(join(cwd, 'failover.mjs'), pictured);
  const output = await run('node failover.mjs', { cwd, port: 0 });
  const { printed } = shownIn(readFileSync(picture, 'utf8')).find(({ command }) => command === 'node failover.mjs');
  if (!outputPattern(printed.replaceAll(/[\d.]+ms/g, '...')).test(output))
    throw new Error(`it printed:\n${output}\nthe picture has:\n${printed}`);
}

/** `# pass 1`, or with another reporter `ℹ pass 1`; and it has to end by itself. */
async function checkNodeTest() {
  const cwd = join(home, 'my-app');
  writeFileSync(
    join(cwd, 'ensemble.test.mjs'),
    firstExample(sectionOf(page('docs/guides/test-with-a-real-ensemble.md'), 'With node:test'), 'js'),
  );
  const output = await run('node --test', { cwd, port: 0 });
  if (!/^\S pass 1$/m.test(output)) throw new Error(`it printed:\n${output}`);
}

/** Both ways of docs/guides/jest.md, with the version that it names. */
async function checkJest(project) {
  const guide = page('docs/guides/jest.md');
  const [, version] = /with Jest ([\d.]+\d)/.exec(guide);
  const { devDependencies } = JSON.parse(page('package.json'));
  await run(`npm install --no-audit --no-fund --save-dev jest@${version} esbuild@${devDependencies.esbuild}`, { cwd: project, port: 0 });
  const manifest = readFileSync(join(project, 'package.json'), 'utf8');
  const asModules = sectionOf(guide, 'Tests as ES modules');
  const asCommonJs = sectionOf(guide, 'Tests as CommonJS');
  const test = firstExample(asModules, 'js');
  const jest = async (section, file, line) => {
    writeFileSync(join(project, 'package.json'), JSON.stringify({ ...JSON.parse(manifest), ...JSON.parse(firstExample(section, 'json')) }));
    const text = file.endsWith('.mjs') ? test : test.replaceAll(/^import (.*) from (.*);$/gm, 'const $1 = require($2);');
    writeFileSync(join(project, file), text);
    // Jest prints its results on standard error, and fails if a test fails or if there is none.
    await run(line, { cwd: project, port: 0 });
    rmSync(join(project, file));
  };
  await jest(
    asModules,
    'worker.test.mjs',
    firstExample(asModules, '')
      .trim()
      .replace(/^NODE_OPTIONS/, 'env NODE_OPTIONS'),
  );
  writeFileSync(join(project, 'esm-to-commonjs.mjs'), firstExample(asCommonJs, 'js'));
  await jest(asCommonJs, 'worker.test.js', 'npx jest');
}

/**
 * The programs of docs/guides/first-steps.md, with its own commands, before the project has a
 * tsconfig.json.
 */
async function checkFirstSteps(cwd, port) {
  const guide = page('docs/guides/first-steps.md');
  const typeScript = sectionOf(guide, 'The program');
  const [printed, commands] = codeBlocksOf(typeScript).filter(({ language }) => language === '');
  writeFileSync(join(cwd, 'first-steps.ts'), firstExample(typeScript, 'ts'));
  const [compile, start] = commands.code.trim().split('\n');
  await run(compile, { cwd, port });
  const javaScript = sectionOf(guide, 'In plain JavaScript');
  writeFileSync(join(cwd, 'first-steps.mjs'), withServer(firstExample(javaScript, 'js'), port));
  const [also] = codeBlocksOf(javaScript).filter(({ language }) => language === '');
  for (const [line, wanted] of [
    [start, printed.code],
    ['node first-steps.mjs', also.code],
  ]) {
    const output = await run(withServer(line, port), { cwd, port });
    if (output !== wanted) throw new Error(`$ ${line}\nprinted:\n${output}\nthe page has:\n${wanted}`);
  }
  for (const name of ['first-steps.ts', 'first-steps.js', 'first-steps.mjs']) rmSync(join(cwd, name));
}

async function checkCommonJs(packed) {
  const project = makeProject('common-js', { type: 'commonjs' });
  installInto(project, packed);
  await check('the tests of docs/guides/jest.md run in Jest, as ES modules and as CommonJS', () => checkJest(project));
  const port = await freePort();
  const server = await serve(`node_modules/.bin/tskeeper serve --client-port ${port} --data-dir ${project}-data`, { cwd: project, port });
  try {
    const { code } = codeBlocksOf(page('packages/client/README.md')).find(({ language }) => language === 'cjs') ?? {};
    if (code === undefined) throw new Error('packages/client/README.md shows no program of CommonJS (```cjs)');
    writeFileSync(join(project, 'program.js'), withServer(code, port));
    const output = await run('node program.js', { cwd: project, port });
    if (output !== 'blue\n') throw new Error(`the program of CommonJS printed:\n${output}`);
    for (const { name } of packed) await run(`node -e "Object.keys(require('${name}'))[0].at(0)"`, { cwd: project, port });
  } finally {
    await server.end('SIGTERM');
  }
}

/**
 * The first example of each package README that is a program, and its expected output. A program
 * that does not end is ended after that.
 */
const programs = [
  { name: 'client', prints: /^NodeDataChanged \/config$/m },
  { name: 'recipes', prints: /^Uint8Array|^undefined|colour/m, endless: true },
  { name: 'testing', prints: /^$/ },
  { name: 'server', prints: /^127\.0\.0\.1:\d+$/m },
  { name: 'protocol', prints: /^1 getData \{ path: '\/app', watch: true \}$/m },
];

async function checkTypeScript(packed) {
  const project = makeProject('type-script', { type: 'module' });
  const [, ...compilers] = /`npm install --save-dev (typescript@\S+) (@types\/node@\S+)`/.exec(page('docs/guides/first-steps.md'));
  installInto(project, packed, compilers);
  const options = { target: 'es2023', module: 'nodenext', lib: ['es2023', 'esnext.disposable'], types: ['node'], strict: true };
  const port = await freePort();
  const cwd = project;
  const server = await serve(`node_modules/.bin/tskeeper serve --client-port ${port} --data-dir ${project}-data`, { cwd, port });
  try {
    await check('the first steps compile, run and print what their guide says', () => checkFirstSteps(cwd, port));
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions: options }));
    for (const { name } of programs)
      writeFileSync(join(project, `${name}.ts`), withServer(firstExample(page(`packages/${name}/README.md`), 'ts'), port));
    await check('the first examples of the package READMEs compile with TypeScript', () => run('node_modules/.bin/tsc', { cwd, port }));
    for (const { name, prints, endless } of programs) {
      await check(`the first example of packages/${name}/README.md runs`, async () => {
        const output = await run(`node ${name}.js`, { cwd, port, until: endless ? prints : undefined });
        if (!prints.test(output)) throw new Error(`it printed:\n${output}`);
      });
    }
    for (const name of ['cli', 'conformance']) {
      await check(`the first commands of packages/${name}/README.md print what it says`, async () => {
        for (const { command, printed } of commandsOf(firstExample(page(`packages/${name}/README.md`), 'console'))) {
          if (command.includes(' serve')) continue; // It keeps running.
          const output = await run(withServer(command, port), { cwd, port });
          if (!outputPattern(printed).test(output)) throw new Error(`$ ${command}\nprinted:\n${output}\nthe page has:\n${printed}`);
        }
      });
    }
  } finally {
    await server.end('SIGTERM');
  }
}

async function main() {
  if (spawnSync('sh', ['-c', 'command -v nc']).status !== 0) provideNc();
  const packed = packAll();
  await check('the tour of README.md, with npm start in the clone', checkInClone);
  await check('the tour of README.md, with the packages installed into a project of ES modules', checkInProject);
  await check('the program of the picture in README.md prints what the picture shows', checkTerminalPicture);
  await check('the test of docs/guides/test-with-a-real-ensemble.md runs in node:test', checkNodeTest);
  await check('the packages in a project of CommonJS', () => checkCommonJs(packed));
  await check('the packages in a project of TypeScript', () => checkTypeScript(packed));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const clean = () => {
    for (const child of running) signalAll(child, 'SIGKILL');
    rmSync(home, { recursive: true, force: true });
  };
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, () => {
      clean();
      process.exit(1);
    });
  }
  try {
    await main();
  } finally {
    clean();
  }
  const { passed, failed, skipped } = counts;
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  process.exitCode = failed === 0 ? 0 : 1;
}
