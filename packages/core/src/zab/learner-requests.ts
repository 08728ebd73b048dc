/**
 * What clients of learners ask of the leader: writes, syncs, and whether a session is valid.
 *
 * Only a learner that has been sent UPTODATE serves clients. An earlier request is an error of the
 * learner, whose stream is closed.
 */
import {
  beginQuorumPacket,
  endQuorumPacket,
  OpCode,
  PacketType,
  type PacketView,
  readLearnerRequest,
  readRevalidateRequest,
  writeRevalidateReply,
} from '@tskeeper/protocol';
import { ForwardedIdentities } from '../auth/forwarded-identities.ts';
import type { Now } from '../now.ts';
import type { Server } from '../server.ts';
import type { LearnerProgress } from './learner-progress.ts';
import type { LearnerTable } from './learner-table.ts';
import type { SyncConfirmations } from './sync-confirmation.ts';

export class LearnerRequests {
  readonly #forwardedIdentities = new ForwardedIdentities();
  readonly #learners: LearnerTable;
  readonly #syncs: SyncConfirmations;

  constructor(learners: LearnerTable, syncs: SyncConfirmations) {
    this.#learners = learners;
    this.#syncs = syncs;
  }

  onRequest(learner: LearnerProgress, packet: PacketView, server: Server | undefined, now: Now): void {
    const { sessionHigh, sessionLow, cxid, type: opCode, payload } = readLearnerRequest(packet.data);
    learner.requestsReceived++;
    if (server === undefined || learner.stage !== 'active') {
      this.#learners.disconnect(learner, 'protocol error', 'the learner forwarded a request before UPTODATE');
      return;
    }
    if (opCode === OpCode.sync) {
      this.#syncs.add(learner, undefined, server, now);
      return;
    }
    const identities = this.#forwardedIdentities.of(packet);
    const owner = this.#learners.ownerOf(learner, this.#forwardedIdentities.origin);
    const record = Buffer.from(payload);
    server.forwarded({ owner, sessionHigh, sessionLow, cxid, opCode, identities, record, arrivedMs: now.elapsedMs }, now);
  }

  onRevalidate(learner: LearnerProgress, packet: PacketView, server: Server | undefined, now: Now): void {
    const request = readRevalidateRequest(packet.data);
    if (server === undefined || learner.stage !== 'active') {
      this.#learners.disconnect(learner, 'protocol error', 'the learner asked about a session before UPTODATE');
      return;
    }
    this.#forwardedIdentities.of(packet);
    const owner = this.#learners.ownerOf(learner, this.#forwardedIdentities.origin);
    const valid = server.validateSession(request, request.timeOut, owner, now);
    const writer = this.#learners.outputAfterBacklog(learner);
    const at = beginQuorumPacket(writer, PacketType.REVALIDATE, packet.zxid);
    writeRevalidateReply(writer, { sessionHigh: request.sessionHigh, sessionLow: request.sessionLow, valid });
    endQuorumPacket(writer, at);
  }
}
