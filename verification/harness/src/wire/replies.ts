/**
 * Decodes the records of replies and events into plain values, so that two servers can be compared
 * field by field and a person can read the difference. Bytes after a record are kept as well: a
 * correct reply has none.
 */
import { ErrorCode, OpCode, ProtocolError, Reader } from '@tskeeper/protocol';
import type { AclEntry } from './requests.ts';

export interface Stat {
  czxid: number;
  mzxid: number;
  ctime: number;
  mtime: number;
  version: number;
  cversion: number;
  aversion: number;
  ephemeralOwner: bigint;
  dataLength: number;
  numChildren: number;
  pzxid: number;
}
export interface MultiResult {
  type: number;
  err: number;
  value?: ReplyValue;
}
export interface PageChildValue {
  name: string | null;
  err?: number;
  data?: Buffer | null;
  stat?: Stat;
}
export interface ReplyValue {
  path?: string | null;
  stat?: Stat;
  data?: Buffer | null;
  acl?: AclEntry[] | null;
  children?: (string | null)[] | null;
  /** Of a list with Stats and data. */
  contents?: PageChildValue[];
  page?: { children: PageChildValue[]; isLast: boolean; lastZxid: number };
  ephemerals?: (string | null)[] | null;
  totalNumber?: number;
  err?: number;
  clientInfo?: { authScheme: string | null; user: string | null }[] | null;
  token?: Buffer | null;
  results?: MultiResult[];
  /** Hex of what follows the record. */
  rest?: string;
  /** The record could not be decoded; hex of the whole body. */
  unreadable?: string;
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

function readAcl(r: Reader): AclEntry[] | null {
  return r.vector(12, (v) => ({ perms: v.int32(), scheme: v.ustring(), id: v.ustring() }));
}

/** Results of a multi, up to its end header. */
function readResults(r: Reader): MultiResult[] {
  const results: MultiResult[] = [];
  for (;;) {
    const type = r.int32();
    const done = r.boolean();
    const err = r.int32();
    if (done) return results;
    if (type === OpCode.error) results.push({ type, err, value: { err: r.int32() } });
    else {
      // A result of create2, createContainer and createTTL alike has the type create2.
      const value = readRecord(type, r);
      results.push(value === undefined ? { type, err } : { type, err, value });
    }
  }
}

function readPageChild(r: Reader): PageChildValue {
  const name = r.ustring();
  const err = r.int32();
  if (err !== 0) return { name, err };
  const data = r.buffer();
  return { name, err, data, stat: readStat(r) };
}

function readPage(r: Reader, readChild: (r: Reader) => PageChildValue): ReplyValue {
  const children = r.vector(4, readChild) ?? [];
  const isLast = r.boolean();
  const lastZxid = r.int64();
  return { page: { children, isLast, lastZxid }, stat: readStat(r) };
}

/** Names, the Stat of the parent, and the Stats and the data of the children, where requested. */
function readContents(r: Reader): ReplyValue {
  const names = r.vector(4, (v) => v.ustring()) ?? [];
  const stat = readStat(r);
  const stats = r.vector(4, readStat) ?? [];
  const data = r.vector(4, (v) => v.buffer()) ?? [];
  for (const list of [stats, data])
    if (list.length > 0 && list.length !== names.length) throw new ProtocolError('one for each child', r.offset);
  const contentsOf = (name: string | null, at: number): PageChildValue => ({
    name,
    ...(stats[at] === undefined ? {} : { stat: stats[at] }),
    ...(data[at] === undefined ? {} : { data: data[at] }),
  });
  return { contents: names.map(contentsOf), stat };
}

/** The record that answers a request of this type; undefined if there is none. */
export function readRecord(type: number, r: Reader): ReplyValue | undefined {
  switch (type) {
    case OpCode.create:
    case OpCode.createIfNotExists:
    case OpCode.sync:
      return { path: r.ustring() };
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTTL: {
      const path = r.ustring();
      return { path, stat: readStat(r) };
    }
    case OpCode.exists:
    case OpCode.setData:
    case OpCode.setACL:
      return { stat: readStat(r) };
    case OpCode.getData:
    case OpCode.reconfig: {
      const data = r.buffer();
      return { data, stat: readStat(r) };
    }
    case OpCode.getACL: {
      const acl = readAcl(r);
      return { acl, stat: readStat(r) };
    }
    case OpCode.getChildren:
      return { children: r.vector(4, (v) => v.ustring()) };
    case OpCode.filteredList:
    case OpCode.getChildren2: {
      const children = r.vector(4, (v) => v.ustring());
      return { children, stat: readStat(r) };
    }
    case OpCode.filteredListWithStatsAndData:
      return readContents(r);
    case OpCode.listRecursive:
      return { children: r.vector(4, (v) => v.ustring()) };
    case OpCode.getChildrenPage:
      return readPage(r, (v) => ({ name: v.ustring() }));
    case OpCode.getChildrenDataPage:
      return readPage(r, readPageChild);
    case OpCode.getEphemerals:
      return { ephemerals: r.vector(4, (v) => v.ustring()) };
    case OpCode.getAllChildrenNumber:
      return { totalNumber: r.int32() };
    case OpCode.addWatch:
      return { err: r.int32() };
    case OpCode.whoAmI:
      return { clientInfo: r.vector(8, (v) => ({ authScheme: v.ustring(), user: v.ustring() })) };
    case OpCode.sasl:
      return { token: r.buffer() };
    case OpCode.multi:
    case OpCode.multiRead:
      return { results: readResults(r) };
    default:
      return undefined;
  }
}

/**
 * Decodes the body of a reply to a request of `type`. An error has no record, except that a failed
 * multiRead may have one.
 */
export function readReply(type: number, err: number, body: Buffer): ReplyValue {
  if (err !== ErrorCode.Ok) return body.length === 0 ? {} : { rest: body.toString('hex') };
  const reader = new Reader(body);
  try {
    const value = readRecord(type, reader) ?? {};
    if (reader.remaining > 0) value.rest = body.toString('hex', reader.offset);
    return value;
  } catch (error) {
    if (error instanceof ProtocolError) return { unreadable: body.toString('hex') };
    throw error;
  }
}

export interface EventValue {
  type: number;
  state: number;
  path: string | null;
  rest?: string;
}

export function readEvent(body: Buffer): EventValue | { unreadable: string } {
  const reader = new Reader(body);
  try {
    const value: EventValue = { type: reader.int32(), state: reader.int32(), path: reader.ustring() };
    if (reader.remaining > 0) value.rest = body.toString('hex', reader.offset);
    return value;
  } catch (error) {
    if (error instanceof ProtocolError) return { unreadable: body.toString('hex') };
    throw error;
  }
}
