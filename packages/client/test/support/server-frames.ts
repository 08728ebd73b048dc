/** The frames of a server, byte by byte, for tests that simulate the server. */
import {
  formatSessionId,
  OpCode,
  operationOf,
  Reader,
  readConnectRequest,
  readRequestHeader,
  type SessionId,
  writeConnectResponse,
  Writer,
  writeReplyHeader,
  writeWatcherEvent,
  Xid,
} from '@tskeeper/protocol';

export function frame(write: (writer: Writer) => void): Buffer {
  const writer = new Writer();
  const start = writer.beginFrame();
  write(writer);
  writer.endFrame(start);
  return Buffer.from(writer.written());
}

export interface Grant {
  readonly session?: SessionId;
  readonly timeoutMs?: number;
  readonly readOnly?: boolean;
}

export function connectResponse({ session = 0x100n, timeoutMs = 9000, readOnly = false }: Grant = {}): Buffer {
  return frame((writer) =>
    writeConnectResponse(writer, { protocolVersion: 0, timeOut: timeoutMs, sessionId: session, passwd: Buffer.alloc(16, 7), readOnly }),
  );
}

/** The session is gone. */
export const refusal: Buffer = connectResponse({ session: 0n, timeoutMs: 0 });

export function reply(xid: number, zxid: number, err = 0, body: (writer: Writer) => void = () => {}): Buffer {
  return frame((writer) => {
    writeReplyHeader(writer, { xid, zxid, err });
    body(writer);
  });
}

export const pong: Buffer = reply(Xid.ping, 0);

export function notification(type: number, path: string, zxid = -1): Buffer {
  return reply(Xid.notification, zxid, 0, (writer) => writeWatcherEvent(writer, { type, state: 3, path }));
}

const nameOf = new Map<number, string>(Object.entries(OpCode).map(([name, code]) => [code, name]));

/**
 * The frames that a client has sent, one line each. The first frame of a connection is its
 * handshake.
 */
export function describeFrames(bytes: Buffer, handshakeFirst: boolean): string[] {
  const lines: string[] = [];
  let first = handshakeFirst;
  for (let at = 0; at < bytes.length;) {
    const end = at + 4 + bytes.readInt32BE(at);
    const reader = new Reader(bytes, at + 4, end);
    if (first) {
      const { lastZxidSeen, timeOut, sessionId, passwd, readOnly } = readConnectRequest(reader);
      const password = passwd!.every((byte) => byte === 0) ? 'zeros' : Buffer.from(passwd!).toString('hex', 0, 2);
      lines.push(
        `connect zxid=${lastZxidSeen} timeout=${timeOut} session=${formatSessionId(sessionId)} password=${password}${readOnly === true ? ' readOnly' : ''}`,
      );
      first = false;
    } else {
      const { xid, type } = readRequestHeader(reader);
      const record = operationOf(type)?.request.read(reader);
      const shown = record === undefined ? '' : ` ${JSON.stringify(record, shorten)}`;
      lines.push(`${nameOf.get(type)} xid=${xid}${shown}`);
    }
    at = end;
  }
  return lines;
}

/** Buffers as text, and long lists by their length. */
function shorten(_key: string, value: unknown): unknown {
  if (typeof value === 'object' && value !== null && (value as { type?: unknown }).type === 'Buffer') {
    return Buffer.from((value as { data: number[] }).data).toString();
  }
  return value;
}
