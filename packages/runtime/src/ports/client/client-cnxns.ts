/**
 * The connections of a client port: by stream, by address, and listed by what ends them. All
 * closing goes through here, so that a connection that closes is in no list of live ones, and its
 * bytes and its place are no longer counted.
 *
 * A connection ends in two steps. `close` accepts no more input and sends waiting output, then the
 * end; `remove` follows when the network reports that the stream is gone. `drop` is a `close` that
 * does not wait for output.
 */
import type { CnxnContext, CnxnInfo } from '@tskeeper/core';
import { ExpiryQueue } from '@tskeeper/core/internal';
import { FrameDecoder, type Millis, Reader, type SessionId } from '@tskeeper/protocol';
import type { Network, StreamId } from '../../network.ts';
import type { CnxnList, CnxnView } from '../cnxn-list.ts';
import { ClientAddress } from './client-address.ts';
import { ClientCnxn } from './client-cnxn.ts';
import type { ClientPortOptions } from './client-port-options.ts';
import type { ClientSender } from './client-sender.ts';
import type { ClientTurnQueue } from './client-turn-queue.ts';
import { HalfOpenClients } from './half-open-clients.ts';
import type { HeldBytes } from './held-bytes.ts';
import type { LargeRequests } from './large-requests.ts';
import type { PortTurn } from './port-turn.ts';
import type { ReadGate } from './read-gate.ts';

export interface ClientCnxnsParts {
  readonly network: Network;
  readonly options: ClientPortOptions;
  readonly turn: PortTurn;
  readonly held: HeldBytes;
  readonly large: LargeRequests;
  readonly readGate: ReadGate;
  readonly sender: ClientSender;
  readonly turnQueue: ClientTurnQueue;
}

export class ClientCnxns implements CnxnList {
  readonly #network: Network;
  readonly #options: ClientPortOptions;
  readonly #turn: PortTurn;
  readonly #held: HeldBytes;
  readonly #large: LargeRequests;
  readonly #readGate: ReadGate;
  readonly #sender: ClientSender;
  readonly #turnQueue: ClientTurnQueue;

  /** By stream, which is also the CnxnId. Sparse: other ports have streams on the same network. */
  readonly #cnxns = new Map<StreamId, ClientCnxn>();
  /** Addresses with at least one connection. */
  readonly #addresses = new Map<string, ClientAddress<ClientCnxn>>();
  /** Connections that have not completed their handshake. */
  readonly halfOpen = new HalfOpenClients();
  /**
   * Connections that the core knows, by the time of the next check whether they are alive. Checked
   * late rather than updated often.
   */
  readonly idle: ExpiryQueue;
  #closingCount = 0;
  /** Connections that have been closed in this turn, and that need a call of `disconnected`. */
  readonly #disconnectsToReport: ClientCnxn[] = [];
  /** Shared by all cutters, because it is used only while a frame is delivered. */
  readonly #reader = new Reader();

  constructor(parts: ClientCnxnsParts) {
    this.#network = parts.network;
    this.#options = parts.options;
    this.#turn = parts.turn;
    this.#held = parts.held;
    this.#large = parts.large;
    this.#readGate = parts.readGate;
    this.#sender = parts.sender;
    this.#turnQueue = parts.turnQueue;
    this.idle = new ExpiryQueue(parts.options.sessionlessTimeoutMs);
  }

  // --- Finding

  get(stream: StreamId): ClientCnxn | undefined {
    return this.#cnxns.get(stream);
  }

  /** All connections, closing ones included. */
  all(): MapIterator<ClientCnxn> {
    return this.#cnxns.values();
  }

  /** Number of all connections, closing ones included. */
  get size(): number {
    return this.#cnxns.size;
  }

  get addressCount(): number {
    return this.#addresses.size;
  }

  /** Connections of an address, closing ones included. */
  countOf(address: string): number {
    return this.#addresses.get(address)?.cnxnCount ?? 0;
  }

  /** How long a connection with this state in the core may be silent. */
  timeoutOf(info: CnxnInfo | undefined): Millis {
    return info === undefined || info.session === 0n ? this.#options.sessionlessTimeoutMs : info.sessionTimeoutMs;
  }

  // --- The life of a connection

  add(stream: StreamId, context: CnxnContext): void {
    const { remoteAddress } = context;
    let address = this.#addresses.get(remoteAddress);
    if (address === undefined) this.#addresses.set(remoteAddress, (address = new ClientAddress<ClientCnxn>(remoteAddress)));
    address.cnxnCount++;
    const cutter = new FrameDecoder(this.#options.juteMaxBuffer, this.#reader);
    const cnxn = new ClientCnxn(stream, context, address, cutter, this.#turn.now.elapsedMs);
    this.#cnxns.set(stream, cnxn);
    this.halfOpen.add(cnxn);
  }

  /** Its handshake is complete: from here on the core knows the connection. */
  open(cnxn: ClientCnxn): void {
    const { now, front } = this.#turn;
    this.halfOpen.delete(cnxn);
    cnxn.stage = 'open';
    this.idle.touch(cnxn.stream, now.elapsedMs, this.#options.sessionlessTimeoutMs);
    front.connect(cnxn.stream, cnxn.context, now);
  }

  /** Accepts no more input; sends waiting output, then the end. */
  close(cnxn: ClientCnxn): void {
    if (cnxn.stage === 'closing') return;
    this.halfOpen.delete(cnxn);
    this.idle.remove(cnxn.stream);
    if (cnxn.stage === 'open') this.#disconnectsToReport.push(cnxn);
    this.#large.release(cnxn);
    cnxn.stage = 'closing';
    this.#closingCount++;
    cnxn.closingMs = this.#turn.now.elapsedMs;
    cnxn.firstBytes = undefined;
    cnxn.isStalled = false;
    this.#turnQueue.remove(cnxn);
    cnxn.decoder.close();
    this.#held.countInput(cnxn);
    this.#sender.markDirty(cnxn);
  }

  /** Closes at once, without waiting output. `ClientPort.closed` follows. */
  drop(cnxn: ClientCnxn): void {
    this.close(cnxn);
    this.#sender.discard(cnxn);
    cnxn.writePending = false;
    cnxn.isDropped = true;
    this.#network.reset(cnxn.stream);
  }

  /** Forgets a closing connection whose stream is gone; its number may be used again. */
  remove(cnxn: ClientCnxn): void {
    this.#closingCount--;
    this.#cnxns.delete(cnxn.stream);
    cnxn.isDropped = true;
    this.#readGate.remove(cnxn);
    cnxn.decoder.close();
    this.#held.countInput(cnxn);
    this.#sender.discard(cnxn);
    if (--cnxn.address.cnxnCount === 0) this.#addresses.delete(cnxn.address.name);
  }

  reportDisconnects(): void {
    const { now, front } = this.#turn;
    const closed = this.#disconnectsToReport;
    // Their requests no longer count, so the core may accept others again.
    if (closed.length > 0 && this.#turnQueue.waitingCount > 0) this.#turn.needsAnother = true;
    // By index, because the core may close others meanwhile.
    for (let index = 0; index < closed.length; index++) front.disconnected(closed[index]!.stream, now);
    closed.length = 0;
  }

  // --- For operators

  /** Number of connections that are not closing. */
  get cnxnCount(): number {
    return this.#cnxns.size - this.#closingCount;
  }

  *cnxns(): Generator<CnxnView, void, undefined> {
    for (const cnxn of this.#cnxns.values()) {
      if (cnxn.stage === 'closing') continue;
      yield {
        context: cnxn.context,
        interest: cnxn.stage === 'word' ? 0 : (cnxn.isPaused ? 0 : 1) + (cnxn.countedOutputBytes > 0 ? 4 : 0),
        packetsReceived: cnxn.packetsReceived,
        info: cnxn.stage === 'open' ? this.#turn.front.inspect.cnxn(cnxn.stream) : undefined,
      };
    }
  }

  expiry(): { dueMs: Millis; cnxns: { context: CnxnContext; session: SessionId }[] }[] {
    const tickMs = this.#options.sessionlessTimeoutMs;
    const buckets = new Map<Millis, { dueMs: Millis; cnxns: { context: CnxnContext; session: SessionId }[] }>();
    for (const cnxn of this.#cnxns.values()) {
      if (cnxn.stage === 'closing') continue;
      const info = cnxn.stage === 'open' ? this.#turn.front.inspect.cnxn(cnxn.stream) : undefined;
      const from = info === undefined ? cnxn.acceptedMs : cnxn.receivedMs;
      const dueMs = (Math.floor((from + this.timeoutOf(info)) / tickMs) + 1) * tickMs;
      let bucket = buckets.get(dueMs);
      if (bucket === undefined) buckets.set(dueMs, (bucket = { dueMs, cnxns: [] }));
      bucket.cnxns.push({ context: cnxn.context, session: info?.session ?? 0n });
    }
    return [...buckets.values()].sort((a, b) => a.dueMs - b.dueMs);
  }
}
