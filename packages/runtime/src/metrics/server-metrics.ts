/**
 * The numbers that a server keeps about itself, under ZooKeeper's names. They come from the core,
 * the ports and the storage; what is counted on the path of a request is a field or a typed array,
 * and everything else is computed on request.
 */
import {
  type CloseReason,
  type CnxnContext,
  type CnxnId,
  type Inspector,
  type NamespaceId,
  type Notice,
  type Observer,
  type RoleEndReason,
} from '@tskeeper/core';
import { ErrorCode, EventType, type Millis, OpCode, type SessionId, type Sid, type Zxid } from '@tskeeper/protocol';
import type { PortObserver } from '../ports/port-observer.ts';
import type { FlushedBatch } from '../storage/txn-log.ts';
import { metricTable } from './metric-table.ts';
import type { Metrics, MetricSources, ProposalSizes, Traffic } from './metrics.ts';
import { type MetricEntries, summaryEntries, whole } from './metric-entries.ts';
import { NamespaceMetrics } from './namespace-metrics.ts';
import { ProposalMetrics } from './proposal-metrics.ts';
import { AdvancedSummary, Summary } from './summary.ts';

/** Reported sizes of replies include it and printed ones do not, as in ZooKeeper. */
const lengthPrefixBytes = 4;

const ensembleCounters = { right: 'ensemble_auth_success', wrong: 'ensemble_auth_fail', 'not compared': 'ensemble_auth_skip' } as const;

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

  // Fields for the path of a request.
  #packetsReceived = 0;
  #bytesReceived = 0;
  #packetsSent = 0;
  #responseBytes = 0;
  #admitted = 0;
  #proposed = 0;
  #changesQueued = 0;
  #changesRemoved = 0;
  #watchBytes = 0;
  readonly #latency = new Summary();
  readonly #readLatency = this.#advanced('readlatency');
  readonly #updateLatency = this.#advanced('updatelatency');
  readonly #responseSize = new Summary();
  /** Requests that count as 0 in the next metric, and are added when the metrics are read. */
  #admittedAtOnce = 0;
  readonly #throttleQueueTime = this.#advanced('request_throttle_queue_time_ms');
  readonly #prepTime = this.#plain('prep_process_time');
  readonly #propagationLatency = this.#advanced('propagation_latency');
  #lastResponseSize = -1;
  #authFailed = 0;

  readonly #proposals = new ProposalMetrics({
    quorumAckLatency: this.#advanced('quorum_ack_latency'),
    commitPropagationLatency: this.#advanced('commit_propagation_latency'),
    proposalLatency: this.#advanced('proposal_latency'),
    ownAckLatency: this.#advanced('proposal_ack_creation_latency'),
  });
  readonly #namespaces = new NamespaceMetrics();

  constructor() {
    for (const row of metricTable) {
      if (row.state === 'absent' || this.#summaries.has(row.name)) continue;
      if (row.kind === 'counter') this.#counters[row.name] = 0;
      else if (row.kind === 'summary') this.#plain(row.name);
      else if (row.kind === 'advanced summary') this.#advanced(row.name);
    }
  }

  // --- Observer

  cnxnOpened(): void {}

  cnxnClosed(_cnxn: CnxnId, reason: CloseReason | undefined, _context: CnxnContext, _session: SessionId): void {
    if (reason === 'shed') this.#count('connections_shed');
    if (reason === 'not serving') this.#count('cnxn_closed_without_zk_server_running');
  }

  authenticated(): void {}

  ensembleNamed(verdict: 'right' | 'wrong' | 'not compared'): void {
    this.#count(ensembleCounters[verdict]);
  }

  authenticationRefused(_cnxn: CnxnId, _scheme: string, _reason: string, _context: CnxnContext): void {
    this.#authFailed++;
  }

  admitted(_cnxn: CnxnId, opCode: number, _frameBytes: number, waitedMs: Millis): void {
    if (isAuthRequest(opCode)) return;
    this.#admitted++;
    if (waitedMs > 0) this.#throttleQueueTime.add(waitedMs);
    else this.#admittedAtOnce++;
  }

  limitReached(): void {}

  requestThrottled(): void {
    this.#count('request_throttle_wait_count');
  }

  staleRequest(dropped: boolean): void {
    this.#count(dropped ? 'stale_requests_dropped' : 'stale_requests');
  }

  requestRejected(_cnxn: CnxnId, _opCode: number, errorCode: number): void {
    if (errorCode === ErrorCode.ThrottledOp) this.#count('throttled_ops');
  }

  changeQueued(): void {
    this.#changesQueued++;
  }

  changesRemoved(count: number): void {
    this.#changesRemoved += count;
  }

  quotaExceeded(namespace: NamespaceId): void {
    this.#namespaces.quotaExceeded(namespace);
  }

  proposed(_zxid: Zxid, txnType: number, bytes: number, judgedMs: Millis): void {
    this.#proposed++;
    this.#proposals.proposed(bytes);
    this.#prepTime.add(judgedMs);
    if (txnType === OpCode.closeSession) this.#sum('close_session_prep_time', judgedMs);
    // A request like any other in ZooKeeper. Here the handshake asks for it, which no call reports
    // as admitted.
    if (txnType === OpCode.createSession) {
      this.#admitted++;
      this.#admittedAtOnce++;
    }
  }

  applied(_zxid: Zxid, _txnType: number, _errorCode: number, ageMs: Millis): void {
    if (ageMs >= 0) this.#propagationLatency.add(ageMs);
    this.#proposals.applied(ageMs);
  }

  namespaceAssigned(namespace: NamespaceId, name: string): void {
    this.#namespaces.assign(namespace, name);
  }

  znodeRead(namespace: NamespaceId, bytes: number): void {
    this.#namespaces.read(namespace, bytes);
  }

  znodeWritten(namespace: NamespaceId, bytes: number): void {
    this.#namespaces.written(namespace, bytes);
  }

  /**
   * The reply to the handshake of a new session arrives here too, as that of createSession. Its
   * size counts nowhere, as in ZooKeeper.
   */
  replied(_cnxn: CnxnId, opCode: number, _errorCode: number, latencyMs: Millis, bytes: number, write: boolean): void {
    this.#packetsSent++;
    if (opCode !== OpCode.createSession) {
      const size = bytes - lengthPrefixBytes;
      this.#countSent(size);
      if (isAuthRequest(opCode)) return;
      if (opCode !== OpCode.ping) this.#responseBytes += size;
    }
    this.#latency.add(latencyMs);
    if (write) this.#updateLatency.add(latencyMs);
    else this.#readLatency.add(latencyMs);
  }

  watchesFired(eventType: number, count: number): void {
    const name = watchSummaries[eventType];
    if (name !== undefined) this.#sum(name, count);
  }

  eventSent(_cnxn: CnxnId, bytes: number): void {
    const size = bytes - lengthPrefixBytes;
    this.#packetsSent++;
    this.#watchBytes += size;
    this.#countSent(size);
  }

  #countSent(size: number): void {
    this.#lastResponseSize = size;
    this.#responseSize.add(size);
  }

  sessionOpened(): void {}

  localSessionOpened(): void {}

  sessionUpgraded(_session: SessionId, _timeoutMs: Millis): void {}

  ephemeralRefused(_session: SessionId): void {}

  localSessionClosed(_session: SessionId, expired: boolean, _timeoutMs: Millis, _context: CnxnContext | undefined): void {
    if (expired) this.#count('stale_sessions_expired');
  }

  sessionAccepted(_session: SessionId, _timeoutMs: Millis, _context: CnxnContext, _isNew: boolean): void {}

  sessionClosed(_session: SessionId, expired: boolean, _timeoutMs: Millis, _context: CnxnContext | undefined): void {
    if (expired) this.#count('stale_sessions_expired');
  }

  /**
   * The reply to the client is a packet. It has no latency in ZooKeeper, which measures only
   * requests.
   */
  sessionRevalidated(_session: SessionId, _accepted: boolean, _context: CnxnContext): void {
    this.#packetsSent++;
    this.#count('connection_revalidate_count');
  }

  sessionValidated(): void {
    this.#count('revalidate_count');
  }

  roleChanged(role: ReturnType<Inspector['role']>): void {
    this.#proposals.role = role;
    if (role === 'looking') this.#count('looking_count');
    if (role === 'leader') this.#proposals.resetSizes();
  }

  readOnlyEnded(): void {}

  elected(_leader: Sid, lookedMs: Millis): void {
    this.#sum('election_time', Math.round(lookedMs));
  }

  leaderAppointed(_leader: Sid): void {}

  epochStarted(_epoch: number, _historyEnd: Zxid): void {}

  roleEnded(reason: RoleEndReason, _text: string): void {
    if (reason === 'disloyal voter') this.#count('quit_leading_due_to_disloyal_voter');
  }

  txnDurable(): void {}

  historyReplaced(): void {}

  stepYielded(): void {}

  jobBegan(): void {}

  jobEnded(): void {}

  longWriteQueued(): void {}

  learnerSyncStarted(by: 'diff' | 'trunc' | 'snap', _from: 'memory' | 'log' | 'tree', snapshotsUnderWay: number): void {
    this.#count(by === 'snap' ? 'snap_count' : 'diff_count');
    if (by === 'snap') this.#sum('inflight_snap_count', snapshotsUnderWay);
  }

  notice(notice: Notice): void {
    if (notice.kind === 'digestMismatch') this.#count('digest_mismatches_count');
    else if (notice.kind === 'transferEnded')
      this.#count(notice.outcome === 'handed over' ? 'leader_transfers' : 'leader_transfers_abandoned');
  }

  // --- Member

  /**
   * Clients are served again, so many milliseconds after they were last served and after a leader
   * was found.
   */
  servingStarted(role: 'leader' | 'follower' | 'observer', unavailableMs: Millis, syncMs: Millis): void {
    this.#sum('unavailable_time', Math.round(unavailableMs));
    if (role === 'leader') this.#sum('leader_unavailable_time', Math.round(unavailableMs));
    else this.#sum(`${role}_sync_time`, Math.round(syncMs));
  }

  /**
   * A learner has received a txn and hands it to the log. `ageMs` is the time since the txn's time
   * on the wall clock.
   */
  txnReceived(ageMs: Millis): void {
    this.#proposed++;
    this.#proposals.received(ageMs);
  }

  /** A txn is durable in the log of a leader or a follower. */
  txnLogged(ageMs: Millis): void {
    this.#proposals.logged(ageMs);
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

  /** A sync of the log has succeeded. TxnLogSink has this call and the next. */
  synced(durationMs: Millis): void {
    this.#sum('fsynctime', Math.round(durationMs));
  }

  flushed({ txns, queued, flushMs, arrivals }: FlushedBatch): void {
    this.#sum('sync_processor_batch_size', txns);
    this.#sum('sync_processor_queue_size', queued);
    this.#sum('sync_processor_queue_flush_time_ms', Math.round(flushMs));
    const queueTime = this.#summaries.get('sync_processor_queue_time_ms')!;
    const wholeTime = this.#summaries.get('sync_processor_queue_and_flush_time_ms')!;
    for (const arrival of arrivals) {
      queueTime.addAll(Math.round(arrival.waitedMs), arrival.txns);
      wholeTime.addAll(Math.round(arrival.waitedMs + flushMs), arrival.txns);
    }
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

  proposalSizes(): ProposalSizes {
    return this.#proposals.sizes();
  }

  *entries(sources: MetricSources): MetricEntries {
    const gauges = this.#gauges(sources);
    if (this.#admittedAtOnce > 0) this.#throttleQueueTime.addAll(0, this.#admittedAtOnce);
    this.#admittedAtOnce = 0;
    const counters: Record<string, number> = {
      ...this.#counters,
      bytes_received_count: this.#bytesReceived,
      response_bytes: this.#responseBytes,
      prep_processor_request_queued: this.#admitted,
      sync_processor_request_queued: this.#proposed,
      outstanding_changes_queued: this.#changesQueued,
      outstanding_changes_removed: this.#changesRemoved,
      watch_bytes: this.#watchBytes,
      ...this.#proposals.counters(),
    };
    for (const { name, kind, state } of metricTable) {
      if (state === 'absent') continue;
      switch (kind) {
        case 'gauge':
        case 'double gauge':
          // A gauge without a meaning for this server is not printed.
          if (gauges[name] !== undefined) yield [name, { value: gauges[name], isDouble: kind === 'double gauge' }];
          break;
        case 'counter':
          yield [name, whole(counters[name]!)];
          break;
        case 'summary':
        case 'advanced summary':
          yield* summaryEntries(name, this.#summaries.get(name)!);
          break;
        case 'gauge set':
        case 'counter set':
        case 'summary set':
        case 'advanced summary set':
          yield* this.#namespaces.entries(name, sources.inspect);
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
    this.#admitted = this.#admittedAtOnce = this.#proposed = this.#authFailed = 0;
    this.#changesQueued = this.#changesRemoved = this.#watchBytes = 0;
    this.#proposals.reset();
    this.#latency.reset();
    this.#responseSize.reset();
    this.#lastResponseSize = -1;
    this.#namespaces.reset();
  }

  #gauges({ inspect, facts, cnxnCount, now }: MetricSources): Record<string, number | undefined> {
    const answered = this.#responseSize.count > 0;
    const ensemble = inspect.ensemble();
    const leading = ensemble?.leading;
    const sizes = leading === undefined ? undefined : this.proposalSizes();
    return {
      quorum_size: ensemble?.voterCount,
      learners: leading?.learners,
      synced_followers: leading?.syncedFollowers,
      synced_non_voting_followers: leading?.syncedNonVotingFollowers,
      synced_observers: leading?.syncedObservers ?? ensemble?.observersOfFollower,
      pending_syncs: leading?.pendingSyncs,
      leader_uptime: leading === undefined ? undefined : Math.floor(now.elapsedMs - leading.sinceMs),
      last_proposal_size: sizes?.last,
      max_proposal_size: sizes?.max,
      min_proposal_size: sizes?.min,
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
      local_sessions: inspect.localSessionCount(),
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

  #plain(name: string): Summary {
    const summary = new Summary();
    this.#summaries.set(name, summary);
    return summary;
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

/**
 * Requests about the connection and not about znodes: ZooKeeper answers and counts them apart from
 * all others.
 */
function isAuthRequest(opCode: number): boolean {
  return opCode === OpCode.auth || opCode === OpCode.sasl;
}
