/**
 * A standalone ZooKeeper server as plain as possible: the expectation of the tests.
 *
 * It keeps znodes as plain objects in a map by path, carries out one request after the other
 * completely, and returns what every connection must receive, in order. It is meant to be obviously
 * right and need not be fast. It shares no code with the server, only the names of the protocol's
 * numbers.
 *
 * A server validates a write when it arrives and applies it once it is on disk; in between, other
 * reads see the older state. A test that compares a server with this model therefore calls `admit`
 * when a request arrives (identities and the clock count from then) and `perform` when its effects
 * become visible. The order of `perform` calls is the order of zxids.
 *
 * This file has the sessions and sends each request to the object that answers it: write-requests,
 * read-requests, multi-requests or watches. Those act on the tree, the connections and the outbox.
 */
import { ErrorCode, OpCode, Perms, Xid } from '@tskeeper/protocol';
import { AccessRules, type Id } from './access-rules.ts';
import { type Admitted, isKeeperOperation, isWrite } from './admitted-request.ts';
import { Connections } from './connections.ts';
import { type ModelOptions, modelDefaults } from './model-options.ts';
import { ModelTree, statOf } from './model-tree.ts';
import { MultiRequests } from './multi-requests.ts';
import { Membership } from './membership.ts';
import type { AclEntry, Body, ConnectRequest, Data, Operation, Stat } from './operation-types.ts';
import { type ModelOutput, Outbox } from './outbox.ts';
import { PageRequests } from './page-requests.ts';
import { QuotaRule } from './quota-rule.ts';
import { ReadRequests } from './read-requests.ts';
import { Refusal } from './refusal.ts';
import { sessionPassword } from './session-password.ts';
import { treeDigest } from './tree-digest.ts';
import { virtualZnode } from './virtual-znodes.ts';
import { Watches } from './watches.ts';
import { WriteRequests } from './write-requests.ts';

interface Session {
  readonly timeoutMs: number;
}

interface Answer {
  readonly err: number;
  readonly body: Body | null;
}

/** A znode as tests compare it. */
interface ZnodeContent {
  readonly stat: Stat;
  readonly data: Data;
  readonly acl: readonly AclEntry[];
}

const ok = (body: Body | null): Answer => ({ err: ErrorCode.Ok, body });

export class ReferenceModel {
  readonly #options: ModelOptions;
  readonly #tree: ModelTree;
  #sessions = new Map<bigint, Session>();
  readonly #outbox = new Outbox();
  readonly #connections = new Connections(this.#outbox);
  readonly #access: AccessRules;
  readonly quotaRule: QuotaRule;
  readonly membership: Membership;
  readonly #watches: Watches;
  readonly #writes: WriteRequests;
  readonly #reads: ReadRequests;
  readonly #pages: PageRequests;
  readonly #multis: MultiRequests;

  constructor(options: Partial<ModelOptions> = {}) {
    this.#options = { ...modelDefaults, ...options };
    const { enforceQuota, localSessions, watchesPerCnxnMax } = this.#options;
    const outbox = this.#outbox;
    const connections = this.#connections;
    const tree = (this.#tree = new ModelTree(this.#options));
    const access = (this.#access = new AccessRules(this.#options));
    const quotaRule = (this.quotaRule = new QuotaRule(enforceQuota, tree));
    const watches = (this.#watches = new Watches(watchesPerCnxnMax, tree, connections, access, outbox));
    const isLocal = (session: bigint) => localSessions && !this.#sessions.has(session);
    const writes = (this.#writes = new WriteRequests(this.#options, tree, access, quotaRule, watches, outbox, isLocal));
    this.membership = new Membership(tree, access, watches);
    const reads = (this.#reads = new ReadRequests(tree, access, connections, watches));
    this.#pages = new PageRequests(this.#options.juteMaxBuffer, tree, access, connections, watches);
    this.#multis = new MultiRequests(this.#options, { tree, connections, outbox, quotaRule }, writes, reads);
  }

  // --- what a test sets and sees

  get zxid(): number {
    return this.#tree.zxid;
  }

  /** Sets the znode with the configuration of the ensemble. */
  configure(text: string): void {
    const mzxid = Number.parseInt(/^version=([0-9a-f]+)$/m.exec(text)?.[1] ?? '0', 16);
    Object.assign(this.#tree.get('/zookeeper/config')!, { data: text, version: -1, mzxid });
  }

  /** A write took place that the model does not follow. */
  skipZxid(): void {
    this.#tree.zxid++;
  }

  /** Lets a history begin at a later zxid. */
  setZxid(zxid: number): void {
    this.#tree.zxid = zxid;
  }

  /** Lets a test begin near the end of a counter. */
  setCreates(path: string, creates: number): void {
    this.#tree.get(path)!.creates = creates;
  }

  /** A znode's data, ACL and stat, without a permission check. */
  lookUp(path: string): ZnodeContent | undefined {
    const znode = this.#tree.get(path);
    return znode === undefined ? undefined : { stat: statOf(znode), data: znode.data, acl: znode.acl };
  }

  /** Whether a connection exists: not after its session has ended. */
  hasCnxn(cnxn: number): boolean {
    return this.#connections.has(cnxn);
  }

  ephemeralsOf(session: bigint): string[] {
    return this.#tree.ephemeralsOf(session);
  }

  /** Whether these identities may read a znode with this ACL. */
  mayRead(acl: readonly AclEntry[], identities: readonly Id[]): boolean {
    return this.#access.isPermitted(acl, Perms.read, identities);
  }

  /** The number of znodes, with the root counted once. */
  get znodeCount(): number {
    return this.#tree.znodeCount;
  }

  /** Znodes that a client could delete. */
  leaves(): string[] {
    return [...this.#tree.entries()]
      .filter(([path, { children }]) => children.size === 0 && !path.startsWith('/zookeeper/'))
      .map(([path]) => path);
  }

  /** Every path with its stat, data and ACL: a server must have the same after a run. */
  contents(): Map<string, ZnodeContent> {
    const all = new Map<string, ZnodeContent>();
    for (const [path, znode] of this.#tree.entries()) {
      if (path !== '') all.set(path, { stat: statOf(znode), data: znode.data, acl: znode.acl });
    }
    return all;
  }

  /** Live sessions and the timeouts negotiated when they were created. */
  sessions(): Map<bigint, number> {
    return new Map([...this.#sessions].map(([session, { timeoutMs }]) => [session, timeoutMs]));
  }

  /** The tree digest, version 2. */
  digest(wallMsOf: (modelMs: number) => number = (ms) => ms, sessionOf: (session: bigint) => bigint = (id) => id): bigint {
    return treeDigest(this.#tree, { wallMsOf, sessionOf });
  }

  // --- connections and sessions

  connect(cnxn: number, remoteAddress: string): void {
    this.#connections.open(cnxn, remoteAddress);
  }

  /** `newSession` is the id that the server grants if it creates a session. */
  handshake(cnxn: number, request: ConnectRequest, newSession: bigint): ModelOutput[] {
    return this.#outbox.collect(() => {
      if (request.lastZxidSeen > this.#tree.zxid) {
        this.#connections.close(cnxn);
        return;
      }
      const { minSessionTimeoutMs, maxSessionTimeoutMs } = this.#options;
      const timeOut = Math.min(Math.max(request.timeOut, minSessionTimeoutMs), maxSessionTimeoutMs);
      const readOnly = request.readOnly === undefined ? {} : { readOnly: false };
      let session = request.sessionId;
      if (session === 0n) {
        session = newSession;
        this.openSession(session, timeOut);
      } else {
        // Even a request with a wrong password closes the connection that has the session: it is
        // closed before the password is checked.
        this.#closeCnxnsOf(session, cnxn);
        if (request.passwd !== sessionPassword(session) || !this.#sessions.has(session)) {
          const passwd = '\0'.repeat(16);
          this.#outbox.send(cnxn, { kind: 'connected', timeOut: 0, sessionId: 0n, passwd, ...readOnly });
          this.#connections.close(cnxn);
          return;
        }
      }
      this.#connections.get(cnxn).session = session;
      this.#outbox.send(cnxn, { kind: 'connected', timeOut, sessionId: session, passwd: sessionPassword(session), ...readOnly });
    });
  }

  /**
   * The connection gets a session that existed before; other connections with it stay as they are.
   */
  attach(cnxn: number, session: bigint): void {
    this.#connections.get(cnxn).session = session;
  }

  /** A session is created, maybe over a connection that the model does not follow. */
  openSession(session: bigint, timeoutMs: number): void {
    this.#tree.zxid++;
    this.#sessions.set(session, { timeoutMs });
  }

  /** The connection is closed, by either side. */
  disconnected(cnxn: number): void {
    this.#connections.drop(cnxn);
  }

  /** The session has timed out. */
  expire(session: bigint): ModelOutput[] {
    return this.#outbox.collect(() => {
      this.#tree.zxid++;
      this.#endSession(session);
      this.#closeCnxnsOf(session);
    });
  }

  #endSession(session: bigint): void {
    this.#sessions.delete(session);
    // The order in which a session's ephemerals are deleted is not defined.
    this.#outbox.inAnyOrder(() => {
      for (const path of this.#tree.ephemeralsOf(session)) this.#writes.remove(path);
    });
  }

  #closeCnxnsOf(session: bigint, exceptCnxn?: number): void {
    for (const [cnxn, state] of this.#connections.entries()) {
      if (cnxn !== exceptCnxn && state.session === session) this.#connections.close(cnxn);
    }
  }

  // --- the container manager

  /**
   * One round of the container manager: the containers and TTL znodes that are due. Each is deleted
   * in a txn of its own.
   */
  sweepCandidates(wallMs: number): string[] {
    const due: string[] = [];
    for (const [path, znode] of this.#tree.entries()) {
      if (znode.children.size > 0) continue;
      const ageMs = wallMs - znode.mtime;
      const never = this.#options.containerMaxNeverUsedIntervalMs;
      if (znode.owner.kind === 'container' && (znode.creates > 0 || (never !== 0 && ageMs > never))) due.push(path);
      if (znode.owner.kind === 'ttl' && ageMs > znode.owner.ttl) due.push(path);
    }
    return due;
  }

  /** The server's own deleteContainer. */
  sweep(path: string): ModelOutput[] {
    return this.#outbox.collect(() => {
      this.#tree.zxid++;
      this.#writes.maybeSweep(path);
    });
  }

  /** The server's own records of numbers of sequential znodes, by path: one txn. */
  recordSequences(records: readonly { readonly path: string; readonly data: Data }[], wallMs: number): ModelOutput[] {
    return this.#outbox.collect(() => {
      this.#tree.zxid++;
      for (const { path, data } of records) this.#writes.recordSequence(path, data, wallMs);
    });
  }

  /** How many children have been created below a znode so far; undefined if it does not exist. */
  createsOf(path: string): number | undefined {
    return this.#tree.get(path)?.creates;
  }

  // --- requests

  admit(cnxn: number, xid: number, operation: Operation, wallMs: number): Admitted {
    const state = this.#connections.get(cnxn);
    return { cnxn, session: state.session!, xid, operation, identities: [...state.identities], wallMs };
  }

  perform(request: Admitted): ModelOutput[] {
    return this.#outbox.collect(() => {
      const { cnxn, xid, operation } = request;
      if (this.#answerWithoutTree(cnxn, xid, operation)) return;
      // A refused write takes a zxid like any other. Java gives an undecodable one the zxid of its
      // predecessor, except in a multi.
      const undecodable = operation.kind === 'undecodable';
      if (isWrite(operation) || operation.kind === 'deleteContainer') {
        if (!(this.#options.javaCompatible && undecodable && operation.opCode !== OpCode.multi)) this.#tree.zxid++;
      }
      let err: number = ErrorCode.Ok;
      let body: Body | null = null;
      try {
        ({ err, body } = this.#answer(request));
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        err = error.code;
      }
      this.#outbox.send(cnxn, { kind: 'reply', xid, zxid: this.#tree.zxid, err, body });
      if (operation.kind === 'closeSession') this.#connections.close(cnxn);
    });
  }

  /** What a write would return if it were performed now. Nothing changes. */
  preview(request: Admitted): ModelOutput[] {
    const tree = this.#tree.copy();
    const cnxns = this.#connections.save();
    const sessions = new Map(this.#sessions);
    const { oracle } = this.quotaRule;
    // The oracle records each question.
    this.quotaRule.oracle = undefined;
    const outputs = this.perform(request);
    this.quotaRule.oracle = oracle;
    this.#tree.restore(tree);
    this.#connections.restore(cnxns);
    this.#sessions = sessions;
    return outputs;
  }

  /** Requests that are answered without the tree. Returns whether this is one. */
  #answerWithoutTree(cnxn: number, xid: number, operation: Operation): boolean {
    if (operation.kind === 'auth') {
      const accepted = this.#access.authenticate(this.#connections.get(cnxn).identities, operation.scheme, operation.auth);
      this.#outbox.send(cnxn, { kind: 'reply', xid, zxid: 0, err: accepted ? 0 : ErrorCode.AuthFailed, body: null });
      if (!accepted) this.#connections.close(cnxn);
    } else if (operation.kind === 'sasl') {
      this.#access.proveByToken(this.#connections.get(cnxn).identities, operation.token);
      // The tokens of a server are random: they are not compared.
      this.#outbox.send(cnxn, { kind: 'reply', xid, zxid: 0, err: 0, body: { token: null } });
    } else if (operation.kind === 'ping') {
      this.#outbox.send(cnxn, { kind: 'reply', xid: Xid.ping, zxid: this.#tree.zxid, err: 0, body: null });
    } else if (
      operation.kind === 'unknown' ||
      operation.kind === 'check' ||
      (isKeeperOperation(operation) && !this.#options.keeperExtensions) ||
      (operation.kind === 'deleteContainer' && !this.#options.javaCompatible)
    ) {
      this.#outbox.send(cnxn, { kind: 'reply', xid, zxid: -1, err: ErrorCode.Unimplemented, body: null });
      this.#connections.close(cnxn);
    } else {
      return false;
    }
    return true;
  }

  #answer(request: Admitted): Answer {
    const { operation } = request;
    switch (operation.kind) {
      case 'create':
      case 'create2':
      case 'createContainer':
      case 'createTTL':
      case 'delete':
      case 'setData':
      case 'checkNotExists':
      case 'checkStat':
      case 'createIfNotExists':
      case 'removeRecursive':
      case 'tryRemove':
        return ok(this.#writes.perform(operation, request).body ?? null);
      case 'setACL':
        return ok({ stat: this.#writes.setAcl(operation, request) });
      case 'deleteContainer':
        this.#writes.deleteContainer(operation.path);
        return ok(null);
      case 'multi':
        return ok({ results: this.#multis.multi(operation.steps, request) });
      case 'multiRead':
        return this.#multis.multiRead(operation.steps, request);
      case 'reconfig':
        if (!this.#options.reconfigEnabled) throw new Refusal(ErrorCode.ReconfigDisabled);
        return ok(this.membership.perform(operation, request));
      case 'closeSession':
        this.#endSession(request.session);
        return ok(null);
      case 'filteredList':
        return ok(this.#reads.filtered(operation.path, operation.watch, operation.filter, request));
      case 'filteredListWithStatsAndData':
        return ok(this.#reads.filteredWithContents(operation, request));
      case 'listRecursive':
        return ok(this.#reads.recursive(operation.path, operation.limit, request));
      case 'getChildrenPage':
      case 'getChildrenDataPage':
        return ok(this.#pages.page(operation, request));
      case 'getData':
      case 'getChildren':
        if (operation.kind === 'getData' && operation.path !== null && this.#tree.get(operation.path) === undefined) {
          const virtual = virtualZnode(operation.path, this.#options.keeperExtensions);
          if (virtual !== undefined) return ok(virtual);
        }
        return ok(this.#reads.perform(operation, request, operation.watch));
      case 'getChildren2':
        return ok(this.#reads.children2(operation.path, request, operation.watch));
      case 'exists':
        return ok({ stat: this.#reads.exists(operation.path, request, operation.watch) });
      case 'getACL':
        return ok(this.#reads.acl(operation.path, request));
      case 'getAllChildrenNumber':
        return ok({ totalNumber: this.#reads.allChildrenNumber(operation.path, request) });
      case 'getEphemerals':
        return ok({ ephemerals: this.#reads.ephemerals(operation.prefixPath, request) });
      case 'sync':
        return ok({ path: operation.path });
      case 'whoAmI':
        return ok(this.#reads.whoAmI(request));
      case 'checkWatches':
      case 'removeWatches':
        this.#watches.checkOrRemove(operation, request.cnxn);
        return ok(null);
      case 'addWatch':
        this.#watches.add(operation.path, operation.mode, request.cnxn);
        return ok({ err: 0 });
      case 'setWatches':
        this.#watches.setAgain({ ...operation, persistentWatches: [], persistentRecursiveWatches: [] }, request.cnxn);
        return ok(null);
      case 'setWatches2':
        this.#watches.setAgain(operation, request.cnxn);
        return ok(null);
      case 'undecodable':
        throw new Refusal(ErrorCode.MarshallingError);
      case 'auth':
      case 'sasl':
      case 'ping':
      case 'getLeader':
      case 'transferLeader':
      case 'shedConnections':
      case 'unknown':
      case 'check':
        throw new Error(`${operation.kind} must be answered without the tree`);
      default:
        operation satisfies never;
        throw new Error('unknown operation');
    }
  }
}
