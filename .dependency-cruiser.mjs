/**
 * Which package may import which, and which parts of Node may be touched where. The table is the
 * one of ARCHITECTURE.md; whatever is not allowed here is forbidden.
 */
const imports = {
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
const verificationImports = {
  simulator: ['runtime', 'core', 'recipes', 'client', 'protocol'],
  harness: ['protocol', 'simulator'],
  interop: ['harness', 'conformance', 'server', 'runtime', 'recipes', 'client', 'protocol'],
};

/** Pure functions of Node: the same input gives the same output, and nothing outside changes. */
const pureNodeModules = [
  'node:crypto',
  'node:zlib',
  'node:buffer',
  'node:assert',
  'node:stream',
  'crypto',
  'zlib',
  'buffer',
  'assert',
  'stream',
  'stream/promises',
];

const folderOf = (name) => `${name in imports ? 'packages' : 'verification'}/${name}`;

const layers = Object.entries({ ...imports, ...verificationImports }).map(([name, allowed]) => ({
  name: `${name}-imports`,
  comment: `${folderOf(name)} may import ${allowed.length === 0 ? 'no sibling' : allowed.join(', ')}.`,
  severity: 'error',
  from: { path: `^${folderOf(name)}/src/` },
  to: { path: '^(packages|verification)/', pathNot: `^(${[name, ...allowed].map(folderOf).join('|')})/` },
}));

export default {
  forbidden: [
    ...layers,
    {
      name: 'packages-do-not-import-verification',
      comment: 'What is shipped, and its own tests, work without what proves it.',
      severity: 'error',
      from: { path: '^packages/' },
      to: { path: '^verification/' },
    },
    {
      name: 'front-doors-only',
      comment: 'A sibling package is entered by index.ts or internal.ts, never by a deep path.',
      severity: 'error',
      from: { path: '^(packages|verification)/([^/]+)/' },
      to: {
        path: '^(packages|verification)/[^/]+/src/',
        pathNot: ['^$1/$2/', '^(packages|verification)/[^/]+/src/(index|internal)[.]ts$'],
      },
    },
    {
      name: 'purity',
      comment:
        'protocol, core, runtime, client and recipes touch no file, socket, timer, process or thread of their own; the world is handed to them.',
      severity: 'error',
      // What the client is handed when nobody says otherwise is in src/node.
      from: { path: '^packages/(protocol|core|runtime|client|recipes)/src/', pathNot: '^packages/client/src/node/' },
      to: { dependencyTypes: ['core'], pathNot: `^(${pureNodeModules.join('|')})$` },
    },
    {
      name: 'no-runtime-dependencies',
      comment: 'protocol, core, runtime, client and recipes depend on no library.',
      severity: 'error',
      from: { path: '^packages/(protocol|core|runtime|client|recipes)/src/' },
      to: { dependencyTypes: ['npm', 'npm-dev', 'npm-optional', 'npm-peer', 'npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'declared-dependencies',
      comment: 'What a source imports stands in its own package.json.',
      severity: 'error',
      from: { path: '^(packages|verification)/[^/]+/src/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
    },
    { name: 'resolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    { name: 'no-cycles', severity: 'error', from: { path: '^(packages|verification)/[^/]+/src/' }, to: { circular: true } },
    { name: 'sources-do-not-import-tests', severity: 'error', from: { path: '/src/' }, to: { path: '(^|/)test/' } },
  ],
  options: {
    exclude: { path: '(^|/)dist/' },
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.base.json' },
    combinedDependencies: false,
    enhancedResolveOptions: {
      conditionNames: ['tskeeper-source', 'import', 'require', 'node', 'default', 'types'],
      exportsFields: ['exports'],
    },
  },
};
