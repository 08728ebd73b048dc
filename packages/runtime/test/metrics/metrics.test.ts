import { readFileSync } from 'node:fs';
import type { Inspector } from '@tskeeper/core';
import { ErrorCode, EventType, OpCode } from '@tskeeper/protocol';
import { array, assert, constantFrom, nat, property } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AdvancedSummary, metricTable, type MetricRow, ServerMetrics, Summary } from '../../src/internal.ts';
import { emptyInspect, leadingInspect, testFacts } from '../ports/fake-core.ts';

function valuesOf(metrics: ServerMetrics, inspect = emptyInspect): Map<string, number> {
  const sources = { inspect, facts: testFacts, cnxnCount: 3, now: { elapsedMs: 5000.7, wallMs: 0 } };
  return new Map([...metrics.entries(sources)].map(([key, { value }]) => [key, value]));
}

/** The keys whose values `change` changes, with the differences. */
function movedBy(change: (metrics: ServerMetrics) => unknown): Record<string, number> {
  const metrics = new ServerMetrics();
  const before = valuesOf(metrics);
  change(metrics);
  const moved: Record<string, number> = {};
  for (const [key, value] of valuesOf(metrics)) if (value !== before.get(key)) moved[key] = value;
  return moved;
}

/**
 * The metric that a key belongs to. The gauges of latency and reply size have such prefixes in
 * their own names.
 */
function nameOfKey(key: string): string {
  return key.replace(/^(avg|min|max|cnt|sum|p\d+|last)_/, '').replace(/^app_/, '');
}

const context = { remoteAddress: '10.0.0.1', remotePort: 4242, localPort: 2181, secure: false, peerCertificate: undefined };

function replyOf(latencyMs: number, bytes: number): Record<string, number> {
  return { max_latency: latencyMs, response_bytes: bytes, last_client_response_size: bytes };
}

describe('ServerMetrics', () => {
  test('counts a reply as sent, with its latency and its size', () => {
    const moved = movedBy((metrics) => {
      metrics.replied(0, OpCode.getData, 0, 2, 24, false);
      metrics.replied(0, OpCode.setData, 0, 7, 124, true);
    });
    expect(moved).toMatchObject({
      packets_sent: 2,
      avg_latency: 4.5,
      min_latency: 2,
      max_latency: 7,
      response_bytes: 140,
      last_client_response_size: 120,
      min_client_response_size: 20,
      max_client_response_size: 120,
      cnt_readlatency: 1,
      p99_updatelatency: 7,
    });
  });

  const changes: [string, (metrics: ServerMetrics) => unknown, Record<string, number>][] = [
    ['a read', (m) => m.replied(0, OpCode.getData, 0, 2, 24, false), { packets_sent: 1, p50_readlatency: 2, ...replyOf(2, 20) }],
    ['a write', (m) => m.replied(0, OpCode.setData, 0, 7, 124, true), { packets_sent: 1, p99_updatelatency: 7, ...replyOf(7, 120) }],
    ['a frame', (m) => m.packetReceived(49), { packets_received: 1, bytes_received_count: 49 }],
    ['a handshake', (m) => m.handshakeReceived(2), { connection_request_count: 1, sum_connection_token_deficit: 2 }],
    [
      'the answer to the handshake of a new session',
      (m) => m.replied(0, OpCode.createSession, 0, 3, 41, true),
      { packets_sent: 1, max_latency: 3, max_updatelatency: 3 },
    ],
    [
      'the reply to a ping',
      (m) => m.replied(0, OpCode.ping, 0, 2, 20, false),
      { packets_sent: 1, max_latency: 2, p50_readlatency: 2, last_client_response_size: 16 },
    ],
    [
      'the reply to an authentication',
      (m) => m.replied(0, OpCode.auth, 0, 2, 20, false),
      { packets_sent: 1, last_client_response_size: 16 },
    ],
    ['a new session', (m) => m.sessionOpened(), {}],
    // No latency, because it is not a request.
    ['a resumed session', (m) => m.sessionRevalidated(1n, true, context), { packets_sent: 1, connection_revalidate_count: 1 }],
    ['an expired session', (m) => m.sessionClosed(1n, true, 4000, undefined), { stale_sessions_expired: 1 }],
    ['a closed session', (m) => m.sessionClosed(1n, false, 4000, undefined), {}],
    ['a refused connection', (m) => m.cnxnRejected(), { connection_rejected: 1 }],
    ['a silent connection', (m) => m.cnxnExpired(), { sessionless_connections_expired: 1 }],
    ['a lost connection', (m) => m.cnxnDropped(), { connection_drop_count: 1 }],
    ['a connection that is not served', (m) => m.cnxnClosed(0, 'not serving', context, 0n), { cnxn_closed_without_zk_server_running: 1 }],
    ['a connection closed by its client', (m) => m.cnxnClosed(0, 'closed by the client', context, 1n), {}],
    ['refused credentials', (m) => m.authenticationRefused(0, 'digest', 'reason', context), { auth_failed_count: 1 }],
    ['the right name of the ensemble', (m) => m.ensembleNamed('right'), { ensemble_auth_success: 1 }],
    ['a wrong name of the ensemble', (m) => m.ensembleNamed('wrong'), { ensemble_auth_fail: 1 }],
    ['a name that is not compared', (m) => m.ensembleNamed('not compared'), { ensemble_auth_skip: 1 }],
    ['accepted credentials', (m) => m.authenticated(), {}],
    ['a throttled request', (m) => m.requestRejected(0, OpCode.create, ErrorCode.ThrottledOp), { throttled_ops: 1 }],
    ['a large request', (m) => m.largeRequestRejected(), { large_requests_rejected: 1 }],
    ['a stale reply', (m) => m.staleReply(), { stale_replies: 1 }],
    ['a digest that does not match', (m) => m.notice({ kind: 'digestMismatch', zxid: 1 }), { digest_mismatches_count: 1 }],
    [
      'an admitted request',
      (m) => m.admitted(0, OpCode.getData, 40, 0),
      { prep_processor_request_queued: 1, cnt_request_throttle_queue_time_ms: 1 },
    ],
    [
      'a request admitted late',
      (m) => m.admitted(0, OpCode.getData, 40, 70),
      { prep_processor_request_queued: 1, cnt_request_throttle_queue_time_ms: 1, p50_request_throttle_queue_time_ms: 70 },
    ],
    ['an authentication', (m) => m.admitted(0, OpCode.auth, 40, 0), {}],
    ['a request held back', (m) => m.requestThrottled(), { request_throttle_wait_count: 1 }],
    ['a stale request', (m) => m.staleRequest(false), { stale_requests: 1 }],
    ['a stale request that is dropped', (m) => m.staleRequest(true), { stale_requests_dropped: 1 }],
    ['a recorded change', (m) => m.changeQueued(), { outstanding_changes_queued: 1 }],
    ['applied changes', (m) => m.changesRemoved(3), { outstanding_changes_removed: 3 }],
    [
      'a txn',
      (m) => m.proposed(1, OpCode.create, 80, 4),
      { sync_processor_request_queued: 1, cnt_prep_process_time: 1, sum_prep_process_time: 4 },
    ],
    [
      'the txn of a new session',
      (m) => m.proposed(1, OpCode.createSession, 80, 0),
      {
        prep_processor_request_queued: 1,
        cnt_request_throttle_queue_time_ms: 1,
        sync_processor_request_queued: 1,
        cnt_prep_process_time: 1,
      },
    ],
    [
      'the txn of the end of a session',
      (m) => m.proposed(1, OpCode.closeSession, 80, 9),
      { sync_processor_request_queued: 1, max_prep_process_time: 9, cnt_close_session_prep_time: 1, p50_close_session_prep_time: 9 },
    ],
    ['an applied txn', (m) => m.applied(1, OpCode.create, 0, 12), { cnt_propagation_latency: 1, p50_propagation_latency: 12 }],
    ['an applied txn from the future', (m) => m.applied(1, OpCode.create, 0, -1), {}],
    ['a failed snapshot', (m) => m.snapshotFailed(), { snapshot_error_count: 1 }],
    ['an unrecoverable error', (m) => m.unrecoverableError(), { unrecoverable_error_count: 1 }],
    ['a closed socket', (m) => m.socketClosed(3), { sum_socket_closing_time: 3 }],
    ['a snapshot', (m) => m.snapshotTaken(12.4), { sum_snapshottime: 12 }],
    ['a sync', (m) => m.synced(3.6), { sum_fsynctime: 4 }],
    [
      'a batch of txns',
      (m) => {
        const arrivals = [
          { txns: 30, waitedMs: 2 },
          { txns: 10, waitedMs: 0 },
        ];
        m.flushed({ txns: 40, queued: 50, flushMs: 3.6, arrivals });
      },
      {
        sum_sync_processor_batch_size: 40,
        cnt_sync_processor_queue_size: 1,
        sum_sync_processor_queue_size: 50,
        p50_sync_processor_queue_flush_time_ms: 4,
        cnt_sync_processor_queue_time_ms: 40,
        sum_sync_processor_queue_time_ms: 60,
        p50_sync_processor_queue_time_ms: 2,
        cnt_sync_processor_queue_and_flush_time_ms: 40,
        sum_sync_processor_queue_and_flush_time_ms: 220,
        min_sync_processor_queue_and_flush_time_ms: 4,
      },
    ],
    [
      'a load',
      (m) => m.loaded({ totalMs: 30, snapshotMs: 20, logMs: 9, txns: 1000 }),
      { sum_dbinittime: 30, sum_startup_snap_load_time: 20, sum_startup_txns_load_time: 9, sum_startup_txns_loaded: 1000 },
    ],
    ['watches of a create', (m) => m.watchesFired(EventType.nodeCreated, 5), { sum_node_created_watch_count: 5 }],
    ['watches of a delete', (m) => m.watchesFired(EventType.nodeDeleted, 5), { sum_node_deleted_watch_count: 5 }],
    ['watches of a change', (m) => m.watchesFired(EventType.nodeDataChanged, 5), { sum_node_changed_watch_count: 5 }],
    ['watches of children', (m) => m.watchesFired(EventType.nodeChildrenChanged, 5), { sum_node_children_watch_count: 5 }],
    ['a watch event', (m) => m.eventSent(0, 44), { packets_sent: 1, watch_bytes: 40, last_client_response_size: 40 }],
    [
      'reads of a namespace',
      (m) => {
        m.namespaceAssigned(2, 'app');
        for (const bytes of [4, 9]) m.znodeRead(2, bytes);
      },
      {
        avg_app_read_per_namespace: 74.5,
        min_app_read_per_namespace: 72,
        max_app_read_per_namespace: 77,
        cnt_app_read_per_namespace: 2,
        sum_app_read_per_namespace: 149,
      },
    ],
    [
      'writes of a namespace',
      (m) => {
        m.namespaceAssigned(2, 'app');
        m.znodeWritten(2, 9);
      },
      { avg_app_write_per_namespace: 9, cnt_app_write_per_namespace: 1 },
    ],
    [
      'writes refused by quotas',
      (m) => {
        m.namespaceAssigned(2, 'app');
        for (const id of [2, 2]) m.quotaExceeded(id);
      },
      { app_quota_exceeded_error_per_namespace: 2 },
    ],
    ['the start of an election', (m) => m.roleChanged('looking'), { looking_count: 1 }],
    ['a transfer', (m) => m.notice({ kind: 'transferEnded', target: 2, outcome: 'handed over', heldMs: 3 }), { leader_transfers: 1 }],
    [
      'a failed transfer',
      (m) => m.notice({ kind: 'transferEnded', target: 2, outcome: 'target lost', heldMs: 3 }),
      { leader_transfers_abandoned: 1 },
    ],
    ['a shed connection', (m) => m.cnxnClosed(1, 'shed', context, 1n), { connections_shed: 1 }],
    ['an election', (m) => m.elected(2, 212.4), { cnt_election_time: 1, sum_election_time: 212 }],
    [
      'a leader whose voter leaves',
      (m) => m.roleEnded('disloyal voter', 'a voter looks for another leader'),
      { quit_leading_due_to_disloyal_voter: 1 },
    ],
    ['a leader that ends for another reason', (m) => m.roleEnded('quorum lost', 'the leader has lost its quorum'), {}],
    ['a leader that serves', (m) => m.servingStarted('leader', 300, 40), { sum_unavailable_time: 300, sum_leader_unavailable_time: 300 }],
    ['a follower that serves', (m) => m.servingStarted('follower', 300, 40), { sum_unavailable_time: 300, sum_follower_sync_time: 40 }],
    ['an observer that serves', (m) => m.servingStarted('observer', 300, 40), { sum_unavailable_time: 300, sum_observer_sync_time: 40 }],
    ['a DIFF', (m) => m.learnerSyncStarted('diff', 'memory', 0), { diff_count: 1 }],
    ['a TRUNC', (m) => m.learnerSyncStarted('trunc', 'memory', 0), { diff_count: 1 }],
    ['a SNAP', (m) => m.learnerSyncStarted('snap', 'tree', 2), { snap_count: 1, cnt_inflight_snap_count: 1, sum_inflight_snap_count: 2 }],
    ["a learner's question about a session", (m) => m.sessionValidated(), { revalidate_count: 1 }],
    [
      'a proposal of a leader, and its commit',
      (m) => {
        m.roleChanged('leader');
        m.proposed(1, OpCode.create, 48, 0);
        m.applied(1, OpCode.create, 0, 3);
      },
      {
        proposal_count: 1,
        commit_count: 1,
        p50_quorum_ack_latency: 3,
        p50_propagation_latency: 3,
        sync_processor_request_queued: 1,
        cnt_prep_process_time: 1,
      },
    ],
    [
      'a proposal to a follower, and its commit',
      (m) => {
        m.roleChanged('follower');
        m.txnReceived(2);
        m.applied(1, OpCode.create, 0, 3);
      },
      {
        learner_proposal_received_count: 1,
        learner_commit_received_count: 1,
        p50_proposal_latency: 2,
        p50_commit_propagation_latency: 3,
        p50_propagation_latency: 3,
        sync_processor_request_queued: 1,
      },
    ],
    ['a txn on the way to where a learner begins', (m) => m.txnReceived(2), { sync_processor_request_queued: 1 }],
    ['a txn that is durable', (m) => m.txnLogged(4), { cnt_proposal_ack_creation_latency: 1, p50_proposal_ack_creation_latency: 4 }],
    ['what is read and written of the root', (m) => [m.znodeRead(0, 1), m.znodeWritten(0, 1)], {}],
  ];

  test.each(changes)('changes the metrics of %s, and no other', (_what, change, expected) => {
    const moved = movedBy(change);
    expect(moved).toMatchObject(expected);
    // Only keys of these metrics have changed.
    const names = Object.keys(expected).map(nameOfKey);
    for (const key of Object.keys(moved)) expect(names).toContain(nameOfKey(key));
  });

  test('changes each metric in state measured by one of these inputs, or reads it from the server', () => {
    const read =
      /^(quorum_size|learners|synced_\w+|pending_syncs|leader_uptime|(last|max|min)_proposal_size|num_alive_connections|outstanding_requests|uptime|znode_count|watch_count|ephemerals_count|approximate_data_size|(global|local)_sessions|(open|max)_file_descriptor_count|connection_drop_probability|quota_(count|bytes)_(limit|usage)_per_namespace)$/;
    const moved = new Set(changes.flatMap(([, change]) => Object.keys(movedBy(change)).map(nameOfKey)));
    const table = metricTable.filter(({ name, state }) => state === 'measured' && !read.test(name)).map(({ name }) => nameOfKey(name));
    expect([...moved].toSorted()).toEqual([...new Set(table)].toSorted());
  });

  test('reads gauges from the server on request', () => {
    expect(Object.fromEntries(valuesOf(new ServerMetrics()))).toMatchObject({
      znode_count: 5,
      num_alive_connections: 3,
      uptime: 5000,
      open_file_descriptor_count: 47,
      last_client_response_size: -1,
      min_client_response_size: -1,
    });
  });

  test('has sizes of proposals at a leader only, and of the present leadership only', () => {
    const metrics = new ServerMetrics();
    const keys = ['last_proposal_size', 'min_proposal_size', 'max_proposal_size'];
    expect(keys.filter((key) => valuesOf(metrics).has(key))).toEqual([]);
    const sizes = () => keys.map((key) => valuesOf(metrics, leadingInspect).get(key));
    metrics.roleChanged('leader');
    expect(sizes()).toEqual([-1, -1, -1]);
    for (const bytes of [48, 90, 60]) metrics.proposed(1, OpCode.create, bytes, 0);
    expect(sizes()).toEqual([60, 48, 90]);
    metrics.roleChanged('looking');
    metrics.roleChanged('leader');
    expect(sizes()).toEqual([-1, -1, -1]);
  });

  test('clears every value on reset', () => {
    const metrics = new ServerMetrics();
    metrics.roleChanged('leader');
    const before = valuesOf(metrics, leadingInspect);
    metrics.replied(0, OpCode.getData, 0, 2, 20, false);
    metrics.packetReceived(10);
    metrics.synced(3);
    metrics.flushed({ txns: 1, queued: 1, flushMs: 3, arrivals: [{ txns: 1, waitedMs: 3 }] });
    metrics.cnxnRejected();
    metrics.authenticationRefused(0, 'digest', 'reason', context);
    metrics.admitted(0, OpCode.getData, 40, 0);
    metrics.proposed(1, OpCode.create, 80, 4);
    metrics.changeQueued();
    metrics.changesRemoved(1);
    metrics.requestThrottled();
    metrics.staleRequest(true);
    metrics.eventSent(0, 44);
    metrics.applied(1, OpCode.create, 0, 5);
    metrics.elected(1, 7);
    metrics.servingStarted('leader', 9, 8);
    metrics.txnLogged(4);
    metrics.reset();
    expect(valuesOf(metrics, leadingInspect)).toEqual(before);
  });
});

describe('the metrics of namespaces', () => {
  function withApp(): ServerMetrics {
    const metrics = new ServerMetrics();
    metrics.namespaceAssigned(2, 'app');
    metrics.znodeRead(2, 4);
    return metrics;
  }

  test('are printed only where a namespace has been used for them', () => {
    const keys = [...valuesOf(withApp()).keys()].filter((key) => key.includes('_per_namespace'));
    expect(keys).toEqual(['avg', 'min', 'max', 'cnt', 'sum'].map((part) => `${part}_app_read_per_namespace`));
  });

  test('are shown with 0 after a reset, as ZooKeeper shows them', () => {
    const metrics = withApp();
    metrics.reset();
    const values = valuesOf(metrics);
    for (const part of ['avg', 'min', 'max', 'cnt', 'sum']) expect(values.get(`${part}_app_read_per_namespace`)).toBe(0);
    metrics.znodeRead(2, 1);
    expect(valuesOf(metrics).get('min_app_read_per_namespace')).toBe(69);
  });

  test('are removed when another namespace gets the number', () => {
    const metrics = withApp();
    metrics.namespaceAssigned(2, 'other');
    expect([...valuesOf(metrics).keys()].some((key) => key.includes('_per_namespace'))).toBe(false);
    metrics.znodeRead(2, 1);
    expect(valuesOf(metrics).get('cnt_other_read_per_namespace')).toBe(1);
  });

  test('show the limits and the use of quotas, each number only where a quota has it', () => {
    const none = { countLimit: undefined, bytesLimit: undefined, usedCount: undefined, usedBytes: undefined };
    const inspect: Inspector = {
      ...emptyInspect,
      quotaTotals: () => [
        { namespace: 'app', countLimit: 10, bytesLimit: -1, usedCount: 3, usedBytes: 40 },
        { ...none, namespace: 'old', usedCount: 7, usedBytes: 8 },
      ],
    };
    const values = [...new ServerMetrics().entries({ inspect, facts: testFacts, cnxnCount: 0, now: { elapsedMs: 0, wallMs: 0 } })];
    expect(values.filter(([key]) => key.includes('quota')).map(([key, { value }]) => `${key} ${value}`)).toEqual([
      'app_quota_count_limit_per_namespace 10',
      'app_quota_bytes_limit_per_namespace -1',
      'app_quota_count_usage_per_namespace 3',
      'old_quota_count_usage_per_namespace 7',
      'app_quota_bytes_usage_per_namespace 40',
      'old_quota_bytes_usage_per_namespace 8',
    ]);
  });

  test('show the quotas of at most 256 namespaces, so that clients cannot make the answer long', () => {
    const inspect: Inspector = {
      ...emptyInspect,
      *quotaTotals() {
        for (let n = 0; ; n++) yield { namespace: `n${n}`, countLimit: 1, bytesLimit: 1, usedCount: 1, usedBytes: 1 };
      },
    };
    const values = [...new ServerMetrics().entries({ inspect, facts: testFacts, cnxnCount: 0, now: { elapsedMs: 0, wallMs: 0 } })];
    expect(values.filter(([key]) => key.includes('quota'))).toHaveLength(4 * 256);
  });
});

describe('summaries', () => {
  test('are all zero when they are empty', () => {
    const summary = new AdvancedSummary();
    expect([summary.avg, summary.min, summary.max, summary.count, summary.percentile(0.99)]).toEqual([0, 0, 0, 0, 0]);
  });

  test('have percentiles within 2 % of those of the sorted values, and exact ones for small values', () => {
    assert(
      property(array(nat({ max: 5_000_000 }), { minLength: 1, maxLength: 200 }), constantFrom(0.5, 0.95, 0.99, 0.999), (values, share) => {
        const summary = new AdvancedSummary();
        for (const value of values) summary.add(value);
        const exact = percentileOf(values, share);
        expect(Math.abs(summary.percentile(share) - exact)).toBeLessThanOrEqual(
          exact < 128 && Math.max(...values) < 128 ? 0 : exact * 0.02 + 1,
        );
      }),
    );
  });

  test('count a value above the range as the largest', () => {
    const summary = new AdvancedSummary();
    for (const value of [-1, 0, 2 ** 31, 1e15]) summary.add(value);
    expect(summary.count).toBe(4);
    expect(summary.percentile(0.999)).toBe(1e15);
    expect(summary.percentile(0.01)).toBe(-1);
    const plain = new Summary();
    plain.add(-1);
    expect([plain.min, plain.max]).toEqual([-1, -1]);
  });
});

/** As ZooKeeper's library computes it from all values. */
function percentileOf(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const position = share * (sorted.length + 1);
  const index = Math.floor(position);
  if (index < 1) return sorted[0]!;
  if (index >= sorted.length) return sorted.at(-1)!;
  return Math.round(sorted[index - 1]! + (position - index) * (sorted[index]! - sorted[index - 1]!));
}

describe('docs/reference/metrics.md', () => {
  const page = readFileSync(new URL('../../../../docs/reference/metrics.md', import.meta.url), 'utf8');
  const rows = page
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => line.slice(2, -2));
  const wanted = (state: MetricRow['state']) =>
    metricTable
      .filter((row) => row.state === state)
      .map((row) => `\`${row.name}\` | ${row.kind} | ${row.meaning}${'why' in row ? ` | ${row.why}` : ''}`);

  test('has a line for every metric of the table and no other', () => {
    expect(rows).toEqual([...wanted('measured'), ...wanted('zero'), ...wanted('absent')]);
  });

  test('lists every metric once', () => {
    const names = metricTable.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});
