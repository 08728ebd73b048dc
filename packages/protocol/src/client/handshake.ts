/**
 * The first frame in each direction: a client requests a session, a new one or its own from before;
 * the server answers with one, or with a timeout of 0, which means that the session no longer
 * exists.
 *
 * Clients of 3.3 and older, and some in other languages, omit the last byte. They must not be sent
 * one.
 */
import type { Millis, SessionId, Zxid } from '../jute/numbers.ts';
import type { Reader } from '../jute/reader.ts';
import type { Writer } from '../jute/writer.ts';

export interface ConnectRequest {
  /** Always 0; servers ignore it. */
  readonly protocolVersion: number;
  /** A server with an earlier state must not serve the client, which would see old data. */
  readonly lastZxidSeen: Zxid;
  readonly timeOut: Millis;
  /** 0 requests a new session. */
  readonly sessionId: SessionId;
  /** 16 bytes; zeros, empty or null for a new session. */
  readonly passwd: Uint8Array | null;
  /** Whether the client accepts a read-only server; undefined if the byte is missing. */
  readonly readOnly: boolean | undefined;
}

export interface ConnectResponse {
  readonly protocolVersion: number;
  /** As negotiated; 0 if the session is refused. */
  readonly timeOut: Millis;
  readonly sessionId: SessionId;
  readonly passwd: Uint8Array | null;
  /** Whether the server is read-only; undefined if the request did not have the byte. */
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
