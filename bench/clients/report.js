/**
 * The page of the clients, and the measured part of the table in packages/client/README.md: pure
 * functions, like bench/report.js, whose medians, ratios and results of demands it uses.
 */
import { measureOf, ratioOf, shown, table, thousands, verdicts, demandText } from '../report.js';

const names = {
  ours: '@tskeeper/client',
  'node-zookeeper-client': 'node-zookeeper-client',
  zookeeper: 'zookeeper (npm)',
  kazoo: 'kazoo',
  java: 'Java client',
  bare: 'bare socket',
};
const servers = { java: 'Apache ZooKeeper 3.9.5', ours: 'tskeeper' };

const micros = (value) => (value === undefined ? '-' : shown(value));
const millis = (us) => (us === undefined ? '-' : (us / 1000).toFixed(us < 100_000 ? 2 : 0));
const times = (ratio) => (ratio === undefined ? '-' : `${ratio.toFixed(2)} x`);

/** The columns of each kind of row, with the function that fills them for a client. */
const columns = {
  load: [
    ['CPU of the client, us/op', (result, client) => micros(measureOf(result, client, 'cpuUsPerOp'))],
    ['op/s', (result, client) => thousands(measureOf(result, client, 'throughput'))],
    ['p50, ms', (result, client) => millis(measureOf(result, client, 'p50Us'))],
    ['p99, ms', (result, client) => millis(measureOf(result, client, 'p99Us'))],
  ],
  watch: [
    ['CPU of the client, us/event', (result, client) => micros(measureOf(result, client, 'cpuUsPerOp'))],
    ['until all are notified, ms', (result, client) => shown(measureOf(result, client, 'allMs'))],
  ],
  connect: [
    ['CPU of the client, ms', (result, client) => millis(measureOf(result, client, 'cpuUsPerOp'))],
    ['p50, ms', (result, client) => millis(measureOf(result, client, 'p50Us'))],
  ],
  memory: [
    ['connected and idle, MB', (result, client) => shown(measureOf(result, client, 'idleMb'))],
    ['after all of the above, MB', (result, client) => shown(measureOf(result, client, 'loadedMb'))],
  ],
};

function clientsOf(result) {
  return Object.keys(names).filter((client) => result.rounds.some((round) => round[client] !== undefined));
}

function rowTable(result) {
  const shares = result.kind !== 'memory';
  const head = ['client', ...columns[result.kind].map(([title]) => title), ...(shares ? ['CPU, ours / theirs'] : [])];
  const lines = clientsOf(result).map((client) => [
    names[client],
    ...columns[result.kind].map(([, cell]) => cell(result, client)),
    ...(shares ? [client === 'ours' ? '' : times(ratioOf(result, 'cpuUsPerOp', client))] : []),
  ]);
  return `### ${result.title}\n\n${table(head, lines)}`;
}

export function clientsMarkdown({ environment, settings, versions, results, failures }) {
  const judged = verdicts(results).map((one) => [
    servers[one.server],
    one.row,
    demandText(one),
    [one.value, one.or?.value]
      .filter((value) => value !== undefined)
      .map(shown)
      .join(', or '),
    one.level,
    one.verdict,
  ]);
  const serversThere = [...new Set(results.map((result) => result.server))];
  const parts = [
    '# Clients',
    Object.entries(environment)
      .map(([key, value]) => `- ${key}: ${value}`)
      .join('\n'),
    `Clients: ${Object.entries(versions)
      .map(([client, version]) => `${names[client]} ${version}`)
      .join(', ')}.`,
    `Each client is one process with one session. Clients take turns within each of ${settings.rounds} rounds of ${settings.seconds} s, after a round of ${settings.warmUp} s that does not count. Numbers are medians over the rounds; ratios are taken within a round. CPU is user and system time of the whole client process, garbage collection and compilers included. Data are of 100 bytes, in 1,000 znodes.`,
    ...serversThere.flatMap((server) => [
      `## Against ${servers[server]}`,
      ...results.filter((result) => result.server === server).map(rowTable),
    ]),
    ...(judged.length > 0 ? ['## Demanded', table(['server', 'row', 'demanded', 'measured', 'level', 'verdict'], judged)] : []),
    ...(failures.length > 0 ? ['## What could not be measured', failures.map((failure) => `- ${failure}`).join('\n')] : []),
  ];
  return `${parts.join('\n\n')}\n`;
}

const rowOf = (results, server, name) => results.find((result) => result.server === server && result.name === name);

/** The lines of the README's table: label, row, and format. */
const readmeLines = [
  ['CPU per getData, 16 under way, from Apache ZooKeeper 3.9.5, us', 'java', 'getData-16', 'cpuUsPerOp', shown],
  ['the same from tskeeper, us', 'ours', 'getData-16', 'cpuUsPerOp', shown],
  ['CPU per create and delete of an ephemeral, 16 under way, from tskeeper, us', 'ours', 'createAndDelete-16', 'cpuUsPerOp', shown],
  ['CPU per event, 5,000 at once, from Apache ZooKeeper 3.9.5, us', 'java', 'watch', 'cpuUsPerOp', shown],
  ['connect and close, Apache ZooKeeper 3.9.5, ms', 'java', 'connect', 'p50Us', (us) => (us / 1000).toFixed(1)],
  ['memory of the process, connected and idle, MB', 'java', 'memory', 'idleMb', (mb) => mb.toFixed(0)],
  ['the same after the load, MB', 'java', 'memory', 'loadedMb', (mb) => mb.toFixed(0)],
];

/** The clients in the README: all except the bare socket. */
const compared = Object.keys(names).filter((client) => client !== 'bare');

/** Whether a run has everything that the README shows. */
export function fillsReadme({ results, versions }) {
  return (
    compared.every((client) => versions[client] !== undefined) &&
    readmeLines.every(([, server, name, measure]) =>
      compared.every((client) => measureOf(rowOf(results, server, name) ?? { rounds: [] }, client, measure) !== undefined),
    )
  );
}

export function readmeTable({ environment, versions, dependencies, results }) {
  const head = ['', ...compared.map((client) => `${names[client]} ${versions[client]}`)];
  const lines = readmeLines.map(([title, server, name, measure, show]) => [
    title,
    ...compared.map((client) => show(measureOf(rowOf(results, server, name), client, measure))),
  ]);
  const packages = ['npm packages that come with it', ...compared.map((client) => String(dependencies[client] ?? ''))];
  const when = `Measured on ${environment.date.slice(0, 10)} with Node ${environment.node.slice(1)}, by \`npm run bench -- clients\`.`;
  return `${table(head, [packages, ...lines])}\n\n${when}`;
}

const begin = '<!-- measured: npm run bench -- clients -->';
const end = '<!-- /measured -->';

/** The README with its measured part replaced. */
export function withMeasurements(readme, report) {
  const from = readme.indexOf(begin);
  const to = readme.indexOf(end);
  if (from === -1 || to < from) throw new Error(`the README has no part between "${begin}" and "${end}"`);
  return `${readme.slice(0, from + begin.length)}\n\n${readmeTable(report)}\n\n${readme.slice(to)}`;
}
