/**
 * ZooKeeper's operations as methods that return promises.
 *
 * Every method bears ZooKeeper's name. A call that fails rejects with a `KeeperError` (its signal apart, which rejects with its own
 * reason), and nothing is ever thrown from an event. Paths are checked here and lengthened by the chroot; whatever comes back, errors and
 * events included, carries paths as the program knows them.
 */
import {
  type Acl,
  type ClientInfo,
  ErrorCode,
  formatSessionId,
  type Millis,
  pathFault,
  type SessionId,
  systemPath,
} from '@tskeeper/protocol';
import { credentialsOf } from './auth/credentials.ts';
import { Bounds } from './calls/bounds.ts';
import { type CallDefaults, Caller, inWordsOf } from './calls/caller.ts';
import { createWithExtras, hasExtras } from './calls/create.ts';
import { deleteRecursive, type DeleteRecursiveResult } from './calls/delete-recursive.ts';
import { deleteGuaranteed } from './calls/guaranteed-delete.ts';
import { deleteIdempotently, setDataIdempotently } from './calls/idempotent.ts';
import { ensurePaths, type Parents } from './calls/parents.ts';
import { update, type Updater } from './calls/update.ts';
import { walk, type WalkedZnode } from './calls/walk.ts';
import { ancestorsOf, parentOf } from './paths.ts';
import { checkListening, methodForms } from './call-forms.ts';
import { Chroot } from './chroot.ts';
import type { Clock } from './clock.ts';
import type {
  AddWatchOptions,
  ClientEvents,
  ClientState,
  CreateOptions,
  DeleteOptions,
  EnsurePathOptions,
  PlainReadOptions,
  ReadOptions,
  ReconfigOptions,
  RemoveWatchesOptions,
  SetDataOptions,
  UpdateOptions,
  VersionOptions,
  WalkOptions,
} from './client-options.ts';
import { formatServer } from './connect-string.ts';
import { KeeperError, Refusal } from './keeper-error.ts';
import { type GetJsonResult, type GetTextResult, jsonFault, readAs, textOf, valueOf } from './data-forms.ts';
import { checkCreatePath, checkPath, type CreateSettings, type Data, isSequential } from './operations/create.ts';
import { checkOps } from './operations/op-forms.ts';
import { multiOperation, multiReadOperation, type ReadOp, type ReadResults, type WriteOp, type WriteResults } from './operations/multi.ts';
import {
  createOperation,
  type CreateResult,
  deleteOperation,
  existsOperation,
  getAclOperation,
  type GetAclResult,
  getAllChildrenNumberOperation,
  getChildrenOperation,
  type GetChildrenResult,
  getDataOperation,
  type GetDataResult,
  getEphemeralsOperation,
  reconfigOperation,
  setAclOperation,
  setDataOperation,
  syncOperation,
  type WatchNote,
  whoAmIOperation,
} from './operations/single.ts';
import type { CallOptions, Operation } from './session/operation.ts';
import { Session } from './session/session.ts';
import type { EndReason } from './session/session-machine.ts';
import type { Stat } from './stat.ts';
import type { NodeEvent, WatchListener } from './watched-event.ts';
import { ViewWatches } from './watches/view-watches.ts';
import { type RecursiveWatchLoopEvent, WatchLoop, type WatchLoopOptions } from './watches/watch-loop.ts';
import { addWatchOperation } from './watches/watch-operations.ts';

/** What a call without options has: one object for all of them. */
const noOptions = Object.freeze({});

/**
 * A client without the end of it: what `chroot` gives. Everything below some znode, with paths of its own, on the session of the client it came
 * from; what is of the session (state, identities, server) is shared. It has no `close`, since the session is not its own.
 */
export class ClientView {
  readonly #session: Session;
  readonly #chroot: Chroot;
  readonly #defaults: CallDefaults;
  readonly #caller: Caller;
  readonly #watches: ViewWatches;
  readonly #listeners: { readonly [Name in keyof ClientEvents]: Set<(event: ClientEvents[Name]) => void> } = {
    state: new Set(),
    event: new Set(),
    connectFailed: new Set(),
  };
  #unobserve: (() => void) | undefined;

  /** Made by `connect` and by `chroot`. Throws a TypeError when a program makes it. */
  constructor(session: Session, chroot: string, defaults: CallDefaults) {
    if (!(session instanceof Session)) {
      const [made, how] = new.target === ClientView ? ['ClientView', 'client.chroot(path)'] : ['Client', "await connect('zk1:2181')"];
      throw new TypeError(`a ${made} is made by ${how}, not by new`);
    }
    this.#session = session;
    this.#chroot = new Chroot(chroot);
    this.#defaults = defaults;
    this.#caller = new Caller(session, chroot, defaults);
    this.#watches = new ViewWatches(session, this.#chroot);
  }

  /** For as long as somebody listens: a view that nobody uses any more leaves nothing behind on the session. */
  #observe(): () => void {
    const session = this.#session;
    return session.observe({
      state: (event) => {
        for (const listener of this.#listeners.state) session.tell(() => listener(event));
      },
      event: (type, path, zxid) => {
        if (this.#listeners.event.size === 0) return;
        const event: NodeEvent = { type, state: 'SyncConnected', path: this.#chroot.inner(path), zxid };
        for (const listener of this.#listeners.event) session.tell(() => listener(event));
      },
      connectFailed: (failure) => {
        for (const listener of this.#listeners.connectFailed) session.tell(() => listener(failure));
      },
    });
  }

  /**
   * The tree below `path`, as if that were its root: paths go in and come out relative to it, those of events and errors as well. The session is
   * shared, time-outs and `retry` are those of this client. The znode need not exist; `ensurePath('/')` makes it. A watch is removed through
   * the view that has set it. (Curator's `usingNamespace`; the chroot of ZooKeeper's connect string.) Throws a KeeperError, BadArguments.
   */
  chroot(path: string): ClientView {
    methodForms.chroot.check(arguments.length, noOptions, path);
    const fault = pathFault(path);
    if (fault !== undefined) throw new KeeperError('chroot', path, badArguments(`a path ${fault}`));
    const outer = this.#chroot.outer(path);
    return new ClientView(this.#session, outer === '/' ? '' : outer, this.#defaults);
  }

  /** What `console.log` shows of a client: never its password. */
  [Symbol.for('nodejs.util.inspect.custom')](
    _depth: unknown,
    options: unknown,
    inspect: (shown: object, options: unknown) => string,
  ): string {
    const { state, sessionId, connectedTo: server } = this;
    const shown = { state, sessionId: formatSessionId(sessionId), server, chroot: this.#chroot.outer('/') };
    return `${this.constructor.name} ${inspect(shown, options)}`;
  }

  // --- The session

  /** What is known of the connection now; `on('state', ...)` hears of changes. */
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

  /** Given out by the server that opened the session; all 64 bits are used. */
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

  /**
   * How much of the session's time-out is left, in milliseconds, counted from when something was sent that a server has answered since: about
   * `sessionTimeoutMs` while connected, less and less without a connection, and 0 when the session is to be taken for lost, though only the ensemble
   * knows. It may also have ended before: a server that was cut off from its leader goes on answering, for syncLimit ticks at most.
   */
  get sessionLeftMs(): Millis {
    return this.#session.leftMs;
  }

  /** What time is to this client; whoever waits along with it, as recipes do, waits by the same clock. */
  get clock(): Clock {
    return this.#session.clock;
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
   * Listens from now on; returns a function that ends it at once. What a listener throws is the program's own error and becomes an unhandled
   * rejection; it never reaches the client. Throws a TypeError for another event than those of `ClientEvents`. (ZooKeeper's default watcher.)
   */
  on<Name extends keyof ClientEvents>(name: Name, listener: (event: ClientEvents[Name]) => void): () => void {
    checkListening(arguments.length, name, listener, Object.keys(this.#listeners));
    const listeners: Set<typeof listener> = this.#listeners[name];
    // A function of its own for each call, so that one listener given twice is told twice and taken back once.
    const own = (event: ClientEvents[Name]) => {
      // News that is on its way may find the listener taken back.
      if (listeners.has(own)) listener(event);
    };
    listeners.add(own);
    this.#unobserve ??= this.#observe();
    return () => {
      listeners.delete(own);
      const { state, event, connectFailed } = this.#listeners;
      if (state.size + event.size + connectFailed.size > 0) return;
      this.#unobserve?.();
      this.#unobserve = undefined;
    };
  }

  /**
   * Proves an identity, on this connection and on each one that follows: `addAuth('digest', 'user:password')`. Resolves when a server has
   * accepted it, on another connection if the first is lost. A refusal ends the client, as in ZooKeeper, and rejects with AuthFailed. Time-out and signal end
   * the waiting; the identity is proved all the same. (ZooKeeper's `addAuthInfo`.)
   */
  addAuth(scheme: string, auth: Uint8Array | string, options: CallOptions = noOptions): Promise<void> {
    const misuse = methodForms.addAuth.misuse(arguments.length, options, scheme, auth);
    if (misuse !== undefined) return rejection(misuse);
    // It survives the loss of a connection by itself.
    return this.#caller.guard('addAuth', undefined, { ...options, retry: false }, true, (limits) =>
      this.#session.authenticate(credentialsOf(scheme, auth), limits),
    );
  }

  /** Who this client is to the servers: the identities of its connection (ZOOKEEPER-3969). Fails with Unimplemented before ZooKeeper 3.7. */
  whoAmI(options: CallOptions = noOptions): Promise<readonly ClientInfo[]> {
    const misuse = methodForms.whoAmI.misuse(arguments.length, options);
    if (misuse !== undefined) return rejection(misuse);
    return this.#caller.call('whoAmI', undefined, options, whoAmIOperation, true);
  }

  // --- Znodes

  /**
   * Makes a znode, as ZooKeeper's `create` with a Stat does (ZOOKEEPER-1297; containers ZOOKEEPER-2163, TTLs ZOOKEEPER-2169). Fails with NodeExists, NoNode (no parent), NoChildrenForEphemerals, InvalidACL, NoAuth, QuotaExceeded, and with
   * Unimplemented for a TTL where the servers have no extended types.
   */
  create(path: string, data?: Data, options: CreateOptions = noOptions): Promise<CreateResult> {
    const misuse = methodForms.create.misuse(arguments.length, options, path, data);
    if (misuse !== undefined) return rejection(misuse);
    return this.#make('create', path, data, options);
  }

  #make(method: string, path: string, data: Data | undefined, options: CreateOptions): Promise<CreateResult> {
    if (!hasExtras(options)) return this.#create(method, path, data, options);
    const { signal: _signal, timeoutMs: _timeoutMs, retry, parents, protection, idempotent, ...settings } = options;
    const { mode, acl } = settings;
    return this.#caller.compound(method, path, options, (bounds) => {
      checkCreatePath(path, mode ?? 'persistent');
      return createWithExtras({
        session: this.#session,
        znodes: this,
        path,
        data,
        settings,
        extras: { parents, protection, idempotent },
        retry,
        bounds,
        retries: () => this.#caller.repetitions(options, bounds),
        parents: (parentMode) => this.#parents(parentOf(path), { mode: parentMode, acl, retry }, bounds),
      });
    });
  }

  #create(method: string, path: string, data: Data | undefined, options: CreateSettings & CallOptions): Promise<CreateResult> {
    return this.#caller.call(method, path, options, () => {
      checkCreatePath(path, options.mode ?? 'persistent');
      return createOperation(this.#chroot.outer(path), data, options, (outer) => this.#chroot.inner(outer));
    });
  }

  /**
   * Makes a znode and whatever is missing above it, all without data; resolves also if it was there. Fails with NoAuth, InvalidACL,
   * QuotaExceeded, and with NoChildrenForEphemerals where an ephemeral stands in the way. Under a chroot, that is made as well. (Curator's
   * `createContainers` and `creatingParentsIfNeeded`.)
   */
  ensurePath(path: string, options: EnsurePathOptions = noOptions): Promise<void> {
    const misuse = methodForms.ensurePath.misuse(arguments.length, options, path);
    if (misuse !== undefined) return rejection(misuse);
    return this.#caller.compound('ensurePath', path, options, (bounds) => {
      checkPath(path);
      return ensurePaths(this.#parents(path, options, bounds));
    });
  }

  #parents(path: string, { mode = 'persistent', acl, retry }: EnsurePathOptions, bounds: Bounds): Parents {
    const znodes = new ClientView(this.#session, '', { ...this.#defaults, retry: undefined });
    const outer = this.#chroot.outer(path);
    const paths = outer === '/' ? [] : [...ancestorsOf(outer), outer];
    const inner = (each: string) => this.#chroot.inner(each);
    return { znodes, inner, paths, settings: { mode, acl }, bounds, retries: this.#caller.retries(retry, bounds) };
  }

  /** Fails with NoNode, BadVersion, NotEmpty, NoAuth (on the parent), and with BadArguments for a znode that ZooKeeper itself needs. */
  delete(path: string, options: DeleteOptions = noOptions): Promise<void> {
    const misuse = methodForms.delete.misuse(arguments.length, options, path);
    if (misuse !== undefined) return rejection(misuse);
    const { version, retry, idempotent, guaranteed } = options;
    if (idempotent !== true && guaranteed !== true) return this.#delete(path, options);
    return this.#caller.compound('delete', path, options, (bounds) => {
      const once = () =>
        idempotent === true
          ? deleteIdempotently(this, path, version, this.#caller.repetitions(options, bounds))
          : this.#delete(path, { version, retry, ...bounds.left });
      if (guaranteed !== true) return once();
      return deleteGuaranteed(this.#session, once, (limits) => this.#delete(path, { version, retry: false, ...limits }));
    });
  }

  #delete(path: string, options: VersionOptions): Promise<void> {
    return this.#callOn('delete', path, options, (outer) => deleteOperation(outer, options.version ?? -1));
  }

  /**
   * Deletes a znode and everything below it, children first, while others may go on working there: what is gone already is passed over, and
   * where something was added it is looked again. Resolves with how many were deleted; 0 if there was none. It is not one txn: after an error, which says
   * how far it came, a part is gone. `timeoutMs` is for all of it; `requestTimeoutMs` of the client for each request. Fails with NoAuth, and with
   * BadArguments for the root and for `/zookeeper`. (ZooKeeper's `ZKUtil.deleteRecursive`, for a tree that others work in.)
   */
  deleteRecursive(path: string, options: CallOptions = noOptions): Promise<DeleteRecursiveResult> {
    const misuse = methodForms.deleteRecursive.misuse(arguments.length, options, path);
    if (misuse !== undefined) return rejection(misuse);
    const bounds = new Bounds(this.#session, options);
    return this.#caller.within('deleteRecursive', path, async () => {
      checkPath(path);
      const outer = this.#chroot.outer(path);
      if (outer === '/' || outer === '/zookeeper' || outer.startsWith('/zookeeper/'))
        throw badArguments('the root and /zookeeper are needed by servers; name what is below');
      return deleteRecursive(this, path, bounds, this.#caller.retries(options.retry, bounds));
    });
  }

  /**
   * The znode's Stat, or null when there is none; absence is an answer, not an error. A watch is set in both cases. (ZooKeeper's `exists`.) Fails
   * only as any call does: ConnectionLoss, SessionExpired, RequestTimeout, BadArguments for what is no path.
   */
  exists(path: string, options: ReadOptions = noOptions): Promise<Stat | null> {
    const misuse = methodForms.exists.misuse(arguments.length, options, path);
    if (misuse !== undefined) return rejection(misuse);
    return this.#readOn('exists', path, options, (outer) => existsOperation(outer, this.#note(outer, options.watch)));
  }

  /** Data and Stat of one moment (ZooKeeper's `getData`). Fails with NoNode and NoAuth; then no watch is set. */
  getData(path: string, options: ReadOptions = noOptions): Promise<GetDataResult> {
    const misuse = methodForms.getData.misuse(arguments.length, options, path);
    if (misuse !== undefined) return rejection(misuse);
    return this.#readOn('getData', path, options, (outer) => getDataOperation(outer, this.#note(outer, options.watch)));
  }

  /**
   * As `getData`, with the data as text. `text` is null when the znode has no data. Fails with NoNode and NoAuth, and with a DataFormatError when the
   * data are not UTF-8. (ZooKeeper's `getData`.)
   */
  getText(path: string, options: ReadOptions = noOptions): Promise<GetTextResult> {
    const misuse = methodForms.getText.misuse(arguments.length, options, path);
    if (misuse !== undefined) return rejection(misuse);
    return this.#readOn('getText', path, options, (outer) =>
      readAs(getDataOperation(outer, this.#note(outer, options.watch)), ({ data, stat }) => ({
        text: textOf(data),
        stat,
      })),
    );
  }

  /**
   * As `getData`, with what the data say as JSON. `value` is undefined when the znode has no data, neither null nor bytes: null is a value of JSON. Its type is what
   * the program says it is; nothing checks that. Fails with NoNode and NoAuth, and with a DataFormatError when the data are not JSON. (ZooKeeper's `getData`.)
   */
  getJson<Value = unknown>(path: string, options: ReadOptions = noOptions): Promise<GetJsonResult<Value>> {
    const misuse = methodForms.getJson.misuse(arguments.length, options, path);
    if (misuse !== undefined) return rejection(misuse);
    return this.#readOn('getJson', path, options, (outer) =>
      readAs(getDataOperation(outer, this.#note(outer, options.watch)), ({ data, stat }) => ({
        value: valueOf(data) as Value | undefined,
        stat,
      })),
    );
  }

  /** As `setData`, with the value as JSON. Fails with NoNode, BadVersion, NoAuth, QuotaExceeded, and with a TypeError for what JSON cannot say. (ZooKeeper's `setData`.) */
  setJson(path: string, value: unknown, options: SetDataOptions = noOptions): Promise<Stat> {
    const misuse = methodForms.setJson.misuse(arguments.length, options, path) ?? jsonFault('setJson', value);
    if (misuse !== undefined) return rejection(misuse);
    return this.#writeData('setJson', path, JSON.stringify(value), options);
  }

  /** As `create`, with the value as JSON. Fails as `create` does, and with a TypeError for what JSON cannot say. (ZooKeeper's `create`.) */
  createJson(path: string, value: unknown, options: CreateOptions = noOptions): Promise<CreateResult> {
    const misuse = methodForms.createJson.misuse(arguments.length, options, path) ?? jsonFault('createJson', value);
    if (misuse !== undefined) return rejection(misuse);
    return this.#make('createJson', path, JSON.stringify(value), options);
  }

  /** Writes data whole (ZooKeeper's `setData`). Resolves with the new Stat. Fails with NoNode, BadVersion, NoAuth, QuotaExceeded. */
  setData(path: string, data: Data, options: SetDataOptions = noOptions): Promise<Stat> {
    const misuse = methodForms.setData.misuse(arguments.length, options, path, data);
    if (misuse !== undefined) return rejection(misuse);
    return this.#writeData('setData', path, data, options);
  }

  #writeData(method: string, path: string, data: Data, options: SetDataOptions): Promise<Stat> {
    if (options.idempotent !== true)
      return this.#callOn(method, path, options, (outer) => setDataOperation(outer, data, options.version ?? -1));
    return this.#caller.compound(method, path, options, (bounds) =>
      setDataIdempotently(this, path, data, options.version, this.#caller.repetitions(options, bounds)),
    );
  }

  /**
   * Changes data by what they are: reads them, calls `updater`, and writes its result if nobody has written in between; otherwise again, for as long
   * as it takes, with pauses that grow. Resolves with the znode as it was left; undefined if it is absent and the updater left it so. What
   * `updater` throws is thrown.
   *
   * When no answer comes to the write, the znode is read again. If that shows that it was not carried out, `update` goes on. Whether it was carried out
   * cannot always be told, as when another may have written the same: then it rejects, with the outcome `unknown`; see `idempotent`.
   * (Compare and set, as ZooKeeper's versions are meant for: Programmer's Guide, "ZNodes".)
   */
  update(path: string, updater: Updater, options: UpdateOptions = noOptions): Promise<GetDataResult | undefined> {
    const misuse = methodForms.update.misuse(arguments.length, options, path, updater);
    if (misuse !== undefined) return rejection(misuse);
    const { create: createOption, idempotent = false, retry } = options;
    const create = createOption === true ? {} : createOption === false ? undefined : createOption;
    return this.#caller.compound('update', path, options, async (bounds) => {
      checkPath(path);
      if (create?.mode !== undefined && isSequential(create.mode))
        throw badArguments(`a znode of mode ${create.mode} has another path each time, so update cannot find it again`);
      return update(this.#session, this, path, updater, { create, idempotent, retry }, bounds);
    });
  }

  /** Names of children, and the Stat of the znode (ZooKeeper's `getChildren`). Fails with NoNode and NoAuth; then no watch is set. */
  getChildren(path: string, options: ReadOptions = noOptions): Promise<GetChildrenResult> {
    const misuse = methodForms.getChildren.misuse(arguments.length, options, path);
    if (misuse !== undefined) return rejection(misuse);
    return this.#readOn('getChildren', path, options, (outer) => getChildrenOperation(outer, this.#note(outer, options.watch)));
  }

  /**
   * A znode and all below it, each ahead of its children, otherwise in no defined order: `for await (const { path, stat } of zk.walk('/a'))`.
   * Others may go on meanwhile: what goes is passed over, what comes may be missed. Fails with NoNode when the top is not there, and with NoAuth.
   * A slow loop slows the walk. `timeoutMs` is for all of it, the loop's own time included; `requestTimeoutMs` of the client for each request.
   * (ZooKeeper's `ZKUtil.visitSubTreeDFS`, with several requests at once.)
   */
  walk(path: string, options: WalkOptions = noOptions): AsyncGenerator<WalkedZnode, void, undefined> {
    methodForms.walk.check(arguments.length, options, path);
    return this.#walk(path, options);
  }

  async *#walk(path: string, options: WalkOptions): AsyncGenerator<WalkedZnode, void, undefined> {
    const { concurrency = 16, data = false, retry } = options;
    const bounds = new Bounds(this.#session, options);
    try {
      checkPath(path);
      yield* walk(this, path, { concurrency, data, retry }, bounds);
    } catch (error) {
      throw inWordsOf('walk', path, error);
    }
  }

  /** How many znodes there are below, at any depth (ZOOKEEPER-3167, ZooKeeper 3.6). Fails with NoNode and NoAuth. */
  getAllChildrenNumber(path: string, options: PlainReadOptions = noOptions): Promise<number> {
    const misuse = methodForms.getAllChildrenNumber.misuse(arguments.length, options, path);
    if (misuse !== undefined) return rejection(misuse);
    return this.#readOn('getAllChildrenNumber', path, options, getAllChildrenNumberOperation);
  }

  /**
   * Paths of this session's ephemerals that begin with a text; all of those below the chroot by default (ZOOKEEPER-3209, ZooKeeper 3.6). Fails with
   * BadArguments for a text that does not begin with a slash.
   */
  getEphemerals(prefix = '/', options: PlainReadOptions = noOptions): Promise<readonly string[]> {
    const misuse = methodForms.getEphemerals.misuse(arguments.length, options, prefix);
    if (misuse !== undefined) return rejection(misuse);
    return this.#read('getEphemerals', prefix, options, () => {
      if (prefix !== '' && !prefix.startsWith('/')) throw badArguments('a prefix of paths begins with "/"');
      // To a server `/` stands for all. Below a chroot it must not: `/app` is no prefix to match `/apple` by.
      const outer = this.#chroot.outerPrefix(prefix === '/' ? '' : prefix);
      return getEphemeralsOperation(outer, (path) => this.#chroot.inner(path));
    });
  }

  /** A znode's ACL (ZooKeeper's `getACL`). Fails with NoNode, and with NoAuth unless READ or ADMIN is granted. */
  getACL(path: string, options: PlainReadOptions = noOptions): Promise<GetAclResult> {
    const misuse = methodForms.getACL.misuse(arguments.length, options, path);
    if (misuse !== undefined) return rejection(misuse);
    return this.#readOn('getACL', path, options, getAclOperation);
  }

  /** Replaces the ACL (ZooKeeper's `setACL`). `version` is compared with `aversion`. Fails with NoNode, BadVersion, InvalidACL, NoAuth. */
  setACL(path: string, acl: readonly Acl[], options: VersionOptions = noOptions): Promise<Stat> {
    const misuse = methodForms.setACL.misuse(arguments.length, options, path, acl);
    if (misuse !== undefined) return rejection(misuse);
    return this.#callOn('setACL', path, options, (outer) => setAclOperation(outer, acl, options.version ?? -1));
  }

  /**
   * Resolves when the server has caught up with what the leader had committed, so that a read made next (also without waiting) sees it. Fails only as any
   * call does. (ZooKeeper's `sync`; Programmer's Guide, "Consistency Guarantees".)
   */
  sync(path = '/', options: CallOptions = noOptions): Promise<void> {
    const misuse = methodForms.sync.misuse(arguments.length, options, path);
    if (misuse !== undefined) return rejection(misuse);
    return this.#callOn('sync', path, options, syncOperation, true);
  }

  // --- Many at once

  /**
   * Carries out all operations or none, in order, under one zxid. When one fails, rejects with its error; `failedIndex` says which it was
   * and `results` what became of each. (ZooKeeper's `multi`, ZOOKEEPER-965.)
   */
  multi<const Ops extends readonly WriteOp[]>(ops: Ops, options: CallOptions = noOptions): Promise<WriteResults<Ops>> {
    const misuse = methodForms.multi.misuse(arguments.length, options);
    if (misuse !== undefined) return rejection(misuse);
    if (Array.isArray(ops) && ops.length === 0) return Promise.resolve([] as unknown as WriteResults<Ops>);
    return this.#caller.call('multi', undefined, options, () => {
      checkOps(ops, 'multi');
      return multiOperation(ops, this.#chroot);
    });
  }

  /**
   * Reads many znodes in one request, each for itself: what cannot be read is an error in its place, and the others are there. Fails as a whole only as any
   * call does. (ZOOKEEPER-3402, ZooKeeper 3.6.)
   */
  multiRead<const Ops extends readonly ReadOp[]>(ops: Ops, options: PlainReadOptions = noOptions): Promise<ReadResults<Ops>> {
    const misuse = methodForms.multiRead.misuse(arguments.length, options);
    if (misuse !== undefined) return rejection(misuse);
    if (Array.isArray(ops) && ops.length === 0) return Promise.resolve([] as unknown as ReadResults<Ops>);
    return this.#read('multiRead', undefined, options, () => {
      checkOps(ops, 'multiRead');
      return multiReadOperation(ops, this.#chroot);
    });
  }

  // --- Watches

  /**
   * Sets a watch that stays (ZOOKEEPER-1416, ZooKeeper 3.6). A znode need not exist. Fails with nothing but a lost connection, and on servers before 3.6
   * with Unimplemented.
   */
  addWatch(path: string, options: AddWatchOptions): Promise<void> {
    const misuse = methodForms.addWatch.misuse(arguments.length, options, path);
    if (misuse !== undefined) return rejection(misuse);
    const { mode = 'persistent', watch } = options;
    if (watch === undefined) return rejection(new TypeError('addWatch: watch is missing: write addWatch(path, { watch: listener })'));
    const add = (outer: string) => addWatchOperation(mode, outer, () => this.#watches.add(mode, outer, watch));
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
  /** The same over one znode and its children coming and going. */
  watch(path: string, options?: WatchLoopOptions): WatchLoop;
  watch(path: string, options: WatchLoopOptions = noOptions): WatchLoop | WatchLoop<RecursiveWatchLoopEvent> {
    methodForms.watch.check(arguments.length, options, path);
    return new WatchLoop(this.#session, this.#chroot, path, options);
  }

  /** Takes watches away again; each is told so (`DataWatchRemoved` ...), and loops over the path end. Fails with NoWatcher when there is none. (ZOOKEEPER-442.) */
  removeWatches(path: string, options: RemoveWatchesOptions = noOptions): Promise<void> {
    const misuse = methodForms.removeWatches.misuse(arguments.length, options, path);
    if (misuse !== undefined) return rejection(misuse);
    const { type = 'any', watch, local = false } = options;
    return this.#caller.guard('removeWatches', path, options, true, async (limits) => {
      checkPath(path);
      await this.#watches.remove(this.#chroot.outer(path), { type, watch, local }, limits);
    });
  }

  // --- The ensemble

  /** The configuration of the ensemble, whatever the chroot (ZooKeeper's `getConfig`, ZOOKEEPER-107). Empty on a standalone server. Fails with NoAuth. */
  getConfig(options: ReadOptions = noOptions): Promise<GetDataResult> {
    const misuse = methodForms.getConfig.misuse(arguments.length, options);
    if (misuse !== undefined) return rejection(misuse);
    return this.#read('getConfig', systemPath.config, options, () =>
      getDataOperation(systemPath.config, this.#note(systemPath.config, options.watch)),
    );
  }

  /**
   * Changes the membership of the ensemble, and returns the new configuration. Fails with ReconfigDisabled, NewConfigNoQuorum,
   * ReconfigInProgress, BadVersion, BadArguments, NoAuth. (ZooKeeperAdmin's `reconfigure`, ZOOKEEPER-107.)
   */
  reconfig(options: ReconfigOptions): Promise<GetDataResult> {
    const misuse = methodForms.reconfig.misuse(arguments.length, options);
    if (misuse !== undefined) return rejection(misuse);
    return this.#caller.call('reconfig', systemPath.config, options, () => reconfigOperation(options));
  }

  // --- How calls are made

  #note(outer: string, watch: WatchListener | true | undefined): WatchNote {
    return watch && ((kind) => this.#watches.add(kind, outer, watch));
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
    return this.#caller.call(method, path, options, onPath, isRepeatable);
  }

  #readOn<Result>(method: string, path: string, options: PlainReadOptions, make: (outer: string) => Operation<Result>): Promise<Result> {
    return this.#read(method, path, options, () => {
      checkPath(path);
      return make(this.#chroot.outer(path));
    });
  }

  #read<Result>(method: string, path: string | undefined, options: PlainReadOptions, make: () => Operation<Result>): Promise<Result> {
    if (options.linearizable !== true) return this.#caller.call(method, path, options, make, true);
    return this.#caller.readBehindSync(method, path, options, make);
  }
}

function rejection(misuse: unknown): Promise<never> {
  return Promise.reject(misuse);
}

function badArguments(reason: string): Refusal {
  return new Refusal(ErrorCode.BadArguments, 'notSent', reason);
}
