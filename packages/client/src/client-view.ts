/**
 * ZooKeeper's operations as methods that return promises.
 *
 * Every method has ZooKeeper's name. A failed call rejects with a `KeeperError`, or with the reason
 * of its signal; nothing is ever thrown from an event. The methods here validate the arguments, for
 * plain JavaScript too, and choose how the call is made (src/view).
 */
import {
  type Acl,
  type ClientInfo,
  ErrorCode,
  formatSessionId,
  type Millis,
  pathError,
  type SessionId,
  systemPath,
} from '@tskeeper/protocol';
import { toCredentials } from './auth/credentials.ts';
import type { CallDefaults } from './calls/call-runner.ts';
import type { ListedChild } from './calls/children.ts';
import type { DeleteRecursiveResult } from './calls/delete-recursive.ts';
import type { Updater } from './calls/update.ts';
import type { WalkedZnode } from './calls/walk.ts';
import type {
  AddWatchOptions,
  ChildrenOptions,
  ClientEvents,
  ClientState,
  CreateOptions,
  DeleteOptions,
  EnsurePathOptions,
  PlainReadOptions,
  ReadOptions,
  ReconfigOptions,
  TransferLeaderOptions,
  RemoveWatchesOptions,
  SetDataOptions,
  UpdateOptions,
  VersionOptions,
  WalkOptions,
} from './client-options.ts';
import type { Clock } from './clock.ts';
import { formatServer } from './connect-string.ts';
import { KeeperError, RequestFailure } from './keeper-error.ts';
import { checkListener, methodSignatures } from './method-signatures.ts';
import { checkPath, type Data } from './operations/create.ts';
import { multiOperation, multiReadOperation, type ReadOp, type ReadResults, type WriteOp, type WriteResults } from './operations/multi.ts';
import { checkOps } from './operations/op-signatures.ts';
import {
  type CreateResult,
  getAclOperation,
  type GetAclResult,
  getAllChildrenNumberOperation,
  type GetChildrenResult,
  getDataOperation,
  type GetDataResult,
  getEphemeralsOperation,
  reconfigOperation,
  setAclOperation,
  syncOperation,
  whoAmIOperation,
} from './operations/single.ts';
import type { CallOptions } from './calls/call-options.ts';
import type { EndReason } from './session/session-end.ts';
import { Session } from './session/session.ts';
import type { Stat } from './stat.ts';
import { type GetJsonResult, type GetTextResult, jsonError, jsonOf, mapResult, textOf } from './text-and-json.ts';
import { CompoundCalls } from './view/compound-calls.ts';
import { PlainZnodeCalls } from './view/plain-znode-calls.ts';
import { ViewCalls } from './view/view-calls.ts';
import { ViewListeners } from './view/view-listeners.ts';
import { type RecursiveWatchLoopEvent, WatchLoop, type WatchLoopOptions } from './view/watch-loop.ts';
import { getLeaderOperation, type LeaderInfo, shedConnectionsOperation, transferLeaderOperation } from './operations/operators.ts';
import { addWatchOperation } from './operations/watches.ts';

/** The options of a call without options: one object for all of them. */
const noOptions = Object.freeze({});

/**
 * A client without `close`: what `chroot` returns. It shows everything below a znode, with paths
 * relative to it, on the session of its client; state, identities and server are shared. It has no
 * `close`, as the session is not its own.
 */
export class ClientView {
  readonly #session: Session;
  readonly #defaults: CallDefaults;
  readonly #calls: ViewCalls;
  readonly #znodes: PlainZnodeCalls;
  readonly #compound: CompoundCalls;
  readonly #listeners: ViewListeners;

  /** Called by `connect` and `chroot`. Throws a TypeError when a program calls it. */
  constructor(session: Session, chroot: string, defaults: CallDefaults) {
    if (!(session instanceof Session)) {
      const [made, how] = new.target === ClientView ? ['ClientView', 'client.chroot(path)'] : ['Client', "await connect('zk1:2181')"];
      throw new TypeError(`cannot construct a ${made} with new; use ${how}`);
    }
    this.#session = session;
    this.#defaults = defaults;
    this.#calls = new ViewCalls(session, chroot, defaults);
    this.#znodes = new PlainZnodeCalls(this.#calls);
    this.#compound = new CompoundCalls(this.#calls, this.#znodes);
    this.#listeners = new ViewListeners(session.events, this.#calls.chroot);
  }

  /**
   * Returns a view of the tree below `path`, with `path` as its root: all paths, including those of
   * events and errors, are relative to it. The view shares the session, and has the time-outs and
   * the `retry` of this client. The znode need not exist; `ensurePath('/')` on the view creates it.
   * A watch can be removed only through the view that has set it. (Curator's `usingNamespace`; the
   * chroot of ZooKeeper's connect string.) Throws a KeeperError, BadArguments, if `path` is not a
   * path.
   */
  chroot(path: string): ClientView {
    methodSignatures.chroot.check(arguments.length, noOptions, path);
    const fault = pathError(path);
    if (fault !== undefined) throw new KeeperError('chroot', path, badArgumentsFailure(`a path ${fault}`));
    const serverPath = this.#calls.chroot.prepend(path);
    return new ClientView(this.#session, serverPath === '/' ? '' : serverPath, this.#defaults);
  }

  /** What `console.log` prints of a client: never its password. */
  [Symbol.for('nodejs.util.inspect.custom')](
    _depth: unknown,
    options: unknown,
    inspect: (shown: object, options: unknown) => string,
  ): string {
    const { state, sessionId, connectedServer: server } = this;
    const shown = { state, sessionId: formatSessionId(sessionId), server, chroot: this.#calls.chroot.prepend('/') };
    return `${this.constructor.name} ${inspect(shown, options)}`;
  }

  // --- The session

  /** The current state; `on('state', ...)` delivers changes. */
  get state(): ClientState {
    const session = this.#session;
    if (session.endReason !== undefined) return session.endReason;
    if (session.isConnected) return session.isReadOnly ? 'connectedReadOnly' : 'connected';
    return session.isSuspended ? 'suspended' : 'connecting';
  }

  /**
   * Why this client has ended; then its `state` is the same word. undefined while the client is
   * open.
   */
  get endReason(): EndReason | undefined {
    return this.#session.endReason;
  }

  /** Assigned by the server that opened the session; uses all 64 bits. */
  get sessionId(): SessionId {
    return this.#session.id;
  }

  /**
   * Together with `sessionId` the value of `ConnectOptions.session`, to resume the session
   * elsewhere. 16 bytes, secret.
   */
  get sessionPassword(): Uint8Array {
    return new Uint8Array(this.#session.password);
  }

  /** The time-out that the server has granted. */
  get sessionTimeoutMs(): Millis {
    return this.#session.timeoutMs;
  }

  /**
   * The part of the session's time-out that remains, in milliseconds, counted from the moment when
   * the client sent something that a server has answered since: about `sessionTimeoutMs` while
   * connected, decreasing without a connection, and 0 when the session must be assumed lost,
   * although only the ensemble knows. It may also end earlier: a server that was cut off from its
   * leader still answers, for syncLimit ticks at most.
   */
  get sessionRemainingMs(): Millis {
    return this.#session.remainingMs;
  }

  /**
   * The clock of this client; code that waits together with it, such as recipes, uses the same
   * clock.
   */
  get clock(): Clock {
    return this.#session.clock;
  }

  /**
   * The connected server, `10.0.0.1:2181`, as the list of servers names it; undefined while there
   * is no connection.
   */
  get connectedServer(): string | undefined {
    return this.#session.connectedServer;
  }

  /**
   * `host:port` of each server of the list, in the order in which the client tries them. Empty
   * until an SRV name has been resolved.
   */
  get servers(): readonly string[] {
    return this.#session.servers.map(formatServer);
  }

  /**
   * The last txn that this client has seen. The client does not use a server that has not applied
   * it yet.
   */
  get lastZxid(): bigint {
    return BigInt(this.#session.lastZxid);
  }

  /**
   * Adds a listener, and returns a function that removes it at once. An exception in a listener
   * becomes an unhandled rejection of the program and does not affect the client. Throws a
   * TypeError for an event that is not in `ClientEvents`. (ZooKeeper's default watcher.)
   */
  on<Name extends keyof ClientEvents>(name: Name, listener: (event: ClientEvents[Name]) => void): () => void {
    checkListener(arguments.length, name, listener, this.#listeners.names);
    return this.#listeners.add(name, listener);
  }

  /**
   * Proves an identity on this connection and on each later one:
   * `addAuth('digest', 'user:password')`. Resolves when a server has accepted it, on another
   * connection if the first is lost. If a server rejects it, the client ends, as in ZooKeeper, and
   * the call rejects with AuthFailed. Time-out and signal end only the waiting; the client still
   * proves the identity. (ZooKeeper's `addAuthInfo`.)
   */
  addAuth(scheme: string, auth: Uint8Array | string, options: CallOptions = noOptions): Promise<void> {
    const misuse = methodSignatures.addAuth.misuse(arguments.length, options, scheme, auth);
    if (misuse !== undefined) return reject(misuse);
    // No retry: the session repeats it on the next connection.
    return this.#calls.runner.runWithRetries('addAuth', undefined, { ...options, retry: false }, true, (limits) =>
      this.#session.identities.authenticate(toCredentials(scheme, auth), limits),
    );
  }

  /**
   * Returns the identities of this client's connection (ZOOKEEPER-3969). Fails with Unimplemented
   * before ZooKeeper 3.7.
   */
  whoAmI(options: CallOptions = noOptions): Promise<readonly ClientInfo[]> {
    const misuse = methodSignatures.whoAmI.misuse(arguments.length, options);
    if (misuse !== undefined) return reject(misuse);
    return this.#calls.runner.call('whoAmI', undefined, options, whoAmIOperation, true);
  }

  // --- Znodes

  /**
   * Creates a znode and returns its Stat (ZooKeeper's `create`, ZOOKEEPER-1297; containers
   * ZOOKEEPER-2163, TTLs ZOOKEEPER-2169). Fails with NodeExists, NoNode (no parent),
   * NoChildrenForEphemerals, InvalidACL, NoAuth, QuotaExceeded, and with Unimplemented for a TTL if
   * the servers have no extended types.
   */
  create(path: string, data?: Data, options: CreateOptions = noOptions): Promise<CreateResult> {
    const misuse = methodSignatures.create.misuse(arguments.length, options, path, data);
    if (misuse !== undefined) return reject(misuse);
    return this.#compound.create('create', path, data, options);
  }

  /**
   * Creates a znode and its missing ancestors, all without data; also resolves if it exists. Fails
   * with NoAuth, InvalidACL, QuotaExceeded, and with NoChildrenForEphemerals if an ancestor is an
   * ephemeral. Under a chroot, missing parts of the chroot are created too. (Curator's
   * `createContainers` and `creatingParentsIfNeeded`.)
   */
  ensurePath(path: string, options: EnsurePathOptions = noOptions): Promise<void> {
    const misuse = methodSignatures.ensurePath.misuse(arguments.length, options, path);
    if (misuse !== undefined) return reject(misuse);
    return this.#compound.ensurePath(path, options);
  }

  /**
   * Deletes a znode. Fails with NoNode, BadVersion, NotEmpty, NoAuth (on the parent), and with
   * BadArguments for a znode that ZooKeeper itself needs.
   */
  delete(path: string, options: DeleteOptions = noOptions): Promise<void> {
    const misuse = methodSignatures.delete.misuse(arguments.length, options, path);
    if (misuse !== undefined) return reject(misuse);
    return this.#compound.delete(path, options);
  }

  /**
   * Deletes a znode and everything below it, children first, while other clients may change the
   * subtree: it skips znodes that are already gone, and checks again where a znode was added.
   * Resolves with the number of deleted znodes; 0 if there was none. It is not one txn: after an
   * error, whose message says how many were deleted, a part is gone. `timeoutMs` limits the whole
   * call; the client's `requestTimeoutMs` limits each request. Fails with NoAuth, and with
   * BadArguments for the root and for `/zookeeper`. (ZooKeeper's `ZKUtil.deleteRecursive`, for a
   * tree that other clients use.)
   */
  deleteRecursive(path: string, options: CallOptions = noOptions): Promise<DeleteRecursiveResult> {
    const misuse = methodSignatures.deleteRecursive.misuse(arguments.length, options, path);
    if (misuse !== undefined) return reject(misuse);
    return this.#compound.deleteRecursive(path, options);
  }

  /**
   * Returns the znode's Stat, or null if it does not exist: absence is an answer, not an error. A
   * watch is set in both cases. (ZooKeeper's `exists`.) Fails only with errors that any call can
   * have: ConnectionLoss, SessionExpired, RequestTimeout, BadArguments for an invalid path.
   */
  exists(path: string, options: ReadOptions = noOptions): Promise<Stat | null> {
    const misuse = methodSignatures.exists.misuse(arguments.length, options, path);
    if (misuse !== undefined) return reject(misuse);
    return this.#znodes.exists(path, options);
  }

  /**
   * Reads data and Stat of the same moment (ZooKeeper's `getData`). Fails with NoNode and NoAuth;
   * then no watch is set.
   */
  getData(path: string, options: ReadOptions = noOptions): Promise<GetDataResult> {
    const misuse = methodSignatures.getData.misuse(arguments.length, options, path);
    if (misuse !== undefined) return reject(misuse);
    return this.#znodes.getData(path, options);
  }

  /**
   * Same as `getData`, with the data as text. `text` is null if the znode has no data. Fails with
   * NoNode and NoAuth, and with a DataFormatError if the data are not UTF-8. (ZooKeeper's
   * `getData`.)
   */
  getText(path: string, options: ReadOptions = noOptions): Promise<GetTextResult> {
    const misuse = methodSignatures.getText.misuse(arguments.length, options, path);
    if (misuse !== undefined) return reject(misuse);
    return this.#calls.readOnPath('getText', path, options, (serverPath) =>
      mapResult(getDataOperation(serverPath, this.#calls.watchRecorder(serverPath, options.watch)), ({ data, stat }) => ({
        text: textOf(data),
        stat,
      })),
    );
  }

  /**
   * Same as `getData`, with the data parsed as JSON. `value` is undefined if the znode has no data
   * (null or zero bytes); null is a value of JSON. The program declares the type, and nothing
   * checks it. Fails with NoNode and NoAuth, and with a DataFormatError if the data are not JSON.
   * (ZooKeeper's `getData`.)
   */
  getJson<Value = unknown>(path: string, options: ReadOptions = noOptions): Promise<GetJsonResult<Value>> {
    const misuse = methodSignatures.getJson.misuse(arguments.length, options, path);
    if (misuse !== undefined) return reject(misuse);
    return this.#calls.readOnPath('getJson', path, options, (serverPath) =>
      mapResult(getDataOperation(serverPath, this.#calls.watchRecorder(serverPath, options.watch)), ({ data, stat }) => ({
        value: jsonOf(data) as Value | undefined,
        stat,
      })),
    );
  }

  /**
   * Same as `setData`, with the value as JSON. Fails with NoNode, BadVersion, NoAuth,
   * QuotaExceeded, and with a TypeError for a value that JSON cannot express. (ZooKeeper's
   * `setData`.)
   */
  setJson(path: string, value: unknown, options: SetDataOptions = noOptions): Promise<Stat> {
    const misuse = methodSignatures.setJson.misuse(arguments.length, options, path) ?? jsonError('setJson', value);
    if (misuse !== undefined) return reject(misuse);
    return this.#compound.setData('setJson', path, JSON.stringify(value), options);
  }

  /**
   * Same as `create`, with the value as JSON. Fails as `create` does, and with a TypeError for a
   * value that JSON cannot express. (ZooKeeper's `create`.)
   */
  createJson(path: string, value: unknown, options: CreateOptions = noOptions): Promise<CreateResult> {
    const misuse = methodSignatures.createJson.misuse(arguments.length, options, path) ?? jsonError('createJson', value);
    if (misuse !== undefined) return reject(misuse);
    return this.#compound.create('createJson', path, JSON.stringify(value), options);
  }

  /**
   * Replaces the data (ZooKeeper's `setData`). Resolves with the new Stat. Fails with NoNode,
   * BadVersion, NoAuth, QuotaExceeded.
   */
  setData(path: string, data: Data, options: SetDataOptions = noOptions): Promise<Stat> {
    const misuse = methodSignatures.setData.misuse(arguments.length, options, path, data);
    if (misuse !== undefined) return reject(misuse);
    return this.#compound.setData('setData', path, data, options);
  }

  /**
   * Changes data depending on their current value: reads them, calls `updater`, and writes its
   * result if no other client has written in between. Otherwise it starts again, without a limit,
   * with growing pauses. Resolves with the znode after the change; undefined if it does not exist
   * and `updater` left it so. Rejects with whatever `updater` throws.
   *
   * If the write is not answered, `update` reads the znode again, and continues if that shows that
   * the write was not applied. Sometimes it cannot know, for example if another client may have
   * written the same data: then it rejects with the outcome `unknown`; see `idempotent`. (Compare
   * and set with ZooKeeper's versions: Programmer's Guide, "ZNodes".)
   */
  update(path: string, updater: Updater, options: UpdateOptions = noOptions): Promise<GetDataResult | undefined> {
    const misuse = methodSignatures.update.misuse(arguments.length, options, path, updater);
    if (misuse !== undefined) return reject(misuse);
    return this.#compound.update(path, updater, options);
  }

  /**
   * Returns the names of the children, and the znode's Stat (ZooKeeper's `getChildren`). Fails with
   * NoNode and NoAuth; then no watch is set.
   */
  getChildren(path: string, options: ReadOptions = noOptions): Promise<GetChildrenResult> {
    const misuse = methodSignatures.getChildren.misuse(arguments.length, options, path);
    if (misuse !== undefined) return reject(misuse);
    return this.#znodes.getChildren(path, options);
  }

  /**
   * Iterates over the children of a znode, however many there are, one page after the other: `for
   * await (const { name } of zk.children('/jobs'))`. With the option `data` it reads their data and
   * Stats too; a child that the client may not read has none.
   *
   * A child that exists all the time is yielded once. Children that are created or deleted meanwhile
   * may be missing. `parentStat.pzxid` tells whether there were any. A watch is set with the first
   * page, so it reports each later change. A slow loop slows the listing; `timeoutMs` limits all of
   * it, including the time of the loop body.
   *
   * Servers of Apache ZooKeeper have no pages: they send the names of all children in one answer,
   * which must fit into `maxPacketBytes`, and data and Stats of each in one more. Fails with NoNode
   * and NoAuth. (ZOOKEEPER-2260; `getChildren` of ZooKeeper is not paged.)
   */
  children(path: string, options: ChildrenOptions = noOptions): AsyncGenerator<ListedChild, void, undefined> {
    methodSignatures.children.check(arguments.length, options, path);
    return this.#compound.children(path, options);
  }

  /**
   * Returns all children with their data and Stats, as `children` with `data` does. Each child is of
   * one moment, but not all of the same. Fails with NoNode and NoAuth. (ZOOKEEPER-1407.)
   */
  getChildrenWithData(path: string, options: Omit<ChildrenOptions, 'data'> = noOptions): Promise<readonly ListedChild[]> {
    const misuse = methodSignatures.getChildrenWithData.misuse(arguments.length, options, path);
    if (misuse !== undefined) return reject(misuse);
    return this.#compound.getChildrenWithData(path, options);
  }

  /**
   * Iterates over a znode and everything below it, each znode before its children, otherwise in no
   * defined order: `for await (const { path, stat } of zk.walk('/a'))`. Other clients may change
   * the tree meanwhile: znodes that are deleted are skipped, and new ones may be missed. Fails with
   * NoNode if the top does not exist, and with NoAuth. A slow loop slows the walk. `timeoutMs`
   * limits all of it, including the time of the loop body; the client's `requestTimeoutMs` limits
   * each request. (ZooKeeper's `ZKUtil.visitSubTreeDFS`, with several requests at once.)
   */
  walk(path: string, options: WalkOptions = noOptions): AsyncGenerator<WalkedZnode, void, undefined> {
    methodSignatures.walk.check(arguments.length, options, path);
    return this.#compound.walk(path, options);
  }

  /**
   * Returns the number of znodes below `path`, at any depth (ZOOKEEPER-3167, ZooKeeper 3.6). Fails
   * with NoNode and NoAuth.
   */
  getAllChildrenNumber(path: string, options: PlainReadOptions = noOptions): Promise<number> {
    const misuse = methodSignatures.getAllChildrenNumber.misuse(arguments.length, options, path);
    if (misuse !== undefined) return reject(misuse);
    return this.#calls.readOnPath('getAllChildrenNumber', path, options, getAllChildrenNumberOperation);
  }

  /**
   * Returns the paths of this session's ephemerals that start with `prefix`; by default all below
   * the chroot (ZOOKEEPER-3209, ZooKeeper 3.6). Fails with BadArguments if `prefix` does not start
   * with a slash.
   */
  getEphemerals(prefix = '/', options: PlainReadOptions = noOptions): Promise<readonly string[]> {
    const misuse = methodSignatures.getEphemerals.misuse(arguments.length, options, prefix);
    if (misuse !== undefined) return reject(misuse);
    return this.#calls.read('getEphemerals', prefix, options, () => {
      if (prefix !== '' && !prefix.startsWith('/')) throw badArgumentsFailure('a prefix must start with "/"');
      // For a server, `/` means all. Below a chroot it must not: `/app` must not match `/apple`.
      const serverPath = this.#calls.chroot.prependPrefix(prefix === '/' ? '' : prefix);
      return getEphemeralsOperation(serverPath, (path) => this.#calls.chroot.strip(path));
    });
  }

  /**
   * Returns a znode's ACL (ZooKeeper's `getACL`). Fails with NoNode, and with NoAuth unless READ or
   * ADMIN is granted.
   */
  getACL(path: string, options: PlainReadOptions = noOptions): Promise<GetAclResult> {
    const misuse = methodSignatures.getACL.misuse(arguments.length, options, path);
    if (misuse !== undefined) return reject(misuse);
    return this.#calls.readOnPath('getACL', path, options, getAclOperation);
  }

  /**
   * Replaces the ACL (ZooKeeper's `setACL`). `version` is compared with `aversion`. Fails with
   * NoNode, BadVersion, InvalidACL, NoAuth.
   */
  setACL(path: string, acl: readonly Acl[], options: VersionOptions = noOptions): Promise<Stat> {
    const misuse = methodSignatures.setACL.misuse(arguments.length, options, path, acl);
    if (misuse !== undefined) return reject(misuse);
    return this.#calls.onPath('setACL', path, options, (serverPath) => setAclOperation(serverPath, acl, options.version ?? -1));
  }

  /**
   * Resolves when the server has caught up with what the leader had committed, so that the next
   * read sees it (even if sent without waiting). Fails only with errors that any call can have.
   * (ZooKeeper's `sync`; Programmer's Guide, "Consistency Guarantees".)
   */
  sync(path = '/', options: CallOptions = noOptions): Promise<void> {
    const misuse = methodSignatures.sync.misuse(arguments.length, options, path);
    if (misuse !== undefined) return reject(misuse);
    return this.#calls.onPath('sync', path, options, syncOperation, true);
  }

  // --- Several operations at once

  /**
   * Applies all operations or none, in order, under one zxid. If one fails, rejects with its error;
   * `failedIndex` is its index, and `results` are the results of all operations. (ZooKeeper's
   * `multi`, ZOOKEEPER-965.)
   */
  multi<const Ops extends readonly WriteOp[]>(ops: Ops, options: CallOptions = noOptions): Promise<WriteResults<Ops>> {
    const misuse = methodSignatures.multi.misuse(arguments.length, options);
    if (misuse !== undefined) return reject(misuse);
    if (Array.isArray(ops) && ops.length === 0) return Promise.resolve([] as unknown as WriteResults<Ops>);
    return this.#calls.runner.call('multi', undefined, options, () => {
      checkOps(ops, 'multi');
      return multiOperation(ops, this.#calls.chroot);
    });
  }

  /**
   * Reads many znodes in one request, independently: a read that fails has an error in its place,
   * and the others have their results. The call as a whole fails only with errors that any call can
   * have. (ZOOKEEPER-3402, ZooKeeper 3.6.)
   */
  multiRead<const Ops extends readonly ReadOp[]>(ops: Ops, options: PlainReadOptions = noOptions): Promise<ReadResults<Ops>> {
    const misuse = methodSignatures.multiRead.misuse(arguments.length, options);
    if (misuse !== undefined) return reject(misuse);
    if (Array.isArray(ops) && ops.length === 0) return Promise.resolve([] as unknown as ReadResults<Ops>);
    return this.#calls.read('multiRead', undefined, options, () => {
      checkOps(ops, 'multiRead');
      return multiReadOperation(ops, this.#calls.chroot);
    });
  }

  // --- Watches

  /**
   * Sets a watch that stays registered after an event (ZOOKEEPER-1416, ZooKeeper 3.6). The znode
   * need not exist. Fails only if the connection is lost, and with Unimplemented on servers before
   * 3.6.
   */
  addWatch(path: string, options: AddWatchOptions): Promise<void> {
    const misuse = methodSignatures.addWatch.misuse(arguments.length, options, path);
    if (misuse !== undefined) return reject(misuse);
    const { mode = 'persistent', watch } = options;
    if (watch === undefined) return reject(new TypeError('addWatch: watch is missing: write addWatch(path, { watch: listener })'));
    const add = (serverPath: string) => addWatchOperation(mode, serverPath, () => this.#calls.watches.add(mode, serverPath, watch));
    return this.#calls.onPath('addWatch', path, options, add, true);
  }

  /**
   * Loops over the events of a znode, and with `recursive` of everything below it; the znode need
   * not exist. The loop reports every gap: at the start, after a lost connection, and if the loop
   * is too slow, it delivers a `Reread`. Leaving the loop removes the watch. `WatchLoop.next` says
   * how a loop ends. Throws a KeeperError, BadArguments, for an invalid path.
   *
   * It uses persistent watches, so it requires ZooKeeper 3.6. Before 3.9 a server keeps only one
   * kind of watch per path and connection, the last one set (ZOOKEEPER-4466): with such servers,
   * neither set nor remove other watches on the same path as a loop. A server sends no events for
   * znodes that the client may not READ, and none when the client gets that permission.
   */
  watch(path: string, options: WatchLoopOptions & { readonly recursive: true }): WatchLoop<RecursiveWatchLoopEvent>;
  /** The same for one znode, and creates and deletes of its children. */
  watch(path: string, options?: WatchLoopOptions): WatchLoop;
  watch(path: string, options: WatchLoopOptions = noOptions): WatchLoop | WatchLoop<RecursiveWatchLoopEvent> {
    methodSignatures.watch.check(arguments.length, options, path);
    return new WatchLoop(this.#session, this.#calls.chroot, path, options);
  }

  /**
   * Removes watches; each listener receives an event (`DataWatchRemoved` ...), and loops on the
   * path end. Fails with NoWatcher if there is none. (ZOOKEEPER-442.)
   */
  removeWatches(path: string, options: RemoveWatchesOptions = noOptions): Promise<void> {
    const misuse = methodSignatures.removeWatches.misuse(arguments.length, options, path);
    if (misuse !== undefined) return reject(misuse);
    const { type = 'any', watch, local = false } = options;
    return this.#calls.runner.runWithRetries('removeWatches', path, options, true, async (limits) => {
      checkPath(path);
      await this.#calls.watches.remove(this.#calls.chroot.prepend(path), { type, watch, local }, limits);
    });
  }

  // --- The ensemble

  /**
   * Returns the configuration of the ensemble, whatever the chroot (ZooKeeper's `getConfig`,
   * ZOOKEEPER-107). Empty on a standalone server. Fails with NoAuth.
   */
  getConfig(options: ReadOptions = noOptions): Promise<GetDataResult> {
    const misuse = methodSignatures.getConfig.misuse(arguments.length, options);
    if (misuse !== undefined) return reject(misuse);
    return this.#calls.read('getConfig', systemPath.config, options, () =>
      getDataOperation(systemPath.config, this.#calls.watchRecorder(systemPath.config, options.watch)),
    );
  }

  /**
   * Changes the members of the ensemble, and returns the new configuration. Fails with
   * ReconfigDisabled, NewConfigNoQuorum, ReconfigInProgress, BadVersion, BadArguments, NoAuth.
   * (ZooKeeperAdmin's `reconfigure`, ZOOKEEPER-107.)
   */
  reconfig(options: ReconfigOptions): Promise<GetDataResult> {
    const misuse = methodSignatures.reconfig.misuse(arguments.length, options);
    if (misuse !== undefined) return reject(misuse);
    return this.#calls.runner.call('reconfig', systemPath.config, options, () => reconfigOperation(options));
  }

  // --- Operators

  /**
   * Returns which server leads, as the server of this connection knows it. Fails with Unimplemented
   * if that is a server of ZooKeeper, which closes the connection besides. (Ours.)
   */
  getLeader(options: CallOptions = noOptions): Promise<LeaderInfo> {
    const misuse = methodSignatures.getLeader.misuse(arguments.length, options);
    if (misuse !== undefined) return reject(misuse);
    return this.#calls.runner.call('getLeader', undefined, options, getLeaderOperation, true);
  }

  /**
   * Asks for another leader: `to`, or by default the follower with the highest priority. Resolves
   * when the leader has begun to give the lead away; moments later all clients lose their
   * connections and reconnect, and `getLeader` returns the new one. Sessions live on, except local
   * ones, which end. If `to` does not acknowledge everything within half of syncLimit, the old one
   * goes on.
   *
   * Requires the permission to write /zookeeper/config, as `reconfig` does. Fails with NoAuth;
   * BadVersion if `to` leads already; BadArguments if it has no vote; NewConfigNoQuorum if it is not
   * in step with the leader; ReconfigInProgress during a reconfiguration or another transfer; and
   * Unimplemented on a standalone server, with a leader or a follower of ZooKeeper. (Ours.)
   */
  transferLeader(options: TransferLeaderOptions = noOptions): Promise<void> {
    const misuse = methodSignatures.transferLeader.misuse(arguments.length, options);
    if (misuse !== undefined) return reject(misuse);
    return this.#calls.runner.call('transferLeader', systemPath.config, options, () => transferLeaderOperation(options.to));
  }

  /**
   * Lets the server of this connection close `share` of its other connections, from 0 to 1, so that
   * their clients connect to other servers: in random order, about 500 a second, each after the
   * replies that it waits for. Their sessions live on, except local ones, which end at another
   * server. Returns how many.
   *
   * Requires the permission to write /zookeeper/config. Fails with NoAuth, and with Unimplemented if
   * the server is one of ZooKeeper. (The admin command `shed_connections` of ZooKeeper's master
   * branch.)
   */
  shedConnections(share: number, options: CallOptions = noOptions): Promise<number> {
    const misuse = methodSignatures.shedConnections.misuse(arguments.length, options, share);
    if (misuse !== undefined) return reject(misuse);
    return this.#calls.runner.call('shedConnections', systemPath.config, options, () => shedConnectionsOperation(share));
  }
}

function reject(misuse: unknown): Promise<never> {
  return Promise.reject(misuse);
}

function badArgumentsFailure(reason: string): RequestFailure {
  return new RequestFailure(ErrorCode.BadArguments, 'notSent', reason);
}
