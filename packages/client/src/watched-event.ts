/** What a watch is told, in ZooKeeper's words (Watcher.Event). */

/** What happened to a znode. */
export type ChangeType = 'NodeCreated' | 'NodeDeleted' | 'NodeDataChanged' | 'NodeChildrenChanged';

/** What happened to a znode, or to a watch: the last three say that a watch was taken away by `removeWatches`. */
export type NodeEventType = ChangeType | 'DataWatchRemoved' | 'ChildWatchRemoved' | 'PersistentWatchRemoved';

/**
 * How things stand between the client and the ensemble.
 * - `SyncConnected`, `ConnectedReadOnly`: connected, to a server that is part of a quorum, or to one that is not.
 * - `Disconnected`: the connection is lost; the session lives on, and the client looks for another server.
 * - `Expired`, `AuthFailed`, `Closed`: the end. The ensemble has ended the session, has refused the credentials, or `close` was called.
 */
export type KeeperState = 'SyncConnected' | 'ConnectedReadOnly' | 'Disconnected' | 'Expired' | 'AuthFailed' | 'Closed';

/** A server has told of a change, or a watch was taken away. */
export interface NodeEvent {
  /** What has happened. */
  readonly type: NodeEventType;
  /** `SyncConnected`, always: who is told is connected. */
  readonly state: KeeperState;
  /** The znode, without the chroot. */
  readonly path: string;
  /**
   * The txn that changed the znode. undefined when the server does not say: before ZooKeeper 3.9, and for what changed while the client
   * was not connected.
   */
  readonly zxid: bigint | undefined;
}

/** The state has changed. Every watch hears of it, and stays: what happens to its znode while disconnected is told after the reconnect. */
export interface SessionEvent {
  readonly type: 'None';
  /** How things stand from here on. */
  readonly state: KeeperState;
  readonly path: null;
  readonly zxid: undefined;
  /** One clause that says why, for people: `10.0.0.1:2181: the connection was closed`. */
  readonly reason: string | undefined;
}

/**
 * An attempt to connect has failed, before the first connection or after the loss of one. The client goes on: with the next address of the
 * server, then with the next server, after a short pause.
 */
export interface ConnectFailure {
  /** The server as the connect string names it, with the address that was dialled where that is another: `zk1:2181 at 10.0.0.1`. */
  readonly server: string;
  /** One clause that says why, for people: `it could not be connected to: ECONNREFUSED`. */
  readonly reason: string;
  /** How many attempts have failed since the client was connected, or was created: 1 for the first. */
  readonly attempt: number;
}

/** What a listener is told; `type` tells the two apart. */
export type WatchedEvent = NodeEvent | SessionEvent;

/**
 * Called once per event, behind whatever was answered earlier and ahead of whatever was answered later. An exception it throws is the
 * program's own, and ends up as an unhandled rejection.
 */
export type WatchListener = (event: WatchedEvent) => void;
