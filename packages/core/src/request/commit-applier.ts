/**
 * Applies committed txns, in zxid order, and answers the writes that made them. ZooKeeper's
 * FinalRequestProcessor does this.
 */
import { ErrorCode, OpCode, Writer, type Zxid } from '@tskeeper/protocol';
import type { Cnxn } from '../cnxn/cnxn.ts';
import type { CnxnTable } from '../cnxn/cnxn-table.ts';
import type { Now } from '../now.ts';
import type { Observer } from '../observer.ts';
import type { Handshakes } from './handshake.ts';
import type { Admission } from './admission.ts';
import { changeCountOf, isCloseSession, type Proposal } from '../pending/proposal.ts';
import type { Replica } from './replica.ts';
import type { ReplyWriter } from './reply-writer.ts';
import type { SessionQueue } from './session-queue.ts';
import { type Job, type StepBudget, unitsPerChange, unitsPerTxn } from '../step-budget.ts';
import type { StepScheduler } from './step-scheduler.ts';
import { writeResult } from './write-result.ts';
import type { WriteSequencer } from './write-sequencer.ts';

/** What applying txns needs. */
export interface CommitApplierParts {
  readonly budget: StepBudget;
  readonly observer: Observer;
  readonly cnxns: CnxnTable;
  readonly replica: Replica;
  readonly replyWriter: ReplyWriter;
  readonly handshakes: Handshakes;
  readonly sequencer: WriteSequencer;
  readonly sessionQueue: SessionQueue;
  readonly admission: Admission;
  readonly scheduler: StepScheduler;
}

export class CommitApplier {
  readonly #parts: CommitApplierParts;
  /** Sub-results of the multi being applied. */
  readonly #multiResults = new Writer(256);

  constructor(parts: CommitApplierParts) {
    this.#parts = parts;
  }

  /** Applies what may be applied. Returns false if the step has ended before all of it was. */
  applyCommitted(now: Now): boolean {
    const { sequencer, scheduler, sessionQueue } = this.#parts;
    while (sequencer.hasCommitted) {
      if (scheduler.yieldsStep('commit')) return false;
      this.#apply(sequencer.takeCommitted(), now);
      // No later write may be answered before an unanswered read of the same connection.
      if (scheduler.isBusy || sessionQueue.hasReplies) return false;
    }
    return true;
  }

  #apply(proposal: Proposal, now: Now): void {
    const { replica, sequencer, scheduler } = this.#parts;
    const { header, txn, node, digest, origin } = proposal;
    this.#multiResults.clear();
    scheduler.addWork(unitsPerTxn + changeCountOf(txn) * unitsPerChange);
    const job = replica.apply(header, txn, digest, this.#multiResults, node, origin.keeperParts);
    if (job === undefined) {
      sequencer.forgetApplied(header.zxid);
      this.#applied(proposal, now);
    } else {
      scheduler.startJob(this.#applying(job, header.zxid), proposal.origin.cnxn, (later) => this.#applied(proposal, later), 'commit');
    }
  }

  *#applying(job: Job, zxid: Zxid): Job {
    yield* job;
    while (!this.#parts.sequencer.forgetApplied(zxid, this.#parts.budget.records)) yield;
  }

  #applied(proposal: Proposal, now: Now): void {
    this.#answerWrite(proposal, now);
    this.#parts.sessionQueue.replySyncs(now);
  }

  #answerWrite(proposal: Proposal, now: Now): void {
    const { observer, cnxns, sessionQueue } = this.#parts;
    const { zxid, header, txn, origin } = proposal;
    const error = txn.kind === 'error' ? txn.err : ErrorCode.Ok;
    observer.applied(zxid, header.type, error, now.wallMs - header.time);
    const cnxn = sessionQueue.takeApplied(zxid, origin);
    if (cnxn === undefined) return;
    this.#reply(cnxn, proposal, error, now);
    if (isCloseSession(origin)) cnxns.close(cnxn, 'closed by the client');
    sessionQueue.answerPendingReads(cnxn, now);
  }

  #reply(cnxn: Cnxn, proposal: Proposal, error: number, now: Now): void {
    const { cnxns, replica, replyWriter, handshakes, admission } = this.#parts;
    const { zxid, origin } = proposal;
    const { opCode, cxid, arrivedMs } = origin;
    if (error === ErrorCode.SessionMoved) {
      // The client is connected to another server by now and must not receive this error.
      cnxns.close(cnxn, 'session moved');
      return;
    }
    if (opCode === OpCode.createSession) {
      handshakes.sessionCreated(cnxn, arrivedMs, now);
      admission.admitDeferred(cnxn, now);
      return;
    }
    const writer = replyWriter.begin(cnxn, cxid, zxid, error);
    writeResult(writer, proposal, replica, this.#multiResults);
    replyWriter.end(cnxn, writer, opCode, cxid, zxid, error, arrivedMs, now.elapsedMs, true);
  }
}
