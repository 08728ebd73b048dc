/** What the calls of the client take and give. */
import type { Acl } from '@tskeeper/protocol';
import type { CreateExtras } from './calls/create.ts';
import type { ParentMode } from './calls/parents.ts';
import type { CreateSettings } from './operations/create.ts';
import type { ReconfigSettings } from './operations/single.ts';
import type { CallOptions } from './session/operation.ts';
import type { EndReason } from './session/session-machine.ts';
import type { ConnectFailure, NodeEvent, SessionEvent, WatchListener } from './watched-event.ts';

/**
 * How things stand with a client, in one word.
 * - `connecting`: looking for a server, and there is no session yet that the ensemble would know. Calls wait. A client of `createClient` begins so (unless
 *   it takes a session up: then it begins `suspended`); `connect` gives out no such client; one that has only been connected to read-only servers
 *   becomes so when it loses them.
 * - `connected`: at work.
 * - `connectedReadOnly`: with a server that has lost its quorum; reads are answered, writes fail with NotReadOnly. Only with the option `readOnly`.
 * - `suspended`: the connection is lost, and the client looks for another. The session may live, and so may its ephemerals; only a server
 *   can tell (`sessionLeftMs` says for how long it is likely). Calls wait.
 * - `expired`, `authFailed`, `closed`, `moved`: over, and why (`EndReason`). Every call is refused, and nothing leads back: connect anew.
 */
export type ClientState = 'connecting' | 'connected' | 'connectedReadOnly' | 'suspended' | EndReason;

/** Of a read that can set a watch. */
export interface WatchOption {
  /**
   * Told once of the next change, and of each change of the session's state until then. `true` sets the watch on the server all the same;
   * its event is heard by `client.on('event', ...)`. Default: no watch.
   */
  readonly watch?: WatchListener | true | undefined;
}

/** Of a write that can be conditional. */
export interface VersionOption {
  /** The version the znode must have; -1, the default, for any. */
  readonly version?: number | undefined;
}

/** What `create` can be asked for besides path and data. */
export type CreateOptions = CreateSettings & CreateExtras & CallOptions;
/** What a conditional write can be asked for. */
export interface VersionOptions extends VersionOption, CallOptions {}
/** What `setData` can be asked for. */
export interface SetDataOptions extends VersionOptions {
  /**
   * Means the state, not the act: when no answer comes the call is made again, by `retry` or its defaults. With a `version`, BadVersion is then
   * success if the znode has these data at the version that follows, whoever has written them. Without one, the repetition may overwrite what
   * another has written in between. Default: false.
   */
  readonly idempotent?: boolean | undefined;
}
/** What `delete` can be asked for. */
export interface DeleteOptions extends VersionOptions {
  /**
   * Means the state, not the act: when no answer comes the call is made again, by `retry` or its defaults, and NoNode is then success. Without a
   * `version`, the repetition may delete what another has made in between. Default: false.
   */
  readonly idempotent?: boolean | undefined;
  /**
   * Goes on in the background when the delete could not be sent, was not answered, or not taken just now (ThrottledOp, NotReadOnly), until the znode is gone, a server
   * refuses, or the session ends; the call itself rejects and says so. BadVersion is a refusal: with a `version` only what the caller has seen is deleted. Without one
   * a late repetition deletes whatever has that path by then, so leave it out for names that are used once only, as those of sequential znodes. The
   * signal ends the background as well, if it comes before the call is settled; a time-out does not. Default: false.
   */
  readonly guaranteed?: boolean | undefined;
}
/** What `ensurePath` can be asked for. */
export interface EnsurePathOptions extends CallOptions {
  /** Of what is made; what is there stays as it is. Default: `persistent`. */
  readonly mode?: ParentMode | undefined;
  /** Default: everyone may do everything. */
  readonly acl?: readonly Acl[] | undefined;
}
/** What `update` can be asked for. */
export interface UpdateOptions extends CallOptions {
  /** Makes the znode if it is absent: `true` for a persistent one, or how. Default: false; absence is NoNode. */
  readonly create?: boolean | CreateSettings | undefined;
  /** When no answer came to the write: whether finding the data that were to be written, whoever wrote them, is success. Default: false. */
  readonly idempotent?: boolean | undefined;
}
/** What `walk` can be asked for. */
export interface WalkOptions extends CallOptions {
  /** Requests under way at most. Default: 16. */
  readonly concurrency?: number | undefined;
  /** Whether to read the data as well. Default: false. */
  readonly data?: boolean | undefined;
}
/** Of a read. */
export interface LinearizableOption {
  /**
   * Asks for everything that was acknowledged, to anybody, before this call was made. A read is otherwise answered by the server it is sent
   * to out of what that has by then, which may lag. Default: false.
   *
   * The client sends a `sync` and the read behind it, without waiting in between: the price is one round trip of that server to the
   * leader, and of the leader to a quorum, instead of none. A leader of tskeeper answers once a quorum has confirmed that it still leads, so the
   * read is linearizable. A leader of Apache ZooKeeper does not ask: one that was cut off, and does not know it yet, answers for up to syncLimit
   * ticks, and for as long the read may be one of the past. Fails as the read does, and as `sync` does; then no watch is set.
   */
  readonly linearizable?: boolean | undefined;
}

/** Of a read that sets no watch. */
export interface PlainReadOptions extends LinearizableOption, CallOptions {}
/** What a read that can set a watch can be asked for. */
export interface ReadOptions extends WatchOption, PlainReadOptions {}

/** What `addWatch` can be asked for. */
export interface AddWatchOptions extends CallOptions {
  /**
   * `persistent` hears of the znode and of its children coming and going; `persistentRecursive` of the znode and of everything below it,
   * and never of NodeChildrenChanged. Default: `persistent`.
   */
  readonly mode?: 'persistent' | 'persistentRecursive' | undefined;
  /** As in `ReadOptions`, but told until the watch is removed. */
  readonly watch: WatchListener | true;
}

/** What `removeWatches` can be asked for. */
export interface RemoveWatchesOptions extends CallOptions {
  /** Which of the path's watches. Default: `any`. Servers before ZooKeeper 3.9 know `children`, `data` and `any` only. */
  readonly type?: 'children' | 'data' | 'any' | 'persistent' | 'persistentRecursive' | undefined;
  /** The one to remove; default: all of them. */
  readonly watch?: WatchListener | true | undefined;
  /** Remove it here even when no server can be reached: it is then not set anew after the reconnect. Default: false. */
  readonly local?: boolean | undefined;
}

/** What `reconfig` can be asked for. */
export type ReconfigOptions = ReconfigSettings & CallOptions;

/** What `on` can listen to. */
export interface ClientEvents {
  /** The state has changed: ZooKeeper's default watcher. */
  readonly state: SessionEvent;
  /** A server has told of a change, whichever watch asked for it. */
  readonly event: NodeEvent;
  /**
   * An attempt to connect has failed: a sign of life while the client looks for a server. A command line can show each one while it waits:
   * `const zk = createClient(servers); zk.on('connectFailed', ({ server, reason }) => console.error(`${server}: ${reason}`)); await zk.connected();`
   */
  readonly connectFailed: ConnectFailure;
}
