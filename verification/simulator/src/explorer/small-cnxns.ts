/**
 * The connections of clients to a server. The persistent client keeps its connection; every other
 * one sends one request, and disconnects when it has the reply.
 */
import { Reader, readConnectResponse, sessionHigh, sessionLow, Writer } from '@tskeeper/protocol';
import type { CnxnId, PeerClients } from '@tskeeper/core';
import type { Fingerprint } from '@tskeeper/core/internal';
import type { SmallServerEnvironment } from './server-environment.ts';
import type { OperatorCnxn } from './small-operator.ts';
import { sessionName } from './txn-names.ts';

interface Cnxn {
  readonly writer: Writer;
  /** The client has its reply, or the server has closed the connection. */
  isAnswered: boolean;
  /** Whether the client keeps its connection. */
  readonly isSmallClient: boolean;
  /** Of the operator. */
  readonly operator: OperatorCnxn | undefined;
}

export class SmallCnxns implements PeerClients {
  readonly #world: SmallServerEnvironment;
  readonly #cnxns = new Map<CnxnId, Cnxn>();

  constructor(world: SmallServerEnvironment) {
    this.#world = world;
  }

  open(cnxn: CnxnId, isSmallClient: boolean, operator?: OperatorCnxn): void {
    this.#cnxns.set(cnxn, { writer: new Writer(64), isAnswered: false, isSmallClient, operator });
  }

  /** The connections of the persistent client. */
  *ofSmallClient(): Iterable<CnxnId> {
    for (const [cnxn, { isSmallClient }] of this.#cnxns) if (isSmallClient) yield cnxn;
  }

  drop(cnxn: CnxnId): void {
    this.#cnxns.delete(cnxn);
  }

  /** The server has crashed. */
  clear(): void {
    this.#cnxns.clear();
  }

  // --- what the peer does

  attach(): void {}

  reply(cnxn: CnxnId): Writer {
    return this.#cnxns.get(cnxn)?.writer ?? new Writer(64);
  }

  isFull(): boolean {
    return false;
  }

  close(id: CnxnId): void {
    const cnxn = this.#cnxns.get(id);
    if (cnxn !== undefined) cnxn.isAnswered = true;
  }

  // --- replies

  /**
   * Delivers the replies of this turn, and returns the connections that are over: the client has
   * its reply and disconnects, or the server has closed the connection. The peer must learn of each
   * before the next is taken.
   */
  *deliverReplies(): Iterable<CnxnId> {
    for (const [id, cnxn] of this.#cnxns) {
      if (cnxn.isSmallClient) this.#deliverToSmallClient(cnxn);
      else if (cnxn.operator !== undefined) this.#deliverToOperator(cnxn, cnxn.operator);
      else if (cnxn.writer.offset > 0) this.#deliver(cnxn);
      if (!cnxn.isAnswered) continue;
      this.#cnxns.delete(id);
      yield id;
    }
  }

  #deliverToSmallClient(cnxn: Cnxn): void {
    const bytes = Buffer.from(cnxn.writer.written());
    cnxn.writer.clear();
    this.#world.client.received(bytes);
    if (cnxn.isAnswered) this.#world.client.disconnected();
  }

  #deliverToOperator(cnxn: Cnxn, operator: OperatorCnxn): void {
    const bytes = Buffer.from(cnxn.writer.written());
    cnxn.writer.clear();
    if (this.#world.operator.received(operator, bytes)) cnxn.isAnswered = true;
  }

  #deliver(cnxn: Cnxn): void {
    const reader = new Reader(Buffer.from(cnxn.writer.written()));
    reader.int32();
    const { timeOut, sessionId, passwd } = readConnectResponse(reader);
    if (timeOut > 0) {
      this.#world.operator.sessionCreated(sessionId, Buffer.from(passwd ?? []));
      this.#world.invariants.clientAcknowledged(sessionName(sessionHigh(sessionId), sessionLow(sessionId)));
    }
    cnxn.isAnswered = true;
  }

  fingerprint(to: Fingerprint): void {
    for (const [id, { operator }] of this.#cnxns) {
      to.number(id);
      if (operator !== undefined) to.number(operator.isOpen ? 1 : 0);
    }
  }
}
