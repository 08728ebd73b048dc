/**
 * A second check that does not trust zxids. Each znode is a register that is created, changed and
 * deleted. What clients saw of it must fit one order in which each operation takes effect at one
 * instant between its request and its reply (the search of Wing and Gong with Lowe's cache). The
 * log only says what to try first, which keeps the search short: an order that the search finds is
 * valid whatever the log says, and if none exists it finds none. Only what a tryRemove or a
 * removeRecursive of ClickHouse Keeper has deleted is read off its txn, since no reply shows it.
 *
 * Reads of a standalone server are linearizable too, so they take part.
 */
import {
  CreateMode,
  type Create2Reply,
  type CreateRequest,
  type DeleteRequest,
  ErrorCode,
  type GetDataReply,
  type TxnLogEntry,
  type Millis,
  type MultiOp,
  type MultiReply,
  type MultiRequest,
  OpCode,
  type SetDataRequest,
  type SessionId,
  sessionIdOf,
  type StatReply,
  type Txn,
  type Zxid,
} from '@tskeeper/protocol';
import type { Recording, Request } from '../record/recording.ts';
import { isWrite } from '../record/request-kinds.ts';
import { canResultFrom, isRefusal, membersByOp } from '../replay/request-of-txn.ts';
import type { Checker } from './checker.ts';

/** Undefined means that the znode does not exist. */
type Register = { readonly version: number; readonly value: string; readonly owner: string; readonly isSweepable?: boolean } | undefined;

interface Operation {
  /**
   * Operations of one connection take effect in the order in which they were sent: `process` is the
   * connection, `index` the position in it.
   */
  readonly process: number;
  readonly index: number;
  readonly invokedMs: Millis;
  /** Infinity if no reply arrived: the operation may take effect at any time, or never. */
  readonly completedMs: Millis;
  /** Zxid in the log; Infinity if it is not there. */
  readonly loggedZxid: Zxid;
  /**
   * Returns the state after the operation; `impossible` if the operation cannot have had its result
   * here.
   */
  apply(register: Register): Register | 'impossible';
  /**
   * What changes nothing in one state may change another: it need not take effect where it changes
   * nothing.
   */
  readonly mayChange?: boolean | undefined;
}

/**
 * A search that exceeds this many steps has neither found an order nor shown that there is none.
 */
const stepsMax = 1_000_000;

export const registerLinearizability: Checker = {
  property: 'P4',
  promise: 'For each znode, one order of all operations fits the times and results that clients saw.',
  check({ cnxns, seedState, log, ensemble }) {
    const loggedTxns = indexLog(log);
    const sweepHints = sweepsInLog(log);
    const byPath = new Map<string, Operation[]>();
    /** Znodes that exist before the first request. */
    const initialPaths = new Set<string>(['/', ...seedState.znodes.map(({ path }) => path)]);
    const addOne = (path: string, operation: Operation) => {
      const known = byPath.get(path);
      if (known === undefined) byPath.set(path, [operation]);
      else known.push(operation);
    };
    const implicit: ImplicitEffects = { owners: new Map(), sweeps: new Map(), unansweredSequential: [], absences: [], unclear: [] };
    const { owners } = implicit;
    /**
     * Zxids of answered requests, and those already assigned to a request: two requests with equal
     * xids get one txn each.
     */
    const matchedZxids = new Set(cnxns.flatMap(({ requests }) => requests.flatMap(({ reply }) => reply?.zxid ?? [])));
    const keys = cnxns.flatMap(({ requests }) => requests.filter(isWrite).map(({ session, xid }) => requestKey(session, xid)));
    const hasSharedXids = new Set(keys).size < keys.length;
    for (const [process, { requests }] of cnxns.entries()) {
      for (const [index, request] of requests.entries()) {
        const logged = loggedTxns.txns.get(requestKey(request.session, request.xid))?.filter((each) => canResultFrom(request, each)) ?? [];
        const answered = logged.find(({ header }) => header.zxid === request.reply?.zxid);
        const own = answered ?? logged.find(({ header }) => !matchedZxids.has(header.zxid)) ?? logged[0];
        const loggedZxid = own?.header.zxid ?? Infinity;
        const result = answered ?? loggedTxns.unchanged.get(request.reply?.zxid ?? 0) ?? own;
        matchedZxids.add(loggedZxid);
        // A server of an ensemble may lag, so a read may show any earlier state; only the order
        // within a connection counts.
        const isStale = ensemble.size > 0 && readsOnly.has(request.name ?? '');
        const since: Partial<Operation> = isStale ? { invokedMs: 0 } : {};
        addOperations(request, (path, operation) => addOne(path, { ...operation, ...since, process, index, loggedZxid }), implicit, {
          process,
          index,
          loggedZxid,
          txn: result?.txn,
        });
      }
    }
    // After a removeRecursive nothing is left of a subtree, whether its txn names it or not.
    for (const path of byPath.keys()) {
      for (const { top, touched, operation } of implicit.absences) {
        if (isAtOrBelow(path, top) && !touched.has(path)) addOne(path, operation);
      }
    }
    // A sequential create without a reply may have created any znode whose path is its prefix plus
    // a counter.
    for (const path of byPath.keys()) {
      const prefixes = sequenceSuffixes.map((counter) => path.replace(counter, ''));
      for (const { prefix, operation, flags, session } of implicit.unansweredSequential) {
        if (prefix === path || !prefixes.includes(prefix)) continue;
        addOne(path, operation);
        addImplicitDelete(implicit, path, flags, session);
      }
    }
    // A session ends once, in no order to any connection's requests.
    let process = cnxns.length;
    for (const [path, sessions] of owners) {
      for (const session of sessions) {
        const loggedZxid = loggedTxns.ends.get(session) ?? Infinity;
        addOne(path, { ...sessionEnd(session), process: process++, index: 0, loggedZxid });
      }
    }
    // A container or TTL znode may be swept as often as it was created, at any time.
    for (const [path, count] of implicit.sweeps) {
      const swept = sweepHints.get(path) ?? [];
      for (let at = 0; at < count; at++) addOne(path, { ...sweep, process: process++, index: 0, loggedZxid: swept[at] ?? Infinity });
    }
    const violations: string[] = [];
    for (const [path, operations] of byPath) {
      // The second has data without a znode.
      if (path.startsWith('/zookeeper') || path.startsWith('/keeper/')) continue;
      if (implicit.unclear.some((top) => isAtOrBelow(path, top))) continue;
      const result = linearize(operations, initialPaths.has(path) ? { version: 0, value: valueOf(Buffer.alloc(0)), owner: '' } : undefined);
      // The log names only session and xid. With two processes that use equal xids the search may
      // exceed its budget, which is not a finding.
      if (result === 'yes' || (result === 'too long' && hasSharedXids)) continue;
      violations.push(
        result === 'no'
          ? `no order of the ${operations.length} operations on ${path} fits their times and results`
          : `found no order of the operations on ${path} within ${stepsMax} steps`,
      );
    }
    return violations;
  },
};

const readsOnly: ReadonlySet<string> = new Set(['getData', 'exists']);

function requestKey(session: SessionId, xid: number): string {
  return `${session} ${xid}`;
}

/** Several txns have one key if processes share a session. */
function indexLog(log: Recording['log']): {
  readonly txns: Map<string, TxnLogEntry[]>;
  readonly ends: Map<string, Zxid>;
  /** Txns without a change of requests that did not fail, by zxid. */
  readonly unchanged: Map<Zxid, TxnLogEntry>;
} {
  const unchanged = new Map<Zxid, TxnLogEntry>();
  const txns = new Map<string, TxnLogEntry[]>();
  const ends = new Map<string, Zxid>();
  for (const { logged } of log) {
    const { txn } = logged;
    if (txn.kind === 'error' && txn.err === ErrorCode.Ok) unchanged.set(logged.header.zxid, logged);
    // A refused request changed nothing.
    if (isRefusal(logged)) continue;
    const { clientHigh, clientLow, cxid, zxid } = logged.header;
    const session = sessionIdOf(clientHigh, clientLow);
    if (txn.kind === 'closeSession') ends.set(`${session}`, zxid);
    else txns.set(requestKey(session, cxid), [...(txns.get(requestKey(session, cxid)) ?? []), logged]);
  }
  return { txns, ends, unchanged };
}

/** By path: the zxids at which the log sweeps containers and TTL znodes. */
function sweepsInLog(log: Recording['log']): Map<string, Zxid[]> {
  const hints = new Map<string, Zxid[]>();
  for (const { logged } of log) {
    const { header, txn } = logged;
    if (header.type === OpCode.deleteContainer && txn.kind === 'delete') hints.set(txn.path, [...(hints.get(txn.path) ?? []), header.zxid]);
  }
  return hints;
}

/**
 * The suffix that the server appends to a sequential name: ten digits, or eleven with wide numbers,
 * or a minus with nine or ten digits.
 */
const sequenceSuffixes = [/\d{10}$/, /\d{11}$/, /-\d{9}$/, /-\d{10}$/];

/** What is collected besides the effects of a client's request on one znode. */
interface ImplicitEffects {
  /** By path: the sessions that may own an ephemeral there. */
  readonly owners: Map<string, Set<string>>;
  /** By path: how often a container or TTL znode may have been created there. */
  readonly sweeps: Map<string, number>;
  /** Sequential znodes that may have been created, under an unknown name. */
  readonly unansweredSequential: {
    readonly prefix: string;
    readonly operation: Operation;
    readonly flags: number;
    readonly session: SessionId;
  }[];
  /** Subtrees of which nothing exists at one moment, except the paths that the request itself changes. */
  readonly absences: { readonly top: string; readonly touched: ReadonlySet<string>; readonly operation: Operation }[];
  /** Paths that an answered tryRemove or removeRecursive names whose txn is not in the log: nothing shows what it has removed. */
  readonly unclear: string[];
}

/** `txn`: what the log says that became of it; undefined if nothing. */
type OperationOrder = Pick<Operation, 'process' | 'index' | 'loggedZxid'> & { readonly txn: Txn | undefined };

function valueOf(data: Uint8Array | null): string {
  return data === null ? 'null' : `=${Buffer.from(data).toString('latin1')}`;
}

type Effect = (register: Register) => Register | 'impossible';
/** An operation whose place in the order is not yet known. */
type TimedEffect = Omit<Operation, 'process' | 'index' | 'loggedZxid'>;

function addOperations(
  request: Request,
  add: (path: string, operation: TimedEffect) => void,
  implicit: ImplicitEffects,
  order: OperationOrder,
): void {
  const { reply, name, record } = request;
  // The server did not validate the request.
  if (reply?.err === ErrorCode.ThrottledOp) return;
  const times = { invokedMs: request.sentMs, completedMs: reply?.atMs ?? Infinity };
  const addEffect = (path: string | null, effect: Effect | undefined, mayChange?: boolean) => {
    if (path !== null && effect !== undefined) add(path, { ...times, apply: effect, mayChange });
  };
  const err = reply?.err;
  switch (name) {
    case 'create':
    case 'create2':
    case 'createContainer':
    case 'createTTL':
    case 'createIfNotExists':
      addCreate(record as CreateRequest, request, (reply?.body as Create2Reply | undefined)?.path, addEffect, implicit, order);
      return;
    case 'delete':
      addEffect((record as DeleteRequest).path, deleteEffect(record as DeleteRequest, err));
      return;
    case 'tryRemove':
    case 'removeRecursive':
      if (err === undefined || err === ErrorCode.Ok)
        addRemoval({ kind: name, ...(record as object) } as Removal, request, addEffect, implicit, order);
      return;
    case 'setData':
      addEffect(
        (record as SetDataRequest).path,
        setEffect(record as SetDataRequest, err, (reply?.body as StatReply | undefined)?.stat.version),
      );
      return;
    case 'getData': {
      const { path } = record as { readonly path: string };
      if (err === ErrorCode.NoNode) addEffect(path, (register) => (register === undefined ? register : 'impossible'));
      if (err !== ErrorCode.Ok) return;
      const { data, stat } = reply!.body as GetDataReply;
      addEffect(path, (register) =>
        register !== undefined && register.version === stat.version && register.value === valueOf(data) ? register : 'impossible',
      );
      return;
    }
    case 'exists': {
      const { path } = record as { readonly path: string };
      if (err === ErrorCode.NoNode) addEffect(path, (register) => (register === undefined ? register : 'impossible'));
      if (err !== ErrorCode.Ok) return;
      const { version } = (reply!.body as StatReply).stat;
      addEffect(path, (register) => (register?.version === version ? register : 'impossible'));
      return;
    }
    case 'multi':
      addMulti(request, addEffect, implicit, order);
      return;
    default:
  }
}

function placeOf({ process, index, loggedZxid }: OperationOrder): Pick<Operation, 'process' | 'index' | 'loggedZxid'> {
  return { process, index, loggedZxid };
}

function isAtOrBelow(path: string, top: string): boolean {
  return path === top || path.startsWith(`${top}/`);
}

function addMulti(
  request: Request,
  addEffect: (path: string | null, effect: Effect | undefined, mayChange?: boolean) => void,
  implicit: ImplicitEffects,
  order: OperationOrder,
): void {
  const { ops } = request.record as MultiRequest;
  const results = (request.reply?.body as MultiReply | undefined)?.results;
  if (request.reply !== undefined && request.reply.err !== ErrorCode.Ok) return;
  // All operations of a multi take effect at once, path by path. A failed one changed nothing and
  // shows nothing.
  if (results?.some(({ kind }) => kind === 'error') === true) return;
  const members = order.txn?.kind === 'multi' ? membersByOp(ops, order.txn.txns) : undefined;
  const removals = ops.filter((op): op is Removal => isRemoval(op) && op.path !== null);
  if (removals.length > 0 && members === undefined) {
    // Without a txn it has changed nothing.
    if (request.reply === undefined) return;
    implicit.unclear.push(...removals.map(({ path }) => path!));
  }
  const effects: { readonly path: string; readonly effect: Effect }[] = [];
  for (const [at, op] of ops.entries()) {
    if (op.path === null) continue;
    const result = results?.[at];
    if (isRemoval(op)) {
      for (const path of deletedBy(members?.[at] ?? [])) effects.push({ path, effect: removalEffect(op) });
      continue;
    }
    if (op.kind.startsWith('create')) {
      const made = result !== undefined && 'path' in result ? result.path : undefined;
      const addPartEffect = (path: string | null, effect: Effect | undefined) => {
        if (path !== null && effect !== undefined) effects.push({ path, effect });
      };
      addCreate(op as CreateRequest, request, made, addPartEffect, implicit, order);
      continue;
    }
    const version = result !== undefined && 'stat' in result && op.kind === 'setData' ? result.stat.version : undefined;
    const effect = opEffect(op, results === undefined ? undefined : ErrorCode.Ok, version);
    if (effect !== undefined) effects.push({ path: op.path, effect });
  }
  const touched = new Set(effects.map((each) => each.path));
  if (request.reply !== undefined) for (const op of removals) addAbsence(op, touched, request, implicit, order);
  for (const path of touched) {
    const parts = effects.filter((each) => each.path === path);
    const effectOfAll: Effect = (register) => {
      let now: Register | 'impossible' = register;
      for (const { effect } of parts) {
        if (now === 'impossible') return now;
        now = effect(now);
      }
      return now;
    };
    // A create and a delete, say, change nothing where there is no znode.
    addEffect(path, effectOfAll, parts.length > 1);
  }
}

type Removal = MultiOp & { readonly kind: 'tryRemove' | 'removeRecursive' };

function isRemoval(op: MultiOp): op is Removal {
  return op.kind === 'tryRemove' || op.kind === 'removeRecursive';
}

/** One that is not a part of a multi. */
function addRemoval(
  op: Removal,
  request: Request,
  addEffect: (path: string, effect: Effect) => void,
  implicit: ImplicitEffects,
  order: OperationOrder,
): void {
  const { txn } = order;
  if (op.path === null || (txn === undefined && request.reply === undefined)) return;
  if (txn === undefined) {
    implicit.unclear.push(op.path);
    return;
  }
  const members = txn.kind === 'multi' ? txn.txns : txn.kind === 'delete' ? [{ txn }] : [];
  const deleted = new Set(deletedBy(members));
  for (const path of deleted) addEffect(path, removalEffect(op));
  if (request.reply !== undefined) addAbsence(op, deleted, request, implicit, order);
}

/** A removeRecursive that succeeds removes everything. */
function addAbsence(
  { kind, path }: Removal,
  touched: ReadonlySet<string>,
  { sentMs, reply }: Request,
  { absences }: ImplicitEffects,
  { process, index, loggedZxid }: OperationOrder,
): void {
  if (kind !== 'removeRecursive' || path === null) return;
  const apply: Effect = (register) => (register === undefined ? register : 'impossible');
  absences.push({ top: path, touched, operation: { process, index, loggedZxid, invokedMs: sentMs, completedMs: reply!.atMs, apply } });
}

function deletedBy(members: readonly { readonly txn: Txn }[]): string[] {
  return members.flatMap(({ txn }) => (txn.kind === 'delete' ? [txn.path] : []));
}

function removalEffect(op: Removal): Effect {
  const version = op.kind === 'tryRemove' ? op.version : -1;
  return (register) => (register !== undefined && matches(version, register.version) ? undefined : 'impossible');
}

function opEffect(op: MultiOp, err: number | undefined, version: number | undefined): Effect | undefined {
  switch (op.kind) {
    case 'delete':
      return deleteEffect(op, err);
    case 'checkNotExists':
      return (register) => (register !== undefined && matches(op.version, register.version) ? 'impossible' : register);
    case 'setData':
      return setEffect(op, err, version);
    case 'check':
    case 'checkStat':
      return (register) => (register !== undefined && matches(op.version, register.version) ? register : 'impossible');
    default:
      return undefined;
  }
}

/** `createdPath` is the path in the reply, if there is one. */
function addCreate(
  create: CreateRequest,
  request: Request,
  createdPath: string | null | undefined,
  addEffect: (path: string | null, effect: Effect | undefined) => void,
  implicit: ImplicitEffects,
  order: OperationOrder,
): void {
  const { session, reply, sentMs } = request;
  const { path: asked, flags } = create;
  const isCounted = sequentialModes.has(flags);
  const path = isCounted && reply?.err === ErrorCode.Ok ? (createdPath ?? null) : asked;
  if (asked === null || path === null) return;
  const isKept = request.name === 'createIfNotExists' || (create as { readonly kind?: string }).kind === 'createIfNotExists';
  const effect = createEffect(create, session, reply?.err, isKept);
  if (effect !== undefined && isCounted && reply === undefined) {
    implicit.unansweredSequential.push({
      prefix: asked,
      operation: { ...placeOf(order), invokedMs: sentMs, completedMs: Infinity, apply: effect },
      flags,
      session,
    });
    return;
  }
  if (isCounted && reply?.err !== ErrorCode.Ok) return;
  addImplicitDelete(implicit, path, flags, session);
  addEffect(path, effect);
}

/**
 * A znode created with these flags may disappear without a request: with its session, or when it is
 * swept.
 */
function addImplicitDelete({ owners, sweeps }: ImplicitEffects, path: string, flags: number, session: SessionId): void {
  if (isEphemeral(flags)) owners.set(path, (owners.get(path) ?? new Set()).add(String(session)));
  if (flags > CreateMode.ephemeralSequential) sweeps.set(path, (sweeps.get(path) ?? 0) + 1);
}

const sequentialModes: ReadonlySet<number> = new Set([
  CreateMode.persistentSequential,
  CreateMode.ephemeralSequential,
  CreateMode.persistentSequentialWithTtl,
]);

function isEphemeral(flags: number): boolean {
  return flags === CreateMode.ephemeral || flags === CreateMode.ephemeralSequential;
}

function matches(wanted: number, version: number): boolean {
  return wanted === -1 || wanted === version;
}

/** `isKept`: a znode that exists is left as it is. */
function createEffect({ data, flags }: CreateRequest, session: SessionId, err: number | undefined, isKept: boolean): Effect | undefined {
  const isSweepable = flags > CreateMode.ephemeralSequential;
  const made: Register = { version: 0, value: valueOf(data), owner: isEphemeral(flags) ? String(session) : '', isSweepable };
  if (err === ErrorCode.Ok || err === undefined) {
    // A copy: that it changes nothing here does not mean that it took effect here.
    const kept = (register: Register & object): Register | 'impossible' => (isKept ? { ...register } : 'impossible');
    return (register) => (register === undefined ? made : kept(register));
  }
  if (err === ErrorCode.NodeExists) return (register) => (register === undefined ? 'impossible' : register);
  return undefined;
}

function deleteEffect({ version }: DeleteRequest, err: number | undefined): Effect | undefined {
  switch (err) {
    case ErrorCode.Ok:
    case undefined:
      return (register) => (register !== undefined && matches(version, register.version) ? undefined : 'impossible');
    case ErrorCode.NoNode:
      return (register) => (register === undefined ? register : 'impossible');
    case ErrorCode.BadVersion:
      return (register) => (register !== undefined && !matches(version, register.version) ? register : 'impossible');
    case ErrorCode.NotEmpty:
      return (register) => (register === undefined ? 'impossible' : register);
    default:
      return undefined;
  }
}

function setEffect({ data, version }: SetDataRequest, err: number | undefined, made: number | undefined): Effect | undefined {
  switch (err) {
    case ErrorCode.Ok:
    case undefined:
      return (register) => {
        if (register === undefined || !matches(version, register.version)) return 'impossible';
        const next = (register.version + 1) | 0;
        return made !== undefined && made !== next ? 'impossible' : { ...register, version: next, value: valueOf(data) };
      };
    case ErrorCode.NoNode:
      return (register) => (register === undefined ? register : 'impossible');
    case ErrorCode.BadVersion:
      return (register) => (register !== undefined && !matches(version, register.version) ? register : 'impossible');
    default:
      return undefined;
  }
}

/**
 * The server deletes a container that had children and has none, or a TTL znode whose time is up.
 */
const sweep: TimedEffect = {
  invokedMs: 0,
  completedMs: Infinity,
  apply: (register) => (register?.isSweepable === true ? undefined : 'impossible'),
};

/** An ephemeral disappears with its owner, at any time. */
function sessionEnd(session: string): TimedEffect {
  return {
    invokedMs: 0,
    completedMs: Infinity,
    apply: (register) => (register?.owner === session ? undefined : 'impossible'),
  };
}

function stateText(register: Register): string {
  if (register === undefined) return '';
  return `${register.version} ${register.owner} ${register.isSweepable === true ? 'fleeting ' : ''}${register.value}`;
}

function linearize(operations: readonly Operation[], initialRegister: Register): 'yes' | 'no' | 'too long' {
  // Operations that surely took effect, ordered by the time by which they had to; after them those
  // that may have, by connection and place.
  const sorted = operations.toSorted((a, b) => a.completedMs - b.completedMs || a.process - b.process || a.index - b.index);
  const answeredCount = sorted.filter(({ completedMs }) => completedMs < Infinity).length;
  const predecessors = predecessorsOf(sorted, answeredCount);
  // The order in which operations are tried. Any order is correct; that of the log leads straight
  // to a solution.
  const tryOrder = sorted.map((_, at) => at).toSorted((a, b) => compare(sorted[a]!.loggedZxid, sorted[b]!.loggedZxid) || a - b);
  const done = new Uint8Array(answeredCount);
  /**
   * For each connection with unanswered requests, the place of the last that took effect: the ones
   * before it cannot take effect later.
   */
  const reached = new Map<number, number>();
  for (const { process } of sorted.slice(answeredCount)) reached.set(process, -1);
  const seen = new Set<string>();
  let steps = 0;
  const isEnabled = (at: number): boolean => predecessors[at] === -1 || done[predecessors[at]!] === 1;
  const wasVisited = (first: number, next: Register): boolean => {
    const key = `${first} ${doneKey(done, first)} ${[...reached.values()].join()} ${stateText(next)}`;
    if (seen.has(key)) return true;
    seen.add(key);
    return false;
  };
  const search = (register: Register, from: number): boolean => {
    if (++steps > stepsMax) return false;
    let first = from;
    const applied: number[] = [];
    // An operation that fits here and changes nothing, nor could change anything elsewhere, can take effect
    // here without loss of solutions.
    for (let hasMoved = true; hasMoved;) {
      hasMoved = false;
      while (first < answeredCount && done[first] === 1) first++;
      if (first === answeredCount) return true;
      const deadlineMs = sorted[first]!.completedMs;
      for (let at = first; at < answeredCount; at++) {
        const operation = sorted[at]!;
        if (done[at] === 1 || !isEnabled(at) || operation.invokedMs > deadlineMs) continue;
        if (operation.mayChange === true || operation.apply(register) !== register) continue;
        done[at] = 1;
        applied.push(at);
        hasMoved = true;
      }
    }
    const deadlineMs = sorted[first]!.completedMs;
    for (const at of tryOrder) {
      if (at < first) continue;
      const operation = sorted[at]!;
      const { invokedMs, process, index, mayChange = false } = operation;
      const isSure = at < answeredCount;
      if (invokedMs > deadlineMs || !isEnabled(at) || (isSure ? done[at] === 1 : index <= reached.get(process)!)) continue;
      const next = operation.apply(register);
      if (next === 'impossible' || (next === register && !mayChange)) continue;
      const before = reached.get(process);
      if (isSure) done[at] = 1;
      else reached.set(process, index);
      if (!wasVisited(first, next) && search(next, first)) return true;
      if (isSure) done[at] = 0;
      else reached.set(process, before!);
    }
    for (const at of applied) done[at] = 0;
    return false;
  };
  if (search(initialRegister, 0)) return 'yes';
  return steps > stepsMax ? 'too long' : 'no';
}

function compare(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * For each operation, the latest earlier operation of its connection that surely took effect, or
 * -1. Unanswered requests were sent after all answered ones.
 */
function predecessorsOf(sorted: readonly Operation[], answeredCount: number): number[] {
  return sorted.map(({ process, index }) => {
    let ahead = -1;
    for (let at = 0; at < answeredCount; at++) {
      const other = sorted[at]!;
      if (other.process === process && other.index < index && (ahead === -1 || other.index > sorted[ahead]!.index)) ahead = at;
    }
    return ahead;
  });
}

/**
 * Which of the sure operations from `first` on have taken effect, as a string without trailing
 * zeros.
 */
function doneKey(done: Uint8Array, first: number): string {
  const end = done.lastIndexOf(1) + 1;
  return end <= first ? '' : Buffer.from(done.buffer, first, end - first).toString('latin1');
}
