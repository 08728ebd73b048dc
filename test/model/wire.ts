/**
 * The encoding of operation-types.ts: requests as a client sends them, replies and events as it
 * reads them. Written for the tests from the protocol's description, independent of the server's
 * codecs.
 */
import { OpCode, Reader, Writer, Xid } from '@tskeeper/protocol';
import type {
  AclEntry,
  Body,
  ConnectRequest,
  ConnectResponse,
  CreateFields,
  Data,
  Message,
  MultiResult,
  Operation,
  OperationKind,
  ReadStep,
  Stat,
  WriteStep,
} from '@tskeeper/simulator';

export function opCodeOf(operation: Operation): number {
  if (operation.kind === 'unknown' || operation.kind === 'undecodable') return operation.opCode;
  return OpCode[operation.kind];
}

const bytesOf = (data: Data): Buffer | null => (data === null ? null : Buffer.from(data, 'latin1'));
const textOf = (bytes: Buffer | null): Data => (bytes === null ? null : bytes.toString('latin1'));

function writeAcl(w: Writer, acl: readonly AclEntry[] | null): void {
  w.vector(acl, (to, { perms, scheme, id }) => {
    to.int32(perms);
    to.ustring(scheme);
    to.ustring(id);
  });
}

function writePaths(w: Writer, paths: readonly string[]): void {
  w.vector(paths, (to, path) => to.ustring(path));
}

function writeCreate(w: Writer, fields: CreateFields): void {
  w.ustring(fields.path);
  w.buffer(bytesOf(fields.data));
  writeAcl(w, fields.acl);
  w.int32(fields.flags);
}

/** Any long, also beyond the range in which a number is exact. */
function writeLong(w: Writer, value: number): void {
  w.bigint64(BigInt(value));
}

function writeRecord(w: Writer, operation: Operation): void {
  switch (operation.kind) {
    case 'create':
    case 'create2':
    case 'createContainer':
      writeCreate(w, operation);
      return;
    case 'createTTL':
      writeCreate(w, operation);
      writeLong(w, operation.ttl);
      return;
    case 'delete':
    case 'check':
      w.ustring(operation.path);
      w.int32(operation.version);
      return;
    case 'setData':
      w.ustring(operation.path);
      w.buffer(bytesOf(operation.data));
      w.int32(operation.version);
      return;
    case 'setACL':
      w.ustring(operation.path);
      writeAcl(w, operation.acl);
      w.int32(operation.version);
      return;
    case 'exists':
    case 'getData':
    case 'getChildren':
    case 'getChildren2':
      w.ustring(operation.path);
      w.boolean(operation.watch);
      return;
    case 'getACL':
    case 'sync':
    case 'getAllChildrenNumber':
    case 'deleteContainer':
      w.ustring(operation.path);
      return;
    case 'getEphemerals':
      w.ustring(operation.prefixPath);
      return;
    case 'ping':
    case 'whoAmI':
    case 'closeSession':
      return;
    case 'multi':
    case 'multiRead':
      writeSteps(w, operation.steps);
      return;
    case 'reconfig':
      w.ustring(operation.joiningServers);
      w.ustring(operation.leavingServers);
      w.ustring(operation.newMembers);
      writeLong(w, operation.curConfigId);
      return;
    case 'checkWatches':
    case 'removeWatches':
      w.ustring(operation.path);
      w.int32(operation.type);
      return;
    case 'addWatch':
      w.ustring(operation.path);
      w.int32(operation.mode);
      return;
    case 'setWatches':
    case 'setWatches2':
      writeLong(w, operation.relativeZxid);
      writePaths(w, operation.dataWatches);
      writePaths(w, operation.existWatches);
      writePaths(w, operation.childWatches);
      if (operation.kind === 'setWatches') return;
      writePaths(w, operation.persistentWatches);
      writePaths(w, operation.persistentRecursiveWatches);
      return;
    case 'auth':
      w.int32(0);
      w.ustring(operation.scheme);
      w.buffer(bytesOf(operation.auth));
      return;
    case 'sasl':
      w.buffer(bytesOf(operation.token));
      return;
    case 'unknown':
      return;
    case 'undecodable':
      w.raw(bytesOf(operation.bytes)!);
      return;
    default:
      operation satisfies never;
  }
}

function writeSteps(w: Writer, steps: readonly (WriteStep | ReadStep)[]): void {
  const header = (type: number, done: boolean): void => {
    w.int32(type);
    w.boolean(done);
    w.int32(-1);
  };
  for (const step of steps) {
    header(opCodeOf(step), false);
    writeRecord(w, step);
  }
  header(-1, true);
}

/** A whole frame, including its length. */
export function encodeRequest(xid: number, operation: Operation): Buffer {
  const w = new Writer();
  const start = w.beginFrame();
  w.int32(xid);
  w.int32(opCodeOf(operation));
  writeRecord(w, operation);
  w.endFrame(start);
  return Buffer.from(w.written());
}

export function encodeConnect(request: ConnectRequest): Buffer {
  const w = new Writer();
  const start = w.beginFrame();
  w.int32(request.protocolVersion);
  writeLong(w, request.lastZxidSeen);
  w.int32(request.timeOut);
  w.bigint64(request.sessionId);
  w.buffer(bytesOf(request.passwd));
  if (request.readOnly !== undefined) w.boolean(request.readOnly);
  w.endFrame(start);
  return Buffer.from(w.written());
}

export function decodeConnectResponse(frame: Buffer): ConnectResponse {
  const r = new Reader(frame);
  r.int32();
  const response = { kind: 'connected', timeOut: r.int32(), sessionId: r.bigint64(), passwd: textOf(r.buffer()) } as const;
  return finished(r, r.remaining > 0 ? { ...response, readOnly: r.boolean() } : response);
}

function readStat(r: Reader): Stat {
  return {
    czxid: r.int64(),
    mzxid: r.int64(),
    ctime: r.int64(),
    mtime: r.int64(),
    version: r.int32(),
    cversion: r.int32(),
    aversion: r.int32(),
    ephemeralOwner: r.bigint64(),
    dataLength: r.int32(),
    numChildren: r.int32(),
    pzxid: r.int64(),
  };
}

const readTexts = (r: Reader): string[] => r.vector(4, (from) => from.ustring()!)!;

function readAcl(r: Reader): AclEntry[] {
  return r.vector(12, (from) => ({ perms: from.int32(), scheme: from.ustring(), id: from.ustring() }))!;
}

function readBody(r: Reader, kind: OperationKind): Body | null {
  switch (kind) {
    case 'create':
    case 'sync':
      return { path: r.ustring() };
    case 'create2':
    case 'createContainer':
    case 'createTTL':
      return { path: r.ustring(), stat: readStat(r) };
    case 'exists':
    case 'setData':
    case 'setACL':
      return { stat: readStat(r) };
    case 'getData':
      return { data: textOf(r.buffer()), stat: readStat(r) };
    case 'getACL':
      return { acl: readAcl(r), stat: readStat(r) };
    case 'getChildren':
      return { children: readTexts(r) };
    case 'getChildren2':
      return { children: readTexts(r), stat: readStat(r) };
    case 'getEphemerals':
      return { ephemerals: readTexts(r) };
    case 'getAllChildrenNumber':
      return { totalNumber: r.int32() };
    case 'whoAmI':
      return { clientInfo: r.vector(8, (from) => ({ authScheme: from.ustring()!, user: from.ustring()! }))! };
    case 'addWatch':
      return { err: r.int32() };
    case 'sasl':
      return { token: textOf(r.buffer()) };
    case 'multi':
    case 'multiRead':
      return { results: readResults(r) };
    case 'delete':
    case 'check':
    case 'deleteContainer':
    case 'ping':
    case 'closeSession':
    case 'reconfig':
    case 'checkWatches':
    case 'removeWatches':
    case 'setWatches':
    case 'setWatches2':
    case 'auth':
    case 'unknown':
    case 'undecodable':
      return null;
    default:
      kind satisfies never;
      throw new Error('no such operation');
  }
}

const resultKinds = new Map<number, OperationKind>([
  [OpCode.create, 'create'],
  [OpCode.create2, 'create2'],
  [OpCode.setData, 'setData'],
  [OpCode.getData, 'getData'],
  [OpCode.getChildren, 'getChildren'],
  [OpCode.error, 'addWatch'],
]);

function readResults(r: Reader): MultiResult[] {
  const results: MultiResult[] = [];
  for (;;) {
    const type = r.int32();
    const done = r.boolean();
    const err = r.int32();
    if (done) return results;
    const kind = resultKinds.get(type);
    const body = kind === undefined ? null : readBody(r, kind);
    results.push(body === null ? { type, err } : { type, err, body });
  }
}

function finished<T>(r: Reader, value: T): T {
  if (r.remaining !== 0) throw new Error(`${r.remaining} bytes too many at the end of a frame: ${r.bytes.toString('hex')}`);
  return value;
}

/** `kindOf` returns the operation of an xid. Throws unless the frame is exactly such a reply. */
export function decodeMessage(frame: Buffer, kindOf: (xid: number) => OperationKind): Message {
  const r = new Reader(frame);
  const xid = r.int32();
  const zxid = r.int64();
  const err = r.int32();
  if (xid === Xid.notification) {
    if (err !== 0) throw new Error(`a watch event with error ${err}`);
    return finished(r, { kind: 'event', zxid, type: r.int32(), state: r.int32(), path: r.ustring()! });
  }
  const kind = kindOf(xid);
  const body = r.remaining > 0 ? readBody(r, kind) : null;
  return finished(r, { kind: 'reply', xid, zxid, err, body });
}

/** Splits a byte stream into frames. */
export class FrameCutter {
  #held: Buffer = Buffer.alloc(0);

  push(chunk: Buffer): Buffer[] {
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const frames: Buffer[] = [];
    while (this.#held.length >= 4 && this.#held.length >= 4 + this.#held.readInt32BE(0)) {
      const end = 4 + this.#held.readInt32BE(0);
      frames.push(this.#held.subarray(4, end));
      this.#held = this.#held.subarray(end);
    }
    return frames;
  }
}
