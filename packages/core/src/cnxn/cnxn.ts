/**
 * One client connection as the core knows it: who is at the other end, which session it carries, what waits to be answered, and what
 * an operator may want to know of it. Identities and watches belong to the connection, not to the session: when it goes, they go.
 */
import type { Millis, SessionId, Zxid } from '@tskeeper/protocol';
import { sessionIdOf } from '@tskeeper/protocol';
import { Identities } from '../auth/identities.ts';
import { Fifo } from '../fifo.ts';
import { type Fingerprint, writeBytes } from '../fingerprint.ts';
import type { CnxnInfo } from '../inspect.ts';
import type { CloseReason, CnxnId } from '../client-output.ts';
import type { AddressLoad } from '../request/load.ts';
import { writeOrigin } from '../request/proposal.ts';
import type { ParkedFrame, Waiting } from '../request/session-order.ts';
import type { CnxnContext } from './cnxn-context.ts';

/**
 * - `new`: no handshake yet.
 * - `opening`: a new session's txn is on its way; frames wait behind it.
 * - `open`: requests are served.
 * - `parked`: an authentication is being decided elsewhere; frames wait behind it.
 * - `queued`: a long write waits for its turn (long-writes.ts), the first of its early frames; frames wait behind it.
 * - `closed`: nothing is read any more; the runtime has been told, or has told us.
 */
export type CnxnState = 'new' | 'opening' | 'open' | 'parked' | 'queued' | 'closed';

export class Cnxn {
  readonly id: CnxnId;
  readonly context: CnxnContext;
  readonly address: AddressLoad;
  readonly establishedWallMs: Millis;
  state: CnxnState = 'new';
  /** Replaced, never changed in place, so that a request that waits keeps the identities it came with. */
  identities: Identities;

  sessionHigh = 0;
  sessionLow = 0;
  /** Where the session tracker keeps the session; -1 without one. */
  slot = -1;
  /** As in `SessionTracker.movesOf`, when it took up its session. */
  moves = 0;
  /** The session was there before the connection: txns up to here are of what it has asked elsewhere, or over another connection. */
  tookUpBehind: Zxid = 0;
  timeoutMs: Millis = 0;
  /** Clients of 3.3 and older leave out the readOnly byte, and must not be sent one. */
  speaksReadOnly = false;

  /** Requests that cannot be answered yet, in the order they came. Only the head may be answered. */
  readonly waiting = new Fifo<Waiting>();
  /** Frames that came while the connection was `opening`, `parked` or `queued`, behind all that waits. They are admitted when it is open. */
  readonly early = new Fifo<ParkedFrame>();

  /** Frames of it that are held back, over all connections in the order they came (held-frames.ts). */
  framesHeld = 0;

  /** Why we gave it up; undefined while we have not. */
  closeReason: CloseReason | undefined;
  /** A request of it was dropped because it had gone before its turn came; then nothing behind that may have an effect either. */
  hasDropped = false;
  /** It had gone before credentials of it were judged: whose requests those behind them are, nobody knows. */
  hasLostCredentials = false;
  /** Writes among those that wait. */
  writesWaiting = 0;
  /** Reads among them whose answers may take many steps. Nothing more is taken in behind one: a write would have to wait for it, and everybody for the write. */
  longReadsWaiting = 0;
  /** Reads are held back until its output has drained. Invariant: never with a write waiting behind them. */
  isFull = false;

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
  #answered = 0;

  constructor(id: CnxnId, context: CnxnContext, address: AddressLoad, nowWallMs: Millis) {
    this.id = id;
    this.context = context;
    this.address = address;
    this.establishedWallMs = nowWallMs;
    this.identities = Identities.of([{ scheme: 'ip', id: context.remoteAddress }]);
  }

  /** Everything that can influence behaviour, for an explorer. What is counted for operators is left out. */
  fingerprint(to: Fingerprint): void {
    const { id, sessionHigh, sessionLow, slot, timeoutMs, identities } = this;
    for (const number of [id, sessionHigh, sessionLow, slot === -1 ? 0 : 1, timeoutMs, this.tookUpBehind]) to.number(number);
    to.text(`${this.state} ${this.speaksReadOnly} ${this.closeReason} ${this.hasDropped} ${this.hasLostCredentials} ${this.isFull}`);
    for (const { scheme, id: name } of identities.toList()) to.text(`${scheme}:${name}`);
    for (const line of [this.waiting, this.early]) {
      to.number(line.length);
      for (const one of line.values()) {
        to.text(one.kind);
        if (one.kind === 'write') writeOrigin(to, one);
        else writeBytes(to, one.kind === 'sync' ? one.frame.bytes : one.bytes);
        if (one.kind === 'sync') to.number(one.isDone ? 1 : 0);
      }
    }
  }

  /** Nothing may be written to it, nor its number be used: another connection may have that. */
  get isClosed(): boolean {
    return this.state === 'closed';
  }

  get session(): SessionId {
    return sessionIdOf(this.sessionHigh, this.sessionLow);
  }

  /** Notes an answered request. */
  answered(opCode: number, cxid: number, zxid: Zxid, arrivedMs: Millis, nowMs: Millis): void {
    const latency = nowMs - arrivedMs;
    this.lastOpCode = opCode;
    if (cxid >= 0) this.lastCxid = cxid;
    this.lastZxid = zxid;
    this.lastResponseMs = nowMs;
    this.lastLatencyMs = latency;
    if (this.#answered === 0 || latency < this.minLatencyMs) this.minLatencyMs = latency;
    if (latency > this.maxLatencyMs) this.maxLatencyMs = latency;
    this.latencySumMs += latency;
    this.#answered++;
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
    this.#answered = 0;
  }

  info(): CnxnInfo {
    return {
      id: this.id,
      context: this.context,
      session: this.session,
      sessionTimeoutMs: this.timeoutMs,
      establishedWallMs: this.establishedWallMs,
      outstandingRequests: this.waiting.length + this.early.length,
      packetsReceived: this.packetsReceived,
      packetsSent: this.packetsSent,
      lastOpCode: this.lastOpCode,
      lastCxid: this.lastCxid,
      lastZxid: this.lastZxid,
      lastResponseMs: this.lastResponseMs,
      lastLatencyMs: this.lastLatencyMs,
      minLatencyMs: this.minLatencyMs,
      averageLatencyMs: this.#answered === 0 ? 0 : Math.floor(this.latencySumMs / this.#answered),
      maxLatencyMs: this.maxLatencyMs,
    };
  }
}
