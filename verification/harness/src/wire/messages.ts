/**
 * What a server sends, decoded as far as the header. The records of replies and events stay bytes,
 * which replies.ts decodes: bytes that belong to no record must not be lost.
 */
import { Reader, Xid } from '@tskeeper/protocol';

export interface HandshakeReply {
  readonly kind: 'handshake';
  readonly protocolVersion: number;
  readonly timeOut: number;
  readonly sessionId: bigint;
  readonly passwd: Buffer;
  /** Absent if the reply had no such byte. */
  readonly readOnly: boolean | undefined;
  /** Bytes after the record: a correct reply has none. */
  readonly rest: Buffer;
}

export interface ReplyMessage {
  readonly kind: 'reply';
  readonly xid: number;
  readonly zxid: number;
  readonly err: number;
  readonly body: Buffer;
}

export interface EventMessage {
  readonly kind: 'event';
  readonly zxid: number;
  readonly err: number;
  readonly body: Buffer;
}

export interface UnreadableMessage {
  readonly kind: 'unreadable';
  readonly bytes: Buffer;
}

export type FrameMessage = HandshakeReply | ReplyMessage | EventMessage | UnreadableMessage;

/** The body of the first frame that a server sends. */
export function readHandshakeReply(frame: Buffer): HandshakeReply | UnreadableMessage {
  if (frame.length < 20) return { kind: 'unreadable', bytes: frame };
  const reader = new Reader(frame);
  const protocolVersion = reader.int32();
  const timeOut = reader.int32();
  const sessionId = reader.bigint64();
  const passwd = reader.buffer() ?? Buffer.alloc(0);
  const readOnly = reader.remaining > 0 ? reader.boolean() : undefined;
  return { kind: 'handshake', protocolVersion, timeOut, sessionId, passwd, readOnly, rest: frame.subarray(reader.offset) };
}

/** The body of any later frame. */
export function readMessage(frame: Buffer): ReplyMessage | EventMessage | UnreadableMessage {
  if (frame.length < 16) return { kind: 'unreadable', bytes: frame };
  const reader = new Reader(frame);
  const xid = reader.int32();
  const zxid = reader.int64();
  const err = reader.int32();
  const body = frame.subarray(reader.offset);
  return xid === Xid.notification ? { kind: 'event', zxid, err, body } : { kind: 'reply', xid, zxid, err, body };
}
