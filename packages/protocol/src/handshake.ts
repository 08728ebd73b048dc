/**
 * The first frame each way: a client asks for a session, new or its own from before; the server answers with one, or with a timeout
 * of 0, which says that the session is gone.
 *
 * Clients of 3.3 and older, and some in other languages, leave the last byte out. Whoever sent none gets none back.
 */
import type { Millis, SessionId, Zxid } from './numbers.ts';
import type { Reader } from './reader.ts';
import type { Writer } from './writer.ts';

export interface ConnectRequest {
  /** Always 0; servers ignore it. */
  readonly protocolVersion: number;
  /** A server that is behind this must not serve the client, or it would see time go backwards. */
  readonly lastZxidSeen: Zxid;
  readonly timeOut: Millis;
  /** 0 asks for a new session. */
  readonly sessionId: SessionId;
  /** 16 bytes; zeros, none or null for a new session. */
  readonly passwd: Uint8Array | null;
  /** Whether a read-only server would do; undefined from a client that does not send the byte. */
  readonly readOnly: boolean | undefined;
}

export interface ConnectResponse {
  readonly protocolVersion: number;
  /** As negotiated; 0 when the session is refused. */
  readonly timeOut: Millis;
  readonly sessionId: SessionId;
  readonly passwd: Uint8Array | null;
  /** Whether the server is read-only; undefined when the request did not have the byte. */
  readonly readOnly: boolean | undefined;
}

function readOptionalBoolean(reader: Reader): boolean | undefined {
  return reader.remaining === 0 ? undefined : reader.boolean();
}

export function readConnectRequest(reader: Reader): ConnectRequest {
  return {
    protocolVersion: reader.int32(),
    lastZxidSeen: reader.int64(),
    timeOut: reader.int32(),
    sessionId: reader.bigint64(),
    passwd: reader.buffer(),
    readOnly: readOptionalBoolean(reader),
  };
}

export function writeConnectRequest(writer: Writer, request: ConnectRequest): void {
  writer.int32(request.protocolVersion);
  writer.int64(request.lastZxidSeen);
  writer.int32(request.timeOut);
  writer.bigint64(request.sessionId);
  writer.buffer(request.passwd);
  if (request.readOnly !== undefined) writer.boolean(request.readOnly);
}

export function readConnectResponse(reader: Reader): ConnectResponse {
  return {
    protocolVersion: reader.int32(),
    timeOut: reader.int32(),
    sessionId: reader.bigint64(),
    passwd: reader.buffer(),
    readOnly: readOptionalBoolean(reader),
  };
}

export function writeConnectResponse(writer: Writer, response: ConnectResponse): void {
  writer.int32(response.protocolVersion);
  writer.int32(response.timeOut);
  writer.bigint64(response.sessionId);
  writer.buffer(response.passwd);
  if (response.readOnly !== undefined) writer.boolean(response.readOnly);
}
