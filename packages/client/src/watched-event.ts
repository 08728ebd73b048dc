/** The events that watches deliver, with ZooKeeper's names (Watcher.Event). */

/** What happened to a znode. */
export type ChangeType = 'NodeCreated' | 'NodeDeleted' | 'NodeDataChanged' | 'NodeChildrenChanged';

/**
 * What happened to a znode or a watch: the last three say that `removeWatches` has removed a watch.
 */
export type NodeEventType = ChangeType | 'DataWatchRemoved' | 'ChildWatchRemoved' | 'PersistentWatchRemoved';

/**
 * The state of the client's connection and session.
 *
 * - `SyncConnected`, `ConnectedReadOnly`: connected to a server that is part of a quorum, or to one
 *   that is not.
 * - `Disconnected`: the connection is lost; the session continues, and the client looks for another
 *   server.
 * - `Expired`, `AuthFailed`, `Closed`: final. The ensemble has expired the session, a server has
 *   rejected the credentials, or the client was closed.
 */
export type KeeperState = 'SyncConnected' | 'ConnectedReadOnly' | 'Disconnected' | 'Expired' | 'AuthFailed' | 'Closed';

/** A server has reported a change, or a watch was removed. */
export interface NodeEvent {
  /** What happened. */
  readonly type: NodeEventType;
  /** Always `SyncConnected`: events arrive only on a connection. */
  readonly state: KeeperState;
  /** The znode, without the chroot. */
  readonly path: string;
  /**
   * The txn that changed the znode. undefined if the server does not send it: before ZooKeeper 3.9,
   * and for changes made while the client was not connected.
   */
  readonly zxid: bigint | undefined;
}

/**
 * The state has changed. Every watch receives this and stays registered: changes made while
 * disconnected are delivered after the reconnect.
 */
export interface SessionEvent {
  readonly type: 'None';
  /** The new state. */
  readonly state: KeeperState;
  readonly path: null;
  readonly zxid: undefined;
  /** One readable clause with the reason: `10.0.0.1:2181: the connection was closed`. */
  readonly reason: string | undefined;
}

/**
 * An attempt to connect has failed, before the first connection or after the loss of one. The
 * client continues with the next address of the server, then with the next server after a short
 * pause.
 */
export interface ConnectFailure {
  /**
   * The server as the connect string names it, with the dialled address if that is different:
   * `zk1:2181 at 10.0.0.1`.
   */
  readonly server: string;
  /** One readable clause with the reason: `connection failed: ECONNREFUSED`. */
  readonly reason: string;
  /**
   * Number of failed attempts since the client was last connected, or was created: 1 for the first.
   */
  readonly attempt: number;
}

/** The event that a listener receives; `type` distinguishes the two. */
export type WatchedEvent = NodeEvent | SessionEvent;

/**
 * Called once per event, after all earlier answers and before all later ones. An exception in a
 * listener becomes an unhandled rejection of the program.
 */
export type WatchListener = (event: WatchedEvent) => void;
