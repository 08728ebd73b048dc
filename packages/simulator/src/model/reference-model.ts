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
 */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { AddWatchMode, CreateMode, ErrorCode, EventType, KeeperState, OpCode, Perms, WatcherType, Xid } from '@tskeeper/protocol';
import type {
  AclEntry,
  Body,
  ConnectRequest,
  Data,
  Message,
  MultiResult,
  Operation,
  Path,
  ReadStep,
  Stat,
  WriteStep,
} from './operation-types.ts';

export interface ModelOptions {
  readonly extendedTypesEnabled: boolean;
  readonly enforceQuota: boolean;
  readonly skipAcl: boolean;
  readonly digestAuthEnabled: boolean;
  readonly superDigest: string | undefined;
  readonly reconfigEnabled: boolean;
  readonly minSessionTimeoutMs: number;
  readonly maxSessionTimeoutMs: number;
  /** znode.container.maxNeverUsedIntervalMs */
  readonly containerMaxNeverUsedIntervalMs: number;
  /**
   * Maximum watches of one connection: paths in its two tables, whatever the modes. A request for
   * more gets ThrottledOp.
   */
  readonly watchesPerCnxnMax: number;
  /**
   * Maximum number of identities of one connection, including its address, and their length as
   * `vector<Id>` without the count.
   */
  readonly identitiesPerCnxnMax: number;
  readonly identityBytesPerCnxnMax: number;
  /**
   * Whether to answer as Apache ZooKeeper 3.9.5 where this project deliberately differs:
   * deleteContainer accepted from clients, the zxid of an undecodable write, the counter of
   * sequential znodes that stops at 2147483647, half a reply to a multiRead with a null path, and
   * the descendants of ''.
   */
  readonly javaCompatible: boolean;
}

export const modelDefaults: ModelOptions = {
  extendedTypesEnabled: false,
  enforceQuota: false,
  skipAcl: false,
  digestAuthEnabled: true,
  superDigest: undefined,
  reconfigEnabled: false,
  minSessionTimeoutMs: 6000,
  maxSessionTimeoutMs: 60_000,
  watchesPerCnxnMax: Infinity,
  identitiesPerCnxnMax: Infinity,
  identityBytesPerCnxnMax: Infinity,
  containerMaxNeverUsedIntervalMs: 0,
  javaCompatible: false,
};

export interface Id {
  readonly scheme: string;
  readonly id: string;
}

interface Acl {
  readonly perms: number;
  readonly scheme: string;
  readonly id: string;
}

type Owner =
  | { readonly kind: 'persistent' | 'container' }
  | { readonly kind: 'ephemeral'; readonly session: bigint }
  | { readonly kind: 'ttl'; readonly ttl: number };

interface Znode {
  readonly children: Set<string>;
  readonly czxid: number;
  readonly ctime: number;
  readonly owner: Owner;
  data: Data;
  acl: readonly Acl[];
  mzxid: number;
  mtime: number;
  pzxid: number;
  version: number;
  /** Counts creates only; clients see 2 x this - children. */
  creates: number;
  aversion: number;
}

type WatchMode = 'standard' | 'persistent' | 'recursive';
type WatchTable = Map<string, Set<WatchMode>>;

interface Cnxn {
  readonly identities: Id[];
  readonly dataWatches: WatchTable;
  readonly childWatches: WatchTable;
  session: bigint | undefined;
}

interface Session {
  readonly timeoutMs: number;
}

/** A request that has arrived, with the identities and the clock of that moment. */
export interface Admitted {
  readonly cnxn: number;
  readonly session: bigint;
  readonly xid: number;
  readonly operation: Operation;
  readonly identities: readonly Id[];
  readonly wallMs: number;
}

/** A message that a connection must receive. */
export interface ModelOutput {
  readonly cnxn: number;
  readonly message: Message;
  /**
   * The server may send these events of one zxid in any order: they come from a set of ephemerals.
   */
  readonly anyOrder?: boolean;
}

/** The state to which a failed multi is rolled back. */
interface SavedState {
  readonly znodes: Map<string, Znode>;
  readonly quotaPaths: Set<string>;
  readonly cnxns: Map<number, Cnxn>;
}

/**
 * A refusal, thrown while a request is processed and turned into its reply. Not an Error, since
 * half of all requests end so and a stack is expensive.
 */
class Refusal {
  readonly code: number;
  constructor(code: number) {
    this.code = code;
  }
}

const quotaRoot = '/zookeeper/quota';
const limitsName = 'zookeeper_limits';
const statsName = 'zookeeper_stats';
const reservedPaths: ReadonlySet<string> = new Set(['/', '/zookeeper', quotaRoot, '/zookeeper/config']);
const ttlMaxMs = 2 ** 40 - 1;
const openAcl: readonly Acl[] = [{ perms: Perms.all, scheme: 'world', id: 'anyone' }];

const writeKinds = new Set<Operation['kind']>([
  'create',
  'create2',
  'createContainer',
  'createTTL',
  'delete',
  'setData',
  'setACL',
  'multi',
  'reconfig',
  'closeSession',
]);
const writeOpCodes = new Set<number>([
  OpCode.create,
  OpCode.create2,
  OpCode.createContainer,
  OpCode.createTTL,
  OpCode.delete,
  OpCode.setData,
  OpCode.setACL,
  OpCode.multi,
  OpCode.reconfig,
]);

/** Whether a request becomes a txn, and so waits for the log, whatever its result. */
export function isWrite(operation: Operation): boolean {
  return operation.kind === 'undecodable' ? writeOpCodes.has(operation.opCode) : writeKinds.has(operation.kind);
}

function isReadStep(step: WriteStep | ReadStep): step is ReadStep {
  return step.kind === 'getData' || step.kind === 'getChildren';
}

const toInt32 = (value: number): number => value | 0;

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** The rules of a well-formed path, component by component and UTF-16 unit by UTF-16 unit. */
export function isValidPath(path: string): boolean {
  if (path === '/') return true;
  if (!path.startsWith('/') || path.endsWith('/')) return false;
  for (const name of path.slice(1).split('/')) {
    if (name === '' || name === '.' || name === '..') return false;
  }
  for (let i = 0; i < path.length; i++) {
    const unit = path.charCodeAt(i);
    if (unit <= 0x1f || (unit >= 0x7f && unit <= 0x9f) || (unit >= 0xd800 && unit <= 0xf8ff) || unit >= 0xfff0) return false;
  }
  return true;
}

/**
 * Sixteen bytes derived from the id alone by the generator of java.util.Random, so that every
 * server can compute them.
 */
export function sessionPassword(session: bigint): string {
  const mask = (1n << 48n) - 1n;
  let state = (BigInt.asUintN(64, session ^ 0xb3415c00n) ^ 0x5deece66dn) & mask;
  let password = '';
  for (let i = 0; i < 4; i++) {
    state = (state * 0x5deece66dn + 0xbn) & mask;
    const word = Number(state >> 16n) >>> 0;
    for (let shift = 0; shift < 32; shift += 8) password += String.fromCharCode((word >>> shift) & 0xff);
  }
  return password;
}

export function digestId(userAndPassword: string): string {
  const hash = createHash('sha1').update(userAndPassword, 'utf8').digest('base64');
  return `${userAndPassword.split(':')[0]}:${hash}`;
}

/** The bytes of an address, or undefined if it is invalid. */
function addressBytes(text: string): number[] | undefined {
  if (text.includes(':')) {
    const halves = text.split('::');
    const groups = halves.map((half) => (half === '' && halves.length === 2 ? [] : half.split(':')));
    const present = groups.flat();
    if (halves.length > 2 || !present.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return undefined;
    if (halves.length === 1 ? present.length !== 8 : present.length >= 8) return undefined;
    const zeros = Array.from({ length: 8 - present.length }, () => '0');
    const all = halves.length === 1 ? present : [...groups[0]!, ...zeros, ...groups[1]!];
    return all.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff]);
  }
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  const bytes = parts.map((part) => (/^[+-]?\d+$/.test(part) ? Number(part) : -1));
  return bytes.every((byte) => byte >= 0 && byte <= 255) ? bytes : undefined;
}

/** `addr` or `addr/bits`, as address bits and the number of bits that count. */
function addressRange(text: string): { bits: string; prefix: number } | undefined {
  const slash = text.indexOf('/');
  const bytes = addressBytes(slash < 0 ? text : text.slice(0, slash));
  if (bytes === undefined) return undefined;
  const bits = bytes.map((byte) => byte.toString(2).padStart(8, '0')).join('');
  if (slash < 0) return { bits, prefix: bits.length };
  const suffix = text.slice(slash + 1);
  const prefix = /^[+-]?\d+$/.test(suffix) ? Number(suffix) : -1;
  return prefix >= 0 && prefix <= bits.length ? { bits, prefix } : undefined;
}

/** Java's split drops empty parts at the end, so `a:b:` has two parts as well. */
function isValidDigestId(id: string): boolean {
  return id.replace(/:+$/, '').split(':').length === 2 && id.replace(/:+$/, '') !== '';
}

function isValidAclId(scheme: string, id: string, digestAuthEnabled: boolean): boolean {
  if (scheme === 'world') return id === 'anyone';
  if (scheme === 'ip') return addressRange(id) !== undefined;
  return scheme === 'digest' && digestAuthEnabled && isValidDigestId(id);
}

export function parseQuota(data: Data): Map<string, number> {
  const values = new Map<string, number>();
  for (const pair of (data ?? '').split(/[,;]+/)) {
    const [key, value] = pair.split('=');
    if (key !== undefined && key !== '') values.set(key, value === undefined || value === '' ? -1 : Number(value));
  }
  return values;
}

export function formatQuota(values: ReadonlyMap<string, number>): string {
  const more = [...values.keys()].filter((key) => key !== 'count' && key !== 'bytes').sort();
  const head = `count=${values.get('count') ?? -1},bytes=${values.get('bytes') ?? -1}`;
  return more.length === 0 ? head : `${head}=${more.map((key) => `;${key}=${values.get(key)}`).join('')}`;
}

/**
 * The limits of each quota, and its usage if there is such a znode, by the path that has the quota.
 */
export type Quotas = ReadonlyMap<string, { readonly limits: Data; readonly usage: Data | undefined }>;

/** What a request would add, and where. */
export interface QuotaCheck {
  readonly path: string;
  readonly bytes: number;
  readonly count: number;
  /** The index of the operation in a multi; 0 for any other request. */
  readonly part: number;
}

/**
 * Whether a hard limit of the nearest quota upwards, the path itself included, would be exceeded.
 */
export function exceedsQuota(quotas: Quotas, { path, bytes, count }: QuotaCheck): boolean {
  const quotaPath = [path, ...ancestorsOf(path)].find((candidate) => quotas.has(candidate));
  const quota = quotaPath === undefined ? undefined : quotas.get(quotaPath)!;
  if (quota?.usage === undefined) return false;
  const limits = parseQuota(quota.limits);
  const usage = parseQuota(quota.usage);
  const over = (growth: number, hardLimit: string, counter: string): boolean => {
    const hard = limits.get(hardLimit) ?? -1;
    return growth !== 0 && hard > -1 && (usage.get(counter) ?? -1) + growth > hard;
  };
  return over(count, 'countHardLimit', 'count') || over(bytes, 'byteHardLimit', 'bytes');
}

const byteCount = (data: Data): number => data?.length ?? 0;

export class ReferenceModel {
  readonly #options: ModelOptions;
  /**
   * Every znode by its path. The root is here twice, as '' (the parent of top-level znodes) and as
   * '/'.
   */
  #znodes = new Map<string, Znode>();
  #sessions = new Map<bigint, Session>();
  #cnxns = new Map<number, Cnxn>();
  /** Paths that have a zookeeper_limits znode. */
  #quotaPaths = new Set<string>();
  /** While a multi is validated: the state before its first operation. */
  #quotaView: SavedState | undefined;
  #part = 0;
  /**
   * If set, it decides instead of the model whether a request exceeds a quota. A server compares
   * the request with its tree, which may lag the last proposal.
   */
  quotaOracle: ((question: QuotaCheck) => boolean) | undefined;
  #zxid = 0;
  #outputs: ModelOutput[] = [];
  /** Set while a session's ephemerals are deleted, in an order that is not defined. */
  #anyOrder = false;

  constructor(options: Partial<ModelOptions> = {}) {
    this.#options = { ...modelDefaults, ...options };
    const make = (acl: readonly Acl[], aversion: number, ...children: string[]): Znode => ({
      children: new Set(children),
      czxid: 0,
      ctime: 0,
      owner: { kind: 'persistent' },
      data: '',
      acl,
      mzxid: 0,
      mtime: 0,
      pzxid: 0,
      version: 0,
      creates: 0,
      aversion,
    });
    const root = make(openAcl, 0, 'zookeeper');
    this.#znodes.set('', root);
    this.#znodes.set('/', root);
    this.#znodes.set('/zookeeper', make(openAcl, 0, 'quota', 'config'));
    this.#znodes.set(quotaRoot, make(openAcl, 0));
    this.#znodes.set('/zookeeper/config', make([{ perms: Perms.read, scheme: 'world', id: 'anyone' }], -1));
  }

  get zxid(): number {
    return this.#zxid;
  }

  /** Sets the znode with the configuration of the ensemble. */
  configure(text: string): void {
    Object.assign(this.#znodes.get('/zookeeper/config')!, { data: text, version: -1 });
  }

  /** A write took place that the model does not follow. */
  skipZxid(): void {
    this.#zxid++;
  }

  /** Lets a history begin at a later zxid. */
  setZxid(zxid: number): void {
    this.#zxid = zxid;
  }

  /** A znode's data, ACL and stat, without a permission check. */
  lookUp(path: string): { readonly data: Data; readonly acl: readonly AclEntry[]; readonly stat: Stat } | undefined {
    const znode = this.#znodes.get(path);
    return znode === undefined ? undefined : { data: znode.data, acl: znode.acl, stat: this.#statOf(znode) };
  }

  /** Whether a connection exists: not after its session has ended. */
  hasCnxn(cnxn: number): boolean {
    return this.#cnxns.has(cnxn);
  }

  ephemeralsOf(session: bigint): string[] {
    return this.#ephemeralsOf(session);
  }

  /** Whether these identities may read a znode with this ACL. */
  mayRead(acl: readonly AclEntry[], identities: readonly Id[]): boolean {
    return this.#isPermitted(acl as readonly Acl[], Perms.read, identities);
  }

  /** The number of znodes, with the root counted once. */
  get znodeCount(): number {
    return this.#znodes.size - 1;
  }

  /** Znodes that a client could delete. */
  leaves(): string[] {
    return [...this.#znodes].filter(([path, { children }]) => children.size === 0 && !path.startsWith('/zookeeper/')).map(([path]) => path);
  }

  // --- connections and sessions

  connect(cnxn: number, remoteAddress: string): void {
    this.#cnxns.set(cnxn, {
      identities: [{ scheme: 'ip', id: remoteAddress }],
      dataWatches: new Map(),
      childWatches: new Map(),
      session: undefined,
    });
  }

  /** `newSession` is the id that the server grants if it creates a session. */
  handshake(cnxn: number, request: ConnectRequest, newSession: bigint): ModelOutput[] {
    return this.#collectOutputs(() => {
      if (request.lastZxidSeen > this.#zxid) {
        this.#close(cnxn);
        return;
      }
      const { minSessionTimeoutMs, maxSessionTimeoutMs } = this.#options;
      const timeOut = Math.min(Math.max(request.timeOut, minSessionTimeoutMs), maxSessionTimeoutMs);
      const readOnly = request.readOnly === undefined ? {} : { readOnly: false };
      let session = request.sessionId;
      if (session === 0n) {
        session = newSession;
        this.#zxid++;
        this.#sessions.set(session, { timeoutMs: timeOut });
      } else {
        // Even a request with a wrong password closes the connection that has the session: it is
        // closed before the password is checked.
        for (const [other, state] of this.#cnxns) if (other !== cnxn && state.session === session) this.#close(other);
        if (request.passwd !== sessionPassword(session) || !this.#sessions.has(session)) {
          const passwd = '\0'.repeat(16);
          this.#send(cnxn, { kind: 'connected', timeOut: 0, sessionId: 0n, passwd, ...readOnly });
          this.#close(cnxn);
          return;
        }
      }
      this.#cnxns.get(cnxn)!.session = session;
      this.#send(cnxn, { kind: 'connected', timeOut, sessionId: session, passwd: sessionPassword(session), ...readOnly });
    });
  }

  /**
   * The connection gets a session that existed before; other connections with it stay as they are.
   */
  attach(cnxn: number, session: bigint): void {
    this.#cnxns.get(cnxn)!.session = session;
  }

  /** A session was created over a connection that the model does not follow. */
  openSession(session: bigint, timeoutMs: number): void {
    this.#zxid++;
    this.#sessions.set(session, { timeoutMs });
  }

  /** The connection is closed, by either side. */
  disconnected(cnxn: number): void {
    this.#cnxns.delete(cnxn);
  }

  /** The session has timed out. */
  expire(session: bigint): ModelOutput[] {
    return this.#collectOutputs(() => {
      this.#zxid++;
      this.#endSession(session);
      for (const [cnxn, state] of this.#cnxns) if (state.session === session) this.#close(cnxn);
    });
  }

  /**
   * One round of the container manager: the containers and TTL znodes that are due. Each is deleted
   * in a txn of its own.
   */
  sweepCandidates(wallMs: number): string[] {
    const due: string[] = [];
    for (const [path, znode] of this.#znodes) {
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
    return this.#collectOutputs(() => {
      this.#zxid++;
      if (this.#containerDeleteError(path) === ErrorCode.Ok) this.#remove(path);
    });
  }

  // --- requests

  admit(cnxn: number, xid: number, operation: Operation, wallMs: number): Admitted {
    const state = this.#cnxns.get(cnxn)!;
    return { cnxn, session: state.session!, xid, operation, identities: [...state.identities], wallMs };
  }

  perform(request: Admitted): ModelOutput[] {
    return this.#collectOutputs(() => {
      const { cnxn, xid, operation } = request;
      if (this.#answerWithoutTree(cnxn, xid, operation)) return;
      // A refused write takes a zxid like any other. Java gives an undecodable one the zxid of its
      // predecessor, except in a multi.
      const undecodable = operation.kind === 'undecodable';
      if (isWrite(operation) || operation.kind === 'deleteContainer') {
        if (!(this.#options.javaCompatible && undecodable && operation.opCode !== OpCode.multi)) this.#zxid++;
      }
      let err: number = ErrorCode.Ok;
      let body: Body | null = null;
      try {
        ({ err, body } = this.#answer(request));
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        err = error.code;
      }
      this.#send(cnxn, { kind: 'reply', xid, zxid: this.#zxid, err, body });
      if (operation.kind === 'closeSession') this.#close(cnxn);
    });
  }

  /** What a write would return if it were performed now. Nothing changes. */
  preview(request: Admitted): ModelOutput[] {
    const saved = this.#save();
    const { quotaOracle } = this;
    const sessions = new Map(this.#sessions);
    const zxid = this.#zxid;
    // The judge records each question.
    this.quotaOracle = undefined;
    const heard = this.perform(request);
    this.quotaOracle = quotaOracle;
    this.#restore(saved);
    this.#sessions = sessions;
    this.#zxid = zxid;
    return heard;
  }

  /** Requests that are answered without the tree. */
  #answerWithoutTree(cnxn: number, xid: number, operation: Operation): boolean {
    if (operation.kind === 'auth') {
      const accepted = this.#authenticate(cnxn, operation.scheme, operation.auth);
      this.#send(cnxn, { kind: 'reply', xid, zxid: 0, err: accepted ? 0 : ErrorCode.AuthFailed, body: null });
      if (!accepted) this.#close(cnxn);
    } else if (operation.kind === 'sasl') {
      // SASL is not configured here: an empty token ends the exchange.
      this.#send(cnxn, { kind: 'reply', xid, zxid: 0, err: 0, body: { token: null } });
    } else if (operation.kind === 'ping') {
      this.#send(cnxn, { kind: 'reply', xid: Xid.ping, zxid: this.#zxid, err: 0, body: null });
    } else if (
      operation.kind === 'unknown' ||
      operation.kind === 'check' ||
      (operation.kind === 'deleteContainer' && !this.#options.javaCompatible)
    ) {
      this.#send(cnxn, { kind: 'reply', xid, zxid: -1, err: ErrorCode.Unimplemented, body: null });
      this.#close(cnxn);
    } else {
      return false;
    }
    return true;
  }

  #answer(request: Admitted): { err: number; body: Body | null } {
    const { operation } = request;
    const ok = (body: Body | null): { err: number; body: Body | null } => ({ err: ErrorCode.Ok, body });
    switch (operation.kind) {
      case 'create':
      case 'create2':
      case 'createContainer':
      case 'createTTL':
      case 'delete':
      case 'setData':
        return ok(this.#write(operation, request).body ?? null);
      case 'setACL':
        return ok({ stat: this.#setAcl(operation, request) });
      case 'multi':
        return ok({ results: this.#multi(operation.steps, request) });
      case 'reconfig':
        // A standalone server has no ensemble to change.
        throw new Refusal(this.#options.reconfigEnabled ? ErrorCode.Unimplemented : ErrorCode.ReconfigDisabled);
      case 'closeSession':
        this.#endSession(request.session);
        return ok(null);
      case 'deleteContainer': {
        const verdict = this.#containerDeleteError(this.#requirePath(operation.path));
        if (verdict !== ErrorCode.Ok) throw new Refusal(verdict);
        this.#remove(operation.path!);
        return ok(null);
      }
      case 'multiRead':
        return this.#multiRead(operation.steps, request);
      case 'getData':
      case 'getChildren':
        return ok(this.#read(operation, request, operation.watch));
      case 'getChildren2': {
        const body = this.#read({ kind: 'getChildren', path: operation.path, watch: operation.watch }, request, operation.watch);
        return ok({ ...body, stat: this.#statOf(this.#znodes.get(operation.path!)!) });
      }
      case 'exists':
        return ok({ stat: this.#exists(operation.path, operation.watch, request) });
      case 'getACL':
        return ok(this.#getAcl(operation.path, request));
      case 'getAllChildrenNumber': {
        const path = this.#requirePath(operation.path);
        this.#requireRead(this.#requireZnode(path), request);
        return ok({ totalNumber: this.#countBelow(path) });
      }
      case 'getEphemerals': {
        const prefix = operation.prefixPath ?? '';
        const all = prefix.trim() === '' || prefix.trim() === '/';
        return ok({ ephemerals: this.#ephemeralsOf(request.session).filter((path) => all || path.startsWith(prefix)) });
      }
      case 'sync':
        return ok({ path: operation.path });
      case 'whoAmI':
        return ok({ clientInfo: request.identities.map(({ scheme, id }) => ({ authScheme: scheme, user: this.#userOf(scheme, id) })) });
      case 'checkWatches':
      case 'removeWatches':
        this.#checkOrRemoveWatches(operation, request.cnxn);
        return ok(null);
      case 'addWatch':
        this.#addWatch(operation.path, operation.mode, request.cnxn);
        return ok({ err: 0 });
      case 'setWatches':
        this.#setWatches({ ...operation, persistentWatches: [], persistentRecursiveWatches: [] }, request.cnxn);
        return ok(null);
      case 'setWatches2':
        this.#setWatches(operation, request.cnxn);
        return ok(null);
      case 'undecodable':
        throw new Refusal(ErrorCode.MarshallingError);
      case 'auth':
      case 'sasl':
      case 'ping':
      case 'unknown':
      case 'check':
        throw new Error(`${operation.kind} must be answered without the tree`);
      default:
        operation satisfies never;
        throw new Error('unknown operation');
    }
  }

  // --- writes: each step is validated completely before it is applied

  #write(step: WriteStep, request: Admitted): MultiResult {
    const err = ErrorCode.Ok;
    switch (step.kind) {
      case 'create':
      case 'create2':
      case 'createContainer':
      case 'createTTL': {
        const { path, stat } = this.#create(step, request);
        if (step.kind === 'create') return { type: OpCode.create, err, body: { path } };
        return { type: OpCode.create2, err, body: { path, stat } };
      }
      case 'delete':
        this.#delete(step.path, step.version, request);
        return { type: OpCode.delete, err };
      case 'setData':
        return { type: OpCode.setData, err, body: { stat: this.#setData(step, request) } };
      case 'check': {
        const znode = this.#requireZnode(this.#requireValidPath(step.path));
        this.#requireRead(znode, request);
        this.#requireVersion(step.version, znode.version);
        return { type: OpCode.check, err };
      }
      default:
        step satisfies never;
        throw new Error('unknown step');
    }
  }

  #create(step: Extract<WriteStep, { flags: number }>, request: Admitted): { path: string; stat: Stat } {
    const { flags } = step;
    if (flags < 0 || flags > 6) throw new Refusal(ErrorCode.BadArguments);
    const ttlMode = flags === CreateMode.persistentWithTtl || flags === CreateMode.persistentSequentialWithTtl;
    if (ttlMode && !this.#options.extendedTypesEnabled) throw new Refusal(ErrorCode.Unimplemented);
    // Only createTTL has a ttl. Java accepts one with a negative ttl and another mode, and fails
    // when it applies it.
    const ttl = step.kind === 'createTTL' ? step.ttl : -1;
    const ttlFits = ttlMode ? ttl > 0 && ttl <= ttlMaxMs : step.kind !== 'createTTL';
    if (!ttlFits) throw new Refusal(ErrorCode.BadArguments);
    const wanted = this.#requirePath(step.path);
    if (!wanted.includes('/') || wanted.includes('\0')) throw new Refusal(ErrorCode.BadArguments);
    const acl = this.#effectiveAcl(step.acl, request.identities);
    const parentPath = parentOf(wanted);
    const parent = this.#requireZnode(parentPath);
    this.#requirePermission(parent.acl, Perms.create, request.identities);
    const sequential =
      flags === CreateMode.persistentSequential ||
      flags === CreateMode.ephemeralSequential ||
      flags === CreateMode.persistentSequentialWithTtl;
    const path = sequential ? wanted + formatCounter(parent.creates) : wanted;
    if (!isValidPath(path)) throw new Refusal(ErrorCode.BadArguments);
    if (this.#znodes.has(path)) throw new Refusal(ErrorCode.NodeExists);
    if (parent.owner.kind === 'ephemeral') throw new Refusal(ErrorCode.NoChildrenForEphemerals);
    this.#requireQuota(path, byteCount(step.data), 1);

    const ephemeral = flags === CreateMode.ephemeral || flags === CreateMode.ephemeralSequential;
    // The opcode alone makes a container or a TTL znode, whatever the flags.
    const owner: Owner =
      step.kind === 'createContainer'
        ? { kind: 'container' }
        : step.kind === 'createTTL'
          ? { kind: 'ttl', ttl }
          : ephemeral
            ? { kind: 'ephemeral', session: request.session }
            : { kind: 'persistent' };
    return { path, stat: this.#add(path, step.data, acl, owner, request.wallMs) };
  }

  #delete(wanted: Path, version: number, request: Admitted): void {
    const path = this.#requirePath(wanted);
    if (!path.includes('/') || path.includes('\0') || reservedPaths.has(path)) throw new Refusal(ErrorCode.BadArguments);
    this.#requirePermission(this.#requireZnode(parentOf(path)).acl, Perms.delete, request.identities);
    const znode = this.#requireZnode(path);
    this.#requireVersion(version, znode.version);
    if (znode.children.size > 0) throw new Refusal(ErrorCode.NotEmpty);
    this.#remove(path);
  }

  #setData(step: Extract<WriteStep, { kind: 'setData' }>, request: Admitted): Stat {
    const path = this.#requireValidPath(step.path);
    const znode = this.#requireZnode(path);
    this.#requirePermission(znode.acl, Perms.write, request.identities);
    const growth = byteCount(step.data) - byteCount(znode.data);
    this.#requireQuota(path, growth, 0);
    this.#requireVersion(step.version, znode.version);
    znode.data = step.data;
    znode.version = toInt32(znode.version + 1);
    znode.mzxid = this.#zxid;
    znode.mtime = request.wallMs;
    const stat = this.#statOf(znode);
    this.#countUsage(path, growth, 0);
    this.#fire('data', path, EventType.nodeDataChanged, znode.acl);
    return stat;
  }

  #setAcl(operation: Extract<Operation, { kind: 'setACL' }>, request: Admitted): Stat {
    const path = this.#requireValidPath(operation.path);
    const acl = this.#effectiveAcl(operation.acl, request.identities);
    const znode = this.#requireZnode(path);
    this.#requirePermission(znode.acl, Perms.admin, request.identities);
    this.#requireVersion(operation.version, znode.aversion);
    znode.acl = acl;
    znode.aversion = toInt32(znode.aversion + 1);
    return this.#statOf(znode);
  }

  #containerDeleteError(path: string): number {
    if (!path.includes('/') || path.includes('\0') || reservedPaths.has(path)) return ErrorCode.BadArguments;
    const znode = this.#znodes.get(path);
    if (znode === undefined) return ErrorCode.NoNode;
    if (znode.children.size > 0) return ErrorCode.NotEmpty;
    return znode.owner.kind === 'ephemeral' ? ErrorCode.BadVersion : ErrorCode.Ok;
  }

  #endSession(session: bigint): void {
    this.#sessions.delete(session);
    this.#anyOrder = true;
    for (const path of this.#ephemeralsOf(session)) this.#remove(path);
    this.#anyOrder = false;
  }

  // --- multi

  #multi(steps: readonly (WriteStep | ReadStep)[], request: Admitted): MultiResult[] {
    const writes = steps.map((step) => this.#decodedStep(step));
    if (writes.some(({ path }) => path === null)) throw new Refusal(ErrorCode.MarshallingError);
    const before = this.#save();
    const heardBefore = this.#outputs.length;
    // Each step is validated against the tree after the steps before it, but quotas against what
    // was applied when the multi arrived.
    this.#quotaView = before;
    const results: MultiResult[] = [];
    try {
      for (const [part, step] of writes.entries()) {
        this.#part = part;
        results.push(this.#write(step, request));
      }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.#restore(before);
      this.#outputs.length = heardBefore;
      const failed = results.length;
      return writes.map((_, at) => {
        const err = at < failed ? ErrorCode.Ok : at === failed ? error.code : ErrorCode.RuntimeInconsistency;
        return { type: OpCode.error, err, body: { err } };
      });
    } finally {
      this.#part = 0;
      this.#quotaView = undefined;
    }
    return results;
  }

  /**
   * A step as the decoder reads it: stricter than outside a multi, and the flags choose the opcode.
   */
  #decodedStep(step: WriteStep | ReadStep): WriteStep {
    const marshalling = new Refusal(ErrorCode.MarshallingError);
    if (isReadStep(step)) throw marshalling;
    if (step.kind === 'createTTL') {
      const { flags, path, data, acl } = step;
      if (flags === CreateMode.persistentWithTtl || flags === CreateMode.persistentSequentialWithTtl) return step;
      return { kind: flags === CreateMode.container ? 'createContainer' : 'create', path, data, acl, flags };
    }
    if (step.kind === 'create' || step.kind === 'create2' || step.kind === 'createContainer') {
      if (step.flags < 0 || step.flags > CreateMode.container || step.acl === null) throw marshalling;
      return step.flags === CreateMode.container ? { ...step, kind: 'createContainer' } : step;
    }
    return step;
  }

  #multiRead(steps: readonly (WriteStep | ReadStep)[], request: Admitted): { err: number; body: Body | null } {
    // Java fails at a null path when it reaches it, and sends the results so far; we refuse the
    // request as a whole.
    if (!this.#options.javaCompatible && steps.some(({ path }) => path === null)) throw new Refusal(ErrorCode.MarshallingError);
    const reads = steps.filter(isReadStep);
    if (reads.length > 0 && reads.length < steps.length) throw new Refusal(ErrorCode.MarshallingError);
    // Java notices writes only at their turn, and then sends an empty list of results.
    if (reads.length < steps.length) {
      for (const step of steps) this.#decodedStep(step);
      return { err: ErrorCode.MarshallingError, body: { results: [] } };
    }
    const results: MultiResult[] = [];
    for (const step of reads) {
      if (step.path === null) return { err: ErrorCode.MarshallingError, body: { results } };
      try {
        const type = step.kind === 'getData' ? OpCode.getData : OpCode.getChildren;
        results.push({ type, err: ErrorCode.Ok, body: this.#read(step, request, false) });
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        results.push({ type: OpCode.error, err: error.code, body: { err: error.code } });
      }
    }
    return { err: ErrorCode.Ok, body: { results } };
  }

  // --- reads

  #read(step: ReadStep, request: Admitted, watch: boolean): Body {
    const path = this.#requirePath(step.path);
    const znode = this.#requireZnode(path);
    this.#requireRead(znode, request);
    if (watch) this.#requireWatchRoom(request.cnxn);
    const cnxn = this.#cnxns.get(request.cnxn)!;
    if (step.kind === 'getData') {
      if (watch) addWatchTo(cnxn.dataWatches, path, 'standard');
      return { data: znode.data, stat: this.#statOf(znode) };
    }
    if (watch) addWatchTo(cnxn.childWatches, path, 'standard');
    return { children: [...znode.children] };
  }

  #exists(wanted: Path, watch: boolean, request: Admitted): Stat {
    const path = this.#requirePath(wanted);
    if (path.includes('\0')) throw new Refusal(ErrorCode.BadArguments);
    const znode = this.#znodes.get(path);
    if (znode !== undefined) this.#requireRead(znode, request);
    if (watch) {
      this.#requireWatchRoom(request.cnxn);
      addWatchTo(this.#cnxns.get(request.cnxn)!.dataWatches, path, 'standard');
    }
    if (znode === undefined) throw new Refusal(ErrorCode.NoNode);
    return this.#statOf(znode);
  }

  #getAcl(wanted: Path, request: Admitted): Body {
    const znode = this.#requireZnode(this.#requirePath(wanted));
    this.#requirePermission(znode.acl, Perms.read | Perms.admin, request.identities);
    const mayAdmin = this.#isPermitted(znode.acl, Perms.admin, request.identities);
    const acl = znode.acl.map((entry) =>
      mayAdmin || entry.scheme !== 'digest' ? entry : { ...entry, id: entry.id.replace(/:[^\n\r\u0085\u2028\u2029]*/g, ':x') },
    );
    return { acl, stat: this.#statOf(znode) };
  }

  /**
   * The number of paths that begin with this one and a slash. In Java, which has the root twice, ''
   * has one more than '/'.
   */
  #countBelow(path: string): number {
    if (path === '/' || (path === '' && !this.#options.javaCompatible)) return this.#znodes.size - 2;
    return [...this.#znodes.keys()].filter((other) => other.startsWith(`${path}/`)).length;
  }

  #ephemeralsOf(session: bigint): string[] {
    return [...this.#znodes].filter(([, { owner }]) => owner.kind === 'ephemeral' && owner.session === session).map(([path]) => path);
  }

  #statOf(znode: Znode): Stat {
    const numChildren = znode.children.size;
    return {
      czxid: znode.czxid,
      mzxid: znode.mzxid,
      ctime: znode.ctime,
      mtime: znode.mtime,
      version: znode.version,
      cversion: toInt32(znode.creates * 2 - numChildren),
      aversion: znode.aversion,
      ephemeralOwner: znode.owner.kind === 'ephemeral' ? znode.owner.session : 0n,
      dataLength: byteCount(znode.data),
      numChildren,
      pzxid: znode.pzxid,
    };
  }

  // --- changes of the tree and their events

  /**
   * Returns the stat before the usage of the quota is updated, which may change the data of a new
   * zookeeper_stats znode.
   */
  #add(path: string, data: Data, acl: readonly Acl[], owner: Owner, wallMs: number): Stat {
    const parentPath = parentOf(path);
    const parent = this.#znodes.get(parentPath)!;
    const creates = toInt32(parent.creates + 1);
    // The counter can overflow; in Java the tree only ever raises it, so it stays.
    if (creates > parent.creates || !this.#options.javaCompatible) {
      parent.creates = creates;
      parent.pzxid = this.#zxid;
    }
    parent.children.add(nameOf(path));
    const znode: Znode = {
      children: new Set(),
      czxid: this.#zxid,
      ctime: wallMs,
      owner,
      data,
      acl,
      mzxid: this.#zxid,
      mtime: wallMs,
      pzxid: this.#zxid,
      version: 0,
      creates: 0,
      aversion: 0,
    };
    this.#znodes.set(path, znode);
    const stat = this.#statOf(znode);
    if (parentPath.startsWith(`${quotaRoot}/`)) {
      if (nameOf(path) === limitsName) this.#quotaPaths.add(parentPath.slice(quotaRoot.length));
      if (nameOf(path) === statsName) this.#fillUsage(parentPath.slice(quotaRoot.length));
    }
    this.#countUsage(path, byteCount(data), 1);
    this.#fire('data', path, EventType.nodeCreated, acl);
    this.#fire('child', parentPath === '' ? '/' : parentPath, EventType.nodeChildrenChanged, parent.acl);
    return stat;
  }

  #remove(path: string): void {
    const parentPath = parentOf(path);
    const parent = this.#znodes.get(parentPath)!;
    const znode = this.#znodes.get(path)!;
    parent.children.delete(nameOf(path));
    parent.pzxid = this.#zxid;
    this.#znodes.delete(path);
    if (parentPath.startsWith(`${quotaRoot}/`) && nameOf(path) === limitsName) {
      this.#quotaPaths.delete(parentPath.slice(quotaRoot.length));
    }
    this.#countUsage(path, -byteCount(znode.data), -1);
    const told = this.#fire('data', path, EventType.nodeDeleted, znode.acl);
    this.#fire('child', path, EventType.nodeDeleted, znode.acl, told);
    this.#fire('child', parentPath === '' ? '/' : parentPath, EventType.nodeChildrenChanged, parent.acl);
  }

  /**
   * Sends the event to all watchers, removes one-shot watches, and returns the connections that had
   * a watch.
   */
  #fire(table: 'data' | 'child', path: string, type: number, acl: readonly Acl[], alreadyNotified?: ReadonlySet<number>): Set<number> {
    const notified = new Set<number>();
    for (const [cnxn, state] of this.#cnxns) {
      const watches = table === 'data' ? state.dataWatches : state.childWatches;
      const own = watches.get(path);
      const above = table === 'data' && ancestorsOf(path).some((ancestor) => watches.get(ancestor)?.has('recursive') === true);
      if (own === undefined && !above) continue;
      notified.add(cnxn);
      if (own !== undefined) removeWatchFrom(watches, path, 'standard');
      if (alreadyNotified?.has(cnxn) === true) continue;
      if (!this.#isPermitted(acl, Perms.read, state.identities)) continue;
      this.#send(cnxn, { kind: 'event', zxid: this.#zxid, type, state: KeeperState.syncConnected, path });
    }
    return notified;
  }

  // --- watches

  #requireWatchRoom(cnxn: number): void {
    const { dataWatches, childWatches } = this.#cnxns.get(cnxn)!;
    if (dataWatches.size + childWatches.size >= this.#options.watchesPerCnxnMax) throw new Refusal(ErrorCode.ThrottledOp);
  }

  #addWatch(path: string, mode: number, cnxn: number): void {
    if (mode === AddWatchMode.persistent || mode === AddWatchMode.persistentRecursive) this.#requireWatchRoom(cnxn);
    const { dataWatches, childWatches } = this.#cnxns.get(cnxn)!;
    if (mode === AddWatchMode.persistent) {
      addWatchTo(dataWatches, path, 'persistent');
      addWatchTo(childWatches, path, 'persistent');
    } else if (mode === AddWatchMode.persistentRecursive) {
      addWatchTo(dataWatches, path, 'recursive');
    } else {
      throw new Refusal(ErrorCode.MarshallingError);
    }
  }

  #checkOrRemoveWatches({ kind, path, type }: Extract<Operation, { kind: 'checkWatches' | 'removeWatches' }>, cnxn: number): void {
    const { dataWatches, childWatches } = this.#cnxns.get(cnxn)!;
    const places: [WatchTable, WatchMode | undefined][] =
      type === WatcherType.children
        ? [[childWatches, 'standard']]
        : type === WatcherType.data
          ? [[dataWatches, 'standard']]
          : type === WatcherType.persistent
            ? [[dataWatches, 'persistent'], [childWatches, 'persistent']] // prettier-ignore
            : type === WatcherType.persistentRecursive
              ? [[dataWatches, 'recursive']]
              : [[dataWatches, undefined], [childWatches, undefined]]; // prettier-ignore
    if (type < WatcherType.children || type > WatcherType.persistentRecursive) throw new Refusal(ErrorCode.MarshallingError);
    const found = places.filter(([table, mode]) => (mode === undefined ? table.has(path) : table.get(path)?.has(mode) === true));
    if (found.length === 0) throw new Refusal(ErrorCode.NoWatcher);
    if (kind === 'checkWatches') return;
    for (const [table, mode] of found) {
      if (mode === undefined) table.delete(path);
      else removeWatchFrom(table, path, mode);
    }
  }

  /**
   * Sends events for what a client missed, except for znodes that it may not read; such a watch is
   * used up all the same.
   */
  #setWatches(request: Omit<Extract<Operation, { kind: 'setWatches2' }>, 'kind'>, cnxn: number): void {
    const { dataWatches, childWatches, identities } = this.#cnxns.get(cnxn)!;
    const tell = (type: number, path: string): void => {
      const znode = this.#znodes.get(path);
      if (znode !== undefined && !this.#isPermitted(znode.acl, Perms.read, identities)) return;
      this.#send(cnxn, { kind: 'event', zxid: -1, type, state: KeeperState.syncConnected, path });
    };
    for (const path of request.dataWatches) {
      const znode = this.#znodes.get(path);
      if (znode === undefined) tell(EventType.nodeDeleted, path);
      else if (znode.mzxid > request.relativeZxid) tell(EventType.nodeDataChanged, path);
      else addWatchTo(dataWatches, path, 'standard');
    }
    for (const path of request.existWatches) {
      if (this.#znodes.has(path)) tell(EventType.nodeCreated, path);
      else addWatchTo(dataWatches, path, 'standard');
    }
    for (const path of request.childWatches) {
      const znode = this.#znodes.get(path);
      if (znode === undefined) tell(EventType.nodeDeleted, path);
      else if (znode.pzxid > request.relativeZxid) tell(EventType.nodeChildrenChanged, path);
      else addWatchTo(childWatches, path, 'standard');
    }
    for (const path of request.persistentWatches) {
      addWatchTo(dataWatches, path, 'persistent');
      addWatchTo(childWatches, path, 'persistent');
    }
    for (const path of request.persistentRecursiveWatches) addWatchTo(dataWatches, path, 'recursive');
  }

  // --- identities and permissions

  #authenticate(cnxn: number, scheme: string | null, auth: Data): boolean {
    const { identities } = this.#cnxns.get(cnxn)!;
    if (scheme === 'ip') return true;
    if (scheme !== 'digest' || !this.#options.digestAuthEnabled || auth === null) return false;
    const id = digestId(Buffer.from(auth, 'latin1').toString('utf8'));
    const shown: Id[] = [{ scheme: 'digest', id }];
    if (id === this.#options.superDigest) shown.unshift({ scheme: 'super', id: '' });
    const added = shown.filter((one) => !identities.some((own) => own.scheme === one.scheme && own.id === one.id));
    const all = [...identities, ...added];
    const bytes = all.reduce((sum, one) => sum + 8 + Buffer.byteLength(one.scheme) + Buffer.byteLength(one.id), 0);
    const { identitiesPerCnxnMax, identityBytesPerCnxnMax } = this.#options;
    if (added.length > 0 && (all.length > identitiesPerCnxnMax || bytes > identityBytesPerCnxnMax)) return false;
    identities.push(...added);
    return true;
  }

  #userOf(scheme: string, id: string): string {
    return scheme === 'digest' ? id.split(':')[0]! : id;
  }

  #isPermitted(acl: readonly Acl[], perms: number, identities: readonly Id[]): boolean {
    if (this.#options.skipAcl || acl.length === 0 || identities.some(({ scheme }) => scheme === 'super')) return true;
    return acl.some((entry) => {
      if ((entry.perms & perms) === 0) return false;
      if (entry.scheme === 'world') return entry.id === 'anyone';
      return identities.some((own) => own.scheme === entry.scheme && this.#matches(own, entry));
    });
  }

  #matches(own: Id, entry: Acl): boolean {
    if (entry.scheme === 'digest') return this.#options.digestAuthEnabled && own.id === entry.id;
    if (entry.scheme !== 'ip') return false;
    const range = addressRange(entry.id);
    const address = addressRange(own.id);
    if (range === undefined || address === undefined || range.bits.length !== address.bits.length) return false;
    return range.bits.slice(0, range.prefix) === address.bits.slice(0, range.prefix);
  }

  #requirePermission(acl: readonly Acl[], perms: number, identities: readonly Id[]): void {
    if (!this.#isPermitted(acl, perms, identities)) throw new Refusal(ErrorCode.NoAuth);
  }

  #requireRead(znode: Znode, request: Admitted): void {
    this.#requirePermission(znode.acl, Perms.read, request.identities);
  }

  /** The effective ACL: without duplicates, and with `auth` replaced by the client's identities. */
  #effectiveAcl(wanted: readonly AclEntry[] | null, identities: readonly Id[]): Acl[] {
    const same = (a: AclEntry, b: AclEntry): boolean => a.perms === b.perms && a.scheme === b.scheme && a.id === b.id;
    const unique = (wanted ?? []).filter((entry, at, all) => all.findIndex((other) => same(entry, other)) === at);
    if (unique.length === 0) throw new Refusal(ErrorCode.InvalidACL);
    return unique.flatMap(({ perms, scheme, id }): Acl[] => {
      if (scheme === 'auth') {
        const known = identities.filter((own) => own.scheme === 'digest' && this.#options.digestAuthEnabled);
        if (known.length === 0) throw new Refusal(ErrorCode.InvalidACL);
        return known.map((own) => ({ perms, ...own }));
      }
      if (scheme === null || id === null || !isValidAclId(scheme, id, this.#options.digestAuthEnabled)) {
        throw new Refusal(ErrorCode.InvalidACL);
      }
      return [{ perms, scheme, id }];
    });
  }

  // --- quotas

  /** The nearest path upwards, the path itself included, that has limits. */
  #quotaPathOf(path: string, quotaPaths: ReadonlySet<string>): string | undefined {
    return [path, ...ancestorsOf(path)].find((candidate) => quotaPaths.has(candidate));
  }

  #requireQuota(path: string, bytes: number, count: number): void {
    if (!this.#options.enforceQuota) return;
    const question: QuotaCheck = { path, bytes, count, part: this.#part };
    const isExceeded = this.quotaOracle ?? ((each) => exceedsQuota(this.quotas(), each));
    if (isExceeded(question)) throw new Refusal(ErrorCode.QuotaExceeded);
  }

  /**
   * The quotas that apply to requests now: while a multi is validated, those before its first
   * operation.
   */
  quotas(): Quotas {
    const { znodes, quotaPaths } = this.#quotaView ?? { znodes: this.#znodes, quotaPaths: this.#quotaPaths };
    const dataOf = (path: string, name: string) => znodes.get(`${quotaRoot}${path}/${name}`)?.data;
    return new Map([...quotaPaths].map((path) => [path, { limits: dataOf(path, limitsName) ?? null, usage: dataOf(path, statsName) }]));
  }

  #countUsage(path: string, bytes: number, count: number): void {
    const quotaPath = this.#quotaPathOf(path, this.#quotaPaths);
    const stats = quotaPath === undefined ? undefined : this.#znodes.get(`${quotaRoot}${quotaPath}/${statsName}`);
    if (stats === undefined) return;
    const usage = parseQuota(stats.data);
    usage.set('count', (usage.get('count') ?? -1) + count);
    usage.set('bytes', (usage.get('bytes') ?? -1) + bytes);
    stats.data = formatQuota(usage);
  }

  /** Fills a new zookeeper_stats znode with the current usage. */
  #fillUsage(quotaPath: string): void {
    let count = 0;
    let bytes = 0;
    for (const [path, znode] of this.#znodes) {
      if (path !== quotaPath && !path.startsWith(`${quotaPath}/`)) continue;
      count++;
      bytes += byteCount(znode.data);
    }
    this.#znodes.get(`${quotaRoot}${quotaPath}/${statsName}`)!.data = `count=${count},bytes=${bytes}`;
  }

  // --- the tree as a whole

  /** Every path with its stat, data and ACL: a server must have the same after a run. */
  contents(): Map<string, { stat: Stat; data: Data; acl: readonly AclEntry[] }> {
    const all = new Map<string, { stat: Stat; data: Data; acl: readonly AclEntry[] }>();
    for (const [path, znode] of this.#znodes) {
      if (path !== '') all.set(path, { stat: this.#statOf(znode), data: znode.data, acl: znode.acl });
    }
    return all;
  }

  /** Live sessions and the timeouts negotiated when they were created. */
  sessions(): Map<bigint, number> {
    return new Map([...this.#sessions].map(([session, { timeoutMs }]) => [session, timeoutMs]));
  }

  /**
   * The tree digest, version 2, computed from scratch: the sum of a CRC-32 of each znode's path,
   * data and stat.
   */
  digest(wallMsOf: (modelMs: number) => number = (ms) => ms, sessionOf: (session: bigint) => bigint = (id) => id): bigint {
    let sum = 0n;
    for (const [path, znode] of this.#znodes) {
      if (path === '/' || path.startsWith('/zookeeper/')) continue;
      const stat = Buffer.alloc(60);
      [znode.czxid, znode.mzxid, znode.pzxid, wallMsOf(znode.ctime), wallMsOf(znode.mtime)].forEach((value, index) =>
        stat.writeBigInt64BE(BigInt(value), index * 8),
      );
      [znode.version, znode.creates, znode.aversion].forEach((value, index) => stat.writeInt32BE(value, 40 + index * 4));
      stat.writeBigInt64BE(storedOwner(znode.owner, sessionOf), 52);
      sum += BigInt(crc32(Buffer.concat([Buffer.from(path, 'utf8'), Buffer.from(znode.data ?? '', 'latin1'), stat])));
    }
    return BigInt.asIntN(64, sum);
  }

  /** Lets a test begin near the end of a counter. */
  setCreates(path: string, creates: number): void {
    this.#znodes.get(path)!.creates = creates;
  }

  #save(): SavedState {
    const znodes = new Map<string, Znode>();
    for (const [path, znode] of this.#znodes) znodes.set(path, { ...znode, children: new Set(znode.children) });
    znodes.set('/', znodes.get('')!);
    const copy = (table: WatchTable): WatchTable => new Map([...table].map(([path, modes]) => [path, new Set(modes)]));
    const cnxns = new Map<number, Cnxn>();
    for (const [id, cnxn] of this.#cnxns) {
      cnxns.set(id, { ...cnxn, dataWatches: copy(cnxn.dataWatches), childWatches: copy(cnxn.childWatches) });
    }
    return { znodes, quotaPaths: new Set(this.#quotaPaths), cnxns };
  }

  #restore(saved: SavedState): void {
    this.#znodes = saved.znodes;
    this.#quotaPaths = saved.quotaPaths;
    this.#cnxns = saved.cnxns;
  }

  // --- checks that several requests share

  /** A null path makes the record of every operation invalid. */
  #requirePath(path: Path): string {
    if (path === null) throw new Refusal(ErrorCode.MarshallingError);
    return path;
  }

  #requireValidPath(wanted: Path): string {
    if (wanted === null || !isValidPath(wanted)) throw new Refusal(ErrorCode.BadArguments);
    return wanted;
  }

  #requireZnode(path: string): Znode {
    const znode = this.#znodes.get(path);
    if (znode === undefined) throw new Refusal(ErrorCode.NoNode);
    return znode;
  }

  #requireVersion(wanted: number, actual: number): void {
    if (wanted !== -1 && wanted !== actual) throw new Refusal(ErrorCode.BadVersion);
  }

  // --- output

  #send(cnxn: number, message: Message): void {
    this.#outputs.push(this.#anyOrder ? { cnxn, message, anyOrder: true } : { cnxn, message });
  }

  #close(cnxn: number): void {
    this.#send(cnxn, { kind: 'closed' });
    this.#cnxns.delete(cnxn);
  }

  #collectOutputs(work: () => void): ModelOutput[] {
    this.#outputs = [];
    work();
    return this.#outputs;
  }
}

/** `%010d`: at least ten digits; a minus sign counts as one. */
function formatCounter(counter: number): string {
  return counter < 0 ? `-${String(-counter).padStart(9, '0')}` : String(counter).padStart(10, '0');
}

function ancestorsOf(path: string): string[] {
  const ancestors: string[] = [];
  for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) ancestors.push(path.slice(0, at));
  if (path.startsWith('/') && path !== '/') ancestors.push('/');
  return ancestors;
}

function addWatchTo(table: WatchTable, path: string, mode: WatchMode): void {
  const modes = table.get(path) ?? new Set();
  table.set(path, modes.add(mode));
}

function removeWatchFrom(table: WatchTable, path: string, mode: WatchMode): void {
  const modes = table.get(path)!;
  modes.delete(mode);
  if (modes.size === 0) table.delete(path);
}

/**
 * ephemeralOwner as in snapshots: TTL znodes have 0xff in the top byte and the ttl in the low 40
 * bits.
 */
function storedOwner(owner: Owner, sessionOf: (session: bigint) => bigint): bigint {
  switch (owner.kind) {
    case 'persistent':
      return 0n;
    case 'container':
      return BigInt.asIntN(64, 1n << 63n);
    case 'ttl':
      return BigInt.asIntN(64, (0xffn << 56n) | BigInt(owner.ttl));
    case 'ephemeral':
      return sessionOf(owner.session);
    default:
      owner satisfies never;
      throw new Error('unknown owner');
  }
}
