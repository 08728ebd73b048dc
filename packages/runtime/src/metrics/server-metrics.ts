/**
 * The numbers a server keeps about itself, under ZooKeeper's names. It listens to the core, to the ports and to the storage; what is
 * counted on the way of a request is a field or a typed array, and everything else is done when somebody asks.
 */
import type { CloseReason, CnxnId, Notice, Observer } from '@tskeeper/core';
import { ErrorCode, EventType, type Millis, OpCode } from '@tskeeper/protocol';
import type { PortObserver } from '../ports/port-observer.ts';
import { metricTable } from './metric-table.ts';
import type { Metrics, MetricSources, MetricValue, Traffic } from './metrics.ts';
import { AdvancedSummary, Summary } from './summary.ts';

/** Sizes of replies are told with it and shown without, as ZooKeeper does. */
const lengthPrefixBytes = 4;

/** How long it took to load the database. */
export interface LoadTimes {
  readonly totalMs: Millis;
  readonly snapshotMs: Millis;
  readonly logMs: Millis;
  readonly txns: number;
}

export class ServerMetrics implements Observer, PortObserver, Metrics {
  readonly #counters: Record<string, number> = {};
  readonly #summaries = new Map<string, Summary>();

  // Of the request path, as fields.
  #packetsReceived = 0;
  #bytesReceived = 0;
  #packetsSent = 0;
  #responseBytes = 0;
  #admitted = 0;
  #proposed = 0;
  readonly #latency = new Summary();
  readonly #readLatency = this.#advanced('readlatency');
  readonly #updateLatency = this.#advanced('updatelatency');
  readonly #responseSize = new Summary();
  #lastResponseSize = -1;
  #authFailed = 0;

  constructor() {
    for (const row of metricTable) {
      if (row.state === 'absent' || this.#summaries.has(row.name)) continue;
      if (row.kind === 'counter') this.#counters[row.name] = 0;
      else if (row.kind === 'summary') this.#summaries.set(row.name, new Summary());
      else if (row.kind === 'advanced summary') this.#advanced(row.name);
    }
  }

  // --- Observer

  cnxnOpened(): void {}

  cnxnClosed(_cnxn: CnxnId, reason: CloseReason | undefined): void {
    if (reason === 'not serving') this.#count('cnxn_closed_without_zk_server_running');
  }

  authenticated(_cnxn: CnxnId, _scheme: string, _id: string, accepted: boolean): void {
    if (!accepted) this.#authFailed++;
  }

  admitted(): void {
    this.#admitted++;
  }

  refused(_cnxn: CnxnId, _opCode: number, errorCode: number): void {
    if (errorCode === ErrorCode.ThrottledOp) this.#count('throttled_ops');
  }

  proposed(): void {
    this.#proposed++;
  }

  applied(): void {}

  /** The handshake's answer comes here too, as that of createSession. Its size is not counted among the replies', as in ZooKeeper. */
  replied(_cnxn: CnxnId, opCode: number, _errorCode: number, latencyMs: Millis, bytes: number, write: boolean): void {
    this.#packetsSent++;
    if (opCode !== OpCode.createSession) {
      const size = bytes - lengthPrefixBytes;
      this.#responseBytes += size;
      this.#lastResponseSize = size;
      this.#responseSize.add(size);
    }
    this.#latency.add(latencyMs);
    if (write) this.#updateLatency.add(latencyMs);
    else this.#readLatency.add(latencyMs);
  }

  watchesFired(eventType: number, count: number): void {
    this.#packetsSent += count;
    const name = watchSummaries[eventType];
    if (name !== undefined) this.#sum(name, count);
  }

  sessionOpened(): void {}

  sessionClosed(_session: bigint, expired: boolean): void {
    if (expired) this.#count('stale_sessions_expired');
  }

  sessionRevalidated(): void {
    this.#count('connection_revalidate_count');
  }

  roleChanged(): void {}

  notice(notice: Notice): void {
    if (notice.kind === 'digestMismatch') this.#count('digest_mismatches_count');
  }

  // --- PortObserver

  packetReceived(bytes: number): void {
    this.#packetsReceived++;
    this.#bytesReceived += bytes;
  }

  handshakeReceived(tokenDeficit: number): void {
    this.#count('connection_request_count');
    this.#sum('connection_token_deficit', tokenDeficit);
  }

  cnxnRejected(): void {
    this.#count('connection_rejected');
  }

  cnxnExpired(): void {
    this.#count('sessionless_connections_expired');
  }

  cnxnDropped(): void {
    this.#count('connection_drop_count');
  }

  largeRequestRejected(): void {
    this.#count('large_requests_rejected');
  }

  staleReply(): void {
    this.#count('stale_replies');
  }

  socketClosed(closingMs: Millis): void {
    this.#sum('socket_closing_time', closingMs);
  }

  // --- Storage

  /** A sync of the log has ended well. TxnLogSink has this call. */
  synced(durationMs: Millis, txnCount: number): void {
    this.#sum('fsynctime', Math.round(durationMs));
    this.#sum('sync_processor_queue_flush_time_ms', Math.round(durationMs));
    this.#sum('sync_processor_batch_size', txnCount);
  }

  snapshotTaken(durationMs: Millis): void {
    this.#sum('snapshottime', Math.round(durationMs));
  }

  snapshotFailed(): void {
    this.#count('snapshot_error_count');
  }

  loaded({ totalMs, snapshotMs, logMs, txns }: LoadTimes): void {
    this.#sum('dbinittime', Math.round(totalMs));
    this.#sum('startup_snap_load_time', Math.round(snapshotMs));
    this.#sum('startup_txns_load_time', Math.round(logMs));
    this.#sum('startup_txns_loaded', txns);
  }

  /** The process is about to end because of an error. */
  unrecoverableError(): void {
    this.#count('unrecoverable_error_count');
  }

  // --- Metrics

  traffic(): Traffic {
    const { min, avg, max } = this.#latency;
    return { latency: { min, avg, max }, packetsReceived: this.#packetsReceived, packetsSent: this.#packetsSent };
  }

  *entries(sources: MetricSources): Generator<readonly [string, MetricValue], void, undefined> {
    const gauges = this.#gauges(sources);
    const counters: Record<string, number> = {
      ...this.#counters,
      bytes_received_count: this.#bytesReceived,
      response_bytes: this.#responseBytes,
      prep_processor_request_queued: this.#admitted,
      sync_processor_request_queued: this.#proposed,
    };
    for (const { name, kind, state } of metricTable) {
      if (state === 'absent') continue;
      switch (kind) {
        case 'gauge':
        case 'double gauge':
          yield [name, { value: gauges[name]!, isDouble: kind === 'double gauge' }];
          break;
        case 'counter':
          yield [name, whole(counters[name]!)];
          break;
        case 'summary':
        case 'advanced summary':
          yield* summaryEntries(name, this.#summaries.get(name)!);
          break;
        case 'set':
          break;
        default:
          kind satisfies never;
      }
    }
  }

  reset(): void {
    for (const name of Object.keys(this.#counters)) this.#counters[name] = 0;
    for (const summary of this.#summaries.values()) summary.reset();
    this.#packetsReceived = this.#bytesReceived = this.#packetsSent = this.#responseBytes = 0;
    this.#admitted = this.#proposed = this.#authFailed = 0;
    this.#latency.reset();
    this.#responseSize.reset();
    this.#lastResponseSize = -1;
  }

  #gauges({ inspect, facts, cnxnCount, now }: MetricSources): Record<string, number> {
    const answered = this.#responseSize.count > 0;
    return {
      avg_latency: this.#latency.avg,
      max_latency: this.#latency.max,
      min_latency: this.#latency.min,
      packets_received: this.#packetsReceived,
      packets_sent: this.#packetsSent,
      num_alive_connections: cnxnCount,
      outstanding_requests: inspect.outstandingRequests(),
      uptime: Math.floor(now.elapsedMs - facts.startedMs),
      znode_count: inspect.nodeCount(),
      watch_count: inspect.watchCount(),
      ephemerals_count: inspect.ephemeralCount(),
      approximate_data_size: inspect.approximateDataBytes(),
      global_sessions: inspect.sessionCount(),
      local_sessions: 0,
      open_file_descriptor_count: facts.openFileDescriptors() ?? -1,
      max_file_descriptor_count: facts.maxFileDescriptors() ?? -1,
      connection_drop_probability: facts.connectionDropChance(),
      last_client_response_size: this.#lastResponseSize,
      max_client_response_size: answered ? this.#responseSize.max : -1,
      min_client_response_size: answered ? this.#responseSize.min : -1,
      outstanding_tls_handshake: 0,
      auth_failed_count: this.#authFailed,
      non_mtls_remote_conn_count: 0,
      non_mtls_local_conn_count: 0,
    };
  }

  #advanced(name: string): AdvancedSummary {
    const summary = new AdvancedSummary();
    this.#summaries.set(name, summary);
    return summary;
  }

  #count(name: string): void {
    this.#counters[name]!++;
  }

  #sum(name: string, value: number): void {
    this.#summaries.get(name)!.add(value);
  }
}

const watchSummaries: Readonly<Record<number, string>> = {
  [EventType.nodeCreated]: 'node_created_watch_count',
  [EventType.nodeDeleted]: 'node_deleted_watch_count',
  [EventType.nodeDataChanged]: 'node_changed_watch_count',
  [EventType.nodeChildrenChanged]: 'node_children_watch_count',
};

function* summaryEntries(name: string, summary: Summary): Generator<readonly [string, MetricValue], void, undefined> {
  yield [`avg_${name}`, { value: summary.avg, isDouble: true }];
  yield [`min_${name}`, whole(summary.min)];
  yield [`max_${name}`, whole(summary.max)];
  yield [`cnt_${name}`, whole(summary.count)];
  yield [`sum_${name}`, whole(summary.sum)];
  if (!(summary instanceof AdvancedSummary)) return;
  yield [`p50_${name}`, whole(summary.percentile(0.5))];
  yield [`p95_${name}`, whole(summary.percentile(0.95))];
  yield [`p99_${name}`, whole(summary.percentile(0.99))];
  yield [`p999_${name}`, whole(summary.percentile(0.999))];
}

function whole(value: number): MetricValue {
  return { value, isDouble: false };
}
