/**
 * Compares measurements with demands, and makes a page of them: pure functions, so that tests need
 * no measurement.
 */

export function median(numbers) {
  if (numbers.length === 0) return undefined;
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The median of a measure over the rounds; undefined if it was not measured. */
export function measureOf(result, server, measure) {
  return median((result.rounds ?? []).map((round) => round[server]?.[measure]).filter((value) => value !== undefined));
}

/**
 * The median of our value divided by theirs, each pair from one round: what the machine does
 * between rounds cancels out.
 */
export function ratioOf(result, measure, against) {
  const ratios = (result.rounds ?? [])
    .map((round) => [round.ours?.[measure], round[against]?.[measure]])
    .filter(([ours, theirs]) => ours !== undefined && theirs !== undefined && theirs > 0)
    .map(([ours, theirs]) => ours / theirs);
  return median(ratios);
}

function valueOf(result, demand) {
  return demand.against === undefined ? measureOf(result, 'ours', demand.measure) : ratioOf(result, demand.measure, demand.against);
}

function isMet(demand, value) {
  return demand.atLeast === undefined ? value <= demand.atMost : value >= demand.atLeast;
}

/**
 * Whether a demand is met: `met`, `missed`, or `unknown` if a compared value was not measured. An
 * `or` that is met suffices; an unknown one does not save a missed demand.
 */
export function judge(result, demand) {
  const value = valueOf(result, demand);
  const or = demand.or === undefined ? undefined : { ...demand.or, value: valueOf(result, demand.or) };
  const values = [
    [demand, value],
    [or, or?.value],
  ].filter(([one, measured]) => one !== undefined && measured !== undefined);
  let verdict = 'unknown';
  if (values.some(([one, measured]) => isMet(one, measured))) verdict = 'met';
  else if (values.length > 0) verdict = 'missed';
  return { row: result.name, ...demand, value, ...(or === undefined ? {} : { or }), verdict };
}

const measureNames = {
  throughput: 'operations per second',
  cpuUsPerOp: 'CPU per operation',
  p50Us: 'p50',
  p99Us: 'p99',
  rssMb: 'MB of memory',
  stallMs: 'ms of the longest stall',
  startMs: 'ms until all serve',
  fullSeconds: 's to start full',
  emptySeconds: 's to start empty',
  fireSeconds: 's until all are notified',
  heartbeatMs: 'ms of the slowest heartbeat',
  p50Ms: 'ms of p50',
  p99Ms: 'ms of p99',
  followerP50Ms: 'ms of p50 when a follower restarts',
  leaderP50Ms: 'ms of p50 when the leader restarts',
};

export function shown(value) {
  if (value === undefined) return 'not measured';
  return value >= 100 ? String(Math.round(value)) : value.toPrecision(3);
}

/** A demand as text: `operations per second >= 1.3 x java`. */
export function demandText(demand) {
  const sign = demand.atLeast === undefined ? '<=' : '>=';
  const bound = demand.atLeast ?? demand.atMost;
  const whole = `${measureNames[demand.measure] ?? demand.measure} ${sign} ${bound}${demand.against === undefined ? '' : ` x ${demand.against}`}`;
  return demand.or === undefined ? whole : `${whole}, or ${demandText(demand.or)}`;
}

export function table(head, lines) {
  return [`| ${head.join(' | ')} |`, `|${head.map(() => '---').join('|')}|`, ...lines.map((cells) => `| ${cells.join(' | ')} |`)].join(
    '\n',
  );
}

export function thousands(value) {
  return value === undefined ? '' : Math.round(value).toLocaleString('en-US');
}

function times(value) {
  return value === undefined ? '' : `${value.toFixed(2)} x`;
}

function loadTable(results) {
  const cells = (result) => {
    const of = (server, measure) => measureOf(result, server, measure);
    const three = (measure, show) => ['java', 'ours', 'ceiling'].map((server) => show(of(server, measure)));
    return [
      result.title,
      ...three('throughput', thousands),
      times(ratioOf(result, 'throughput', 'java')),
      times(ratioOf(result, 'throughput', 'ceiling')),
      three('cpuUsPerOp', (value) => (value === undefined ? '-' : value.toFixed(1))).join(' / '),
      ['java', 'ours']
        .map((server) =>
          [of(server, 'p50Us'), of(server, 'p99Us'), of(server, 'maxUs')]
            .map((us) => (us === undefined ? '-' : (us / 1000).toFixed(2)))
            .join(', '),
        )
        .join(' / '),
      three('generatorCpuShare', (value) => (value === undefined ? '-' : `${Math.round(value * 100)} %`)).join(' / '),
    ];
  };
  const head = [
    'work',
    'Java, op/s',
    'ours, op/s',
    'ceiling, op/s',
    'ours / Java',
    'ours / ceiling',
    'server CPU, us/op (Java / ours / ceiling)',
    'p50, p99, max in ms (Java / ours)',
    "generator's CPU",
  ];
  return table(head, results.map(cells));
}

/** Two builds of our server in one run; undefined when only one was measured. */
function buildsTable(results) {
  const both = results.filter((result) => measureOf(result, 'before', 'cpuUsPerOp') !== undefined);
  if (both.length === 0) return undefined;
  const cells = (result) => {
    const of = (measure, show) => ['before', 'ours'].map((server) => show(measureOf(result, server, measure) ?? Number.NaN)).join(' / ');
    const percent = (measure) => {
      const ratio = ratioOf(result, measure, 'before');
      return ratio === undefined ? '-' : `${ratio >= 1 ? '+' : ''}${((ratio - 1) * 100).toFixed(1)} %`;
    };
    return [
      result.title,
      of('cpuUsPerOp', (value) => value.toFixed(2)),
      percent('cpuUsPerOp'),
      of('throughput', thousands),
      percent('throughput'),
    ];
  };
  const head = ['work', 'server CPU, us/op (before / ours)', 'change', 'op/s (before / ours)', 'change'];
  return table(head, both.map(cells));
}

function scenarioTable(result) {
  const servers = ['java', 'before', 'ours'].filter((server) => result.rounds.some((one) => one[server] !== undefined));
  const measures = [...new Set(result.rounds.flatMap((one) => servers.flatMap((server) => Object.keys(one[server] ?? {}))))];
  const lines = measures.map((measure) => [measure, ...servers.map((server) => shown(measureOf(result, server, measure)))]);
  return `### ${result.title}\n\n${table(['measure', ...servers], lines)}`;
}

/**
 * @returns {{ row: string, level: string, against?: string, value?: number, verdict: 'met' |
 * 'missed' | 'unknown' }[]}
 */
export function verdicts(results) {
  return results.flatMap((result) => result.demands.map((demand) => judge(result, demand)));
}

/** The page: environment, tables and demands. */
export function markdown({ environment, settings, results, failures }) {
  const judged = verdicts(results);
  const loads = results.filter((result) => result.kind === 'load');
  const builds = buildsTable(loads);
  const lines = (level) =>
    judged
      .filter((one) => one.level === level)
      .map((one) => [
        one.row,
        demandText(one),
        [shown(one.value), one.or === undefined ? undefined : shown(one.or.value)].filter((text) => text !== undefined).join(', or '),
        one.verdict,
      ]);
  const demandTable = (level) => table(['row', 'demanded', 'measured', 'verdict'], lines(level));
  const parts = [
    '# Measurements',
    Object.entries(environment)
      .map(([key, value]) => `- ${key}: ${value}`)
      .join('\n'),
    `${settings.rounds} rounds of ${settings.seconds} s each after ${settings.warmUp} s of warm-up, servers taking turns; numbers are medians over the rounds, ratios are taken within a round.`,
    ...(loads.length > 0 ? ['## Throughput and latency', loadTable(loads)] : []),
    ...(builds === undefined ? [] : ['## Beside another build', builds]),
    ...(results.length > loads.length
      ? ['## Other measurements', ...results.filter((result) => result.kind !== 'load').map(scenarioTable)]
      : []),
    '## Tripwires',
    demandTable('tripwire'),
    '## Goals',
    demandTable('goal'),
    ...(failures.length > 0 ? ['## What could not be measured', failures.map((failure) => `- ${failure}`).join('\n')] : []),
  ];
  return `${parts.join('\n\n')}\n`;
}
