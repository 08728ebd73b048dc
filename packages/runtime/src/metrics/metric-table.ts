/**
 * Every metric of ZooKeeper 3.9, and its state here. docs/reference/metrics.md shows this table,
 * and a test compares the two.
 *
 * - measured: counted or read here, with ZooKeeper's meaning.
 * - zero: printed, and 0 because what it counts cannot happen on this server; `why` says what it
 *   needs.
 * - absent: not printed; `why` says what the number would describe.
 */
export type MetricKind =
  /** One number, read on request. */
  | 'gauge'
  /** The same, printed with a point. */
  | 'double gauge'
  /** One number that grows. */
  | 'counter'
  /** avg_, min_, max_, cnt_ and sum_ of the name. */
  | 'summary'
  /** As a summary, and p50_, p95_, p99_ and p999_. */
  | 'advanced summary'
  /** One of the kinds above for each key; prints nothing while there are no keys. */
  | 'gauge set'
  | 'counter set'
  | 'summary set'
  | 'advanced summary set';

export type MetricRow = {
  readonly name: string;
  readonly kind: MetricKind;
  readonly meaning: string;
} & ({ readonly state: 'measured' } | { readonly state: 'zero' | 'absent'; readonly why: string });

function measured(kind: MetricKind, name: string, meaning: string): MetricRow {
  return { name, kind, meaning, state: 'measured' };
}

function zero(kind: MetricKind, why: string, name: string, meaning: string): MetricRow {
  return { name, kind, meaning, state: 'zero', why };
}

function absent(kind: MetricKind, why: string, name: string, meaning: string): MetricRow {
  return { name, kind, meaning, state: 'absent', why };
}

const observerMaster = 'a follower informs its observers in the step in which it commits, which takes no time of its own';
const oneWrite = 'the output of a turn for a learner is sent in one write';
const tls = 'needs TLS';
const adminPort = 'needs the admin port';

const threads = "ZooKeeper's request threads; requests here pass from step to step without queues";
const commitProcessor = "ZooKeeper's commit processor threads";
const watchCleaner = "ZooKeeper's optional watch manager, which cleans up after closed connections on threads";
const responseCache = "ZooKeeper's cache of encoded replies; znodes are kept ready for the wire here";

export const metricTable: readonly MetricRow[] = [
  measured('double gauge', 'avg_latency', 'Milliseconds from arrival to reply, since the start or srst'),
  measured('gauge', 'max_latency', 'The longest of them'),
  measured('gauge', 'min_latency', 'The shortest of them'),
  measured('gauge', 'packets_received', 'Frames and four letter words received, since the start or srst'),
  measured('gauge', 'packets_sent', 'Replies and watch events sent, since the start or srst'),
  measured('gauge', 'num_alive_connections', 'Client connections'),
  measured('gauge', 'outstanding_requests', 'Requests admitted and not yet answered'),
  measured('gauge', 'uptime', 'Milliseconds since the server began to serve'),
  measured('gauge', 'znode_count', 'Znodes, counted as ZooKeeper does (5 in an empty tree)'),
  measured('gauge', 'watch_count', 'Watches'),
  measured('gauge', 'ephemerals_count', 'Ephemeral znodes'),
  measured('gauge', 'approximate_data_size', 'Bytes of all paths and data'),
  measured('gauge', 'global_sessions', 'Sessions that every server of the ensemble knows'),
  measured('gauge', 'local_sessions', 'Sessions that only this server knows (localSessionsEnabled)'),
  measured('gauge', 'open_file_descriptor_count', 'Open files of the process; -1 where the system does not say'),
  measured('gauge', 'max_file_descriptor_count', 'How many there may be; -1 where the system does not say'),
  measured('double gauge', 'connection_drop_probability', 'Chance that the connection throttle refuses a new session'),
  measured('gauge', 'last_client_response_size', 'Bytes of the last reply or watch event; -1 before the first'),
  measured('gauge', 'max_client_response_size', 'Bytes of the largest of them; -1 before the first'),
  measured('gauge', 'min_client_response_size', 'Bytes of the smallest of them; -1 before the first'),
  zero('gauge', tls, 'outstanding_tls_handshake', 'TLS handshakes under way'),
  measured('gauge', 'auth_failed_count', 'Credentials refused'),
  zero('gauge', tls, 'non_mtls_remote_conn_count', 'Connections from other hosts without a client certificate, on a TLS port'),
  zero('gauge', tls, 'non_mtls_local_conn_count', 'The same, from this host'),

  measured('gauge', 'quorum_size', 'Servers that vote; in an ensemble'),
  measured('gauge', 'learners', 'Servers that have introduced themselves to this leader'),
  measured('gauge', 'synced_followers', 'Followers that receive each proposal; of a leader'),
  measured('gauge', 'synced_non_voting_followers', 'Those of them that may not vote; of a leader'),
  measured('gauge', 'synced_observers', 'Observers that receive each commit; of a leader, or of a follower with observerMasterPort'),
  measured('gauge', 'pending_syncs', 'sync requests that wait; of a leader'),
  measured('gauge', 'leader_uptime', 'Milliseconds as a leader that serves'),
  measured('gauge', 'last_proposal_size', 'Bytes of the last proposal of this leader; -1 before the first'),
  measured('gauge', 'max_proposal_size', 'Bytes of the largest of them; -1 before the first'),
  measured('gauge', 'min_proposal_size', 'Bytes of the smallest of them; -1 before the first'),

  measured(
    'gauge set',
    'quota_count_limit_per_namespace',
    'Znodes that the quotas of a namespace allow; one that does not say counts as -1',
  ),
  measured('gauge set', 'quota_bytes_limit_per_namespace', 'The same for bytes'),
  measured('gauge set', 'quota_count_usage_per_namespace', 'Znodes under the quotas of a namespace'),
  measured('gauge set', 'quota_bytes_usage_per_namespace', 'The same for bytes'),
  measured('counter set', 'quota_exceeded_error_per_namespace', 'Writes refused by a hard limit of a quota'),

  measured('counter', 'snapshot_error_count', 'Snapshots that failed'),
  zero('counter', adminPort, 'snapshot_rate_limited_count', 'Snapshot commands refused because they arrived too soon'),
  zero('counter', adminPort, 'restore_error_count', 'Restore commands that failed'),
  zero('counter', adminPort, 'restore_rate_limited_count', 'Restore commands refused because they arrived too soon'),
  measured('counter', 'looking_count', 'Elections entered'),
  measured('counter', 'diff_count', 'Learners brought up to date by a DIFF or a TRUNC'),
  measured('counter', 'snap_count', 'Learners brought up to date by a SNAP'),
  measured('counter', 'commit_count', 'Commits of a leader'),
  measured('counter', 'connection_request_count', 'ConnectRequests received'),
  measured('counter', 'connections_shed', 'Ours: connections closed so that their clients connect elsewhere'),
  measured('counter', 'connection_rejected', 'Connections refused: too many of them, too little memory, or the connection throttle'),
  measured('counter', 'bytes_received_count', 'Bytes of frames and four letter words received'),
  measured('counter', 'unrecoverable_error_count', 'Errors that end the process'),
  absent('counter', watchCleaner, 'add_dead_watcher_stall_time', 'Waiting for the cleaner'),
  absent('counter', watchCleaner, 'dead_watchers_queued', 'Handed to the cleaner'),
  absent('counter', watchCleaner, 'dead_watchers_cleared', 'Cleaned up'),
  absent('counter', responseCache, 'response_packet_cache_hits', 'Hits, getData'),
  absent('counter', responseCache, 'response_packet_cache_misses', 'Misses, getData'),
  absent('counter', responseCache, 'response_packet_get_children_cache_hits', 'Hits, getChildren'),
  absent('counter', responseCache, 'response_packet_get_children_cache_misses', 'Misses, getChildren'),
  measured('counter', 'ensemble_auth_success', 'Clients that named this ensemble'),
  measured('counter', 'ensemble_auth_fail', 'Clients that named another one, and were closed'),
  measured('counter', 'ensemble_auth_skip', 'Clients whose name was not compared'),
  measured('counter', 'prep_processor_request_queued', 'Requests admitted, new sessions among them, authentications not'),
  measured('counter', 'outstanding_changes_queued', 'Pending changes of a znode, recorded when a write is validated'),
  measured('counter', 'outstanding_changes_removed', 'Those of them that have been applied'),
  measured('counter', 'revalidate_count', 'Sessions that learners of this leader asked about, for their clients'),
  measured('counter', 'connection_drop_count', 'Connections that ended without their session being closed'),
  measured('counter', 'connection_revalidate_count', 'Sessions resumed by a new connection, or refused to it'),
  measured(
    'counter',
    'sessionless_connections_expired',
    'Connections closed because nothing was received from them, with a session or without',
  ),
  measured('counter', 'stale_sessions_expired', 'Sessions expired'),
  absent('counter', commitProcessor, 'request_commit_queued', 'Commits queued'),
  measured('counter', 'throttled_ops', 'Requests answered ThrottledOp'),
  measured('counter', 'learner_proposal_received_count', 'Proposals received by a follower that serves'),
  measured('counter', 'learner_commit_received_count', 'Commits received by a learner that serves'),
  measured('counter', 'sync_processor_request_queued', 'Txns handed to the log'),
  measured('counter', 'proposal_count', 'Proposals of a leader'),
  measured('counter', 'quit_leading_due_to_disloyal_voter', 'Leaderships given up because a voter looks for another leader'),
  measured('counter', 'stale_requests', 'Requests whose turn came after their connection had closed, and that were not dropped'),
  measured('counter', 'stale_requests_dropped', 'Those that were dropped'),
  measured('counter', 'stale_replies', 'Replies and events for closed connections'),
  measured('counter', 'request_throttle_wait_count', 'Times the next request could not be admitted'),
  measured('counter', 'large_requests_rejected', 'Connections closed because large requests took too much memory'),
  measured('counter', 'digest_mismatches_count', 'Times the tree disagreed with the digest in the log'),
  zero('counter', tls, 'unsuccessful_handshake', 'TLS handshakes that failed'),
  zero('counter', adminPort, 'insecure_admin_count', 'Admin requests without TLS'),
  zero('counter', tls, 'tls_handshake_exceeded', 'Connections refused because too many TLS handshakes were under way'),
  measured('counter', 'cnxn_closed_without_zk_server_running', 'Connections closed because the server serves no clients'),
  absent('counter', threads, 'skip_learner_request_to_next_processor_count', 'Requests that skipped a queue'),
  absent('counter', commitProcessor, 'requests_not_forwarded_to_commit_processor', 'Requests that skipped the commit processor'),
  measured('counter', 'response_bytes', 'Bytes of replies, those to pings and authentications not counted'),
  measured('counter', 'watch_bytes', 'Bytes of watch events'),

  measured('summary', 'fsynctime', 'Milliseconds of a sync of the log'),
  measured('summary', 'snapshottime', 'Milliseconds of a snapshot'),
  zero('summary', adminPort, 'restore_time', 'Milliseconds of a restore'),
  measured('summary', 'dbinittime', 'Milliseconds of loading the database'),
  measured('summary', 'follower_sync_time', 'Milliseconds from the end of an election until a follower serves'),
  measured('summary', 'observer_sync_time', 'The same of an observer'),
  measured('counter', 'leader_transfers', 'Ours: times that this leader has given the lead to another server'),
  measured('counter', 'leader_transfers_abandoned', 'Ours: times that it did not, because the other was not in step in time'),
  measured('summary', 'election_time', 'Milliseconds from looking for a leader until one is found'),
  measured('summary', 'connection_token_deficit', 'Tokens missing in the connection throttle when a ConnectRequest arrived'),
  measured('summary', 'inflight_snap_count', 'Learners that are being sent a snapshot, measured when one begins'),
  absent('summary', 'a DIFF is sent at once, or as it is read from the log; see diff_count', 'inflight_diff_count', 'DIFFs under way'),
  measured('summary', 'node_created_watch_count', 'Watches fired by a create'),
  measured('summary', 'node_deleted_watch_count', 'Watches fired by a delete'),
  measured('summary', 'node_changed_watch_count', 'Watches fired by a change of data'),
  measured('summary', 'node_children_watch_count', 'Watches fired by a change of children'),
  absent('summary', threads, 'prep_processor_queue_size', 'Requests queued'),
  measured('summary', 'prep_process_time', 'Milliseconds of validating a write; 0 unless it took more than one turn'),
  absent('summary', threads, 'proposal_process_time', 'Milliseconds in the proposal thread'),
  measured('summary', 'unavailable_time', 'Milliseconds from looking for a leader until serving'),
  measured('summary', 'leader_unavailable_time', 'The same of servers that became leader'),
  absent('summary', commitProcessor, 'requests_in_session_queue', 'Requests of a session that wait'),
  absent('summary', commitProcessor, 'pending_session_queue_size', 'Sessions that wait'),
  absent('summary', commitProcessor, 'reads_after_write_in_session_queue', 'Reads after a write'),
  absent('summary', commitProcessor, 'reads_issued_from_session_queue', 'Reads released'),
  absent('summary', commitProcessor, 'session_queues_drained', 'Queues emptied'),
  absent('summary', commitProcessor, 'time_waiting_empty_pool_in_commit_processor_read_ms', 'Waiting for reads'),
  absent('summary', commitProcessor, 'write_batch_time_in_commit_processor', 'Milliseconds of a batch of writes'),
  absent('summary', commitProcessor, 'concurrent_request_processing_in_commit_processor', 'Requests in progress'),
  absent('summary', commitProcessor, 'read_commit_proc_req_queued', 'Reads queued'),
  absent('summary', commitProcessor, 'write_commit_proc_req_queued', 'Writes queued'),
  absent('summary', commitProcessor, 'commit_commit_proc_req_queued', 'Commits queued'),
  absent('summary', commitProcessor, 'read_commit_proc_issued', 'Reads released'),
  absent('summary', commitProcessor, 'write_commit_proc_issued', 'Writes released'),
  absent('summary', commitProcessor, 'commit_process_time', 'Milliseconds of a commit'),
  measured('summary', 'startup_txns_loaded', 'Txns read from the log at start'),
  measured('summary', 'startup_txns_load_time', 'Milliseconds of reading them'),
  measured('summary', 'startup_snap_load_time', 'Milliseconds of reading the snapshot at start'),
  measured('summary', 'sync_processor_queue_size', 'Txns that waited for the log when it started the next batch'),
  absent(
    'summary',
    'a batch is written and made durable as one; see sync_processor_queue_flush_time_ms',
    'sync_process_time',
    'Milliseconds in the log thread',
  ),
  measured('summary', 'sync_processor_batch_size', 'Txns made durable by one sync'),
  absent('summary', "ZooKeeper's Netty port", 'netty_queued_buffer_capacity', 'Bytes queued'),
  absent('summary', threads, 'learner_request_processor_queue_size', 'Requests queued'),
  measured('summary', 'socket_closing_time', 'Milliseconds from closing a connection to its end'),

  measured('advanced summary', 'readlatency', 'Milliseconds from arrival to reply, reads'),
  measured('advanced summary', 'updatelatency', 'Milliseconds from arrival to reply, writes'),
  measured('advanced summary', 'propagation_latency', 'Milliseconds from the time of a txn, by the wall clock, until it is applied'),
  absent('advanced summary', watchCleaner, 'dead_watchers_cleaner_latency', 'Milliseconds of cleaning up'),
  absent('advanced summary', threads, 'prep_processor_queue_time_ms', 'Milliseconds queued'),
  measured('advanced summary', 'close_session_prep_time', 'The same as prep_process_time for the end of a session'),
  absent('advanced summary', commitProcessor, 'read_commitproc_time_ms', 'Milliseconds of reads'),
  absent('advanced summary', commitProcessor, 'write_commitproc_time_ms', 'Milliseconds of writes'),
  absent('advanced summary', commitProcessor, 'local_write_committed_time_ms', 'Milliseconds of own writes'),
  absent('advanced summary', commitProcessor, 'server_write_committed_time_ms', 'Milliseconds of all writes'),
  zero('advanced summary', observerMaster, 'om_proposal_process_time_ms', 'Milliseconds of a proposal in an observer master'),
  zero('advanced summary', observerMaster, 'om_commit_process_time_ms', 'Milliseconds of a commit in an observer master'),
  absent('advanced summary', threads, 'read_final_proc_time_ms', 'Milliseconds in the last thread, reads'),
  absent('advanced summary', threads, 'write_final_proc_time_ms', 'Milliseconds in the last thread, writes'),
  measured(
    'advanced summary',
    'proposal_latency',
    'Milliseconds from the time of a txn, by the wall clock, until a follower has received it',
  ),
  measured('advanced summary', 'proposal_ack_creation_latency', 'The same until it is durable in the log of a leader or a follower'),
  measured('advanced summary', 'commit_propagation_latency', 'The same until a learner has received its commit'),
  measured('advanced summary', 'sync_processor_queue_and_flush_time_ms', 'Milliseconds from handing a txn to the log until it is durable'),
  measured('advanced summary', 'sync_processor_queue_time_ms', 'Milliseconds from handing a txn to the log until the log starts its batch'),
  measured('advanced summary', 'sync_processor_queue_flush_time_ms', 'Milliseconds of making a batch of txns durable'),
  measured('advanced summary', 'quorum_ack_latency', 'The same until a leader has a quorum of acks'),
  measured('advanced summary', 'request_throttle_queue_time_ms', 'Milliseconds from arrival until a request is admitted'),
  absent('advanced summary', 'there is no Java virtual machine', 'jvm_pause_time_ms', 'Milliseconds of a pause'),

  measured('summary set', 'write_per_namespace', 'Bytes of path and data of a znode that was created, deleted or given data'),
  measured('summary set', 'read_per_namespace', 'Bytes of path, Stat (68) and data or names of children of a znode that was read'),
  absent('summary set', oneWrite, 'learner_handler_qp_size', 'Packets queued for a learner'),
  absent('advanced summary set', oneWrite, 'learner_handler_qp_time_ms', 'Milliseconds a packet is queued for a learner'),
  absent(
    'advanced summary set',
    'ZooKeeper measures every thousandth; see quorum_ack_latency',
    'ack_latency',
    'Milliseconds to the ack of a learner',
  ),
];
