/**
 * Tells a recording's story once more, by the model: each txn of the log is traced back to the request it came from, the request is put to
 * the model, and each read is asked of the model at the zxid in its reply. What comes out is what should have been answered; whether it
 * was, the checkers say.
 */
import {
  type CreateRequest,
  type DeleteRequest,
  ErrorCode,
  type GetDataRequest,
  type Millis,
  type MultiRequest,
  type SessionId,
  sessionIdOf,
  type SetDataRequest,
  type Zxid,
} from '@tskeeper/protocol';
import { type Answer, type Change, Model } from './model.ts';
import type { Recording, Request } from './recording.ts';

export interface ReplayedTxn {
  readonly zxid: Zxid;
  readonly atMs: Millis;
  readonly session: SessionId;
  readonly type: number;
  /** What it came from; undefined for what the server does by itself: opening a session, and ending one that is overdue. */
  readonly request: Request | undefined;
  /** Neither asked for by a client nor something a server does. */
  readonly invented: boolean;
}

export interface SessionLife {
  readonly id: SessionId;
  readonly openedZxid: Zxid;
  readonly openedMs: Millis;
  readonly timeoutMs: Millis;
  closedZxid: Zxid;
  closedMs: Millis;
  closedBy: 'client' | 'server' | undefined;
  /** Its ephemerals at its end. */
  ephemerals: readonly string[];
}

export interface Expectation {
  readonly request: Request;
  readonly answer: Answer;
}

export interface Replay {
  readonly txns: readonly ReplayedTxn[];
  readonly changes: readonly Change[];
  readonly sessions: ReadonlyMap<SessionId, SessionLife>;
  /** Of every write that is in the log, and of every read that was answered. */
  readonly writes: readonly Expectation[];
  readonly reads: readonly Expectation[];
  readonly lastZxid: Zxid;
}

export const writeNames: ReadonlySet<string> = new Set(['create', 'create2', 'delete', 'setData', 'multi', 'closeSession']);

export function keyOf(session: SessionId, xid: number): string {
  return `${session} ${xid}`;
}

export function replay(recording: Recording): Replay {
  const model = new Model();
  const requests = new Map<string, Request>();
  const reads: Request[] = [];
  for (const cnxn of recording.cnxns) {
    for (const request of cnxn.requests) {
      if (writeNames.has(request.name)) requests.set(keyOf(request.session, request.xid), request);
      else if (request.reply !== undefined) reads.push(request);
    }
  }
  reads.sort((a, b) => a.reply!.zxid - b.reply!.zxid);

  const txns: ReplayedTxn[] = [];
  const sessions = new Map<SessionId, SessionLife>();
  const expectedWrites: Expectation[] = [];
  const expectedReads: Expectation[] = [];
  let nextRead = 0;
  const answerReads = (below: Zxid) => {
    for (; nextRead < reads.length && reads[nextRead]!.reply!.zxid < below; nextRead++) {
      const request = reads[nextRead]!;
      expectedReads.push({ request, answer: answerRead(model, request) });
    }
  };

  for (const { atMs, logged } of recording.log) {
    const { header, txn } = logged;
    const { zxid, type } = header;
    answerReads(zxid);
    const session = sessionIdOf(header.clientHigh, header.clientLow);
    const request = requests.get(keyOf(session, header.cxid));
    model.begin(zxid, header.time, session);
    let invented = false;
    if (txn.kind === 'createSession') {
      sessions.set(session, {
        id: session,
        openedZxid: zxid,
        openedMs: atMs,
        timeoutMs: txn.timeOut,
        closedZxid: Infinity,
        closedMs: Infinity,
        closedBy: undefined,
        ephemerals: [],
      });
    } else if (txn.kind === 'closeSession') {
      const life = sessions.get(session);
      const ephemerals = model.closeSession(session, txn.paths2Delete);
      if (life === undefined || life.closedBy !== undefined) invented = true;
      else {
        life.closedZxid = zxid;
        life.closedMs = atMs;
        life.closedBy = request?.name === 'closeSession' ? 'client' : 'server';
        life.ephemerals = ephemerals;
        if (life.closedBy === 'server' && header.cxid !== 0) invented = true;
      }
      if (request !== undefined) expectedWrites.push({ request, answer: { err: ErrorCode.Ok } });
    } else if (request === undefined) {
      invented = true;
    } else {
      const isOver = sessions.get(session)?.closedBy !== undefined;
      expectedWrites.push({ request, answer: isOver ? sessionIsOver(request) : answerWrite(model, request) });
    }
    txns.push({ zxid, atMs, session, type, request, invented });
  }
  answerReads(Infinity);
  return { txns, changes: model.changes, sessions, writes: expectedWrites, reads: expectedReads, lastZxid: txns.at(-1)?.zxid ?? 0 };
}

function answerWrite(model: Model, { name, record }: Request): Answer {
  switch (name) {
    case 'create':
    case 'create2': {
      const { err, path } = model.create(record as CreateRequest);
      if (err !== ErrorCode.Ok) return { err };
      return { err, body: name === 'create' ? { path } : { path, stat: model.stat(path!) } };
    }
    case 'delete':
      return model.delete(record as DeleteRequest);
    case 'setData': {
      const { err } = model.setData(record as SetDataRequest);
      return err === ErrorCode.Ok ? { err, body: { stat: model.stat((record as SetDataRequest).path!) } } : { err };
    }
    case 'multi':
      return { err: ErrorCode.Ok, body: { results: model.multi((record as MultiRequest).ops) } };
    default:
      throw new Error(`the model does not know ${name}`);
  }
}

function sessionIsOver({ name, record }: Request): Answer {
  if (name !== 'multi') return { err: ErrorCode.SessionExpired };
  const results = (record as MultiRequest).ops.map((_, at) => ({
    kind: 'error',
    err: at === 0 ? ErrorCode.SessionExpired : ErrorCode.RuntimeInconsistency,
  }));
  return { err: ErrorCode.Ok, body: { results } };
}

function answerRead(model: Model, { name, record }: Request): Answer {
  const { path } = (record ?? {}) as GetDataRequest;
  const znode = path === undefined ? undefined : model.znode(path);
  switch (name) {
    case 'ping':
      return { err: ErrorCode.Ok };
    case 'sync':
      return { err: ErrorCode.Ok, body: { path } };
    case 'addWatch':
      return { err: ErrorCode.Ok, body: { err: ErrorCode.Ok } };
    case 'getData':
      return znode === undefined ? noNode : { err: ErrorCode.Ok, body: { data: znode.data, stat: model.stat(path) } };
    case 'exists':
      return znode === undefined ? noNode : { err: ErrorCode.Ok, body: { stat: model.stat(path) } };
    case 'getChildren':
      return znode === undefined ? noNode : { err: ErrorCode.Ok, body: { children: [...znode.children] } };
    case 'getChildren2':
      return znode === undefined ? noNode : { err: ErrorCode.Ok, body: { children: [...znode.children], stat: model.stat(path) } };
    default:
      throw new Error(`the model does not know ${name}`);
  }
}

const noNode: Answer = { err: ErrorCode.NoNode };

/** A value as text, equal for equal values. Names of children have no order. */
export function textOf(value: unknown): string {
  return JSON.stringify(value, (key, each: unknown) => {
    if (typeof each === 'bigint') return String(each);
    if (key === 'children') return (each as string[]).toSorted();
    if (isBufferJson(each)) return Buffer.from(each.data).toString('latin1');
    return each;
  });
}

function isBufferJson(value: unknown): value is { readonly data: number[] } {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'Buffer' && 'data' in value;
}

export function nameRequest({ session, xid, name, record }: Request): string {
  return `${name} ${textOf(record)} (session 0x${session.toString(16)}, xid ${xid})`;
}
