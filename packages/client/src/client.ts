/**
 * The client: ZooKeeper's operations as methods that return promises.
 *
 * Every method bears ZooKeeper's name. A call that fails rejects with a `KeeperError` (its signal apart, which rejects with its own
 * reason), and nothing is ever thrown from an event. Paths are checked here and lengthened by the chroot; whatever comes back, errors and
 * events included, carries paths as the program knows them.
 */
import {
  type Acl,
  type AddWatchMode,
  type ClientInfo,
  ErrorCode,
  type Millis,
  OpCode,
  type Reader,
  operations,
  pathFault,
  readCreate2Reply,
  type SessionId,
  systemPath,
  WatcherType,
} from '@tskeeper/protocol';
import { Bounds, type Limits } from './calls/bounds.ts';
import { type CreateExtras, createWithExtras, hasExtras } from './calls/create.ts';
import { deleteRecursive, type DeleteRecursiveResult } from './calls/delete-recursive.ts';
import { deleteGuaranteed } from './calls/guaranteed-delete.ts';
import { deleteIdempotently, setDataIdempotently } from './calls/idempotent.ts';
import { ensurePaths, type ParentMode, type Parents } from './calls/parents.ts';
import { refusalOfStep, Retries } from './calls/retries.ts';
import { fullPolicy, type FullRetryPolicy, type RetryPolicy } from './calls/retry-policy.ts';
import { update, type Updater } from './calls/update.ts';
import { checkConcurrency, walk, type WalkedZnode } from './calls/walk.ts';
import { ancestorsOf, parentOf } from './calls/znodes.ts';
import { Chroot } from './chroot.ts';
import { formatServer, parseServerList } from './connect-string.ts';
import { KeeperError, Refusal } from './keeper-error.ts';
import { checkCreatePath, checkPath, type CreateSettings, createForm, type Data, isSequential, toBytes } from './operations/create.ts';
import {
  copyOf,
  multiOperation,
  multiReadOperation,
  type ReadOp,
  type ReadResults,
  type WriteOp,
  type WriteResults,
} from './operations/multi.ts';
import type { CallOptions, Operation } from './session/operation.ts';
import type { Session } from './session/session.ts';
import type { EndReason } from './session/session-machine.ts';
import { type Stat, toStat } from './stat.ts';
import type { ServerAddress } from './transport.ts';
import type { NodeEvent, NodeEventType, SessionEvent, WatchListener } from './watched-event.ts';
import { type RecursiveWatchLoopEvent, WatchLoop, type WatchLoopOptions } from './watches/watch-loop.ts';
import { addWatchOperation, removeWatchesOperation } from './watches/watch-operations.ts';
import type { WatchKind, Watcher } from './watches/watch-table.ts';

/**
 * How things stand with a client, in one word.
 * - `connecting`: looking for a server, and there is no session yet that the ensemble would know. `connect` gives out no such client; one that has had
 *   to do with read-only servers only becomes so when it loses them.
 * - `connected`: at work.
 * - `connectedReadOnly`: with a server that has lost its quorum; reads are answered, writes fail with NotReadOnly. Only with the option `readOnly`.
 * - `suspended`: the connection is lost, and the client looks for another. The session may live, and so may its ephemerals; only a server
 *   can tell. Calls wait.
 * - `expired`, `authFailed`, `closed`, `moved`: over, and why (`EndReason`). Every call is refused, and nothing leads back: connect anew.
 */
export type ClientState = 'connecting' | 'connected' | 'connectedReadOnly' | 'suspended' | EndReason;

export interface WatchOption {
  /**
   * Told once of the next change, and of each change of the session's state until then. `true` sets the watch on the server all the same;
   * its event is heard by `client.on('event', ...)`.
   */
  readonly watch?: WatchListener | true | undefined;
}

export interface VersionOption {
  /** The version the znode must have; -1, the default, for any. */
  readonly version?: number | undefined;
}

export interface CreateOptions extends CreateSettings, CreateExtras, CallOptions {}
export interface VersionOptions extends VersionOption, CallOptions {}
export interface SetDataOptions extends VersionOptions {
  /**
   * Means the state, not the act: when no answer comes the call is made again, by `retry` or its defaults. With a `version`, BadVersion is then
   * success if the znode has these data at the version that follows, whoever has written them. Without one, the repetition may overwrite what
   * another has written in between. Default: false.
   */
  readonly idempotent?: boolean | undefined;
}
export interface DeleteOptions extends VersionOptions {
  /**
   * Means the state, not the act: when no answer comes the call is made again, by `retry` or its defaults, and NoNode is then success. Without a
   * `version`, the repetition may delete what another has made in between. Default: false.
   */
  readonly idempotent?: boolean | undefined;
  /**
   * Goes on in the background when the delete could not be sent, or was not answered, until the znode is gone, a server refuses, or the
   * session ends; the call itself rejects and says so. BadVersion is a refusal: with a `version` only what the caller has seen is deleted. Without one
   * a late repetition deletes whatever has that path by then, so leave it out for names that are used once only, as those of sequential znodes. The
   * signal ends the background as well, if it comes before the call is settled; a time-out does not. Default: false.
   */
  readonly guaranteed?: boolean | undefined;
}
export interface EnsurePathOptions extends CallOptions {
  /** Of what is made; what is there stays as it is. Default: `persistent`. */
  readonly mode?: ParentMode | undefined;
  /** Default: everyone may do everything. */
  readonly acl?: readonly Acl[] | undefined;
}
export interface UpdateOptions extends CallOptions {
  /** Makes the znode if it is absent: `true` for a persistent one, or how. Default: false; absence is NoNode. */
  readonly create?: boolean | CreateSettings | undefined;
  /** When no answer came to the write: whether finding the data that were to be written, whoever wrote them, is success. Default: false. */
  readonly idempotent?: boolean | undefined;
}
export interface WalkOptions extends CallOptions {
  /** Requests under way at most. Default: 16. */
  readonly concurrency?: number | undefined;
  /** Whether to read the data as well. Default: false. */
  readonly data?: boolean | undefined;
}
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
export interface ReadOptions extends WatchOption, PlainReadOptions {}

export interface CreateResult {
  /** As created: with its number, when the znode is sequential. */
  readonly path: string;
  readonly stat: Stat;
}
export interface GetDataResult {
  readonly data: Uint8Array | null;
  readonly stat: Stat;
}
export interface GetChildrenResult {
  /** Names, not paths, in no defined order. */
  readonly children: readonly string[];
  readonly stat: Stat;
}
export interface GetAclResult {
  readonly acl: readonly Acl[];
  readonly stat: Stat;
}

export interface AddWatchOptions extends CallOptions {
  /**
   * `persistent` hears of the znode and of its children coming and going; `persistentRecursive` of the znode and of everything below it,
   * and never of NodeChildrenChanged. Default: `persistent`.
   */
  readonly mode?: keyof typeof AddWatchMode | undefined;
  /** As in `ReadOptions`, but told until the watch is removed. */
  readonly watch: WatchListener | true;
}

export interface RemoveWatchesOptions extends CallOptions {
  /** Which of the path's watches. Default: `any`. Servers before ZooKeeper 3.9 know `children`, `data` and `any` only. */
  readonly type?: keyof typeof WatcherType | undefined;
  /** The one to remove; default: all of them. */
  readonly watch?: WatchListener | true | undefined;
  /** Remove it here even when no server can be reached: it is then not set anew after the reconnect. */
  readonly local?: boolean | undefined;
}

export interface ReconfigOptions extends CallOptions {
  /** `server.5=host:2888:3888;2181`, as in a dynamic configuration. */
  readonly joiningServers?: string | readonly string[] | undefined;
  /** Numbers of servers. */
  readonly leavingServers?: string | readonly (string | number)[] | undefined;
  /** Instead of joining and leaving: the whole new membership. */
  readonly newMembers?: string | readonly string[] | undefined;
  /** The version of the configuration this one follows; -1n, the default, for any. */
  readonly fromConfig?: bigint | undefined;
}

/** What `on` can listen to. */
export interface ClientEvents {
  /** The state has changed: ZooKeeper's default watcher. */
  readonly state: SessionEvent;
  /** A server has told of a change, whichever watch asked for it. */
  readonly event: NodeEvent;
}

/** Listens to nothing: what `watch: true` stands for. */
const unheard: WatchListener = () => {};

const watcherKinds: Readonly<Record<keyof typeof WatcherType, readonly WatchKind[]>> = {
  children: ['child'],
  data: ['data', 'exist'],
  persistent: ['persistent'],
  persistentRecursive: ['persistentRecursive'],
  any: ['data', 'exist', 'child', 'persistent', 'persistentRecursive'],
};

const removedEvent: Readonly<Record<WatchKind, NodeEventType>> = {
  data: 'DataWatchRemoved',
  exist: 'DataWatchRemoved',
  child: 'ChildWatchRemoved',
  persistent: 'PersistentWatchRemoved',
  persistentRecursive: 'PersistentWatchRemoved',
};

/**
 * A client without the end of it: what `chroot` gives. Everything below some znode, with paths of its own, on the session of the client it came
 * from; what is of the session (state, identities, server) is shared. It has no `close`, since the session is not its own.
 */
export class ClientView {
  readonly #session: Session;
  readonly #chroot: Chroot;
  readonly #requestTimeoutMs: Millis | undefined;
  readonly #retry: FullRetryPolicy | undefined;
  readonly #watchers = new WeakMap<WatchListener, Watcher>();
  readonly #stateListeners = new Set<(event: SessionEvent) => void>();
  readonly #eventListeners = new Set<(event: NodeEvent) => void>();
  #unobserve: (() => void) | undefined;

  /** Made by `connect` and by `chroot`. */
  constructor(session: Session, chroot: string, requestTimeoutMs: Millis | undefined, retry: FullRetryPolicy | undefined) {
    this.#session = session;
    this.#chroot = new Chroot(chroot);
    this.#requestTimeoutMs = requestTimeoutMs;
    this.#retry = retry;
  }

  /** For as long as somebody listens: a view that nobody uses any more leaves nothing behind on the session. */
  #observe(): () => void {
    const session = this.#session;
    return session.observe({
      state: (event) => {
        for (const listener of this.#stateListeners) session.tell(() => listener(event));
      },
      event: (type, path, zxid) => {
        if (this.#eventListeners.size === 0) return;
        const event: NodeEvent = { type, state: 'SyncConnected', path: this.#chroot.inner(path), zxid };
        for (const listener of this.#eventListeners) session.tell(() => listener(event));
      },
    });
  }

  /**
   * The tree below `path`, as if that were its root: paths go in and come out relative to it, those of events and errors as well. The session is
   * shared, time-outs and `retry` are those of this client. The znode need not exist; `ensurePath('/')` makes it. A watch is removed through
   * the view that has set it.
   */
  chroot(path: string): ClientView {
    const fault = typeof path === 'string' ? pathFault(path) : `is a string, not ${typeof path}`;
    if (fault !== undefined) throw new KeeperError('chroot', path, badArguments(`a path ${fault}`));
    const outer = this.#chroot.outer(path);
    return new ClientView(this.#session, outer === '/' ? '' : outer, this.#requestTimeoutMs, this.#retry);
  }

  // --- The session

  get state(): ClientState {
    const session = this.#session;
    if (session.endReason !== undefined) return session.endReason;
    if (session.isConnected) return session.isReadOnly ? 'connectedReadOnly' : 'connected';
    return session.isSuspended ? 'suspended' : 'connecting';
  }

  /** Why this client is over, which is its `state` then; undefined while it lives, which makes it the test for that. */
  get closedBecause(): EndReason | undefined {
    return this.#session.endReason;
  }

  get sessionId(): SessionId {
    return this.#session.id;
  }

  /** With `sessionId` what `ConnectOptions.session` needs to take the session up again. 16 bytes, to be kept secret. */
  get sessionPassword(): Uint8Array {
    return new Uint8Array(this.#session.password);
  }

  /** As the server has granted it. */
  get sessionTimeoutMs(): Millis {
    return this.#session.timeoutMs;
  }

  /** `10.0.0.1:2181`, as the list of servers names it; undefined while there is no connection. */
  get connectedTo(): string | undefined {
    return this.#session.connectedTo;
  }

  /** `host:port` of each server of the list, in the order in which they are tried in turn. Empty as long as an SRV name has not been looked up. */
  get servers(): readonly string[] {
    return this.#session.servers.map(formatServer);
  }

  /** The last txn this client has seen. No server that is behind it will be used. */
  get lastZxid(): bigint {
    return BigInt(this.#session.lastZxid);
  }

  /**
   * Listens from now on; returns a function that ends it. What a listener throws is the program's own error and becomes an unhandled
   * rejection; it never reaches the client.
   */
  on<Name extends keyof ClientEvents>(name: Name, listener: (event: ClientEvents[Name]) => void): () => void {
    const listeners = (name === 'state' ? this.#stateListeners : this.#eventListeners) as Set<typeof listener>;
    // A function of its own for each call, so that one listener given twice is told twice and taken back once.
    const own = (event: ClientEvents[Name]) => listener(event);
    listeners.add(own);
    this.#unobserve ??= this.#observe();
    return () => {
      listeners.delete(own);
      if (this.#stateListeners.size + this.#eventListeners.size > 0) return;
      this.#unobserve?.();
      this.#unobserve = undefined;
    };
  }

  /**
   * Proves an identity, on this connection and on each one that follows: `addAuth('digest', 'user:password')`. Resolves when a server has
   * accepted it, on another connection if the first is lost. A refusal (AuthFailed) ends the client, as in ZooKeeper. Time-out and signal end
   * the waiting; the identity is proved all the same.
   */
  addAuth(scheme: string, auth: Uint8Array | string, options: CallOptions = {}): Promise<void> {
    // It survives the loss of a connection by itself.
    return this.#guard('addAuth', undefined, { ...options, retry: false }, true, (limits) =>
      this.#session.authenticate({ scheme, auth: copyOfAuth(auth) }, limits),
    );
  }

  /** Who this client is to the servers: the identities of its connection. From ZooKeeper 3.7 on. */
  whoAmI(options: CallOptions = {}): Promise<readonly ClientInfo[]> {
    const { opCode, request, reply } = operations.whoAmI;
    const operation: Operation<readonly ClientInfo[]> = {
      opCode,
      write: (writer) => request.write(writer, undefined),
      read: (reader) => reply.read(reader).clientInfo,
    };
    return this.#call('whoAmI', undefined, options, () => operation, true);
  }

  // --- Znodes

  /**
   * Makes a znode. Fails with NodeExists, NoNode (no parent), NoChildrenForEphemerals, InvalidACL, NoAuth, QuotaExceeded, and with
   * Unimplemented for a TTL where the servers have no extended types.
   */
  create(path: string, data?: Data, options: CreateOptions = {}): Promise<CreateResult> {
    if (!hasExtras(options)) return this.#create(path, data, options);
    const { mode, acl, ttlMs, retry, ...extras } = options;
    const settings = { mode, acl, ttlMs };
    return this.#compound('create', path, options, (bounds) => {
      checkCreatePath(path, mode ?? 'persistent');
      return createWithExtras({
        session: this.#session,
        znodes: this,
        path,
        data,
        settings,
        extras,
        retry,
        bounds,
        retries: () => this.#repetitions(options, bounds),
        parents: (parentMode) => this.#parents(parentOf(path), { mode: parentMode, acl, retry }, bounds),
      });
    });
  }

  #create(path: string, data: Data | undefined, options: CreateSettings & CallOptions): Promise<CreateResult> {
    return this.#call('create', path, options, () => {
      checkCreatePath(path, options.mode ?? 'persistent');
      const form = createForm(this.#chroot.outer(path), data, options);
      return {
        opCode: form.opCode,
        write: (writer) => form.write(writer),
        read: (reader) => {
          const reply = readCreate2Reply(reader);
          return { path: this.#chroot.inner(reply.path), stat: toStat(reply.stat) };
        },
      };
    });
  }

  /**
   * Makes a znode and whatever is missing above it, all without data; resolves also if it was there. Fails with NoAuth, InvalidACL,
   * QuotaExceeded, and with NoChildrenForEphemerals where an ephemeral stands in the way. Under a chroot, that is made as well.
   */
  ensurePath(path: string, options: EnsurePathOptions = {}): Promise<void> {
    return this.#compound('ensurePath', path, options, (bounds) => {
      checkPath(path);
      return ensurePaths(this.#parents(path, options, bounds));
    });
  }

  #parents(path: string, { mode = 'persistent', acl, retry }: EnsurePathOptions, bounds: Bounds): Parents {
    const znodes = new ClientView(this.#session, '', this.#requestTimeoutMs, undefined);
    const outer = this.#chroot.outer(path);
    const paths = outer === '/' ? [] : [...ancestorsOf(outer), outer];
    const inner = (each: string) => this.#chroot.inner(each);
    return { znodes, inner, paths, settings: { mode, acl }, bounds, retries: this.#retries(retry, bounds) };
  }

  /** Fails with NoNode, BadVersion, NotEmpty, NoAuth (on the parent), and with BadArguments for a znode that ZooKeeper itself needs. */
  delete(path: string, options: DeleteOptions = {}): Promise<void> {
    const { version, retry, idempotent, guaranteed } = options;
    if (idempotent !== true && guaranteed !== true) return this.#delete(path, options);
    return this.#compound('delete', path, options, (bounds) => {
      const once = () =>
        idempotent === true
          ? deleteIdempotently(this, path, version, this.#repetitions(options, bounds))
          : this.#delete(path, { version, retry, ...bounds.left });
      if (guaranteed !== true) return once();
      return deleteGuaranteed(this.#session, once, (limits) => this.#delete(path, { version, retry: false, ...limits }));
    });
  }

  #delete(path: string, options: VersionOptions): Promise<void> {
    return this.#callOn('delete', path, options, (outer) => ({
      opCode: OpCode.delete,
      write: (writer) => operations.delete.request.write(writer, { path: outer, version: options.version ?? -1 }),
      read: () => undefined,
    }));
  }

  /**
   * Deletes a znode and everything below it, children first, while others may go on working there: what is gone already is passed over, and
   * where something was added it is looked again. Resolves with how many were deleted; 0 if there was none. It is not one txn: after an error, which says
   * how far it came, a part is gone. `timeoutMs` is for all of it; `requestTimeoutMs` of the client for each request. Fails with NoAuth, and with
   * BadArguments for the root and for `/zookeeper`.
   */
  deleteRecursive(path: string, options: CallOptions = {}): Promise<DeleteRecursiveResult> {
    const bounds = new Bounds(this.#session, options);
    return this.#within('deleteRecursive', path, async () => {
      checkPath(path);
      const outer = this.#chroot.outer(path);
      if (outer === '/' || outer === '/zookeeper' || outer.startsWith('/zookeeper/'))
        throw badArguments('the root and /zookeeper are needed by servers; name what is below');
      return deleteRecursive(this, path, bounds, this.#retries(options.retry, bounds));
    });
  }

  /** The znode's Stat, or null when there is none; absence is an answer, not an error. A watch is set in both cases. */
  exists(path: string, options: ReadOptions = {}): Promise<Stat | null> {
    const { watch } = options;
    return this.#readOn('exists', path, options, (outer) => ({
      opCode: OpCode.exists,
      watches: watch && { path: outer, kinds: ['data', 'exist'] },
      write: (writer) => operations.exists.request.write(writer, { path: outer, watch: watch !== undefined }),
      read: (reader) => {
        const stat = toStat(operations.exists.reply.read(reader).stat);
        this.#watch('data', outer, watch);
        return stat;
      },
      readError: (err) => {
        if (err !== ErrorCode.NoNode) return undefined;
        this.#watch('exist', outer, watch);
        return { result: null };
      },
    }));
  }

  /** Fails with NoNode and NoAuth; then no watch is set. */
  getData(path: string, options: ReadOptions = {}): Promise<GetDataResult> {
    return this.#readOn('getData', path, options, (outer) => this.#getData(outer, options.watch));
  }

  #getData(outer: string, watch: WatchListener | true | undefined): Operation<GetDataResult> {
    return {
      opCode: OpCode.getData,
      watches: watch && { path: outer, kinds: ['data'] },
      write: (writer) => operations.getData.request.write(writer, { path: outer, watch: watch !== undefined }),
      read: (reader) => {
        const { data, stat } = operations.getData.reply.read(reader);
        this.#watch('data', outer, watch);
        return { data: copyOf(data), stat: toStat(stat) };
      },
    };
  }

  /** Fails with NoNode, BadVersion, NoAuth, QuotaExceeded. */
  setData(path: string, data: Data, options: SetDataOptions = {}): Promise<Stat> {
    if (options.idempotent !== true) return this.#setData(path, data, options);
    return this.#compound('setData', path, options, (bounds) =>
      setDataIdempotently(this, path, data, options.version, this.#repetitions(options, bounds)),
    );
  }

  /**
   * Changes data by what they are: reads them, calls `updater`, and writes its result if nobody has written in between; otherwise again, for as long
   * as it takes, with pauses that grow. Resolves with the znode as it was left; undefined if it is absent and the updater left it so. What
   * `updater` throws is thrown.
   *
   * When no answer comes to the write, the znode is read again. If that shows that it was not carried out, `update` goes on. Whether it was carried out
   * cannot always be told, as when another may have written the same: then it rejects, with the outcome `unknown`; see `idempotent`.
   */
  update(path: string, updater: Updater, options: UpdateOptions = {}): Promise<GetDataResult | undefined> {
    const { create: createOption, idempotent = false, retry } = options;
    const create = createOption === true ? {} : createOption === false ? undefined : createOption;
    return this.#compound('update', path, options, async (bounds) => {
      checkPath(path);
      if (create?.mode !== undefined && isSequential(create.mode))
        throw badArguments(`a znode of mode ${create.mode} has another path each time, so update cannot find it again`);
      return update(this.#session, this, path, updater, { create, idempotent, retry }, bounds);
    });
  }

  #setData(path: string, data: Data, options: VersionOptions): Promise<Stat> {
    return this.#callOn('setData', path, options, (outer) => {
      const bytes = toBytes(data);
      return {
        opCode: OpCode.setData,
        write: (writer) => operations.setData.request.write(writer, { path: outer, data: bytes, version: options.version ?? -1 }),
        read: (reader) => toStat(operations.setData.reply.read(reader).stat),
      };
    });
  }

  /** Fails with NoNode and NoAuth; then no watch is set. */
  getChildren(path: string, options: ReadOptions = {}): Promise<GetChildrenResult> {
    const { watch } = options;
    return this.#readOn('getChildren', path, options, (outer) => ({
      opCode: OpCode.getChildren2,
      watches: watch && { path: outer, kinds: ['child'] },
      write: (writer) => operations.getChildren2.request.write(writer, { path: outer, watch: watch !== undefined }),
      read: (reader) => {
        const { children, stat } = operations.getChildren2.reply.read(reader);
        this.#watch('child', outer, watch);
        return { children, stat: toStat(stat) };
      },
    }));
  }

  /**
   * A znode and all below it, each ahead of its children, otherwise in no defined order: `for await (const { path, stat } of zk.walk('/a'))`.
   * Others may go on meanwhile: what goes is passed over, what comes may be missed. Fails with NoNode when the top is not there, and with NoAuth.
   * A slow loop slows the walk. `timeoutMs` is for all of it, the loop's own time included; `requestTimeoutMs` of the client for each request.
   */
  async *walk(path: string, options: WalkOptions = {}): AsyncGenerator<WalkedZnode, void, undefined> {
    const { concurrency = 16, data = false, retry } = options;
    const bounds = new Bounds(this.#session, options);
    try {
      checkPath(path);
      yield* walk(this, path, { concurrency: checkConcurrency(concurrency), data, retry }, bounds);
    } catch (error) {
      throw inWordsOf('walk', path, error);
    }
  }

  /** How many znodes there are below, at any depth. Fails with NoNode and NoAuth. */
  getAllChildrenNumber(path: string, options: PlainReadOptions = {}): Promise<number> {
    return this.#readOn('getAllChildrenNumber', path, options, (outer) => ({
      opCode: OpCode.getAllChildrenNumber,
      write: (writer) => operations.getAllChildrenNumber.request.write(writer, { path: outer }),
      read: (reader) => operations.getAllChildrenNumber.reply.read(reader).totalNumber,
    }));
  }

  /** Paths of this session's ephemerals that begin with a text; all of those below the chroot by default. */
  getEphemerals(prefix = '/', options: PlainReadOptions = {}): Promise<readonly string[]> {
    return this.#read('getEphemerals', prefix, options, () => {
      if (prefix !== '' && !prefix.startsWith('/')) throw badArguments('a prefix of paths begins with "/"');
      // To a server `/` stands for all. Below a chroot it must not: `/app` is no prefix to match `/apple` by.
      const outer = this.#chroot.outerPrefix(prefix === '/' ? '' : prefix);
      return {
        opCode: OpCode.getEphemerals,
        write: (writer) => operations.getEphemerals.request.write(writer, { prefixPath: outer }),
        read: (reader) => operations.getEphemerals.reply.read(reader).ephemerals.map((path) => this.#chroot.inner(path)),
      };
    });
  }

  /** Fails with NoNode, and with NoAuth unless READ or ADMIN is granted. */
  getACL(path: string, options: PlainReadOptions = {}): Promise<GetAclResult> {
    return this.#readOn('getACL', path, options, (outer) => ({
      opCode: OpCode.getACL,
      write: (writer) => operations.getACL.request.write(writer, { path: outer }),
      read: (reader) => {
        const { acl, stat } = operations.getACL.reply.read(reader);
        return { acl, stat: toStat(stat) };
      },
    }));
  }

  /** `version` is compared with `aversion`. Fails with NoNode, BadVersion, InvalidACL, NoAuth. */
  setACL(path: string, acl: readonly Acl[], options: VersionOptions = {}): Promise<Stat> {
    return this.#callOn('setACL', path, options, (outer) => ({
      opCode: OpCode.setACL,
      write: (writer) => operations.setACL.request.write(writer, { path: outer, acl, version: options.version ?? -1 }),
      read: (reader) => toStat(operations.setACL.reply.read(reader).stat),
    }));
  }

  /** Resolves when the server has caught up with what the leader had committed, so that a read made next (also without waiting) sees it. */
  sync(path = '/', options: CallOptions = {}): Promise<void> {
    return this.#callOn('sync', path, options, (outer) => syncOperation(outer), true);
  }

  // --- Many at once

  /**
   * Carries out all operations or none, in order, under one zxid. When one fails, rejects with its error; `failedIndex` says which it was
   * and `results` what became of each.
   */
  multi<const Ops extends readonly WriteOp[]>(ops: Ops, options: CallOptions = {}): Promise<WriteResults<Ops>> {
    if (ops.length === 0) return Promise.resolve([] as unknown as WriteResults<Ops>);
    return this.#call('multi', undefined, options, () => multiOperation(ops, this.#chroot));
  }

  /** Reads many znodes in one request, each for itself: what cannot be read is an error in its place, and the others are there. */
  multiRead<const Ops extends readonly ReadOp[]>(ops: Ops, options: PlainReadOptions = {}): Promise<ReadResults<Ops>> {
    if (ops.length === 0) return Promise.resolve([] as unknown as ReadResults<Ops>);
    return this.#read('multiRead', undefined, options, () => multiReadOperation(ops, this.#chroot));
  }

  // --- Watches

  /** Sets a watch that stays. A znode need not exist. Fails with nothing but a lost connection, and on servers before 3.6 with Unimplemented. */
  addWatch(path: string, options: AddWatchOptions): Promise<void> {
    const mode = options.mode ?? 'persistent';
    const add = (outer: string) => addWatchOperation(mode, outer, () => this.#watch(mode, outer, options.watch));
    return this.#callOn('addWatch', path, options, add, true);
  }

  /**
   * Loops over what happens to a znode, and with `recursive` to everything below it; it need not exist. Nothing is lost without a word: where changes
   * may be missing, at the start, after a lost connection and when the loop is too slow, a `Reread` says so. Leaving the loop removes the watch.
   * How it ends is said at `WatchLoop.next`. Throws a KeeperError, BadArguments, for what is no path.
   *
   * Rests on persistent watches, so it needs ZooKeeper 3.6. Before 3.9 a server keeps one kind of watch per path and connection, the
   * last (ZOOKEEPER-4466): with such servers, neither set nor remove other watches on the very path of a loop. A server tells nobody of what they may not READ, nor that they
   * now may.
   */
  watch(path: string, options: WatchLoopOptions & { readonly recursive: true }): WatchLoop<RecursiveWatchLoopEvent>;
  watch(path: string, options?: WatchLoopOptions): WatchLoop;
  watch(path: string, options: WatchLoopOptions = {}): WatchLoop | WatchLoop<RecursiveWatchLoopEvent> {
    return new WatchLoop(this.#session, this.#chroot, path, options);
  }

  /** Takes watches away again; each is told so (`DataWatchRemoved` ...), and loops over the path end. Fails with NoWatcher when there is none. */
  removeWatches(path: string, options: RemoveWatchesOptions = {}): Promise<void> {
    return this.#guard('removeWatches', path, options, true, async (limits) => {
      checkPath(path);
      const outer = this.#chroot.outer(path);
      const type = options.type ?? 'any';
      if (!Object.hasOwn(watcherKinds, type))
        throw new TypeError(`there is no type of watch "${type}"; types are ${Object.keys(WatcherType).join(', ')}`);
      const kinds = watcherKinds[type];
      const watcher = options.watch === undefined ? undefined : this.#watcherOf(options.watch);
      const { watches } = this.#session;
      if (watcher !== undefined && !kinds.some((kind) => watches.has(kind, outer, watcher))) {
        throw new Refusal(ErrorCode.NoWatcher, 'notSent', 'this client has set no such watch');
      }
      const take = (gone: readonly WatchKind[]) => {
        for (const kind of gone) {
          for (const each of watches.remove(kind, outer, watcher)) this.#session.tellWatcher(each, removedEvent[kind], outer, undefined);
        }
      };
      // Without a connection there is no watch on any server, and one that is gone from here is not set anew.
      const asks = options.local !== true || this.#session.isConnected;
      const types = asks ? this.#serverTypes(outer, type, watcher) : [];
      const asked = new Set(types.flatMap((each) => watcherKinds[each]));
      const unasked = kinds.filter((kind) => !asked.has(kind));
      try {
        // One by one in the order of the tables, but all under way at once. What a server has taken away goes from here in the order of its
        // answers: a watch that is set behind this call, while it is under way, stays.
        const removals = types.map((each, at) =>
          this.#removeOnServer(outer, each, limits, () =>
            take(at < types.length - 1 ? watcherKinds[each] : [...watcherKinds[each], ...unasked]),
          ),
        );
        await Promise.all(removals);
        if (types.length === 0) take(kinds);
      } catch (error) {
        if (options.local !== true || !(error instanceof Refusal) || error.errno === ErrorCode.NoWatcher) throw error;
        take(kinds);
      }
    });
  }

  /**
   * What the server has to be asked. It keeps one watch for all listeners of a path, so that watch goes only with the last of them.
   */
  #serverTypes(outer: string, type: keyof typeof WatcherType, watcher: Watcher | undefined): (keyof typeof WatcherType)[] {
    if (watcher === undefined) return [type];
    const { watches } = this.#session;
    const isNeeded = (kind: WatchKind) => watches.isNeeded(kind, outer, watcher);
    const isWatched = (kind: WatchKind) => watches.watches(kind, outer);
    if (!watcherKinds[type].some(isNeeded)) return [type];
    if (type !== 'any') return [];
    const types = ['children', 'data', 'persistent', 'persistentRecursive'] as const;
    return types.filter((each) => watcherKinds[each].some(isWatched) && !watcherKinds[each].some(isNeeded));
  }

  #removeOnServer(outer: string, type: keyof typeof WatcherType, limits: Limits, removed: () => void): Promise<void> {
    return this.#session.perform(removeWatchesOperation(type, outer, removed), limits);
  }

  // --- The ensemble

  /** The configuration of the ensemble, whatever the chroot. Empty on a standalone server. */
  getConfig(options: ReadOptions = {}): Promise<GetDataResult> {
    return this.#read('getConfig', systemPath.config, options, () => this.#getData(systemPath.config, options.watch));
  }

  /**
   * Changes the membership of the ensemble, and returns the new configuration. Fails with ReconfigDisabled, NewConfigNoQuorum,
   * ReconfigInProgress, BadVersion, BadArguments, NoAuth.
   */
  reconfig(options: ReconfigOptions): Promise<GetDataResult> {
    return this.#call('reconfig', systemPath.config, options, () => {
      const { joiningServers, leavingServers, newMembers, fromConfig = -1n } = options;
      const curConfigId = Number(fromConfig);
      if (!Number.isSafeInteger(curConfigId)) throw badArguments(`fromConfig ${fromConfig} is no version of a configuration`);
      const request = {
        joiningServers: listOf(joiningServers),
        leavingServers: listOf(leavingServers),
        newMembers: listOf(newMembers),
        curConfigId,
      };
      return {
        opCode: OpCode.reconfig,
        write: (writer) => operations.reconfig.request.write(writer, request),
        read: (reader) => {
          const { data, stat } = operations.reconfig.reply.read(reader);
          return { data: copyOf(data), stat: toStat(stat) };
        },
      };
    });
  }

  // --- How calls are made

  #watcherOf(watch: WatchListener | true): Watcher {
    const listener = watch === true ? unheard : watch;
    const known = this.#watchers.get(listener);
    if (known !== undefined) return known;
    const watcher: Watcher = { listener, chroot: this.#chroot };
    this.#watchers.set(listener, watcher);
    return watcher;
  }

  #watch(kind: WatchKind, outer: string, watch: WatchListener | true | undefined): void {
    if (watch !== undefined) this.#session.watches.add(kind, outer, this.#watcherOf(watch));
  }

  #withDefaults(options: CallOptions): Limits {
    const timeoutMs = options.timeoutMs ?? this.#requestTimeoutMs;
    return { signal: options.signal, timeoutMs };
  }

  #retries(retry: CallOptions['retry'], bounds: Bounds): Retries | undefined {
    const policy = retry === undefined ? this.#retry : fullPolicy(retry);
    return policy === undefined ? undefined : new Retries(this.#session, policy, bounds);
  }

  /** Of a call that shall be repeated, so that there is a policy in any case. */
  #repetitions({ retry }: CallOptions, bounds: Bounds): Retries {
    if (retry === false) throw new TypeError('an idempotent call is one that may be repeated, so its retry cannot be false');
    return this.#retries(retry ?? this.#retry ?? true, bounds)!;
  }

  #callOn<Result>(
    method: string,
    path: string,
    options: CallOptions,
    make: (outer: string) => Operation<Result>,
    isRepeatable = false,
  ): Promise<Result> {
    const onPath = () => {
      checkPath(path);
      return make(this.#chroot.outer(path));
    };
    return this.#call(method, path, options, onPath, isRepeatable);
  }

  /** `isRepeatable`: also when no answer came, since it changes nothing. */
  #call<Result>(
    method: string,
    path: string | undefined,
    options: CallOptions,
    make: () => Operation<Result>,
    isRepeatable = false,
  ): Promise<Result> {
    return this.#guard(method, path, options, isRepeatable, (limits) => this.#session.perform(make(), limits));
  }

  #readOn<Result>(method: string, path: string, options: PlainReadOptions, make: (outer: string) => Operation<Result>): Promise<Result> {
    return this.#read(method, path, options, () => {
      checkPath(path);
      return make(this.#chroot.outer(path));
    });
  }

  #read<Result>(method: string, path: string | undefined, options: PlainReadOptions, make: () => Operation<Result>): Promise<Result> {
    if (options.linearizable !== true) return this.#call(method, path, options, make, true);
    return this.#readBehindSync(method, path, options, make);
  }

  /** A call that consists of several, within one time-out and one signal. */
  #compound<Result>(method: string, path: string, options: CallOptions, work: (bounds: Bounds) => Promise<Result>): Promise<Result> {
    const bounds = new Bounds(this.#session, this.#withDefaults(options));
    return this.#within(method, path, () => work(bounds));
  }

  async #within<Result>(method: string, path: string, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      throw inWordsOf(method, path, error);
    }
  }

  /**
   * Both leave together, over one connection: if that is lost, both are. A server answers a session in the order it was asked, so by the time
   * the read is answered it is known what became of the sync. It is the read's own promise that is waited for, no longer than in `#guard`, so
   * that its answer stays in the order in which events are told.
   */
  #readBehindSync<Result>(method: string, path: string | undefined, options: CallOptions, make: () => Operation<Result>): Promise<Result> {
    let synced: Promise<void> | undefined;
    const ask = (limits: Limits): Promise<Result> => {
      synced = undefined;
      const operation = make();
      const sync = syncOperation('/');
      let isSynced = false;
      const noted = (reader: Reader) => {
        sync.read(reader);
        isSynced = true;
      };
      synced = this.#session.perform({ ...sync, read: noted }, limits);
      // Its reason is asked for below, and only if the read fails.
      synced.catch(() => undefined);
      const read: Operation<Result> = {
        opCode: operation.opCode,
        watches: operation.watches,
        write: (writer) => operation.write(writer),
        read: (reader) => {
          if (!isSynced) throw new Refusal(ErrorCode.RuntimeInconsistency, 'refused', 'the sync ahead of this read was refused');
          return operation.read(reader);
        },
        readError: (err) => (isSynced ? operation.readError?.(err) : undefined),
      };
      return this.#session.perform(read, limits);
    };
    // If the sync is to blame, it says why.
    const blame = async (failure: unknown): Promise<unknown> => {
      try {
        await synced;
        return failure;
      } catch (why) {
        return why;
      }
    };
    return this.#guard(method, path, options, true, ask, blame);
  }

  /**
   * Puts a refusal into words. The error is made here, behind the await, because there its stack shows who called and waits; to note down
   * the stack of each call in case it fails would take longer than the call.
   */
  async #guard<Result>(
    method: string,
    path: string | undefined,
    options: CallOptions,
    isRepeatable: boolean,
    work: (limits: Limits) => Promise<Result>,
    reasonOf?: (error: unknown) => Promise<unknown>,
  ): Promise<Result> {
    const limits = this.#withDefaults(options);
    const retries = this.#retriesWithin(options, limits);
    for (;;) {
      try {
        return await work(retries?.left ?? limits);
      } catch (error) {
        const reason = reasonOf === undefined ? error : await reasonOf(error);
        if (retries !== undefined && (await retries.again(reason, isRepeatable))) continue;
        const last = retries?.summed(reason, isRepeatable) ?? reason;
        throw last instanceof Refusal ? new KeeperError(method, path, last) : last;
      }
    }
  }

  /** Costs nothing where nothing is to be repeated, as for most calls. */
  #retriesWithin({ retry }: CallOptions, limits: Limits): Retries | undefined {
    if (retry === undefined && this.#retry === undefined) return undefined;
    return this.#retries(retry, new Bounds(this.#session, limits));
  }
}

/** A client with a session, which is its own: closing the client ends the session. */
export class Client extends ClientView implements AsyncDisposable {
  readonly #session: Session;

  /** Made by `connect`. */
  constructor(session: Session, chroot: string, requestTimeoutMs: Millis | undefined, retry: RetryPolicy | boolean | undefined) {
    super(session, chroot, requestTimeoutMs, fullPolicy(retry));
    this.#session = session;
  }

  /**
   * Goes by another list of servers from here on: `host:port,host:port` without a chroot, or a list. Takes the place of an SRV name as well.
   * Returns whether the client leaves the server it is connected to.
   *
   * A server that is not in the new list is always left. Otherwise chance decides, so that the clients of an ensemble, each of which is
   * given the list, spread evenly over it: of three servers that become five each client leaves its own with probability 0.4, for one of the new two,
   * and for an old one only if no new one answers; of five that become three, nobody leaves one of the three. (ZooKeeper Programmer's Guide,
   * "ZooKeeper Sessions"; ZOOKEEPER-1355.) A server is known by its host and port as they are written: `zk1:2181` and its address are two.
   *
   * Nothing is lost by it: calls under way are answered by the old server, for up to a second, and later ones wait for the next. To a
   * client that is closed nothing happens. Throws a ConnectStringError.
   */
  updateServerList(servers: string | readonly (string | ServerAddress)[]): boolean {
    return this.#session.updateServers(parseServerList(servers));
  }

  /**
   * Ends the session: its ephemerals go at once. Calls made before are answered first; later ones fail with SessionExpired. Without a
   * connection the ensemble is not told, and ends the session when its time-out has passed. Never rejects; a second call waits for the first.
   */
  close(): Promise<void> {
    return this.#session.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function inWordsOf(method: string, path: string, error: unknown): unknown {
  if (error instanceof Refusal) return new KeeperError(method, path, error);
  if (!KeeperError.is(error) || (error.op === method && error.path === path)) return error;
  return new KeeperError(method, path, refusalOfStep(error));
}

function syncOperation(outer: string): Operation<void> {
  return {
    opCode: OpCode.sync,
    write: (writer) => operations.sync.request.write(writer, { path: outer }),
    read: (reader) => {
      operations.sync.reply.read(reader);
    },
  };
}

function badArguments(reason: string): Refusal {
  return new Refusal(ErrorCode.BadArguments, 'notSent', reason);
}

export function copyOfAuth(auth: Uint8Array | string): Uint8Array {
  return typeof auth === 'string' ? Buffer.from(auth, 'utf8') : new Uint8Array(auth);
}

function listOf(list: string | readonly (string | number)[] | undefined): string | null {
  if (list === undefined) return null;
  return typeof list === 'string' ? list : list.join(',');
}
