/**
 * One client connection in the core: its client, its session, its waiting requests, and statistics
 * for operators. Identities and watches belong to the connection, not to the session: they end with
 * it.
 */
import type { Millis, SessionId, Zxid } from '@tskeeper/protocol';
import { sessionIdOf } from '@tskeeper/protocol';
import { Identities } from '../auth/identities.ts';
import type { SaslExchange } from '../auth/sasl-mechanism.ts';
import { Fifo } from '../fifo.ts';
import { type Fingerprint, fingerprintBytes } from '../fingerprint.ts';
import type { CnxnInfo } from '../inspector.ts';
import type { CloseReason, CnxnId } from '../client-output.ts';
import type { AddressLoad } from '../pending/load.ts';
import { fingerprintWriteOrigin } from '../pending/proposal.ts';
import type { ParkedFrame, PendingRequest } from '../pending/pending-request.ts';
import type { CnxnContext } from '../cnxn-context.ts';

/**
 * - `new`: no handshake yet.
 * - `opening`: a new session's txn is in progress; frames wait for it.
 * - `open`: requests are served.
 * - `parked`: an authentication is being decided elsewhere; frames wait for it.
 * - `queued`: a long write waits for its turn (long-write-queue.ts), the first of the early frames;
 *   frames wait for it.
 * - `closed`: input is no longer read; closed by the runtime or by the core.
 */
export type CnxnState = 'new' | 'opening' | 'open' | 'parked' | 'queued' | 'closed';

export class Cnxn {
  readonly id: CnxnId;
  readonly context: CnxnContext;
  readonly addressLoad: AddressLoad;
  readonly establishedWallMs: Millis;
  state: CnxnState = 'new';
  /**
   * Replaced, never changed in place, so that a waiting request keeps the identities it arrived
   * with.
   */
  identities: Identities;
  /** Its one SASL exchange; undefined before the first token. */
  sasl: SaslExchange | 'ended' | undefined;

  sessionHigh = 0;
  sessionLow = 0;
  /** The slot of the session in the session tracker; -1 without a session. */
  slot = -1;
  /** `SessionTracker.moveCountOf` when it got its session. */
  sessionMoves = 0;
  /**
   * The session is older than the connection: txns up to here belong to requests sent elsewhere, or
   * over another connection.
   */
  resumedAtZxid: Zxid = 0;
  timeoutMs: Millis = 0;
  /** Clients of 3.3 and older omit the readOnly byte, and must not be sent one. */
  sentReadOnlyFlag = false;

  /** Requests that cannot be answered yet, in order of arrival. Only the head may be answered. */
  readonly pendingRequests = new Fifo<PendingRequest>();
  /**
   * Frames that arrived while the connection was `opening`, `parked` or `queued`, after all in
   * `pendingRequests`. They are admitted when it is open.
   */
  readonly deferredFrames = new Fifo<ParkedFrame>();

  /** Its frames among those held for all connections (admission-queue.ts). */
  framesAwaitingAdmission = 0;

  /** Why the server closed it; undefined if it did not. */
  closeReason: CloseReason | undefined;
  /**
   * One of its requests was dropped because the connection closed before its turn; no later one may
   * have an effect either.
   */
  hasDroppedRequest = false;
  /**
   * It closed before its credentials were decided: the identities of later requests are unknown.
   */
  authPendingAtClose = false;
  /** Writes in `pendingRequests`. */
  pendingWriteCount = 0;
  /**
   * The txn of its oldest pending write has come from the leader and is being applied, which may
   * take several steps.
   */
  isOldestWriteCommitted = false;
  /**
   * Reads in `pendingRequests` whose replies may take many steps. No further frame is read after
   * one: a write would have to wait for it, and all clients for the write.
   */
  pendingLongReadCount = 0;
  /**
   * Reads are held back until its output has drained. Invariant: false while a write waits after
   * them.
   */
  isOutputFull = false;
  /** It has been chosen to be closed, and only its last replies are still sent. */
  isLeaving = false;

  packetsReceived = 0;
  packetsSent = 0;
  lastOpCode: number | undefined;
  lastCxid = -1;
  lastZxid: Zxid = -1;
  lastResponseMs: Millis = 0;
  lastLatencyMs: Millis = 0;
  minLatencyMs: Millis = 0;
  maxLatencyMs: Millis = 0;
  latencySumMs: Millis = 0;
  #replyCount = 0;

  /** Whether it waits for no reply. */
  get isAnswered(): boolean {
    const waiting = this.pendingRequests.length + this.deferredFrames.length + this.framesAwaitingAdmission;
    return waiting === 0 && (this.state === 'open' || this.state === 'new');
  }

  constructor(id: CnxnId, context: CnxnContext, address: AddressLoad, nowWallMs: Millis) {
    this.id = id;
    this.context = context;
    this.addressLoad = address;
    this.establishedWallMs = nowWallMs;
    this.identities = Identities.of([{ scheme: 'ip', id: context.remoteAddress }]);
  }

  /**
   * Everything that can influence behaviour, for an explorer. Statistics for operators are left
   * out.
   */
  fingerprint(to: Fingerprint): void {
    const { id, sessionHigh, sessionLow, slot, timeoutMs, identities } = this;
    for (const number of [id, sessionHigh, sessionLow, slot === -1 ? 0 : 1, timeoutMs, this.resumedAtZxid]) to.number(number);
    const { sentReadOnlyFlag, closeReason, hasDroppedRequest, authPendingAtClose, isOutputFull, isOldestWriteCommitted } = this;
    const flags = [sentReadOnlyFlag, closeReason, hasDroppedRequest, authPendingAtClose, isOutputFull, isOldestWriteCommitted];
    const sasl = this.sasl === undefined || this.sasl === 'ended' ? this.sasl : 'under way';
    to.text(`${this.state} ${flags.join(' ')} ${sasl}`);
    for (const { scheme, id: name } of identities.toList()) to.text(`${scheme}:${name}`);
    for (const line of [this.pendingRequests, this.deferredFrames]) {
      to.number(line.length);
      for (const one of line.values()) {
        to.text(one.kind);
        if (one.kind === 'write') fingerprintWriteOrigin(to, one);
        else fingerprintBytes(to, one.kind === 'sync' ? one.frame.bytes : one.bytes);
        if (one.kind === 'sync') to.number(one.isDone ? 1 : 0);
      }
    }
  }

  /** No output may be written, and its id must not be used: another connection may have it. */
  get isClosed(): boolean {
    return this.state === 'closed';
  }

  get session(): SessionId {
    return sessionIdOf(this.sessionHigh, this.sessionLow);
  }

  /** Counts an answered request. */
  recordReply(opCode: number, cxid: number, zxid: Zxid, arrivedMs: Millis, nowMs: Millis): void {
    const latency = nowMs - arrivedMs;
    this.lastOpCode = opCode;
    if (cxid >= 0) this.lastCxid = cxid;
    this.lastZxid = zxid;
    this.lastResponseMs = nowMs;
    this.lastLatencyMs = latency;
    if (this.#replyCount === 0 || latency < this.minLatencyMs) this.minLatencyMs = latency;
    if (latency > this.maxLatencyMs) this.maxLatencyMs = latency;
    this.latencySumMs += latency;
    this.#replyCount++;
  }

  resetStats(): void {
    this.packetsReceived = 0;
    this.packetsSent = 0;
    this.lastOpCode = undefined;
    this.lastCxid = -1;
    this.lastZxid = -1;
    this.lastResponseMs = 0;
    this.lastLatencyMs = 0;
    this.minLatencyMs = 0;
    this.maxLatencyMs = 0;
    this.latencySumMs = 0;
    this.#replyCount = 0;
  }

  info(): CnxnInfo {
    return {
      id: this.id,
      context: this.context,
      session: this.session,
      sessionTimeoutMs: this.timeoutMs,
      establishedWallMs: this.establishedWallMs,
      outstandingRequests: this.pendingRequests.length + this.deferredFrames.length,
      packetsReceived: this.packetsReceived,
      packetsSent: this.packetsSent,
      lastOpCode: this.lastOpCode,
      lastCxid: this.lastCxid,
      lastZxid: this.lastZxid,
      lastResponseMs: this.lastResponseMs,
      lastLatencyMs: this.lastLatencyMs,
      minLatencyMs: this.minLatencyMs,
      averageLatencyMs: this.#replyCount === 0 ? 0 : Math.floor(this.latencySumMs / this.#replyCount),
      maxLatencyMs: this.maxLatencyMs,
    };
  }
}
