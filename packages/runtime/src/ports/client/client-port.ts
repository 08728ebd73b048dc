/**
 * The client port: everything between a byte stream and the core. It accepts or refuses
 * connections, recognises four letter words, cuts frames, passes them to the core, gathers the
 * core's replies, and closes clients that are silent, slow or too large.
 *
 * The runtime drives it in turns: network events and `wake` as they occur, then `endTurn` once.
 * Nothing is sent before `endTurn`, so that a connection's replies of one turn go out in one write,
 * which is most of the cost of a small request.
 *
 * This file has the inputs and their order; each part of the work has its own file: client-cnxns
 * (which connections there are, and how they close), cnxn-limits (who may connect), client-input
 * (bytes to the core), client-sender (bytes to clients), word-answers, and cnxn-reaper (time).
 *
 * What is held for clients is counted (held-bytes.ts), and limited in four ways:
 * - a connection is not read while more than `outputHighWaterBytes` of output wait for it, or while
 *   the core accepts no more of its requests (read-gate.ts);
 * - it is closed when more than `queuedOutputBytesMax` wait after the reply in progress and nothing
 *   has been accepted for `drainTimeoutMs` (cnxn-reaper.ts);
 * - an address that holds more than its share of `inFlightBytesMax` is not read where output waits
 *   for it (overload.ts);
 * - above the limit the connections that hold most, of the addresses that hold most, are closed one
 *   after the other until the rest fits (load-shedder.ts). A connection that holds nothing is
 *   served throughout: its pings and small requests pass, and newcomers are accepted.
 */
import type { ClientFront, CnxnContext, CnxnId, MemoryState, Now, Observer, PeerClients } from '@tskeeper/core';
import type { Millis, Writer } from '@tskeeper/protocol';
import type { Logger } from '../../logger.ts';
import type { Endpoint, Listener, ListenOptions, Network, ReceivedBatch, StreamId } from '../../network.ts';
import { DiscardSink } from '../discard-sink.ts';
import type { PortObserver } from '../port-observer.ts';
import { RateLimitedLog } from '../rate-limited-log.ts';
import { ClientCnxns } from './client-cnxns.ts';
import { ClientInput } from './client-input.ts';
import type { ClientPortOptions } from './client-port-options.ts';
import { ClientSender } from './client-sender.ts';
import { ClientTurnQueue } from './client-turn-queue.ts';
import { CnxnLimits, type Throttle } from './cnxn-limits.ts';
import { CnxnReaper } from './cnxn-reaper.ts';
import { HeldBytes } from './held-bytes.ts';
import { LargeRequests } from './large-requests.ts';
import { LoadShedder } from './load-shedder.ts';
import { Overload } from './overload.ts';
import { PortTurn } from './port-turn.ts';
import { ReadGate } from './read-gate.ts';
import { type FourLetterWordHandler, WordAnswers } from './word-answers.ts';

export interface ClientPortDependencies {
  readonly network: Network;
  readonly options: ClientPortOptions;
  readonly throttle: Throttle | undefined;
  readonly observer: PortObserver;
  readonly limitObserver: Pick<Observer, 'limitReached'>;
  readonly logger: Logger;
}

export class ClientPort implements PeerClients {
  readonly #network: Network;
  readonly #options: ClientPortOptions;
  readonly #observer: PortObserver;
  readonly #limitObserver: Pick<Observer, 'limitReached'>;
  readonly #log: RateLimitedLog;

  readonly #listeners = new Set<Listener>();
  readonly #turn = new PortTurn();
  readonly #held: HeldBytes;
  readonly #large: LargeRequests;
  readonly #readGate: ReadGate;
  readonly #sender: ClientSender;
  readonly #cnxns: ClientCnxns;
  readonly #limits: CnxnLimits;
  readonly #words: WordAnswers;
  readonly #input: ClientInput;
  readonly #reaper: CnxnReaper;
  readonly #overload: Overload;
  readonly #discardSink = new DiscardSink();

  constructor(dependencies: ClientPortDependencies) {
    const { network, options, throttle, observer, limitObserver, logger } = dependencies;
    const turn = this.#turn;
    const log = new RateLimitedLog(logger);
    const loadShedder = new LoadShedder(options.inFlightBytesMax);
    const turnQueue = new ClientTurnQueue();
    const held = new HeldBytes(loadShedder);
    const large = new LargeRequests(options, turn);
    const readGate = new ReadGate(network, options, turn);
    const sender = new ClientSender({ network, options, limitObserver, turn, held, readGate });
    const cnxns = new ClientCnxns({ network, options, turn, held, large, readGate, sender, turnQueue });
    const limits = new CnxnLimits({ options, throttle, observer, limitObserver, log, turn, cnxns, sender });
    const words = new WordAnswers({ observer, turn, cnxns, sender });
    this.#network = network;
    this.#options = options;
    this.#observer = observer;
    this.#limitObserver = limitObserver;
    this.#log = log;
    this.#held = held;
    this.#large = large;
    this.#readGate = readGate;
    this.#sender = sender;
    this.#cnxns = cnxns;
    this.#limits = limits;
    this.#words = words;
    this.#input = new ClientInput({ options, observer, limitObserver, log, turn, held, large, readGate, turnQueue, cnxns, limits, words });
    this.#reaper = new CnxnReaper({ options, observer, log, turn, cnxns, sender });
    this.#overload = new Overload({ options, observer, limitObserver, log, turn, held, loadShedder, readGate, sender, cnxns });
  }

  /**
   * Delivers the input of clients to `front` from here on. The front is made after the port,
   * because it writes to the port.
   */
  attach(front: ClientFront): void {
    this.#turn.front = front;
  }

  /** Sets the object that answers four letter words, before the first connection. */
  set words(handler: FourLetterWordHandler) {
    this.#words.handler = handler;
  }

  // --- Listening

  async listen(options: ListenOptions): Promise<Listener> {
    const listener = await this.#network.listen(options);
    this.#listeners.add(listener);
    return listener;
  }

  /** Stops accepting at one address; connections stay. */
  async stopListeningAt(listener: Listener): Promise<void> {
    this.#listeners.delete(listener);
    await listener.close();
  }

  owns(listener: Listener): boolean {
    return this.#listeners.has(listener);
  }

  ownsStream(stream: StreamId): boolean {
    return this.#cnxns.get(stream) !== undefined;
  }

  /** Stops accepting, and closes all connections; output written to them is still sent. */
  async shutDown(now: Now): Promise<void> {
    this.#turn.now = now;
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const cnxn of this.#cnxns.all()) this.#cnxns.close(cnxn);
    await Promise.all(listeners.map((listener) => listener.close()));
  }

  // --- What the network reports

  accepted(stream: StreamId, listener: Listener, remote: Endpoint, now: Now): void {
    this.#turn.now = now;
    if (!this.#listeners.has(listener) || !this.#limits.canAccept(remote.address)) {
      this.#observer.cnxnRejected();
      this.#network.reset(stream);
      return;
    }
    const context: CnxnContext = {
      remoteAddress: remote.address,
      remotePort: remote.port,
      localPort: listener.endpoint.port,
      secure: false,
      peerCertificate: undefined,
    };
    this.#cnxns.add(stream, context);
  }

  /** Takes the connections of this port out of the batch and ignores the others. */
  received(batch: ReceivedBatch, now: Now): void {
    this.#turn.now = now;
    for (let index = 0; index < batch.count; index++) {
      const cnxn = this.#cnxns.get(batch.streams[index]!);
      if (cnxn !== undefined) this.#input.receive(cnxn, batch.buffers[index]!, batch.starts[index]!, batch.ends[index]!);
    }
  }

  drained(stream: StreamId, now: Now): void {
    this.#turn.now = now;
    const cnxn = this.#cnxns.get(stream);
    if (cnxn !== undefined) this.#sender.drained(cnxn);
  }

  ended(stream: StreamId, now: Now): void {
    this.#turn.now = now;
    const cnxn = this.#cnxns.get(stream);
    if (cnxn === undefined) return;
    // `echo ruok | nc` ends its side right after the word and still waits for the answer.
    if (cnxn.stage === 'word' || cnxn.stage === 'closing') return;
    this.#input.ended(cnxn);
  }

  closed(stream: StreamId, error: string | undefined, now: Now): void {
    this.#turn.now = now;
    const cnxn = this.#cnxns.get(stream);
    if (cnxn === undefined) return;
    if (cnxn.stage === 'open') this.#observer.cnxnDropped();
    if (cnxn.stage === 'open' && cnxn.isStalled) this.#input.feedLastFrames(cnxn);
    if (cnxn.stage === 'closing') this.#observer.socketClosed(now.elapsedMs - cnxn.closingMs);
    else this.#cnxns.close(cnxn);
    // At once and not at the end of the turn: from here on its number may be used again.
    this.#cnxns.reportDisconnects();
    this.#cnxns.remove(cnxn);
    if (error !== undefined && error !== 'ECONNRESET' && error !== 'EPIPE') {
      this.#log.warn(now.elapsedMs, `The connection of ${cnxn.name} was lost (${error}).`, {
        event: 'cnxn.lost',
        address: cnxn.name,
        reason: error,
      });
    }
  }

  // --- What the core asks for

  /** As `ClientOutput.reply`. */
  reply(id: CnxnId): Writer {
    const cnxn = this.#cnxns.get(id);
    if (cnxn === undefined || cnxn.stage !== 'open') {
      this.#observer.staleReply();
      return this.#discardSink.writer();
    }
    return this.#sender.writer(cnxn);
  }

  /** As `ClientOutput.isFull`. */
  isFull(id: CnxnId): boolean {
    const cnxn = this.#cnxns.get(id);
    if (cnxn === undefined || cnxn.waitingBytes <= this.#options.outputHighWaterBytes) return false;
    this.#limitObserver.limitReached('outputHighWaterBytes');
    cnxn.backpressureSignalled = true;
    return true;
  }

  /** As `ClientOutput.close`. The core gets `disconnected` at the end of the turn. */
  close(id: CnxnId): void {
    const cnxn = this.#cnxns.get(id);
    if (cnxn !== undefined && cnxn.stage === 'open') this.#cnxns.close(cnxn);
  }

  // --- Time

  /** When to call `wake` if nothing else happens. */
  deadline(): Millis | undefined {
    const next = Math.min(this.#reaper.deadline() ?? Infinity, this.#readGate.nextProbeMs ?? Infinity);
    return next === Infinity ? undefined : next;
  }

  /** There is more work that can be done at once: the runtime should run another turn soon. */
  get needsTurn(): boolean {
    return this.#turn.needsAnother;
  }

  /**
   * Connections that are not read and have been silent for a while are read until `endProbes`.
   */
  beginProbes(now: Now): void {
    this.#readGate.beginProbes(now);
  }

  endProbes(): void {
    this.#readGate.endProbes();
  }

  /** Closes connections that have timed out. */
  wake(now: Now): void {
    this.#turn.now = now;
    this.#reaper.closeDue();
  }

  /** Feeds connections that had to wait, answers words, and sends all output at once. */
  endTurn(now: Now): void {
    this.#turn.now = now;
    this.#turn.needsAnother = false;
    this.#input.feedWaiting();
    this.#words.advance();
    this.#cnxns.reportDisconnects();
    this.#sender.flush();
    this.#large.forgetAnswered();
    this.#overload.updateShares();
    this.#readGate.updateStalled();
    this.#overload.shed();
    // Connections that were shed have left the core as well.
    this.#cnxns.reportDisconnects();
    this.#input.renewBudget();
  }

  // --- For the memory guard and operators

  /**
   * The state of the memory of the process. Unless it is ample, no new sessions are accepted; live
   * ones may be resumed.
   */
  set memoryState(state: MemoryState) {
    this.#limits.memoryState = state;
  }

  /** Input and output held for clients. */
  get inFlightBytes(): number {
    return this.#held.total;
  }

  get retainedInputBytes(): number {
    return this.#held.input;
  }

  get waitingOutputBytes(): number {
    return this.#held.output;
  }

  /** Number of connections that are not closing. */
  get cnxnCount(): number {
    return this.#cnxns.cnxnCount;
  }

  get halfOpenCount(): number {
    return this.#cnxns.halfOpen.size;
  }
}
