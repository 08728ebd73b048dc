/**
 * Sessions that only this server knows. ZooKeeper's UpgradeableSessionTracker and
 * LocalSessionTracker.
 *
 * With `localSessionsEnabled` a new session is local: it takes no txn to create, keep or end one, so
 * clients that only read or write persistent znodes cost the other servers nothing. The price is
 * what it may not do. A local session owns no ephemeral, since no other server would see its end;
 * and it ends with the role of its server: a client that finds it gone, or connects to another
 * server, is answered that its session has expired.
 *
 * With `localSessionsUpgradingEnabled` a local session becomes global when it creates its first
 * ephemeral: the server proposes a createSession with the session's own id and timeout, and then
 * the create. The leader orders both as they were sent, so the session exists before its ephemeral.
 * From the moment at which the createSession is requested this server treats the session as global:
 * it reports its signs of life to the leader and resumes it only if the leader says that it lives.
 *
 * Requests of a local session take the way of any others, except closeSession, which is answered
 * after them, like a read.
 *
 * In read-only mode all sessions are local, also without `localSessionsEnabled`.
 */
import { ErrorCode, type Millis, OpCode, type Reader } from '@tskeeper/protocol';
import type { CnxnTable } from '../cnxn/cnxn-table.ts';
import type { Now } from '../now.ts';
import type { Observer } from '../observer.ts';
import type { CoreOptions, LocalSessionMode } from '../options.ts';
import { serverOrigin } from '../pending/proposal.ts';
import { SessionExpiry } from '../session/session-expiry.ts';
import { idOfSession, type SessionRef } from '../session/session-ref.ts';
import type { SessionSlot } from '../session/session-table.ts';
import type { SessionTracker } from '../session/session-tracker.ts';
import { unitsPerRequest } from '../step-budget.ts';
import { createsEphemeral } from './ephemeral-creates.ts';
import type { Replica } from './replica.ts';
import type { ReplyWriter } from './reply-writer.ts';
import type { Request } from './request.ts';
import type { StepScheduler } from './step-scheduler.ts';
import type { WriteSequencer } from './write-sequencer.ts';

export interface LocalSessionParts {
  readonly options: CoreOptions;
  readonly observer: Observer;
  readonly tracker: SessionTracker;
  readonly cnxns: CnxnTable;
  readonly replica: Replica;
  readonly replyWriter: ReplyWriter;
  readonly sequencer: WriteSequencer;
  readonly scheduler: StepScheduler;
}

export class LocalSessions {
  readonly #mode: LocalSessionMode;
  readonly #observer: Observer;
  readonly #tracker: SessionTracker;
  readonly #cnxns: CnxnTable;
  readonly #replica: Replica;
  readonly #replyWriter: ReplyWriter;
  readonly #sequencer: WriteSequencer;
  readonly #scheduler: StepScheduler;
  readonly #expiry: SessionExpiry;

  constructor({ options, observer, tracker, cnxns, replica, replyWriter, sequencer, scheduler }: LocalSessionParts) {
    this.#mode = options.localSessions;
    this.#observer = observer;
    this.#tracker = tracker;
    this.#cnxns = cnxns;
    this.#replica = replica;
    this.#replyWriter = replyWriter;
    this.#sequencer = sequencer;
    this.#scheduler = scheduler;
    this.#expiry = new SessionExpiry(tracker, tracker.localExpiry);
  }

  /**
   * Whether a closeSession ends the session without a txn. Without `localSessionsEnabled` it does
   * not: then a session is local only in read-only mode, in which a server ends no session that it
   * has not opened.
   */
  closesHere(slot: SessionSlot): boolean {
    return this.#mode !== 'disabled' && this.#isLocal(slot);
  }

  #isLocal(slot: SessionSlot): boolean {
    return slot !== -1 && this.#tracker.sessions.isLocal(slot);
  }

  // ---- writes

  /**
   * A session is about to send a write whose record `reader` is placed over. If it is local and the
   * write creates an ephemeral, the session becomes global first: its createSession is ordered
   * before the write. Returns true if it may not become global: the write must be refused.
   */
  refusesEphemeral(slot: SessionSlot, opCode: number, reader: Reader, now: Now): boolean {
    const { sessions } = this.#tracker;
    if (!sessions.isLocal(slot) || !createsEphemeral(opCode, reader)) return false;
    const origin = serverOrigin(OpCode.createSession, sessions.high(slot), sessions.low(slot), now);
    if (this.#mode !== 'upgradable') {
      this.#observer.ephemeralRefused(idOfSession(origin));
      return true;
    }
    const timeoutMs = sessions.timeoutMs(slot);
    this.#tracker.upgrade(slot, now.elapsedMs);
    this.#observer.sessionUpgraded(idOfSession(origin), timeoutMs);
    this.#sequencer.openSession(origin, timeoutMs, now);
    return false;
  }

  // ---- the end of a session

  /**
   * The client has sent a closeSession, which is answered after its earlier requests. Requests
   * after it have no effect.
   */
  closeRequested(slot: SessionSlot): void {
    this.#tracker.setClosing(slot);
  }

  /** It is the turn of that closeSession. */
  answerClose({ cnxn, xid, arrivedMs, now }: Request): void {
    const { lastZxid } = this.#replica;
    this.#replyWriter.replyWithoutBody(cnxn, OpCode.closeSession, xid, lastZxid, ErrorCode.Ok, arrivedMs, now.elapsedMs, false);
    this.#end(cnxn.slot, false);
  }

  /** The client has closed its session, and waits for no answer: its connection is gone. */
  close(slot: SessionSlot): void {
    this.#end(slot, false);
  }

  /** On request of an operator. Returns whether the session was a local one of this server. */
  expireNow({ sessionHigh: high, sessionLow: low }: SessionRef): boolean {
    const slot = this.#tracker.findLive(high, low);
    if (!this.#isLocal(slot)) return false;
    this.#end(slot, true);
    return true;
  }

  /**
   * Ends sessions that have timed out, until the step's budget is spent. All input that had arrived
   * at this server by `inputWatermarkMs` has been delivered.
   */
  expireDue(inputWatermarkMs: Millis): void {
    while (!this.#scheduler.isBudgetSpent()) {
      const due = this.#expiry.nextExpired(inputWatermarkMs);
      if (due === -1) return;
      this.#scheduler.addWork(unitsPerRequest);
      // A client may have closed its session and lost the connection before the answer.
      this.#end(due, !this.#tracker.sessions.isClosing(due));
    }
  }

  /** When `expireDue` must be called; undefined for never. */
  deadline(): Millis | undefined {
    return this.#tracker.localExpiry.deadline();
  }

  #end(slot: SessionSlot, isExpired: boolean): void {
    const { sessions } = this.#tracker;
    const session = idOfSession({ sessionHigh: sessions.high(slot), sessionLow: sessions.low(slot) });
    const timeoutMs = sessions.timeoutMs(slot);
    const cnxn = this.#cnxns.get(sessions.cnxnOf(slot));
    this.#tracker.remove(slot);
    this.#observer.localSessionClosed(session, isExpired, timeoutMs, cnxn?.context);
    if (cnxn === undefined) return;
    cnxn.slot = -1;
    this.#cnxns.close(cnxn, isExpired ? 'session expired' : 'closed by the client');
  }
}
