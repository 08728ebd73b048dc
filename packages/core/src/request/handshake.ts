/**
 * The first frame of a connection: it creates a session, or resumes one by its id and password. The
 * handshake of a new session is answered when its txn has been applied; that of a live session, and
 * of a new local one, at once.
 */
import {
  ErrorCode,
  initialSessionId,
  type Millis,
  OpCode,
  ProtocolError,
  type Reader,
  readConnectRequest,
  type SessionId,
  sessionHigh,
  sessionIdOf,
  sessionLow,
  sessionPassword,
  sessionPasswordBytes,
  sessionPasswordMatches,
} from '@tskeeper/protocol';
import type { Cnxn } from '../cnxn/cnxn.ts';
import type { CnxnTable } from '../cnxn/cnxn-table.ts';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { Observer } from '../observer.ts';
import type { CoreOptions } from '../options.ts';
import type { ReplyWriter } from './reply-writer.ts';
import type { WriteOrigin } from '../pending/proposal.ts';
import type { Replica } from './replica.ts';
import type { WriteSequencer } from './write-sequencer.ts';
import { sessionRefOf } from '../session/session-ref.ts';
import type { SessionSlot } from '../session/session-table.ts';
import { localOwner, type SessionTracker } from '../session/session-tracker.ts';

const noPassword = Buffer.alloc(sessionPasswordBytes);
/**
 * Offset of the session id in a ConnectRequest: after protocolVersion, lastZxidSeen and timeOut.
 */
const sessionIdAt = 16;

/**
 * The result of a handshake. `create`: the session must be proposed; `opened`: the session is local
 * and exists; `asked`: `revalidated` brings the answer.
 */
export type HandshakeOutcome =
  | { readonly kind: 'create'; readonly origin: WriteOrigin }
  | { readonly kind: 'opened' }
  | { readonly kind: 'resumed' }
  | { readonly kind: 'asked' }
  | { readonly kind: 'closed' };

const opened: HandshakeOutcome = { kind: 'opened' };
const resumed: HandshakeOutcome = { kind: 'resumed' };
const revalidating: HandshakeOutcome = { kind: 'asked' };
const closed: HandshakeOutcome = { kind: 'closed' };

export class Handshakes {
  readonly #options: CoreOptions;
  readonly #replica: Replica;
  readonly #tracker: SessionTracker;
  readonly #cnxns: CnxnTable;
  readonly #replyWriter: ReplyWriter;
  readonly #observer: Observer;
  readonly #sequencer: Pick<WriteSequencer, 'revalidate' | 'isReadOnly'>;
  /** Connections that wait for the answer whether their session is alive. */
  readonly #pendingRevalidations = new Map<SessionId, Cnxn>();
  /**
   * The number of unanswered questions about a session. Only the last answer counts: the session
   * may have moved in between.
   */
  readonly #openRevalidationCounts = new Map<SessionId, number>();
  /** The first id that this server may give. */
  readonly #firstSessionId: SessionId;
  #nextSessionId: SessionId;

  /** @param idSalt see `initialSessionId`. */
  constructor(
    options: CoreOptions,
    replica: Replica,
    tracker: SessionTracker,
    cnxns: CnxnTable,
    answers: ReplyWriter,
    observer: Observer,
    now: Now,
    sequencer: Pick<WriteSequencer, 'revalidate' | 'isReadOnly'>,
    idSalt: number,
  ) {
    this.#sequencer = sequencer;
    this.#options = options;
    this.#replica = replica;
    this.#tracker = tracker;
    this.#cnxns = cnxns;
    this.#replyWriter = answers;
    this.#observer = observer;
    this.#firstSessionId = initialSessionId(options.serverId, now.wallMs, replica.lastZxid, idSalt);
    this.#nextSessionId = this.#firstSessionId;
  }

  /** Everything that can influence behaviour, for an explorer. */
  fingerprint(to: Fingerprint): void {
    to.text(String(this.#nextSessionId));
    for (const [session, { id }] of this.#pendingRevalidations) to.text(`${session} ${id}`);
    for (const [session, count] of this.#openRevalidationCounts) to.text(`${session} ${count}`);
  }

  request(cnxn: Cnxn, reader: Reader, now: Now): HandshakeOutcome {
    let request;
    try {
      request = readConnectRequest(reader);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#cnxns.close(cnxn, 'malformed request');
      return closed;
    }
    cnxn.sentReadOnlyFlag = request.readOnly !== undefined;
    const { isReadOnly } = this.#sequencer;
    if (isReadOnly && request.readOnly !== true) {
      this.#cnxns.close(cnxn, 'read-only clients only');
      return closed;
    }
    // The client has seen a state that this server does not have: it must find a server that does.
    if (request.lastZxidSeen > this.#replica.lastZxid) {
      this.#cnxns.close(cnxn, 'client has seen a later zxid than this server');
      return closed;
    }
    const { minSessionTimeoutMs, maxSessionTimeoutMs } = this.#options;
    cnxn.timeoutMs = Math.max(minSessionTimeoutMs, Math.min(maxSessionTimeoutMs, request.timeOut));
    if (request.sessionId === 0n) return this.#openSession(cnxn, now);
    if (isReadOnly && !this.#canJudge(request.sessionId)) {
      this.#cnxns.close(cnxn, 'session of the ensemble on a read-only server');
      return closed;
    }
    return this.#resumeSession(cnxn, request.sessionId, request.passwd, now);
  }

  /**
   * A handshake has arrived, and its turn comes later: the session is alive if the password is
   * right.
   */
  handshakeDelayed(reader: Reader, now: Now): void {
    let request;
    try {
      request = readConnectRequest(reader);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return;
    }
    const { sessionId, passwd } = request;
    const high = sessionHigh(sessionId);
    const low = sessionLow(sessionId);
    const slot = this.#tracker.findLive(high, low);
    if (slot !== -1 && sessionPasswordMatches(high, low, passwd)) {
      this.#tracker.touch(slot, now.elapsedMs, this.#tracker.sessions.timeoutMs(slot));
    }
  }

  /**
   * Another server has answered. Returns the connection that has its session now; undefined if it
   * is closed.
   */
  revalidated(id: SessionId, isValid: boolean, now: Now): Cnxn | undefined {
    const left = (this.#openRevalidationCounts.get(id) ?? 1) - 1;
    if (left > 0) {
      this.#openRevalidationCounts.set(id, left);
      return undefined;
    }
    this.#openRevalidationCounts.delete(id);
    const cnxn = this.#pendingRevalidations.get(id);
    if (cnxn === undefined) return undefined;
    this.#pendingRevalidations.delete(id);
    if (cnxn.isClosed) return undefined;
    this.#observer.sessionRevalidated(id, isValid, cnxn.context);
    if (!isValid) {
      this.#reject(cnxn);
      return undefined;
    }
    const { sessionHigh: high, sessionLow: low, timeoutMs } = cnxn;
    const slot = this.#tracker.open(high, low, timeoutMs, now.elapsedMs);
    this.#tracker.forgetStrayWrites(slot);
    this.#attachAndAccept(cnxn, slot, now);
    return cnxn;
  }

  #openSession(cnxn: Cnxn, now: Now): HandshakeOutcome {
    if (this.#options.localSessions !== 'disabled') return this.#openLocal(cnxn, now);
    if (this.#sequencer.isReadOnly) return this.#refuseNew(cnxn, now);
    return { kind: 'create', origin: this.#create(cnxn, now) };
  }

  /** The session needs no txn: requests are served from here on. */
  #openLocal(cnxn: Cnxn, now: Now): HandshakeOutcome {
    const id = this.#newSessionId();
    const slot = this.#tracker.openLocal(sessionHigh(id), sessionLow(id), cnxn.timeoutMs, now.elapsedMs);
    this.#attach(cnxn, slot);
    this.#observer.localSessionOpened(id, cnxn.timeoutMs);
    this.#acceptNew(cnxn, now.elapsedMs, now, false);
    return opened;
  }

  /** The txn of a new session has been applied: requests are served from here on. */
  sessionCreated(cnxn: Cnxn, arrivedMs: Millis, now: Now): void {
    this.#acceptNew(cnxn, arrivedMs, now, true);
  }

  #acceptNew(cnxn: Cnxn, arrivedMs: Millis, now: Now, hasTxn: boolean): void {
    const bytes = this.#accept(cnxn, true);
    cnxn.recordReply(OpCode.createSession, 0, this.#replica.lastZxid, arrivedMs, now.elapsedMs);
    this.#observer.replied(cnxn.id, OpCode.createSession, ErrorCode.Ok, now.elapsedMs - arrivedMs, bytes, hasTxn);
  }

  /** The session is alive and belongs to the connection. Returns the size of the reply. */
  #accept(cnxn: Cnxn, isNew: boolean): number {
    cnxn.state = 'open';
    const { sessionHigh: high, sessionLow: low, timeoutMs } = cnxn;
    this.#observer.sessionAccepted(sessionIdOf(high, low), timeoutMs, cnxn.context, isNew);
    return this.#replyWriter.connectResponse(cnxn, timeoutMs, high, low, sessionPassword(high, low), this.#sequencer.isReadOnly);
  }

  #create(cnxn: Cnxn, now: Now): WriteOrigin {
    const id = this.#newSessionId();
    const high = sessionHigh(id);
    const low = sessionLow(id);
    this.#attach(cnxn, this.#tracker.open(high, low, cnxn.timeoutMs, now.elapsedMs));
    cnxn.state = 'opening';
    return {
      kind: 'write',
      cnxn: cnxn.id,
      owner: localOwner,
      sessionHigh: high,
      sessionLow: low,
      cxid: 0,
      opCode: OpCode.createSession,
      identities: cnxn.identities,
      heldBytes: 0,
      frameBytes: 0,
      isUpgradeRefused: false,
      keeperParts: undefined,
      arrivedMs: now.elapsedMs,
    };
  }

  // ---- in read-only mode

  /**
   * Without local sessions ZooKeeper answers as if the client had sent an ordinary request, and
   * clients know that answer; ZooKeeper then leaves the connection open and reads nothing more from
   * it.
   */
  #refuseNew(cnxn: Cnxn, { elapsedMs }: Now): HandshakeOutcome {
    const { lastZxid } = this.#replica;
    this.#replyWriter.replyWithoutBody(cnxn, OpCode.createSession, 0, lastZxid, ErrorCode.NotReadOnly, elapsedMs, elapsedMs, true);
    this.#cnxns.close(cnxn, 'no new sessions on a read-only server');
    return closed;
  }

  /**
   * Whether this server, without a leader, may say that a session is alive or not. With local
   * sessions, it may of those that it has opened. Without, it takes every session as alive that the
   * state does not have; one that the state has belongs to the ensemble, where it may end meanwhile.
   *
   * (With local sessions ZooKeeper declares expired what the state does not have, although the log
   * of another server may: a client may have opened its session there a moment ago.)
   */
  #canJudge(id: SessionId): boolean {
    if (this.#options.localSessions !== 'disabled') return id >= this.#firstSessionId && id < this.#nextSessionId;
    return this.#replica.sessions.find(sessionHigh(id), sessionLow(id)) === -1;
  }

  /** A session created by another server, in a data folder that was taken over, may have any id. */
  #newSessionId(): SessionId {
    for (;;) {
      const id = this.#nextSessionId++;
      const high = sessionHigh(id);
      const low = sessionLow(id);
      if (this.#tracker.sessions.find(high, low) === -1 && this.#replica.sessions.find(high, low) === -1) return id;
    }
  }

  #resumeSession(cnxn: Cnxn, id: SessionId, password: Uint8Array | null, now: Now): HandshakeOutcome {
    const session = sessionRefOf(id);
    const { sessionHigh: high, sessionLow: low } = session;
    // One connection per session. Like ZooKeeper, we close the older one before the password is
    // checked: it may be left over from a client that abandoned it long ago.
    const known = this.#tracker.findLive(high, low);
    // There may be two: one that has the session, and one that waits for the answer whether it is
    // alive.
    const carrier = known === -1 ? undefined : this.#cnxns.get(this.#tracker.sessions.cnxnOf(known));
    for (const older of [carrier, this.#pendingRevalidations.get(id)]) {
      if (older !== undefined) this.#cnxns.close(older, 'taken over by another connection of the session');
    }
    this.#pendingRevalidations.delete(id);
    const isLocal = known !== -1 && this.#tracker.sessions.isLocal(known);
    const isValid = sessionPasswordMatches(high, low, password) && (isLocal || this.#sequencer.revalidate(session, cnxn.timeoutMs, now));
    if (isValid === undefined) {
      // For the server that was asked, the session is here again from now on; requests sent here
      // before it was elsewhere must not follow the question.
      if (known !== -1) this.#tracker.countMove(known);
      cnxn.sessionHigh = high;
      cnxn.sessionLow = low;
      cnxn.state = 'opening';
      this.#pendingRevalidations.set(id, cnxn);
      this.#openRevalidationCounts.set(id, (this.#openRevalidationCounts.get(id) ?? 0) + 1);
      return revalidating;
    }
    this.#observer.sessionRevalidated(id, isValid, cnxn.context);
    if (!isValid) {
      this.#reject(cnxn);
      return closed;
    }
    this.#attachAndAccept(cnxn, this.#tracker.findLive(high, low), now);
    return resumed;
  }

  #reject(cnxn: Cnxn): void {
    this.#replyWriter.connectResponse(cnxn, 0, 0, 0, noPassword, this.#sequencer.isReadOnly);
    this.#cnxns.close(cnxn, 'session refused');
  }

  /** The session is alive, and belongs to the connection from here on. */
  #attachAndAccept(cnxn: Cnxn, slot: SessionSlot, now: Now): void {
    this.#attach(cnxn, slot);
    this.#tracker.touch(slot, now.elapsedMs, cnxn.timeoutMs);
    this.#accept(cnxn, false);
  }

  #attach(cnxn: Cnxn, slot: SessionSlot): void {
    cnxn.sessionHigh = this.#tracker.sessions.high(slot);
    cnxn.sessionLow = this.#tracker.sessions.low(slot);
    cnxn.slot = slot;
    this.#tracker.setCnxn(slot, cnxn.id);
    cnxn.sessionMoves = this.#tracker.moveCountOf(slot);
  }
}

/** Whether a handshake resumes an existing session; a new one has id 0. */
export function requestsExistingSession({ bytes, offset, remaining }: Reader): boolean {
  if (remaining < sessionIdAt + 8) return false;
  return bytes.readInt32BE(offset + sessionIdAt) !== 0 || bytes.readInt32BE(offset + sessionIdAt + 4) !== 0;
}
