import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { missingOptionals, platformOf } from '../scripts/complete-lockfile.js';
import { oldIdiom } from './old-idiom.ts';

/**
 * Rules for the repository that no other tool checks. Each rule is a function from files to
 * complaints, and each is first tested with a file that breaks it.
 */
const root = fileURLToPath(new URL('..', import.meta.url));
const skipped = new Set(['node_modules', 'dist', '.git', '.cache', 'data', 'coverage']);

interface TextFile {
  readonly path: string;
  readonly text: string;
}

function* walk(folder: string): Iterable<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (skipped.has(entry.name)) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* walk(path);
    else if (entry.isFile()) yield path;
  }
}

const paths = [...walk(root)].map((path) => relative(root, path).replaceAll('\\', '/'));
const textual = /\.(?:ts|js|mjs|json|md|txt|sh|c|h|py|java|yml|yaml)$|^\.ci\//;
const files: TextFile[] = paths
  .filter((path) => textual.test(path) && path !== 'package-lock.json')
  .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
const packages = readdirSync(join(root, 'packages'));
/** The folders of verification/ that are packages: the others contain only tests. */
const verifiers = readdirSync(join(root, 'verification')).filter((name) => existsSync(join(root, 'verification', name, 'package.json')));
const workspaces = [...packages.map((name) => `packages/${name}`), ...verifiers.map((name) => `verification/${name}`)];
const sources = files.filter(({ path }) => /^(?:packages|verification)\/[^/]+\/src\/.*\.ts$/.test(path));
const packageOf = (path: string) => path.split('/')[1]!;

/**
 * Which package may import which. `.dependency-cruiser.mjs` has the same table, and checks resolved
 * paths.
 */
const imports: Record<string, readonly string[]> = {
  protocol: [],
  client: ['protocol'],
  recipes: ['client'],
  core: ['protocol'],
  runtime: ['core', 'protocol'],
  server: ['runtime', 'core', 'protocol'],
  testing: ['server', 'runtime', 'core', 'protocol'],
  conformance: ['client', 'protocol'],
  cli: ['client', 'server', 'runtime', 'core', 'protocol'],
};

/** The same for the packages of verification/, which are not published. */
const verificationImports: Record<string, readonly string[]> = {
  simulator: ['runtime', 'core', 'recipes', 'client', 'protocol'],
  harness: ['protocol', 'simulator'],
  interop: ['harness', 'conformance', 'server', 'runtime', 'recipes', 'client', 'protocol'],
};

function importsOf(text: string): string[] {
  return [...text.matchAll(/(?:\bfrom|^import|\bimport\()\s*'([^']+)'/gm)].map(([, name]) => name!);
}

function forbiddenImports({ path, text }: TextFile): string[] {
  const own = packageOf(path);
  const allowed = (path.startsWith('verification/') ? verificationImports : imports)[own] ?? [];
  return importsOf(text)
    .filter((name) => name.startsWith('@tskeeper/') || name === 'tskeeper')
    .filter((name) => {
      const match = /^@tskeeper\/([^/]+)(?:\/internal)?$/.exec(name);
      return match === null || !allowed.includes(match[1]!);
    })
    .map((name) => `${path} imports ${name}`);
}

/** Globals through which a source would bypass the interfaces it receives. */
const world = [
  /\bDate\.now\b/,
  /\bnew Date\(\s*\)/,
  /\bperformance\b/,
  /\bMath\.random\b/,
  /\brandomBytes\b|\brandomUUID\b|\brandomInt\b|\brandomFill(?:Sync)?\b|\bgetRandomValues\b/,
  /\bprocess\??\.\w/,
  /\bglobalThis\b/,
  /\bset(?:Timeout|Interval)\b/,
  // A clock has a method of this name: its calls, and its declarations, which have types, are
  // allowed.
  /(?<!\bclock\.)\bsetImmediate\b(?!\(\w+: \(\) => void\): void\b)/,
  /\bfetch\s*\(/,
  /\bconsole\s*\./,
  /\bWebSocket\b/,
  /\brequire\s*\(/,
];
const pure = ['protocol', 'core', 'runtime', 'client', 'recipes'];
/**
 * The exceptions: the client's default transport, clock and randomness, and the check of Node's
 * version.
 */
const impure = ['packages/client/src/node/', 'packages/protocol/src/check-node-version.ts'];
const pureModules = ['node:crypto', 'node:zlib', 'node:buffer', 'node:assert', 'node:stream', 'node:stream/promises'];

/** Removes comments and texts, which may mention these globals. */
function codeOf(text: string): string {
  return text
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/(^|[^:])\/\/.*$/gm, '$1')
    .replaceAll(/'(?:[^'\\\n]|\\.)*'/g, "''");
}

function impurities({ path, text }: TextFile): string[] {
  const code = codeOf(text);
  return [
    ...world.filter((name) => name.test(code)).map((name) => `${path} uses ${name.source}`),
    ...importsOf(text)
      .filter((name) => !name.startsWith('.') && !name.startsWith('@tskeeper/') && !pureModules.includes(name))
      .map((name) => `${path} imports ${name}`),
  ];
}

/** An index file is a list of exports, and contains no code. */
function moreThanReExports({ path, text }: TextFile): string[] {
  const rest = codeOf(text)
    .replaceAll(/export (?:type )?\{[^}]*\}(?: from '')?;/g, '')
    .replaceAll(/export \* from '';/g, '')
    .trim();
  return rest === '' ? [] : [`${path} does more than re-export: ${rest.slice(0, 60)}`];
}

/**
 * Paths of one machine, which mean nothing on another, and names of registries. Assembled, so that
 * this file does not contain them.
 */
const machineWords = [
  new RegExp(`(?<![\\w.])/(?:${['work', 'root', 'home/\\w+'].join('|')})/`),
  new RegExp(['(?<![\\w.])', 'tmp', ''].join('/')),
  new RegExp(['registry', 'npmjs', 'org'].join('\\.')),
  new RegExp(['proxy', 'golang', 'org'].join('\\.')),
];

function machineSpecifics({ path, text }: TextFile): string[] {
  return text
    .split('\n')
    .flatMap((line, index) => (machineWords.some((word) => word.test(line)) ? [`${path}:${index + 1}: ${line.trim()}`] : []));
}

/** Anchors of the headings of a page. */
function anchorsOf(text: string): Set<string> {
  return new Set(
    [...text.matchAll(/^#+ (.*)$/gm)].map(([, title]) => {
      const words = title!.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, '');
      return words.trim().replaceAll(/\s/g, '-');
    }),
  );
}

function brokenLinks({ path, text }: TextFile, exists: (path: string) => boolean): string[] {
  const prose = text.replaceAll(/^```[\s\S]*?^```/gm, '').replaceAll(/`[^`\n]*`/g, '');
  return [...prose.matchAll(/\[[^\]]*\]\(([^)\s]+)\)/g)]
    .map(([, target]) => target!)
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => {
      const [file, anchor] = target.split('#') as [string, string | undefined];
      const page = file === '' ? path : join(dirname(path), file);
      if (!exists(page)) return true;
      return (
        anchor !== undefined &&
        page.endsWith('.md') &&
        !anchorsOf(page === path ? text : readFileSync(join(root, page), 'utf8')).has(anchor)
      );
    })
    .map((target) => `${path} links to ${target}`);
}

/** Sources that no file imports, found by following imports from the index files. */
function orphans(all: readonly TextFile[], doors: readonly string[]): string[] {
  const byPath = new Map(all.map((file) => [file.path, file]));
  const seen = new Set<string>();
  const queue = doors.filter((door) => byPath.has(door));
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    for (const name of importsOf(byPath.get(path)!.text)) {
      const target = join(dirname(path), name).replaceAll('\\', '/');
      if (name.startsWith('.') && byPath.has(target)) queue.push(target);
    }
  }
  return all.map(({ path }) => path).filter((path) => !seen.has(path) && !path.endsWith('.d.ts'));
}

/**
 * Tests of `npm test`: those of verification/processes and verification/chaos have their own
 * configurations, and other names.
 */
const isTest = ({ path }: TextFile): boolean => path.endsWith('.test.ts');
/** A call that begins a test, a group of them, or a hook, at the start of a line. */
const testCall =
  /^( *)(?:it|test|describe|suite|before(?:All|Each)|after(?:All|Each))(?:\.(?:each|for|skip|only|concurrent|sequential|fails|runIf|skipIf))*\(/;

/**
 * Time limits that tests set themselves: in options, or as a last argument. Relies on the
 * formatter: a call ends on its first line, or on the first line with the same indentation that
 * closes it; if each argument has its own line, these are indented by two more.
 */
function ownLimits({ path, text }: TextFile): string[] {
  const lines = text.split('\n');
  const complaints = /\b(?:test|hook)Timeout\b/.test(codeOf(text)) ? [`${path} sets the limit of all its tests`] : [];
  for (const [at, first] of lines.entries()) {
    const indent = testCall.exec(first)?.[1];
    if (indent === undefined) continue;
    const isClosed = (line: string) => line.startsWith(indent) && /^[)}\]].*;$/.test(line.slice(indent.length));
    const own = first.endsWith(';') ? [first] : lines.slice(at, lines.findIndex((line, other) => other > at && isClosed(line)) + 1);
    // The rows of `each` are not arguments of the test.
    const inner = own.slice(own.findIndex((line) => line.startsWith(`${indent}])(`)) + 1, -1);
    const limits = [
      /['`], *\{[^{}]*\btimeout\b/.test(first),
      /[)}\w], *(?:\d[\d_]+[^,(]*|\{[^{}]*\btimeout\b.*)\);$/.test(own.at(-1) ?? ''),
      inner.some((line) => new RegExp(`^${indent}  (?:\\{[^{}]*\\btimeout\\b.*\\}|\\d[\\d_]+[^()]*),$`).test(line)),
    ];
    if (limits.includes(true)) complaints.push(`${path}:${at + 1}: ${first.trim()}`);
  }
  return complaints;
}

describe('sources', () => {
  it('import siblings only as the table of layers allows, and only their index files', () => {
    const wrong = {
      path: 'packages/core/src/x.ts',
      text: "import type { A } from '@tskeeper/runtime';\nimport { B } from '@tskeeper/protocol/src/b.ts';",
    };
    expect(forbiddenImports(wrong)).toHaveLength(2);
    expect(forbiddenImports({ ...wrong, text: "import { B } from '@tskeeper/protocol/internal';" })).toEqual([]);
    const simulator = "import { Simulation } from '@tskeeper/simulator';";
    expect(forbiddenImports({ ...wrong, text: simulator })).toHaveLength(1);
    expect(forbiddenImports({ path: 'verification/harness/src/x.ts', text: simulator })).toEqual([]);
    expect(sources.flatMap(forbiddenImports)).toEqual([]);
    expect(Object.keys(imports).sort()).toEqual([...packages].sort());
    expect(Object.keys(verificationImports).sort()).toEqual([...verifiers].sort());
  });

  it('of protocol, core, runtime, client and recipes use no clock, randomness, environment, socket, file or timer', () => {
    const wrong = { path: 'packages/core/src/x.ts', text: '' };
    for (const code of [
      'Date.now()',
      'new Date()',
      'performance.now()',
      'Math.random()',
      'process.env',
      'setTimeout(f, 1)',
      'clock.setInterval(f, 1)',
      'setImmediate(f)',
      'setImmediate',
      'globals.setImmediate(f)',
      'fetch(x)',
    ]) {
      expect(impurities({ ...wrong, text: `const x = ${code};` })).toHaveLength(1);
    }
    for (const name of ['node:fs', 'node:net', 'node:dns', 'node:timers', 'node:child_process', 'node:worker_threads', 'pino']) {
      expect(impurities({ ...wrong, text: `import * as x from '${name}';` })).toHaveLength(1);
    }
    for (const text of ['this.#clock.setImmediate(f);', 'interface Clock {\n  setImmediate(callback: () => void): void;\n}']) {
      expect(impurities({ ...wrong, text })).toEqual([]);
    }
    expect(impurities({ ...wrong, text: "// setTimeout is Date.now()\nconst x = 'Date.now()'; /* fetch() */" })).toEqual([]);
    expect(
      sources.filter(({ path }) => pure.includes(packageOf(path)) && !impure.some((exempt) => path.startsWith(exempt))).flatMap(impurities),
    ).toEqual([]);
  });

  it('have an index that only re-exports', () => {
    expect(moreThanReExports({ path: 'index.ts', text: "export { a } from './a.ts';\nexport const b = 1;" })).toHaveLength(1);
    expect(
      moreThanReExports({ path: 'index.ts', text: "/** Why. */\nexport { a, type B } from './a.ts';\nexport type { C } from './c.ts';\n" }),
    ).toEqual([]);
    expect(sources.filter(({ path }) => /\/src\/(?:index|internal)\.ts$/.test(path)).flatMap(moreThanReExports)).toEqual([]);
  });

  it('are all reachable from an index or a program', () => {
    const all = [
      { path: 'packages/a/src/index.ts', text: "export { b } from './b.ts';" },
      { path: 'packages/a/src/b.ts', text: '' },
      { path: 'packages/a/src/lost.ts', text: "import './b.ts';" },
    ];
    expect(orphans(all, ['packages/a/src/index.ts'])).toEqual(['packages/a/src/lost.ts']);
    const programs = ['src/main.ts', 'src/recipes/own-peer.ts', 'src/suites/java-stand-in.ts'].map(
      (path) => `verification/interop/${path}`,
    );
    const doors = [...workspaces.flatMap((folder) => [`${folder}/src/index.ts`, `${folder}/src/internal.ts`]), ...programs];
    expect(orphans(sources, doors)).toEqual([]);
  });
});

describe('tests', () => {
  it('have no time limit of their own besides the one in vitest.config.ts', () => {
    const wrong = [
      "it('a', { timeout: 300_000 }, () => {\n});",
      '  it(`a ${b}`, { retry: 0, timeout: 1000 }, async () => {\n  });',
      "it('a', async () => {\n  await b();\n}, 300_000);",
      "it('a', () => {\n}, 120_000 + stories * 20);",
      "it('a', () => {\n}, { timeout: 5000 });",
      "test(\n  'a',\n  { timeout: 300_000 },\n  async () => {\n  },\n);",
      "test(\n  'a',\n  async () => {\n  },\n  300_000,\n);",
      "it.each([1, 2])('a %i', () => {\n}, 9000);",
      "it.each([\n  1,\n])('a %i', () => {\n}, 9000);",
      'beforeAll(build, 120_000);',
      "it('a', () => b(), 5000);",
      "describe('a', { timeout: 1 }, () => {\n});",
      'vi.setConfig({ testTimeout: 1000 });',
    ];
    for (const text of wrong) expect(ownLimits({ path: 'x.test.ts', text }), text).toHaveLength(1);
    const right = [
      "it('a', () => {\n  b.until(c, 10_000);\n  d(\n    e,\n    5000,\n  );\n});",
      "it('a', async () => {\n  await connect('b', { timeoutMs: 5 });\n});",
      "it.each([\n  10,\n  20,\n])('a %i', () => {\n});",
      'beforeEach(() => {\n  timer = setTimeout(() => {\n  }, 100);\n});',
    ];
    for (const text of right) expect(ownLimits({ path: 'x.test.ts', text }), text).toEqual([]);
    expect(files.filter(isTest).flatMap(ownLimits)).toEqual([]);
  });
});

describe('the repository', () => {
  it('has a README for every package', () => {
    expect(workspaces.filter((folder) => !existsSync(join(root, folder, 'README.md')))).toEqual([]);
  });

  it('has no link to a page or heading that does not exist', () => {
    const page = {
      path: 'docs/x.md',
      text: '# Here\n[a](missing.md) [b](#nowhere) [c](#here) [d](https://example.org) `[e](x)`\n```\n[f](y)\n```\n',
    };
    expect(brokenLinks(page, () => false)).toEqual([
      'docs/x.md links to missing.md',
      'docs/x.md links to #nowhere',
      'docs/x.md links to #here',
    ]);
    expect(brokenLinks(page, (path) => path === 'docs/x.md')).toEqual(['docs/x.md links to missing.md', 'docs/x.md links to #nowhere']);
    const exists = (path: string) => existsSync(join(root, path));
    expect(files.filter(({ path }) => path.endsWith('.md')).flatMap((file) => brokenLinks(file, exists))).toEqual([]);
  });

  it('contains no path of one machine and no registry name', () => {
    const wrong = `cd ${['', 'work', 'x'].join('/')}\nhttps://${['registry', 'npmjs', 'org'].join('.')}/x`;
    expect(machineSpecifics({ path: 'x', text: wrong })).toHaveLength(2);
    expect(machineSpecifics({ path: 'x', text: 'dataDir=/var/lib/zookeeper, /framework/, ./work/x' })).toEqual([]);
    expect(files.flatMap(machineSpecifics)).toEqual([]);
  });

  it('is written in plain technical English', () => {
    const source = {
      path: 'packages/core/src/x.ts',
      text: [
        "/** A client's verdict. A leader that nobody follows is",
        ' * told so, and `heard` may be a name. */',
        "const heard = /'/.test(a) ? `waits ${verdict(b)} for ever` : 'digest:nobody:x';",
        '// The server is behind a proxy, lags behind, and leaves no watch behind.',
      ].join('\n'),
    };
    expect(oldIdiom(source)).toEqual([
      expect.stringMatching(/^packages\/core\/src\/x\.ts:1: "nobody": write the subject/),
      expect.stringMatching(/^packages\/core\/src\/x\.ts:2: "told": write "notified"/),
      expect.stringMatching(/^packages\/core\/src\/x\.ts:1: "verdict": write "result"/),
      'packages/core/src/x.ts:3: "for ever": write "forever"',
    ]);
    expect(oldIdiom({ path: 'docs/x.md', text: 'A lease is no lock.\n\n```\nfor ever\n```\n' })).toEqual([
      'docs/x.md:1: "is no lock": write "is not a"',
    ]);
    expect(oldIdiom({ ...source, path: 'fixtures/x.ts' })).toEqual([]);
    expect(files.flatMap(oldIdiom)).toEqual([]);
  });

  it('has a lockfile that npm ci accepts on every platform', () => {
    const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
    expect([...missingOptionals(lock).keys()]).toEqual([]);
    const lacking = { packages: { 'node_modules/a': { optionalDependencies: { 'a-linux-x64-musl': '1.0.0' } } } };
    expect([...missingOptionals(lacking).keys()]).toEqual(['node_modules/a-linux-x64-musl']);
    expect(platformOf('a-linux-x64-musl')).toEqual({ os: ['linux'], cpu: ['x64'], libc: ['musl'] });
    expect(platformOf('@a/win32-arm64-msvc')).toEqual({ os: ['win32'], cpu: ['arm64'] });
  });
});
