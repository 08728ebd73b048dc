/**
 * The children of a znode page by page: two operations that ZooKeeper does not have. A client learns
 * whether a server knows them by reading `featuresPath`
 * (docs/decisions/pages-of-children.md).
 *
 * The order is that of (czxid, bytes of the name). A new child comes last, a deleted one leaves the
 * others where they are, and all servers have the same order, so a position is valid at each of
 * them, whatever happens to the child that it names.
 */
import { ErrorCode } from '../constants.ts';
import type { Zxid } from '../jute/numbers.ts';
import type { Reader } from '../jute/reader.ts';
import { readStringVector, writeStringVector } from '../jute/string-vector.ts';
import type { Writer } from '../jute/writer.ts';
import { readStat, type Stat, writeStat } from '../znode/stat.ts';

/** A znode that exists only in replies to getData: the names of this server's features. */
export const featuresPath = '/zookeeper/tskeeper';

/** Names in the data of `featuresPath`, one a line. */
export const serverFeature = { childrenPages: 'childrenPages' } as const;

export interface ChildrenPageRequest {
  readonly path: string;
  /** Sets a child watch, as getChildren does. */
  readonly watch: boolean;
  /** The page begins after this czxid and name; -1 and null for the first page. */
  readonly afterZxid: Zxid;
  readonly afterName: string | null;
  /** Children with a later czxid are left out; -1 for none. */
  readonly untilZxid: Zxid;
  /** The most children of the page; 0 or less for no limit. */
  readonly countMax: number;
  /**
   * The most bytes of the list of children. The server takes its jute.maxbuffer if that is less, or
   * if this is 0 or less. The first child is in the page in any case, without its data if these
   * do not fit.
   */
  readonly bytesMax: number;
}

/** What follows the list of children in both replies. */
export interface PageEnd {
  /** Whether no child follows. */
  readonly isLast: boolean;
  /** The czxid of the last child of the page, which the next page begins after; -1 if it is empty. */
  readonly lastZxid: Zxid;
  /** The Stat of the parent at the same moment. */
  readonly stat: Stat;
}

export interface ChildrenPageReply extends PageEnd {
  readonly children: readonly string[];
}

export type ChildWithData =
  | { readonly name: string; readonly err: 0; readonly data: Buffer | null; readonly stat: Stat }
  /** NoAuth: the client may not read it. MarshallingError: its data exceed `bytesMax`. */
  | { readonly name: string; readonly err: number };

export interface ChildrenDataPageReply extends PageEnd {
  readonly children: readonly ChildWithData[];
}

/** Length of a name, and an error. */
const childBytesMin = 8;

export function readChildrenPageRequest(reader: Reader): ChildrenPageRequest {
  return {
    path: reader.text('a path'),
    watch: reader.boolean(),
    afterZxid: reader.int64(),
    afterName: reader.ustring(),
    untilZxid: reader.int64(),
    countMax: reader.int32(),
    bytesMax: reader.int32(),
  };
}

export function writeChildrenPageRequest(writer: Writer, request: ChildrenPageRequest): void {
  writer.ustring(request.path);
  writer.boolean(request.watch);
  writer.int64(request.afterZxid);
  writer.ustring(request.afterName);
  writer.int64(request.untilZxid);
  writer.int32(request.countMax);
  writer.int32(request.bytesMax);
}

function readPageEnd(reader: Reader): PageEnd {
  return { isLast: reader.boolean(), lastZxid: reader.int64(), stat: readStat(reader) };
}

function writePageEnd(writer: Writer, { isLast, lastZxid, stat }: PageEnd): void {
  writer.boolean(isLast);
  writer.int64(lastZxid);
  writeStat(writer, stat);
}

export function readChildrenPageReply(reader: Reader): ChildrenPageReply {
  return { children: readStringVector(reader), ...readPageEnd(reader) };
}

export function writeChildrenPageReply(writer: Writer, reply: ChildrenPageReply): void {
  writeStringVector(writer, reply.children);
  writePageEnd(writer, reply);
}

function readChild(reader: Reader): ChildWithData {
  const name = reader.text('a name');
  const err = reader.int32();
  return err === ErrorCode.Ok ? { name, err, data: reader.buffer(), stat: readStat(reader) } : { name, err };
}

function writeChild(writer: Writer, child: ChildWithData): void {
  writer.ustring(child.name);
  writer.int32(child.err);
  if (!('stat' in child)) return;
  writer.buffer(child.data);
  writeStat(writer, child.stat);
}

export function readChildrenDataPageReply(reader: Reader): ChildrenDataPageReply {
  return { children: reader.vector(childBytesMin, readChild) ?? [], ...readPageEnd(reader) };
}

export function writeChildrenDataPageReply(writer: Writer, reply: ChildrenDataPageReply): void {
  writer.vector(reply.children, writeChild);
  writePageEnd(writer, reply);
}
