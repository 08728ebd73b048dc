/**
 * The headers of requests, replies and notifications, and the notification itself.
 */
import type { Zxid } from '../jute/numbers.ts';
import type { Reader } from '../jute/reader.ts';
import type { Writer } from '../jute/writer.ts';

export interface RequestHeader {
  /** The client's own counter, or one of `Xid`. */
  readonly xid: number;
  readonly type: number;
}

export interface ReplyHeader {
  /** The xid of the request, or `Xid.notification`. */
  readonly xid: number;
  /**
   * The last txn applied by the server when it answered; for a notification, the txn that fired it.
   */
  readonly zxid: Zxid;
  /** Unless it is 0, no record follows the header, with few exceptions: see `readReplyBody`. */
  readonly err: number;
}

/** A watch has fired. */
export interface WatcherEvent {
  readonly type: number;
  /** Servers always send `KeeperState.syncConnected`. */
  readonly state: number;
  readonly path: string;
}

export const requestHeaderBytes = 8;
export const replyHeaderBytes = 16;

export function readRequestHeader(reader: Reader): RequestHeader {
  return { xid: reader.int32(), type: reader.int32() };
}

export function writeRequestHeader(writer: Writer, header: RequestHeader): void {
  writer.int32(header.xid);
  writer.int32(header.type);
}

export function readReplyHeader(reader: Reader): ReplyHeader {
  return { xid: reader.int32(), zxid: reader.int64(), err: reader.int32() };
}

export function writeReplyHeader(writer: Writer, header: ReplyHeader): void {
  writer.int32(header.xid);
  writer.int64(header.zxid);
  writer.int32(header.err);
}

export function readWatcherEvent(reader: Reader): WatcherEvent {
  return { type: reader.int32(), state: reader.int32(), path: reader.text('the path of an event') };
}

export function writeWatcherEvent(writer: Writer, event: WatcherEvent): void {
  writer.int32(event.type);
  writer.int32(event.state);
  writer.ustring(event.path);
}
