import { readFileSync } from 'node:fs';
import { ErrorCode, EventType, OpCode } from '@tskeeper/protocol';
import { array, assert, constantFrom, nat, property } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AdvancedSummary, metricTable, type MetricRow, ServerMetrics, Summary } from '../../src/internal.ts';
import { emptyInspect, testFacts } from '../ports/fake-core.ts';

function valuesOf(metrics: ServerMetrics): Map<string, number> {
  const sources = { inspect: emptyInspect, facts: testFacts, cnxnCount: 3, now: { elapsedMs: 5000.7, wallMs: 0 } };
  return new Map([...metrics.entries(sources)].map(([key, { value }]) => [key, value]));
}

/** The keys whose value `change` moves, with what they moved by. */
function movedBy(change: (metrics: ServerMetrics) => void): Record<string, number> {
  const metrics = new ServerMetrics();
  const before = valuesOf(metrics);
  change(metrics);
  const moved: Record<string, number> = {};
  for (const [key, value] of valuesOf(metrics)) if (value !== before.get(key)) moved[key] = value;
  return moved;
}

/** The metric that a key belongs to. The gauges of latency and reply size have such prefixes in their own names. */
function nameOfKey(key: string): string {
  return key.replace(/^(avg|min|max|cnt|sum|p\d+|last)_/, '');
}

function replyOf(latencyMs: number, bytes: number): Record<string, number> {
  return { max_latency: latencyMs, response_bytes: bytes, last_client_response_size: bytes };
}

describe('what is counted', () => {
  test('a reply counts as sent, with its latency and its size', () => {
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

  const changes: [string, (metrics: ServerMetrics) => void, Record<string, number>][] = [
    ['a read', (m) => m.replied(0, OpCode.getData, 0, 2, 24, false), { packets_sent: 1, p50_readlatency: 2, ...replyOf(2, 20) }],
    ['a write', (m) => m.replied(0, OpCode.setData, 0, 7, 124, true), { packets_sent: 1, p99_updatelatency: 7, ...replyOf(7, 120) }],
    ['a frame', (m) => m.packetReceived(49), { packets_received: 1, bytes_received_count: 49 }],
    ['a handshake', (m) => m.handshakeReceived(2), { connection_request_count: 1, sum_connection_token_deficit: 2 }],
    [
      'the answer to a handshake',
      (m) => m.replied(0, OpCode.createSession, 0, 3, 41, true),
      { packets_sent: 1, max_latency: 3, max_updatelatency: 3 },
    ],
    ['a new session', (m) => m.sessionOpened(), {}],
    ['a session taken up again', (m) => m.sessionRevalidated(), { connection_revalidate_count: 1 }],
    ['an expired session', (m) => m.sessionClosed(1n, true), { stale_sessions_expired: 1 }],
    ['a closed session', (m) => m.sessionClosed(1n, false), {}],
    ['a refused connection', (m) => m.cnxnRejected(), { connection_rejected: 1 }],
    ['a silent connection', (m) => m.cnxnExpired(), { sessionless_connections_expired: 1 }],
    ['a lost connection', (m) => m.cnxnDropped(), { connection_drop_count: 1 }],
    ['a connection that nobody serves', (m) => m.cnxnClosed(0, 'not serving'), { cnxn_closed_without_zk_server_running: 1 }],
    ['a connection closed by its client', (m) => m.cnxnClosed(0, 'closed by the client'), {}],
    ['refused credentials', (m) => m.authenticated(0, 'digest', '', false), { auth_failed_count: 1 }],
    ['accepted credentials', (m) => m.authenticated(0, 'digest', 'u:x', true), {}],
    ['a throttled request', (m) => m.refused(0, OpCode.create, ErrorCode.ThrottledOp), { throttled_ops: 1 }],
    ['a large request', (m) => m.largeRequestRejected(), { large_requests_rejected: 1 }],
    ['a stale reply', (m) => m.staleReply(), { stale_replies: 1 }],
    ['a digest that does not match', (m) => m.notice({ kind: 'digestMismatch', zxid: 1 }), { digest_mismatches_count: 1 }],
    ['an admitted request', (m) => m.admitted(), { prep_processor_request_queued: 1 }],
    ['a txn', (m) => m.proposed(), { sync_processor_request_queued: 1 }],
    ['a failed snapshot', (m) => m.snapshotFailed(), { snapshot_error_count: 1 }],
    ['the end', (m) => m.unrecoverableError(), { unrecoverable_error_count: 1 }],
    ['a closed socket', (m) => m.socketClosed(3), { sum_socket_closing_time: 3 }],
    ['a snapshot', (m) => m.snapshotTaken(12.4), { sum_snapshottime: 12 }],
    [
      'a sync',
      (m) => m.synced(3.6, 40),
      { sum_fsynctime: 4, sum_sync_processor_batch_size: 40, p50_sync_processor_queue_flush_time_ms: 4 },
    ],
    [
      'a load',
      (m) => m.loaded({ totalMs: 30, snapshotMs: 20, logMs: 9, txns: 1000 }),
      { sum_dbinittime: 30, sum_startup_snap_load_time: 20, sum_startup_txns_load_time: 9, sum_startup_txns_loaded: 1000 },
    ],
    ['watches of a create', (m) => m.watchesFired(EventType.nodeCreated, 5), { packets_sent: 5, sum_node_created_watch_count: 5 }],
    ['watches of a delete', (m) => m.watchesFired(EventType.nodeDeleted, 5), { packets_sent: 5, sum_node_deleted_watch_count: 5 }],
    ['watches of a change', (m) => m.watchesFired(EventType.nodeDataChanged, 5), { packets_sent: 5, sum_node_changed_watch_count: 5 }],
    ['watches of children', (m) => m.watchesFired(EventType.nodeChildrenChanged, 5), { packets_sent: 5, sum_node_children_watch_count: 5 }],
  ];

  test.each(changes)('%s', (_what, change, expected) => {
    const moved = movedBy(change);
    expect(moved).toMatchObject(expected);
    // Nothing but the keys of the same metrics has moved.
    const names = Object.keys(expected).map(nameOfKey);
    for (const key of Object.keys(moved)) expect(names).toContain(nameOfKey(key));
  });

  test('every metric that is called measured moves by one of these, or is read from the server', () => {
    const read =
      /^(num_alive_connections|outstanding_requests|uptime|znode_count|watch_count|ephemerals_count|approximate_data_size|global_sessions|(open|max)_file_descriptor_count|connection_drop_probability)$/;
    const moved = new Set(changes.flatMap(([, change]) => Object.keys(movedBy(change)).map(nameOfKey)));
    const table = metricTable.filter(({ name, state }) => state === 'measured' && !read.test(name)).map(({ name }) => nameOfKey(name));
    expect([...moved].toSorted()).toEqual([...new Set(table)].toSorted());
  });

  test('gauges are read when asked for', () => {
    expect(Object.fromEntries(valuesOf(new ServerMetrics()))).toMatchObject({
      znode_count: 5,
      num_alive_connections: 3,
      uptime: 5000,
      open_file_descriptor_count: 47,
      last_client_response_size: -1,
      min_client_response_size: -1,
    });
  });

  test('a reset takes everything back', () => {
    const metrics = new ServerMetrics();
    const before = valuesOf(metrics);
    metrics.replied(0, OpCode.getData, 0, 2, 20, false);
    metrics.packetReceived(10);
    metrics.synced(3, 4);
    metrics.cnxnRejected();
    metrics.authenticated(0, 'digest', '', false);
    metrics.admitted();
    metrics.proposed();
    metrics.reset();
    expect(valuesOf(metrics)).toEqual(before);
  });
});

describe('summaries', () => {
  test('an empty one is all zero', () => {
    const summary = new AdvancedSummary();
    expect([summary.avg, summary.min, summary.max, summary.count, summary.percentile(0.99)]).toEqual([0, 0, 0, 0, 0]);
  });

  test('percentiles are within 2 % of those of the sorted values, and exact for small ones', () => {
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

  test('values beyond measure are counted as the largest', () => {
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

  test('every metric is there once', () => {
    const names = metricTable.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});
