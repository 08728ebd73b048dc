/**
 * Bodies of client requests, written field by field without checks: a test of a server must be able
 * to send nonsense. Written from the description of the protocol, independent of the server's
 * codecs.
 */
import { OpCode, type Stat, Writer } from '@tskeeper/protocol';

export interface AclEntry {
  readonly perms: number;
  readonly scheme: string | null;
  readonly id: string | null;
}
export const openAcl: readonly AclEntry[] = [{ perms: 31, scheme: 'world', id: 'anyone' }];
export const creatorAcl: readonly AclEntry[] = [{ perms: 31, scheme: 'auth', id: '' }];
export const readAcl: readonly AclEntry[] = [{ perms: 1, scheme: 'world', id: 'anyone' }];

export interface ChildrenPage {
  readonly path: WirePath;
  readonly watch: boolean;
  readonly afterZxid: number;
  readonly afterName: WirePath;
  readonly untilZxid: number;
  readonly countMax: number;
  readonly bytesMax: number;
}

/** Text, null, or bytes that are not text. */
export type WirePath = string | null | Buffer;

/** Writes one record. A function, since a multi puts the same record after another header. */
export type Fields = (writer: Writer) => void;

function path(writer: Writer, value: WirePath): void {
  if (typeof value === 'string' || value === null) writer.ustring(value);
  else writer.buffer(value);
}

function acls(writer: Writer, acl: readonly AclEntry[] | null): void {
  writer.vector(acl, (w, entry) => {
    w.int32(entry.perms);
    w.ustring(entry.scheme);
    w.ustring(entry.id);
  });
}

export const record = {
  create:
    (at: WirePath, data: Uint8Array | null, acl: readonly AclEntry[] | null, flags: number): Fields =>
    (w) => {
      path(w, at);
      w.buffer(data);
      acls(w, acl);
      w.int32(flags);
    },
  createTTL:
    (at: WirePath, data: Uint8Array | null, acl: readonly AclEntry[] | null, flags: number, ttl: bigint): Fields =>
    (w) => {
      path(w, at);
      w.buffer(data);
      acls(w, acl);
      w.int32(flags);
      w.bigint64(ttl);
    },
  pathOnly:
    (at: WirePath): Fields =>
    (w) =>
      path(w, at),
  pathAndWatch:
    (at: WirePath, watch: boolean): Fields =>
    (w) => {
      path(w, at);
      w.boolean(watch);
    },
  filteredList:
    (at: WirePath, watch: boolean, filter: number): Fields =>
    (w) => {
      path(w, at);
      w.boolean(watch);
      w.int8(filter);
    },
  filteredListWithStatsAndData:
    (at: WirePath, watch: boolean, filter: number, withStat: boolean, withData: boolean): Fields =>
    (w) => {
      path(w, at);
      w.boolean(watch);
      w.int8(filter);
      w.boolean(withStat);
      w.boolean(withData);
    },
  checkStat:
    (at: WirePath, version: number, stat: Stat): Fields =>
    (w) => {
      path(w, at);
      w.int32(version);
      for (const time of [stat.czxid, stat.mzxid, stat.ctime, stat.mtime]) w.int64(time);
      for (const number of [stat.version, stat.cversion, stat.aversion]) w.int32(number);
      w.bigint64(stat.ephemeralOwner);
      w.int32(stat.dataLength);
      w.int32(stat.numChildren);
      w.int64(stat.pzxid);
    },
  childrenPage:
    (page: ChildrenPage): Fields =>
    (w) => {
      path(w, page.path);
      w.boolean(page.watch);
      w.int64(page.afterZxid);
      path(w, page.afterName);
      w.int64(page.untilZxid);
      w.int32(page.countMax);
      w.int32(page.bytesMax);
    },
  pathAndInt:
    (at: WirePath, value: number): Fields =>
    (w) => {
      path(w, at);
      w.int32(value);
    },
  setData:
    (at: WirePath, data: Uint8Array | null, version: number): Fields =>
    (w) => {
      path(w, at);
      w.buffer(data);
      w.int32(version);
    },
  setACL:
    (at: WirePath, acl: readonly AclEntry[] | null, version: number): Fields =>
    (w) => {
      path(w, at);
      acls(w, acl);
      w.int32(version);
    },
  auth:
    (scheme: string | null, auth: Uint8Array | null): Fields =>
    (w) => {
      w.int32(0);
      w.ustring(scheme);
      w.buffer(auth);
    },
  setWatches:
    (relativeZxid: number, lists: readonly (readonly WirePath[])[]): Fields =>
    (w) => {
      w.bigint64(BigInt(relativeZxid));
      for (const list of lists) w.vector(list, path);
    },
  reconfig:
    (joining: string | null, leaving: string | null, members: string | null, version: number): Fields =>
    (w) => {
      w.ustring(joining);
      w.ustring(leaving);
      w.ustring(members);
      w.bigint64(BigInt(version));
    },
  multi:
    (parts: readonly { readonly type: number; readonly fields: Fields }[]): Fields =>
    (w) => {
      for (const part of parts) {
        w.int32(part.type);
        w.boolean(false);
        w.int32(-1);
        part.fields(w);
      }
      w.int32(-1);
      w.boolean(true);
      w.int32(-1);
    },
  token:
    (token: Uint8Array | null): Fields =>
    (w) =>
      w.buffer(token),
  nothing: (): Fields => () => {},
  bytes:
    (bytes: Uint8Array): Fields =>
    (w) =>
      w.raw(bytes),
};

export interface Handshake {
  readonly protocolVersion?: number;
  readonly lastZxidSeen?: number;
  readonly timeOut: number;
  readonly sessionId?: bigint;
  readonly passwd?: Buffer | null;
  /** undefined omits the byte, as clients of 3.3 do. */
  readonly readOnly?: boolean | undefined;
}

export const noPasswd = Buffer.alloc(16);

/** The body of a ConnectRequest. */
export function handshakeBody(handshake: Handshake): Buffer {
  const writer = new Writer(64);
  writer.int32(handshake.protocolVersion ?? 0);
  // Any long, also beyond the range in which a number is exact.
  writer.bigint64(BigInt(handshake.lastZxidSeen ?? 0));
  writer.int32(handshake.timeOut);
  writer.bigint64(handshake.sessionId ?? 0n);
  writer.buffer(handshake.passwd === undefined ? noPasswd : handshake.passwd);
  if (handshake.readOnly !== undefined) writer.boolean(handshake.readOnly);
  return Buffer.from(writer.written());
}

/** The body of a request: header, then the record. */
export function requestBody(xid: number, type: number, fields: Fields): Buffer {
  const writer = new Writer(256);
  writer.int32(xid);
  writer.int32(type);
  fields(writer);
  return Buffer.from(writer.written());
}

const names = new Map<number, string>(Object.entries(OpCode).map(([name, code]) => [code, name]));

export function opName(type: number): string {
  return names.get(type) ?? `opcode ${type}`;
}
