/**
 * Which of several requests with equal session and xid a txn came from. A client never uses an xid
 * twice; but a process that resumes the session of another from a dump counts from there, whatever
 * the other has sent since. A txn names only its session and xid, so the requests are distinguished
 * by their content, which is unique. The server's reply is considered last, since a server that
 * confuses two such requests sends the reply to the wrong one.
 */
import {
  ErrorCode,
  type TxnLogEntry,
  type Millis,
  type MultiMember,
  type MultiMemberTxn,
  type MultiOp,
  type MultiRequest,
  type Zxid,
} from '@tskeeper/protocol';
import type { Request } from '../record/recording.ts';

/** The writes over one connection, and how far they have become txns. */
export interface ConnectionWrites {
  readonly writes: Request[];
  /** The place of the last write to which a txn was traced, 0 before the first, and that txn. */
  tracedIndex: number;
  tracedZxid: Zxid;
  /** Opcodes of writes that a server has turned away without their client learning of it. */
  readonly throttledOps: readonly number[];
}

export interface Candidate {
  readonly request: Request;
  /**
   * When the session was requested over a connection that is newer than the one of this request;
   * Infinity if never.
   */
  readonly movedMs: Millis;
  /**
   * Whether the session may have been taken from this connection: by a newer one, or by an older
   * one without a reply whose question was long in transit.
   */
  readonly mayHaveMoved: boolean;
  /** Its place among the writes over its connection, from 1. */
  readonly index: number;
  /**
   * The highest zxid in a reply to an earlier request over its connection: replies are in order, so
   * its own txn has a later one.
   */
  readonly shownZxid: Zxid;
  readonly cnxnWrites: ConnectionWrites;
  /** Txns that were traced to it. */
  readonly zxids: readonly Zxid[];
}

/**
 * The candidate that asked for the txn; undefined if none did. If several can have, those that
 * agree with the guarantees of a session are preferred. A txn that breaks a guarantee must not be
 * taken for an exchange of two requests, and is not, since the other one comes too. `agrees`
 * returns whether the reference model gives the same result for a refused request, and
 * `laterTxnsFit` whether the next txns of the session can be traced too if this one came from the
 * candidate.
 */
export function requestOfTxn<T extends Candidate>(
  candidates: readonly T[],
  logged: TxnLogEntry,
  atMs: Millis,
  agrees: (candidate: T) => boolean,
  laterTxnsFit: (candidate: T) => boolean,
): T | undefined {
  const { txn, header } = logged;
  let left = candidates.filter(({ request }) => canResultFrom(request, logged));
  const prefer = (isLikely: (candidate: T) => boolean) => {
    if (left.length < 2) return;
    const likely = left.filter(isLikely);
    if (likely.length > 0) left = likely;
  };
  // A request is applied once. If all that fit were applied, a checker reports the repetition.
  prefer(({ zxids }) => zxids.length === 0);
  // Times in a log are whole milliseconds.
  prefer(({ request }) => !(request.sentMs > atMs + 1));
  // The requests of a connection are served in order.
  prefer(({ index, cnxnWrites }) => index > cnxnWrites.tracedIndex);
  prefer((each) => isNextUnthrottled(each, each.cnxnWrites.tracedIndex));
  prefer(({ shownZxid }) => shownZxid < header.zxid);
  if (isMoved(txn)) prefer(({ movedMs }) => movedMs <= atMs + 1);
  else if (isRefusal(logged)) prefer(agrees);
  prefer(({ request }) => request.reply?.zxid === header.zxid);
  prefer(({ request }) => request.reply === undefined);
  prefer(laterTxnsFit);
  // The connection that was left last, or not yet.
  const heldUntilMs = ({ movedMs }: T): Millis => Math.min(movedMs, atMs + 1);
  const lastMs = Math.max(...left.map(heldUntilMs));
  prefer((each) => heldUntilMs(each) === lastMs);
  // The requests of one connection are contiguous.
  const latest = Math.max(...left.map(({ cnxnWrites }) => cnxnWrites.tracedZxid));
  return left.find(({ cnxnWrites }) => cnxnWrites.tracedZxid === latest);
}

/**
 * The candidates that can also have asked for the txn without a way to tell, because no client has
 * a reply to any of them. Empty if the chosen one has a reply.
 */
export function alternatives<T extends Candidate>(candidates: readonly T[], chosen: T, logged: TxnLogEntry, atMs: Millis): T[] {
  if (chosen.request.reply !== undefined) return [];
  return candidates.filter((each) => {
    const { request, zxids, index, cnxnWrites } = each;
    if (each === chosen || request.reply !== undefined || zxids.length > 0 || index <= cnxnWrites.tracedIndex) return false;
    return isNextUnthrottled(each, cnxnWrites.tracedIndex) && canBeNextOf(each, { logged, atMs });
  });
}

/** A later txn of the same session, and the requests with its xid. */
export interface NextTxn<T extends Candidate> {
  readonly logged: TxnLogEntry;
  readonly atMs: Millis;
  readonly candidates: readonly T[];
}

/**
 * Whether each of the next txns can have come from a request of its own, in the order of its
 * connection, if `chosen` is the request of the txn before.
 */
export function canContinueWith<T extends Candidate>(chosen: T, next: readonly NextTxn<T>[]): boolean {
  const places = new Map<ConnectionWrites, number>();
  for (const { candidates } of next) for (const { cnxnWrites } of candidates) places.set(cnxnWrites, cnxnWrites.tracedIndex);
  places.set(chosen.cnxnWrites, chosen.index);
  /** Places without a solution, by the index of the next txn. */
  const deadEnds = next.map(() => new Set<string>());
  const goesOnAt = (at: number): boolean => {
    const txn = next[at];
    if (txn === undefined) return true;
    // A txn of the server's own: the end of a session.
    if (txn.candidates.length === 0) return goesOnAt(at + 1);
    const state = [...places.values()].join();
    if (deadEnds[at]!.has(state)) return false;
    for (const each of txn.candidates) {
      const { cnxnWrites, index } = each;
      const tracedPlace = places.get(cnxnWrites)!;
      if (index <= tracedPlace || !isNextUnthrottled(each, tracedPlace) || !canBeNextOf(each, txn)) continue;
      places.set(cnxnWrites, index);
      if (goesOnAt(at + 1)) return true;
      places.set(cnxnWrites, tracedPlace);
    }
    deadEnds[at]!.add(state);
    return false;
  };
  return goesOnAt(0);
}

/**
 * A session can have moved before `movedMs`: the question of a connection that it has left may be
 * long in transit.
 */
function canBeNextOf(
  { request, mayHaveMoved, shownZxid }: Candidate,
  { logged, atMs }: Pick<NextTxn<Candidate>, 'logged' | 'atMs'>,
): boolean {
  if (shownZxid >= logged.header.zxid) return false;
  // Times in a log are whole milliseconds.
  return request.sentMs <= atMs + 1 && canResultFrom(request, logged) && (!isMoved(logged.txn) || mayHaveMoved);
}

function isMoved(txn: TxnLogEntry['txn']): boolean {
  return txn.kind === 'error' && txn.err === ErrorCode.SessionMoved;
}

/**
 * Whether all writes over the connection after the one at `tracedPlace` and before this one can
 * have been turned away.
 */
function isNextUnthrottled({ index, cnxnWrites }: Candidate, tracedPlace: number): boolean {
  const unheard = [...cnxnWrites.throttledOps];
  return cnxnWrites.writes.slice(tracedPlace, index - 1).every(({ opCode, reply }) => {
    const at = reply === undefined ? unheard.indexOf(opCode) : -1;
    if (at !== -1) unheard.splice(at, 1);
    return at !== -1;
  });
}

/** Whether a txn has changed nothing. */
export function isRefusal({ txn }: Pick<TxnLogEntry, 'txn'>): boolean {
  return txn.kind === 'error' || (txn.kind === 'multi' && txn.txns.some((part) => part.txn.kind === 'error'));
}

/** Whether a txn can be the result of a request, by its content. */
export function canResultFrom({ name, record }: Request, { txn }: Pick<TxnLogEntry, 'txn'>): boolean {
  switch (txn.kind) {
    case 'error':
      return canFailWith(name, txn.err);
    case 'createSession':
      return false;
    case 'closeSession':
      return name === 'closeSession';
    case 'multi': {
      const ops = name === 'multi' ? (record as MultiRequest).ops : [{ kind: name, ...(record as object) } as MultiOp];
      const members = membersByOp(ops, txn.txns);
      if (name !== 'multi' && name !== 'createIfNotExists' && name !== 'removeRecursive') return false;
      return members !== undefined && ops.every((op, at) => members[at]!.every((member) => isResultOfOp(op, member.txn)));
    }
    case 'setACL':
      return name === 'setACL' && (record as { readonly path: string }).path === txn.path;
    default:
      return isResultOfOp({ kind: name, ...(record as object) } as MultiOp, txn);
  }
}

/**
 * The members of a multi's txn for each operation; undefined if it cannot be the txn of these. A
 * removeRecursive is several deletes, the last one of the path that it names.
 */
export function membersByOp(ops: readonly MultiOp[], members: readonly MultiMember[]): MultiMember[][] | undefined {
  let next = 0;
  const found = ops.map((op) => {
    const own: MultiMember[] = [];
    for (let member = members[next]; member !== undefined; member = members[next]) {
      own.push(member);
      next++;
      if (op.kind !== 'removeRecursive' || !('path' in member.txn) || member.txn.path === op.path) break;
    }
    return own;
  });
  return next === members.length && found.every((own) => own.length > 0) ? found : undefined;
}

/** Some errors show the kind of request. Those of a multi are in its operations. */
function canFailWith(name: string | undefined, err: number): boolean {
  switch (err) {
    case ErrorCode.Ok:
      // A txn without a change.
      return name === 'tryRemove' || name === 'removeRecursive';
    case ErrorCode.NodeExists:
    case ErrorCode.NoChildrenForEphemerals:
      return name?.startsWith('create') === true;
    case ErrorCode.NotEmpty:
      return name === 'delete' || name === 'deleteContainer' || name === 'removeRecursive';
    case ErrorCode.BadVersion:
      return name !== 'multi' && name?.startsWith('create') !== true;
    case ErrorCode.InvalidACL:
      return name === 'setACL' || name?.startsWith('create') === true;
    default:
      return true;
  }
}

function isResultOfOp(op: MultiOp, txn: MultiMemberTxn): boolean {
  switch (txn.kind) {
    case 'error':
      return true;
    case 'create':
    case 'createContainer':
    case 'createTTL':
      // The server may have appended a counter to the name.
      return op.kind.startsWith('create') && txn.path.startsWith(op.path ?? '') && isSameData((op as { data?: unknown }).data, txn.data);
    case 'delete':
      if (op.kind === 'removeRecursive') return `${txn.path}/`.startsWith(`${op.path}/`);
      return (op.kind === 'delete' || op.kind === 'tryRemove' || (op.kind as string) === 'deleteContainer') && op.path === txn.path;
    case 'check':
      return mayChangeNothing.has(op.kind) && op.path === txn.path;
    case 'setData':
      if ((op.kind as string) === 'reconfig') return txn.path === '/zookeeper/config';
      return op.kind === 'setData' && op.path === txn.path && isSameData(op.data, txn.data);
    default:
      return txn satisfies never;
  }
}

/** Operations of a multi that can be a check in its txn. */
const mayChangeNothing: ReadonlySet<string> = new Set([
  'check',
  'checkNotExists',
  'checkStat',
  'createIfNotExists',
  'removeRecursive',
  'tryRemove',
]);

function isSameData(asked: unknown, logged: Uint8Array | null): boolean {
  return Buffer.from((asked ?? []) as Uint8Array).equals(Buffer.from(logged ?? []));
}
