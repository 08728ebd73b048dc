import { readFileSync } from 'node:fs';
import type { CnxnContext, CnxnInfo, Inspector } from '@tskeeper/core';
import { OpCode } from '@tskeeper/protocol';
import { describe, expect, test } from 'vitest';
import {
  type CnxnList,
  type CnxnView,
  FourLetterWords,
  fourLetterWords,
  metricTable,
  parseWhitelist,
  type ServerFacts,
  ServerMetrics,
} from '../../../src/internal.ts';
import { average, javaDate, javaDouble } from '../../../src/ports/java-text.ts';
import { emptyInspect, leadingInspect, recordedEnsemble, testFacts } from '../fake-core.ts';

/** The answers of a 3.9.5 server (fixtures/README.md). */
const recorded = JSON.parse(readFileSync(new URL('../../../../../fixtures/operations-3.9.5.json', import.meta.url), 'utf8')) as {
  readonly fourLetterWords: Readonly<Record<string, string>>;
  readonly mntrLeader: string;
  readonly mntrFollower: string;
  readonly confLeader: string;
  readonly dumpFollower: string;
};

const session = 0x100001ca6e90002n;
/** The time of the recording, on both clocks. */
const now = { elapsedMs: 1_885_000, wallMs: Date.UTC(2026, 10, 20, 9, 34, 45) };

function contextOf(remotePort: number): CnxnContext {
  return { remoteAddress: '127.0.0.1', remotePort, localPort: 42_190, secure: false, peerCertificate: undefined };
}

const client: CnxnInfo = {
  id: 0,
  context: contextOf(42_460),
  session,
  sessionTimeoutMs: 10_000,
  establishedWallMs: 1_795_167_280_334,
  outstandingRequests: 0,
  packetsReceived: 13,
  packetsSent: 13,
  lastOpCode: OpCode.addWatch,
  lastCxid: 11,
  lastZxid: 12,
  lastResponseMs: 1_880_615,
  lastLatencyMs: 1,
  minLatencyMs: 0,
  averageLatencyMs: 1,
  maxLatencyMs: 8,
};

const clientView: CnxnView = { context: client.context, interest: 1, packetsReceived: 1, info: client };

function asking(remotePort: number): CnxnView {
  return { context: contextOf(remotePort), interest: 0, packetsReceived: 1, info: undefined };
}

const dueIn = (seconds: number) => now.elapsedMs + seconds * 1000;

const inspect: Inspector = {
  ...emptyInspect,
  lastZxid: () => 12,
  nodeCount: () => 8,
  approximateDataBytes: () => 61,
  ephemeralCount: () => 1,
  watchCount: () => 2,
  sessionCount: () => 3,
  sessionExpiry: () => [
    { dueMs: dueIn(6), sessions: [session] },
    { dueMs: dueIn(24), sessions: [session - 2n] },
    { dueMs: dueIn(26), sessions: [session - 1n] },
  ],
  ephemerals: () => [{ session, paths: ['/aud/e'] }],
  watchSummary: () => ({ cnxns: 1, paths: 1, watches: 1 }),
  watchesByCnxn: () => [{ cnxn: 0, session, paths: ['/aud'] }],
  watchesByPath: () => [{ path: '/aud', sessions: [session] }],
};

const facts = {
  ...testFacts,
  startedMs: now.elapsedMs - 4013,
  conf: {
    ...testFacts.conf,
    clientPort: 42_190,
    dataDir: '/var/lib/zookeeper/data/version-2',
    dataLogDir: '/var/lib/zookeeper/data/version-2',
  },
};

const expiry = [
  { dueMs: dueIn(4), cnxns: [] },
  {
    dueMs: dueIn(14),
    cnxns: [
      { context: contextOf(42_460), session },
      { context: contextOf(42_490), session: 0n },
    ],
  },
  { dueMs: dueIn(24), cnxns: [] },
  { dueMs: dueIn(34), cnxns: [] },
];

function listOf(...cnxns: CnxnView[]): CnxnList {
  return { cnxnCount: cnxns.length, cnxns: () => cnxns, expiry: () => expiry };
}

/**
 * The numbers of the recorded srvr: 33 packets each way, latencies of 0 to 9 ms with an average of
 * 2.2667.
 */
function recordedTraffic(packets: number): ServerMetrics {
  const metrics = new ServerMetrics();
  const latencies = [0, 9, ...Array.from({ length: 12 }, () => 2), 1];
  for (const latency of latencies) metrics.replied(0, OpCode.getData, 0, latency, 20, false);
  for (let packet = 0; packet < packets; packet++) metrics.packetReceived(10);
  for (let event = latencies.length; event < packets; event++) metrics.eventSent(0, 40);
  return metrics;
}

/** The six writes below /aud of the recorded server: 34 bytes. */
function writeLikeRecorded(metrics: ServerMetrics): void {
  metrics.namespaceAssigned(2, 'aud');
  for (const bytes of [5, 5, 6, 6, 6, 6]) metrics.znodeWritten(2, bytes);
}

interface Setup {
  readonly inspect?: Partial<Inspector>;
  readonly metrics?: ServerMetrics;
  readonly whitelist?: string;
  readonly cnxns?: CnxnList;
}

function ask(word: string, setup: Setup = {}, words = wordsOf(setup)): string {
  const first = Buffer.alloc(12);
  const count = first.write(word, 'latin1');
  const { pieces } = words.answer(first, count, setup.cnxns ?? listOf(clientView, asking(42_490)), now);
  let text = '';
  for (let piece = pieces.next(); piece.done !== true; piece = pieces.next()) text += piece.value;
  return text;
}

function wordsOf(setup: Setup, ofServer: ServerFacts = facts): FourLetterWords {
  return new FourLetterWords({
    whitelist: parseWhitelist(setup.whitelist ?? '*', false),
    inspect: { ...inspect, ...setup.inspect },
    metrics: setup.metrics ?? new ServerMetrics(),
    facts: ofServer,
  });
}

describe('texts are byte for byte those of a 3.9.5 server', () => {
  test.each<[string, Setup]>([
    ['ruok', {}],
    ['isro', {}],
    ['conf', {}],
    ['cons', { cnxns: listOf(clientView, asking(42_472)) }],
    ['crst', {}],
    ['dirs', {}],
    ['dump', {}],
    ['gtmk', {}],
    ['hash', {}],
    ['srst', {}],
    ['srvr', { metrics: recordedTraffic(33) }],
    ['stat', { metrics: recordedTraffic(34), cnxns: listOf(asking(42_548), clientView) }],
    ['wchc', {}],
    ['wchp', {}],
    ['wchs', {}],
  ])('A76: %s', (word, setup) => {
    expect(ask(word, setup)).toBe(recorded.fourLetterWords[word]);
  });

  test('A76, A83: stmk answers the given mask, and gtmk shows it from then on', () => {
    const words = wordsOf({});
    const mask = Buffer.alloc(8);
    mask.writeBigInt64BE(306n);
    expect(ask(`stmk${mask.toString('latin1')}`, {}, words)).toBe(recorded.fourLetterWords['stmk']);
    mask.writeBigInt64BE(5n);
    ask(`stmk${mask.toString('latin1')}`, {}, words);
    expect(ask('gtmk', {}, words)).toBe('5');
  });

  test('A76: mntr has every key of the recorded one, except those documented as absent, each in the same form', () => {
    const metrics = new ServerMetrics();
    writeLikeRecorded(metrics);
    const ours = ownForm(ask('mntr', { metrics }));
    const theirs = expectedForm(recorded.fourLetterWords['mntr']!);
    expect(Object.fromEntries(ours)).toEqual(Object.fromEntries(theirs));
    expect(theirs.size).toBeGreaterThan(150);
  });

  test.each([
    ['leader', recorded.mntrLeader, recordedEnsemble],
    ['follower', recorded.mntrFollower, { ...recordedEnsemble, state: 'following' as const, leading: undefined }],
  ] as const)('A76: mntr of a %s has the keys of the recorded one, each in the same form', (role, text, place) => {
    const metrics = new ServerMetrics();
    metrics.roleChanged(role);
    const ours = ownForm(ask('mntr', { metrics, inspect: { role: () => role, ensemble: () => place } }));
    const theirs = expectedForm(text);
    // Metrics of znodes that were written.
    for (const key of theirs.keys()) if (key.endsWith('_write_per_namespace')) theirs.delete(key);
    expect(Object.fromEntries(ours)).toEqual(Object.fromEntries(theirs));
    expect(theirs.size).toBeGreaterThan(150);
  });

  test('mntr prints the recorded values of a leader for the same input', () => {
    const metrics = new ServerMetrics();
    metrics.roleChanged('looking');
    metrics.elected(2, 223);
    metrics.roleChanged('leader');
    metrics.servingStarted('leader', 276, 53);
    metrics.proposed(1, OpCode.createSession, 48, 0);
    metrics.applied(1, OpCode.createSession, 0, 3);
    metrics.txnLogged(3);
    for (let learner = 0; learner < 2; learner++) metrics.learnerSyncStarted('diff', 'memory', 0);
    const leading = { ...recordedEnsemble.leading!, sinceMs: now.elapsedMs - 1604 };
    const asLeader = { role: () => 'leader' as const, ensemble: () => ({ ...recordedEnsemble, leading }) };
    const lines = new Set(ask('mntr', { metrics, inspect: asLeader }).split('\n'));
    const pattern =
      /^zk_(server_state|peer_state|quorum_size|learners|synced_\w+|pending_syncs|leader_uptime|\w+_proposal_size|proposal_count|commit_count|looking_count|(diff|snap)_count|\w+_(election|unavailable)_time|\w+_quorum_ack_latency|\w+_proposal_ack_creation_latency)\t/;
    const expected = recorded.mntrLeader.split('\n').filter((line) => pattern.test(line));
    expect(expected).toHaveLength(50);
    for (const line of expected) expect(lines).toContain(line);
  });

  test('mntr of an observer names the server that it observes, and mntr of a learner the kind of its synchronisation', () => {
    const place = { ...recordedEnsemble, state: 'observing' as const, learnerMaster: 2, leading: undefined };
    const text = (change: object) => ask('mntr', { inspect: { role: () => 'observer', ensemble: () => ({ ...place, ...change }) } });
    expect(text({})).toContain('zk_server_state\tobserver\nzk_peer_state\tobserving - broadcast\nzk_observer_master_id\t2\n');
    expect(text({ phase: 'synchronization', syncMode: 'diff' })).toContain('zk_peer_state\tobserving - synchronization - diff\n');
    expect(text({ state: 'looking', learnerMaster: undefined, phase: 'election', leader: undefined })).toContain(
      'zk_peer_state\tlooking\n',
    );
  });

  test('A76: conf of a server in an ensemble, and dump of a follower, are the recorded ones', () => {
    const ensemble = {
      initLimitTicks: 10,
      syncLimitTicks: 5,
      electionPorts: [43_202],
      quorumPorts: [43_102],
      role: 'participant' as const,
    };
    const folder = '/var/lib/zookeeper/data/version-2';
    const limits = { tickTimeMs: 1000, minSessionTimeoutMs: 2000, maxSessionTimeoutMs: 20_000 };
    const conf = { ...facts.conf, ...limits, clientPort: 43_002, dataDir: folder, dataLogDir: folder, serverId: 2, ensemble };
    const setup = { inspect: leadingInspect };
    const sizes = { dataDirBytes: () => 133_289, logDirBytes: () => 133_289 };
    expect(ask('conf', setup, wordsOf(setup, { ...facts, ...sizes, conf }))).toBe(recorded.confLeader);
    const observing = { ...facts, conf: { ...conf, ensemble: { ...ensemble, role: 'observer' as const, electionPorts: [1, 2] } } };
    expect(ask('conf', setup, wordsOf(setup, observing))).toContain('electionPort=1|2\nquorumPort=43102\npeerType=1\nmembership: \n');

    const follower = {
      role: () => 'follower' as const,
      sessionCount: () => 2,
      sessions: () => [
        { session: 0x100000e879a0001n, timeoutMs: 6000 },
        { session: 0x300000ebd8d0000n, timeoutMs: 6000 },
      ],
      ephemerals: () => [],
    };
    const atMs = now.elapsedMs + Date.UTC(2026, 10, 20, 9, 19, 39) - now.wallMs;
    const cnxns = [
      { context: contextOf(50_032), session: 0x300000ebd8d0000n },
      { context: contextOf(50_050), session: 0n },
    ];
    const list: CnxnList = { ...listOf(), expiry: () => [{ dueMs: atMs, cnxns }] };
    expect(ask('dump', { inspect: follower, cnxns: list })).toBe(recorded.dumpFollower);
  });

  test('A33, A76: dump of a server with local sessions begins with these, in the form of ZooKeeper', () => {
    const dueMs = now.elapsedMs + Date.UTC(2026, 10, 20, 9, 19, 39) - now.wallMs;
    const at = (...sessions: bigint[]) => [{ dueMs, sessions }];
    const shared = { localSessionExpiry: () => at(0x300000ebd8d0000n), ephemerals: () => [] };
    const date = 'Fri Nov 20 09:19:39 UTC 2026';
    const local = `SessionTracker dump:\nLocal Session Sets (1)/(1):\n1 expire at ${date}:\n\t0x300000ebd8d0000\n`;
    const leader = { ...shared, role: () => 'leader' as const, sessionExpiry: () => at(0x100000e879a0001n) };
    expect(ask('dump', { inspect: leader })).toContain(
      `${local}Global Session Sets (1)/(1):\n1 expire at ${date}:\n\t0x100000e879a0001\nephemeral nodes dump:\n`,
    );
    const sessions = () => [{ session: 0x100000e879a0001n, timeoutMs: 6000 }];
    const learner = { ...shared, role: () => 'observer' as const, sessionCount: () => 1, sessions };
    expect(ask('dump', { inspect: learner })).toContain(`${local}Global Sessions(1):\n0x100000e879a0001\t6000ms\nephemeral nodes dump:\n`);
    const empty = { ...learner, localSessionExpiry: () => [], sessionCount: () => 0, sessions: () => [] };
    expect(ask('dump', { inspect: empty })).toContain('Local Session Sets (0)/(0):\nGlobal Sessions(0):\n');
  });

  test('srvr of a leader ends with the sizes of its proposals', () => {
    const metrics = new ServerMetrics();
    metrics.roleChanged('leader');
    const end = () => ask('srvr', { metrics, inspect: leadingInspect }).split('\n').slice(-4).join('\n');
    expect(end()).toBe('Mode: leader\nNode count: 5\nProposal sizes last/min/max: -1/-1/-1\n');
    for (const bytes of [48, 70, 60]) metrics.proposed(1, OpCode.create, bytes, 0);
    expect(end()).toContain('Proposal sizes last/min/max: 60/48/70\n');
  });

  function form(text: string): Map<string, string> {
    return new Map(
      text
        .trimEnd()
        .split('\n')
        .map((line) => line.split('\t') as [string, string])
        .map(([key, value]) => [key, /^-?\d+$/.test(value) ? 'integer' : /^-?\d+\.\d+$/.test(value) ? 'double' : 'text']),
    );
  }

  /** The form of our answer, without metrics that ZooKeeper does not have. */
  function ownForm(text: string): Map<string, string> {
    const all = form(text);
    for (const { name, meaning } of metricTable) if (meaning.startsWith('Ours: ')) all.delete(`zk_${name}`);
    return all;
  }

  /** The form of a recorded answer, without what is documented as absent. */
  function expectedForm(text: string): Map<string, string> {
    const theirs = form(text);
    const prefixes = ['', 'avg_', 'min_', 'max_', 'cnt_', 'sum_', 'p50_', 'p95_', 'p99_', 'p999_'];
    const printed = new Set(
      metricTable.filter(({ kind }) => !kind.endsWith(' set')).flatMap(({ name }) => prefixes.map((prefix) => `zk_${prefix}${name}`)),
    );
    for (const { name, kind, state } of metricTable) {
      if (state !== 'absent') continue;
      for (const key of theirs.keys()) {
        const isOfThis = kind.endsWith(' set')
          ? key.endsWith(`_${name}`) && !printed.has(key)
          : prefixes.some((prefix) => key === `zk_${prefix}${name}`);
        if (isOfThis) theirs.delete(key);
      }
    }
    return theirs;
  }

  test('mntr prints the recorded values for the same input', () => {
    const metrics = new ServerMetrics();
    writeLikeRecorded(metrics);
    for (const durationMs of [2, ...Array.from({ length: 11 }, () => 0)]) {
      metrics.synced(durationMs);
      metrics.flushed({ txns: 1, queued: 1, flushMs: durationMs, arrivals: [{ txns: 1, waitedMs: 0 }] });
    }
    for (let change = 0; change < 12; change++) metrics.changeQueued();
    metrics.changesRemoved(12);
    for (const ageMs of [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 7]) metrics.applied(1, OpCode.create, 0, ageMs);
    for (let request = 0; request < 15; request++) metrics.admitted(0, OpCode.getData, 40, request === 0 ? 1 : 0);
    for (const deficit of [0, 0, 0]) metrics.handshakeReceived(deficit);
    const lines = new Set(ask('mntr', { metrics }).split('\n'));
    const fed = [
      '(version|server_state|uptime|ephemerals_count|num_alive_connections|znode_count|global_sessions|watch_count|approximate_data_size)',
      '(open|max)_file_descriptor_count|connection_request_count|\\w+_connection_token_deficit',
      '\\w+_fsynctime|\\w+_sync_processor_batch_size|outstanding_changes_\\w+|\\w+_propagation_latency',
      'prep_processor_request_queued|\\w+_request_throttle_queue_time_ms|request_throttle_wait_count|stale_requests\\w*',
      'watch_bytes|\\w+_per_namespace',
    ];
    const pattern = new RegExp(`^zk_(${fed.join('|')})\\t`);
    const expected = recorded.fourLetterWords['mntr']!.split('\n').filter((line) => pattern.test(line));
    expect(expected).toHaveLength(66);
    for (const line of expected) expect(lines).toContain(line);
  });
});

describe('the server in four letter words', () => {
  test('A76, E25: while no clients are served most words say so', () => {
    const looking = { inspect: { role: () => 'looking' as const } };
    const sentence = 'This ZooKeeper instance is not currently serving requests';
    const answering = fourLetterWords.filter((word) => !ask(word, looking).startsWith(sentence));
    expect(answering).toEqual(['envi', 'gtmk', 'isro', 'ruok', 'stmk']);
    expect(ask('srvr', looking)).toBe(`${sentence}\n`);
    expect(ask('hash', looking)).toBe(sentence);
    expect(ask('isro', looking)).toBe('null');
  });

  test('a read-only server reports that mode', () => {
    const readOnly = { inspect: { role: () => 'read-only' as const } };
    expect(ask('isro', readOnly)).toBe('ro');
    expect(ask('srvr', readOnly)).toContain('\nREAD-ONLY mode; serving only read-only clients\n');
    expect(ask('srvr', readOnly)).toContain('\nMode: read-only\n');
  });

  test('A76: envi lists the given environment, and hash the digests', () => {
    expect(ask('envi')).toBe('Environment:\nzookeeper.version=3.9.5\n');
    const digests = () => [{ zxid: 0x80, digestVersion: 2, digest: 0xffffffffffffffffn }];
    expect(ask('hash', { inspect: { digests } })).toBe('80: -1\n');
  });

  test('A76: srst resets the counters, and crst those of connections', () => {
    const metrics = recordedTraffic(33);
    let resets = 0;
    ask('srst', { metrics });
    expect(ask('srvr', { metrics })).toContain('Latency min/avg/max: 0/0.0/0\nReceived: 0\nSent: 0\n');
    ask('crst', { inspect: { resetCnxnStats: () => void resets++ } });
    expect(resets).toBe(1);
  });

  test('a connection without a session shows its counts only, an IPv6 one its address in brackets', () => {
    const context = { ...contextOf(1), remoteAddress: '::1' };
    expect(ask('cons', { cnxns: listOf({ ...clientView, context, info: { ...client, session: 0n } }) })).toBe(
      ' /[::1]:1[1](queued=0,recved=13,sent=13)\n\n',
    );
  });

  test('unsafe settings are shown at the end of srvr, stat and mntr, and nothing when there are none', () => {
    const unsafe = ['forceSync=no', 'skipACL=yes'];
    for (const word of ['srvr', 'stat', 'mntr']) {
      const [safe, warned] = [ask(word), ask(word, {}, wordsOf({}, { ...facts, unsafe }))];
      const line = word === 'mntr' ? 'zk_unsafe_settings\t2\n' : 'Unsafe settings: forceSync=no, skipACL=yes\n';
      expect(warned).toBe(`${safe}${line}`);
    }
  });

  test('every line has the form that Solr and HBase parse', () => {
    for (const line of ask('mntr').trimEnd().split('\n')) expect(line.split('\t')).toHaveLength(2);
    for (const line of ask('conf').trimEnd().split('\n')) expect(line.split('=')).toHaveLength(2);
    expect(ask('stat')).toMatch(/^Zookeeper version: .*\nClients:\n/);
  });
});

describe('the whitelist', () => {
  test.each([
    ['srvr', false, ['srvr']],
    ['srvr, ruok,mntr', false, ['mntr', 'ruok', 'srvr']],
    ['*', false, [...fourLetterWords]],
    ['', false, []],
    ['nope,stat', false, ['stat']],
    ['srvr', true, ['isro', 'srvr']],
  ])('A76: %j (read-only mode %s) allows %j', (value, readOnlyMode, allowed) => {
    expect([...parseWhitelist(value, readOnlyMode)].toSorted()).toEqual(allowed);
  });

  test('A76: a word that is not on it is refused with the text that tools look for', () => {
    expect(ask('mntr', { whitelist: 'srvr' })).toBe('mntr is not executed because it is not in the whitelist.\n');
  });
});

test.each([
  [0, '0.0'],
  [2.2667, '2.2667'],
  [276, '276.0'],
  [0.0003, '3.0E-4'],
  [12_345_678, '1.2345678E7'],
  [-1.5, '-1.5'],
])('%d is written as %s, as Java writes it', (value, text) => {
  expect(javaDouble(value)).toBe(text);
});

test('an average has four decimals, rounded half up, and a date is in UTC', () => {
  expect(average(34, 15)).toBe(2.2667);
  expect(average(1, 8)).toBe(0.125);
  expect(average(0, 0)).toBe(0);
  expect(javaDate(Date.UTC(2026, 0, 3, 4, 5, 6))).toBe('Sat Jan 03 04:05:06 UTC 2026');
});
