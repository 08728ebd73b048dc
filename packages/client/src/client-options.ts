/** The options and types of the client's calls. */
import type { Acl } from '@tskeeper/protocol';
import type { CreateExtras } from './calls/create.ts';
import type { ParentMode } from './calls/parents.ts';
import type { CreateSettings } from './operations/create.ts';
import type { ReconfigSettings } from './operations/single.ts';
import type { CallOptions } from './calls/call-options.ts';
import type { EndReason } from './session/session-end.ts';
import type { ConnectFailure, NodeEvent, SessionEvent, WatchListener } from './watched-event.ts';

/**
 * The state of a client.
 *
 * - `connecting`: the client looks for a server, and the ensemble does not know a session of it
 *   yet. Calls wait. A client of `createClient` starts in this state (with a saved `session` it
 *   starts as `suspended`); `connect` never returns a client in it. A client that was only
 *   connected to read-only servers returns to it when it loses them.
 * - `connected`: the client works.
 * - `connectedReadOnly`: connected to a server that has lost its quorum; the server answers reads
 *   and rejects writes with NotReadOnly. Only with the option `readOnly`.
 * - `suspended`: the connection is lost, and the client looks for another server. The session and
 *   its ephemerals may still exist; only a server knows (`sessionRemainingMs` says for how long
 *   that is likely). Calls wait.
 * - `expired`, `authFailed`, `closed`, `moved`: the client has ended, for this reason
 *   (`EndReason`). It rejects every call, and the state is final: connect again.
 */
export type ClientState = 'connecting' | 'connected' | 'connectedReadOnly' | 'suspended' | EndReason;

/** An option of reads that can set a watch. */
export interface WatchOption {
  /**
   * Receives the next change, once, and each change of the session's state until then. `true` also
   * sets the watch on the server; `client.on('event', ...)` delivers its event. Default: no watch.
   */
  readonly watch?: WatchListener | true | undefined;
}

/** An option of writes that can be conditional. */
export interface VersionOption {
  /** The version that the znode must have. Default: -1, any version. */
  readonly version?: number | undefined;
}

/** The options of `create`. */
export type CreateOptions = CreateSettings & CreateExtras & CallOptions;
/** The options of a conditional write. */
export interface VersionOptions extends VersionOption, CallOptions {}
/** The options of `setData`. */
export interface SetDataOptions extends VersionOptions {
  /**
   * Declares that only the resulting state counts, not which client wrote it: after a lost answer
   * the client repeats the call, by `retry` or its defaults. With a `version`, a repetition that
   * fails with BadVersion succeeds if the znode has these data at the next version, whichever
   * client wrote them. Without a `version`, the repetition may overwrite what another client has
   * written in between. Default: false.
   */
  readonly idempotent?: boolean | undefined;
}
/** The options of `delete`. */
export interface DeleteOptions extends VersionOptions {
  /**
   * Declares that only the resulting state counts, not which client caused it: after a lost answer
   * the client repeats the call, by `retry` or its defaults, and NoNode is then a success. Without
   * a `version`, the repetition may delete what another client has created in between. Default:
   * false.
   */
  readonly idempotent?: boolean | undefined;
  /**
   * Continues in the background if the delete could not be sent, was not answered, or was rejected
   * temporarily (ThrottledOp, NotReadOnly), until the znode is gone, a server rejects the delete
   * for good, or the session ends; the call itself rejects and says so. BadVersion is final: with a
   * `version` only the znode that the caller has seen is deleted. Without a `version` a late
   * repetition deletes whatever then has that path, so omit it only for names that are never
   * reused, such as those of sequential znodes. The signal also ends the background work if it
   * fires before the call settles; a time-out does not. Default: false.
   */
  readonly guaranteed?: boolean | undefined;
}
/** The options of `ensurePath`. */
export interface EnsurePathOptions extends CallOptions {
  /**
   * Mode of the znodes that the call creates; existing ones do not change. Default: `persistent`.
   */
  readonly mode?: ParentMode | undefined;
  /** ACL of the znodes that the call creates. Default: every client may do everything. */
  readonly acl?: readonly Acl[] | undefined;
}
/** The options of `update`. */
export interface UpdateOptions extends CallOptions {
  /**
   * Creates the znode if it does not exist: `true` for a persistent one, or its settings. Default:
   * false; the call then fails with NoNode.
   */
  readonly create?: boolean | CreateSettings | undefined;
  /**
   * After a lost answer to the write: whether the call succeeds if it finds the data that it tried
   * to write, whichever client wrote them. Default: false.
   */
  readonly idempotent?: boolean | undefined;
}
/** The options of `children` and `getChildrenWithData`. */
export interface ChildrenOptions extends ReadOptions {
  /**
   * How many children one answer of the server has at most; it may have fewer. Default: 1000.
   */
  readonly pageSize?: number | undefined;
  /** Whether to read data and Stat of each child too. Default: false. */
  readonly data?: boolean | undefined;
}
/** The options of `walk`. */
export interface WalkOptions extends CallOptions {
  /** Maximum number of pending requests. Default: 16. */
  readonly concurrency?: number | undefined;
  /** Whether to read the data too. Default: false. */
  readonly data?: boolean | undefined;
}
/** An option of reads. */
export interface LinearizableOption {
  /**
   * The read sees every write that was acknowledged to any client before the call. Otherwise the
   * connected server answers a read from its own state, which may lag. Default: false.
   *
   * The client sends a `sync` and then the read, without waiting in between: the cost is one round
   * trip from that server to the leader, and from the leader to a quorum. A leader of tskeeper
   * answers after a quorum has confirmed that it still leads, so the read is linearizable. A leader
   * of Apache ZooKeeper does not ask a quorum: one that was cut off and does not know it yet still
   * answers, for up to syncLimit ticks, and during that time the read may be stale. Fails as the
   * read does, and as `sync` does; then no watch is set.
   */
  readonly linearizable?: boolean | undefined;
}

/** The options of a read that sets no watch. */
export interface PlainReadOptions extends LinearizableOption, CallOptions {}
/** The options of a read that can set a watch. */
export interface ReadOptions extends WatchOption, PlainReadOptions {}

/** The options of `addWatch`. */
export interface AddWatchOptions extends CallOptions {
  /**
   * `persistent` delivers events of the znode, and creates and deletes of its children;
   * `persistentRecursive` delivers events of the znode and everything below it, and never
   * NodeChildrenChanged. Default: `persistent`.
   */
  readonly mode?: 'persistent' | 'persistentRecursive' | undefined;
  /** As in `ReadOptions`, but receives events until the watch is removed. */
  readonly watch: WatchListener | true;
}

/** The options of `removeWatches`. */
export interface RemoveWatchesOptions extends CallOptions {
  /**
   * Which kind of watches to remove. Default: `any`. Servers before ZooKeeper 3.9 know only
   * `children`, `data` and `any`.
   */
  readonly type?: 'children' | 'data' | 'any' | 'persistent' | 'persistentRecursive' | undefined;
  /** The listener to remove. Default: all listeners. */
  readonly watch?: WatchListener | true | undefined;
  /**
   * Removes the watch in the client even if no server can be reached; the client then does not set
   * it again after the reconnect. Default: false.
   */
  readonly local?: boolean | undefined;
}

/** The options of `reconfig`. */
export type ReconfigOptions = ReconfigSettings & CallOptions;

/** The options of `transferLeader`. */
export interface TransferLeaderOptions extends CallOptions {
  /** The number of the server that is to lead. Default: the leader chooses. */
  readonly to?: number | undefined;
}

/** The events of `on`. */
export interface ClientEvents {
  /** The state has changed: ZooKeeper's default watcher. */
  readonly state: SessionEvent;
  /** A server has reported a change, for any watch. */
  readonly event: NodeEvent;
  /**
   * An attempt to connect has failed. A command line can print each one while it waits:
   *
   *     const zk = createClient(servers);
   *     zk.on('connectFailed', ({ server, reason }) => console.error(`${server}: ${reason}`));
   *     await zk.ready();
   */
  readonly connectFailed: ConnectFailure;
}
