/**
 * Sends what has been written to clients: at the end of a turn, one slice per connection, all in
 * one call of the network.
 *
 * A connection writes into a writer lent by the pool. At the flush that writer becomes `sending`,
 * and the network either accepts a slice at once, or keeps it and reports `drained`. A connection
 * that has been sent everything and closes here is sent the end of its stream.
 */
import type { Observer } from '@tskeeper/core';
import type { Writer } from '@tskeeper/protocol';
import type { Network, SendBatch, StreamId } from '../../network.ts';
import { WriterPool } from '../writer-pool.ts';
import type { ClientCnxn } from './client-cnxn.ts';
import type { ClientPortOptions } from './client-port-options.ts';
import type { HeldBytes } from './held-bytes.ts';
import type { PortTurn } from './port-turn.ts';
import type { ReadGate } from './read-gate.ts';

/** Slices of one call to the network; it grows to the largest turn and keeps that size. */
class OutgoingBatch implements SendBatch {
  count = 0;
  readonly cnxns: (ClientCnxn | undefined)[] = [];
  readonly streams: StreamId[] = [];
  readonly buffers: Buffer[] = [];
  readonly starts: number[] = [];
  readonly ends: number[] = [];
  readonly kept: boolean[] = [];

  add(cnxn: ClientCnxn, buffer: Buffer, start: number, end: number): void {
    const at = this.count++;
    this.cnxns[at] = cnxn;
    this.streams[at] = cnxn.stream;
    this.buffers[at] = buffer;
    this.starts[at] = start;
    this.ends[at] = end;
    this.kept[at] = false;
  }
}

export interface ClientSenderParts {
  readonly network: Network;
  readonly options: ClientPortOptions;
  readonly limitObserver: Pick<Observer, 'limitReached'>;
  readonly turn: PortTurn;
  readonly held: HeldBytes;
  readonly readGate: ReadGate;
}

export class ClientSender {
  readonly #network: Network;
  readonly #options: ClientPortOptions;
  readonly #limitObserver: Pick<Observer, 'limitReached'>;
  readonly #turn: PortTurn;
  readonly #held: HeldBytes;
  readonly #readGate: ReadGate;

  readonly #pool = new WriterPool();
  readonly #batch = new OutgoingBatch();
  #dirty: ClientCnxn[] = [];
  /** Connections with waiting output. The one checked longest ago is first. */
  readonly awaitingDrain = new Set<ClientCnxn>();
  /**
   * Connections that have been sent everything and an end; the one that has had it longest is
   * first.
   */
  readonly lingering = new Set<ClientCnxn>();

  constructor(parts: ClientSenderParts) {
    this.#network = parts.network;
    this.#options = parts.options;
    this.#limitObserver = parts.limitObserver;
    this.#turn = parts.turn;
    this.#held = parts.held;
    this.#readGate = parts.readGate;
  }

  /** Where to write output of this turn. */
  writer(cnxn: ClientCnxn): Writer {
    if (!cnxn.isDirty) this.markDirty(cnxn);
    return (cnxn.writer ??= this.#pool.take());
  }

  /** Lists a connection for the next flush. */
  markDirty(cnxn: ClientCnxn): void {
    if (cnxn.isDirty) return;
    cnxn.isDirty = true;
    this.#dirty.push(cnxn);
  }

  /** The network has released the slice that it kept. */
  drained(cnxn: ClientCnxn): void {
    if (!cnxn.writePending) return;
    cnxn.writePending = false;
    cnxn.sendAt = cnxn.sliceEnd;
    cnxn.shrinkOutput();
    this.renewProgress(cnxn);
    this.markDirty(cnxn);
  }

  /** A connection with waiting output gets another `drainTimeoutMs`. */
  renewProgress(cnxn: ClientCnxn): void {
    cnxn.progressMs = this.#turn.now.elapsedMs;
    this.awaitingDrain.delete(cnxn);
    this.awaitingDrain.add(cnxn);
  }

  /** Throws away the output of a connection that is gone, or is being reset. */
  discard(cnxn: ClientCnxn): void {
    this.awaitingDrain.delete(cnxn);
    this.lingering.delete(cnxn);
    this.#held.countOutput(cnxn, 0);
    cnxn.writer = cnxn.sending = undefined;
  }

  flush(): void {
    const dirty = this.#dirty;
    this.#dirty = [];
    let pending = dirty;
    // One pass, unless a connection has more than one slice to send.
    do {
      for (const cnxn of pending) this.#addSlice(cnxn);
      pending = this.#send();
    } while (pending.length > 0);
    for (const cnxn of dirty) {
      cnxn.isDirty = false;
      this.#finishFlush(cnxn);
    }
  }

  #addSlice(cnxn: ClientCnxn): void {
    if (cnxn.writePending || cnxn.isDropped) return;
    if (cnxn.sending !== undefined && cnxn.sendAt === cnxn.sending.offset) {
      if (!cnxn.bufferDonated) this.#pool.put(cnxn.sending);
      cnxn.sending = undefined;
    }
    if (cnxn.sending === undefined) {
      const { writer } = cnxn;
      if (writer === undefined || writer.offset === 0) return;
      cnxn.sending = writer;
      cnxn.writer = undefined;
      cnxn.sendAt = 0;
      cnxn.bufferDonated = false;
    }
    cnxn.sliceEnd = Math.min(cnxn.sending.offset, cnxn.sendAt + this.#options.sliceBytes);
    if (cnxn.sliceEnd < cnxn.sending.offset) this.#limitObserver.limitReached('sliceBytes');
    this.#batch.add(cnxn, cnxn.sending.bytes, cnxn.sendAt, cnxn.sliceEnd);
  }

  /** Returns the connections that can send another slice at once. */
  #send(): ClientCnxn[] {
    const batch = this.#batch;
    if (batch.count === 0) return noCnxns;
    this.#network.send(batch);
    let more = noCnxns;
    for (let index = 0; index < batch.count; index++) {
      const cnxn = batch.cnxns[index]!;
      batch.cnxns[index] = undefined;
      batch.buffers[index] = noBytes;
      const { sending } = cnxn;
      if (sending === undefined) continue;
      if (batch.kept[index]!) {
        cnxn.writePending = true;
        cnxn.bufferDonated = true;
        continue;
      }
      cnxn.sendAt = cnxn.sliceEnd;
      const isWhole = cnxn.sendAt === sending.offset;
      if (isWhole) {
        if (!cnxn.bufferDonated) this.#pool.put(sending);
        cnxn.sending = undefined;
      }
      if (!isWhole || cnxn.writer !== undefined) {
        if (more === noCnxns) more = [];
        more.push(cnxn);
      }
    }
    batch.count = 0;
    return more;
  }

  #finishFlush(cnxn: ClientCnxn): void {
    if (cnxn.isDropped) return;
    if (cnxn.writer?.offset === 0) {
      this.#pool.put(cnxn.writer);
      cnxn.writer = undefined;
    }
    this.#held.countOutput(cnxn, cnxn.waitingBytes);
    const { outputHighWaterBytes } = this.#options;
    // Its own output may have held its requests back; nothing else will cause a turn now that the
    // output is sent.
    if (cnxn.isStalled && cnxn.countedOutputBytes <= outputHighWaterBytes) this.#turn.needsAnother = true;
    if (cnxn.backpressureSignalled && cnxn.countedOutputBytes <= outputHighWaterBytes) {
      cnxn.backpressureSignalled = false;
      this.#turn.front.drained(cnxn.stream, this.#turn.now);
      // What it has written now is sent in the next turn.
      this.#turn.needsAnother = true;
    }
    if (cnxn.countedOutputBytes === 0) {
      this.awaitingDrain.delete(cnxn);
      if (cnxn.stage === 'closing') this.#sendEnd(cnxn);
    } else if (!this.awaitingDrain.has(cnxn)) {
      cnxn.progressMs = this.#turn.now.elapsedMs;
      this.awaitingDrain.add(cnxn);
    }
    this.#readGate.update(cnxn);
  }

  #sendEnd(cnxn: ClientCnxn): void {
    if (cnxn.endSent) return;
    cnxn.endSent = true;
    cnxn.closingMs = this.#turn.now.elapsedMs;
    this.lingering.add(cnxn);
    this.#network.end(cnxn.stream);
  }
}

const noCnxns: ClientCnxn[] = [];
const noBytes = Buffer.alloc(0);
