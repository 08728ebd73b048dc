/**
 * What the client and the ensemble have agreed on in the handshake, and what a session takes from
 * one connection to the next: its id and password, its time-out, the highest zxid it has seen.
 *
 *     client -> server   id, password, requested time-out, highest zxid    id 0: open a new session
 *     server -> client   id, password, granted time-out, read-only?        time-out 0: expired
 */
import {
  ErrorCode,
  formatSessionId,
  type Millis,
  type Reader,
  readConnectResponse,
  readReplyHeader,
  replyHeaderBytes,
  type SessionId,
  sessionPasswordBytes,
  writeConnectRequest,
  type Writer,
  type Zxid,
} from '@tskeeper/protocol';
import type { SessionOptions } from './session-options.ts';
import { effectiveTimeoutMs } from './timings.ts';

/** `refused`: this server cannot serve the session. `expired`: no server can serve it. */
export type HandshakeResult =
  | { readonly kind: 'opened' }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'expired'; readonly reason: string };

const noPassword = Buffer.alloc(sessionPasswordBytes);

export class NegotiatedSession {
  readonly #options: SessionOptions;
  #id: SessionId;
  #password: Uint8Array;
  /** The granted time-out; before that, the requested one. */
  #timeoutMs: Millis;
  /** The time-out that the client's own limits are based on. */
  #effectiveTimeoutMs: Millis;
  /**
   * Other servers do not know an id that a read-only server has assigned, so the client sends it to
   * them only after one of them has seen it.
   */
  #isKnownToQuorum: boolean;
  #isServerReadOnly = false;
  /**
   * Highest zxid of an answer. A server that has not applied it must not serve this client. Events
   * do not count: others of the same txn may follow.
   */
  #lastZxid: Zxid = 0;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#id = options.session?.id ?? 0n;
    this.#password = options.session?.password ?? noPassword;
    this.#timeoutMs = this.#effectiveTimeoutMs = options.sessionTimeoutMs;
    this.#isKnownToQuorum = this.#id !== 0n;
  }

  /** 0: no server has opened the session yet. */
  get id(): SessionId {
    return this.#id;
  }

  get password(): Uint8Array {
    return this.#password;
  }

  get timeoutMs(): Millis {
    return this.#timeoutMs;
  }

  get effectiveTimeoutMs(): Millis {
    return this.#effectiveTimeoutMs;
  }

  get isKnownToQuorum(): boolean {
    return this.#isKnownToQuorum;
  }

  /** The server of the last handshake has no quorum. */
  get isServerReadOnly(): boolean {
    return this.#isServerReadOnly;
  }

  get lastZxid(): Zxid {
    return this.#lastZxid;
  }

  /** A valid answer has this zxid. */
  sawZxid(zxid: Zxid): void {
    if (zxid > this.#lastZxid) this.#lastZxid = zxid;
  }

  // --- The handshake

  writeHandshake(writer: Writer): void {
    writeConnectRequest(writer, {
      protocolVersion: 0,
      lastZxidSeen: this.#lastZxid,
      timeOut: this.#options.sessionTimeoutMs,
      sessionId: this.#isKnownToQuorum ? this.#id : 0n,
      passwd: this.#isKnownToQuorum ? this.#password : noPassword,
      readOnly: this.#options.readOnly,
    });
  }

  /** `server`: a description of the server for the reason. */
  onHandshakeReply(reader: Reader, server: string): HandshakeResult {
    if (reader.remaining === replyHeaderBytes) {
      // Not an answer to a handshake: a server without a quorum says so that it cannot open
      // sessions.
      const { err } = readReplyHeader(reader);
      const why = err === ErrorCode.NotReadOnly ? 'it is read-only, and ZooKeeper then requires localSessionsEnabled=true' : `error ${err}`;
      return { kind: 'refused', reason: `the server did not open a session (${why})` };
    }
    const { timeOut, sessionId, passwd, readOnly } = readConnectResponse(reader);
    const asked = this.#isKnownToQuorum ? this.#id : 0n;
    if (timeOut <= 0) {
      // An answer about a session that the client did not send is invalid, and says nothing about a
      // session that it has.
      if (asked === 0n) return { kind: 'refused', reason: 'the server refused to open a session' };
      return { kind: 'expired', reason: `${server} no longer knows session ${formatSessionId(asked)}` };
    }
    if (sessionId === 0n) return { kind: 'refused', reason: 'the server opened a session without an id' };
    if (asked !== 0n && sessionId !== asked) {
      // Servers other than ZooKeeper do this. The old session's ephemerals are no longer ours, and
      // the program learns it only from this.
      return { kind: 'expired', reason: `${server} opened session ${formatSessionId(sessionId)} instead of ${formatSessionId(asked)}` };
    }
    this.#id = sessionId;
    this.#password = Buffer.from(passwd ?? noPassword);
    this.#timeoutMs = timeOut;
    this.#effectiveTimeoutMs = effectiveTimeoutMs(timeOut, this.#options.sessionTimeoutMs);
    this.#isServerReadOnly = readOnly ?? false;
    if (!this.#isServerReadOnly) this.#isKnownToQuorum = true;
    return { kind: 'opened' };
  }
}
