/**
 * Feeds what clients send to the core: recognises four letter words by their first bytes, cuts
 * frames, and passes them on until the connection's quantum, the turn or the core has had enough.
 *
 * Frames that cannot be passed on stay in the cutter of their connection, which is then stalled and
 * waits in the turn queue. At the end of a turn the stalled connections are fed in the order of
 * that queue, as long as the turn's budget lasts. No frame overtakes a waiting one.
 */
import type { Observer } from '@tskeeper/core';
import { ProtocolError, type Reader } from '@tskeeper/protocol';
import type { PortObserver } from '../port-observer.ts';
import type { RateLimitedLog } from '../rate-limited-log.ts';
import type { ClientCnxn } from './client-cnxn.ts';
import type { ClientCnxns } from './client-cnxns.ts';
import type { ClientPortOptions } from './client-port-options.ts';
import type { ClientTurnQueue } from './client-turn-queue.ts';
import type { CnxnLimits } from './cnxn-limits.ts';
import type { HeldBytes } from './held-bytes.ts';
import type { LargeRequests } from './large-requests.ts';
import type { PortTurn } from './port-turn.ts';
import type { ReadGate } from './read-gate.ts';
import type { WordAnswers } from './word-answers.ts';

/** Steps of the core's work for one connection before another gets its turn. */
const stepsPerQuantum = 1;
/** Steps of the core's work in one turn, where each frame costs more. */
const stepsPerTurn = 8;
/** The cost of a frame in addition to what the core counts. */
const unitsPerFrame = 16;

export interface ClientInputParts {
  readonly options: ClientPortOptions;
  readonly observer: PortObserver;
  readonly limitObserver: Pick<Observer, 'limitReached'>;
  readonly log: RateLimitedLog;
  readonly turn: PortTurn;
  readonly held: HeldBytes;
  readonly large: LargeRequests;
  readonly readGate: ReadGate;
  readonly turnQueue: ClientTurnQueue;
  readonly cnxns: ClientCnxns;
  readonly limits: CnxnLimits;
  readonly words: WordAnswers;
}

export class ClientInput {
  readonly #options: ClientPortOptions;
  readonly #observer: PortObserver;
  readonly #limitObserver: Pick<Observer, 'limitReached'>;
  readonly #log: RateLimitedLog;
  readonly #turn: PortTurn;
  readonly #held: HeldBytes;
  readonly #large: LargeRequests;
  readonly #readGate: ReadGate;
  /** Connections whose frames wait in their cutters. */
  readonly #turnQueue: ClientTurnQueue;
  readonly #cnxns: ClientCnxns;
  readonly #limits: CnxnLimits;
  readonly #words: WordAnswers;

  /** The connection whose frames are being cut. */
  #feeding: ClientCnxn | undefined;
  #quantumFramesLeft = 0;
  /** The value of the core's work at which the quantum of the fed connection ends. */
  #quantumEndUnits = 0;
  #turnFramesLeft: number;
  /** The same in units of the core's work, spent on feeding in this turn so far. */
  #turnUnits = 0;
  /**
   * The connection of the long job in progress; it is charged for the cost when its steps have been
   * taken.
   */
  #jobCnxn: ClientCnxn | undefined;
  #chargedUnits = 0;

  /** Made once, because each chunk of bytes needs it. */
  readonly #onFrame = (reader: Reader): boolean => this.#frame(reader);

  constructor(parts: ClientInputParts) {
    this.#options = parts.options;
    this.#observer = parts.observer;
    this.#limitObserver = parts.limitObserver;
    this.#log = parts.log;
    this.#turn = parts.turn;
    this.#held = parts.held;
    this.#large = parts.large;
    this.#readGate = parts.readGate;
    this.#turnQueue = parts.turnQueue;
    this.#cnxns = parts.cnxns;
    this.#limits = parts.limits;
    this.#words = parts.words;
    this.#turnFramesLeft = parts.options.framesPerTurn;
  }

  // --- Bytes

  receive(cnxn: ClientCnxn, bytes: Buffer, start: number, end: number): void {
    cnxn.receivedMs = this.#turn.now.elapsedMs;
    switch (cnxn.stage) {
      case 'preamble':
        this.#receiveFirst(cnxn, bytes, start, end);
        return;
      case 'handshake':
      case 'open':
        this.#readGate.endProbe(cnxn);
        // No frame may overtake those that wait.
        if (!cnxn.isStalled && (this.#turnQueue.length > 0 || !this.#canFeed(cnxn))) this.#stall(cnxn);
        this.#feed(cnxn, bytes, start, end);
        // The core learns this way of bytes that are not frames yet.
        if (cnxn.stage === 'open' && cnxn.countedInputBytes > 0) this.#turn.front.bytesReceived(cnxn.stream, this.#turn.now);
        if (cnxn.stage === 'handshake' && cnxn.isStalled) this.#reportHandshake(cnxn);
        return;
      case 'word':
      case 'closing':
        // Reading continues, because closing a socket with unread input makes the kernel reset it,
        // and the client might lose the end of the answer. But there is a limit.
        cnxn.discardedBytes += end - start;
        if (cnxn.discardedBytes > this.#options.discardedBytesMax) this.#cnxns.drop(cnxn);
        return;
      default:
        cnxn.stage satisfies never;
    }
  }

  #receiveFirst(cnxn: ClientCnxn, bytes: Buffer, start: number, end: number): void {
    const first = (cnxn.firstBytes ??= Buffer.alloc(this.#words.handler.bytesMax));
    const before = cnxn.firstByteCount;
    const taken = Math.min(first.length - before, end - start);
    bytes.copy(first, before, start, start + taken);
    cnxn.firstByteCount += taken;
    const kind = this.#words.handler.classify(first, cnxn.firstByteCount);
    switch (kind) {
      case 'more':
        return;
      case 'word':
        this.#words.start(cnxn, first);
        return;
      case 'frames':
        cnxn.firstBytes = undefined;
        cnxn.stage = 'handshake';
        if (this.#turnQueue.length > 0 || !this.#canFeed(cnxn)) this.#stall(cnxn);
        if (before > 0) this.#feed(cnxn, first, 0, before);
        if (cnxn.takesFrames) this.#feed(cnxn, bytes, start, end);
        if (cnxn.stage === 'handshake' && cnxn.isStalled) this.#reportHandshake(cnxn);
        return;
      default:
        kind satisfies never;
    }
  }

  #reportHandshake(cnxn: ClientCnxn): void {
    const reader = cnxn.decoder.peek();
    if (reader !== undefined) this.#turn.front.handshakeDelayed(reader, this.#turn.now);
  }

  #canFeed(cnxn: ClientCnxn): boolean {
    const { front } = this.#turn;
    return this.#hasTurnBudget() && !front.isBusy && !front.isHolding && this.#canTakeInput(cnxn);
  }

  #canTakeInput(cnxn: ClientCnxn): boolean {
    return cnxn.waitingBytes <= this.#options.outputHighWaterBytes && (cnxn.stage !== 'open' || this.#turn.front.wantsInput(cnxn.stream));
  }

  /** Feeds new bytes, or the retained ones when there are none. */
  #feed(cnxn: ClientCnxn, bytes: Buffer | undefined, start: number, end: number): void {
    this.#feeding = cnxn;
    const { framesPerQuantum } = this.#options;
    this.#quantumFramesLeft = framesPerQuantum;
    const workBefore = this.#turn.front.workUnits;
    this.#quantumEndUnits = workBefore + stepsPerQuantum * this.#options.stepUnits;
    let wantsMore = true;
    try {
      if (bytes === undefined) wantsMore = cnxn.decoder.resume(this.#onFrame);
      else wantsMore = cnxn.decoder.feed(bytes, start, end, this.#onFrame);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#log.warn(this.#turn.now.elapsedMs, `${cnxn.name} was closed: ${error.message}. ${this.#juteHint(cnxn)}`, {
        event: 'cnxn.malformed',
        address: cnxn.name,
        reason: error.message,
      });
      this.#cnxns.close(cnxn);
    } finally {
      this.#feeding = undefined;
    }
    const frames = framesPerQuantum - this.#quantumFramesLeft;
    if (frames > 0) this.#chargeQuantum(cnxn, frames, this.#turn.front.workUnits - workBefore);
    if (cnxn.stage === 'closing') return;
    if (!wantsMore) this.#stall(cnxn);
    else if (cnxn.hasPeerEnded) this.#end(cnxn);
    this.#held.countInput(cnxn);
    this.#checkLargeFrame(cnxn);
  }

  #chargeQuantum(cnxn: ClientCnxn, frames: number, work: number): void {
    // A server that has begun to lead or follow counts from 0.
    const units = Math.max(0, work);
    this.#turnUnits += units;
    this.#turnQueue.charge(cnxn, units + frames * unitsPerFrame);
  }

  /** The frame cutter's consumer. Returns whether the connection may pass another frame. */
  #frame(reader: Reader): boolean {
    const cnxn = this.#feeding!;
    const bytes = reader.remaining + 4;
    this.#observer.packetReceived(bytes);
    if (cnxn.stage === 'handshake') {
      if (!this.#limits.admitHandshake(cnxn, reader)) return false;
      this.#cnxns.open(cnxn);
    }
    cnxn.framesFed++;
    if (this.#large.exceeds(reader.remaining)) {
      this.#rejectLarge(cnxn, reader.remaining);
      return false;
    }
    this.#large.add(cnxn, reader.remaining);
    this.#turn.front.frame(cnxn.stream, reader, this.#turn.now, cnxn.receivedMs);
    if (--this.#turnFramesLeft === 0) this.#limitObserver.limitReached('framesPerTurn');
    if (this.#quantumFramesLeft === 1) this.#limitObserver.limitReached('framesPerQuantum');
    return (
      --this.#quantumFramesLeft > 0 && cnxn.stage === 'open' && this.#turn.front.workUnits < this.#quantumEndUnits && this.#canFeed(cnxn)
    );
  }

  #stall(cnxn: ClientCnxn): void {
    if (cnxn.isStalled) return;
    cnxn.isStalled = true;
    cnxn.decoder.pause();
    this.#turnQueue.push(cnxn);
    this.#readGate.addStalled(cnxn);
  }

  #juteHint(cnxn: ClientCnxn): string {
    if (cnxn.stage === 'handshake') return 'This does not look like a ZooKeeper client.';
    return `jute.maxbuffer is ${this.#options.juteMaxBuffer}; to allow larger frames, raise it on clients and servers.`;
  }

  // --- Large requests

  /** A large frame that is still arriving counts as soon as its length is known. */
  #checkLargeFrame(cnxn: ClientCnxn): void {
    if (!this.#large.areLimited) return;
    const announced = cnxn.decoder.announcedLength;
    if (this.#large.exceeds(announced)) this.#rejectLarge(cnxn, announced);
  }

  #rejectLarge(cnxn: ClientCnxn, bytes: number): void {
    this.#observer.largeRequestRejected();
    this.#log.warn(
      this.#turn.now.elapsedMs,
      `${cnxn.name} was closed: its request of ${bytes} bytes would take large requests in flight above largeRequestMaxBytes (${this.#options.largeRequestMaxBytes}).`,
      { event: 'cnxn.large-request', address: cnxn.name, bytes, limitBytes: this.#options.largeRequestMaxBytes },
    );
    // A frame that waited for its turn was reported when it arrived.
    if (cnxn.stage === 'open' && cnxn.receivedMs === this.#turn.now.elapsedMs) this.#turn.front.bytesReceived(cnxn.stream, this.#turn.now);
    this.#cnxns.close(cnxn);
  }

  // --- Input that had to wait

  /** Feeds the connections that had to wait, as far as the budget of this turn allows. */
  feedWaiting(): void {
    this.#chargeJob();
    this.#feedStalled();
  }

  /** The next turn has a whole budget again. */
  renewBudget(): void {
    this.#turnFramesLeft = this.#options.framesPerTurn;
    this.#turnUnits = 0;
    this.#rememberJob();
  }

  /** Long jobs are charged to the connection that asked for them. */
  #chargeJob(): void {
    if (this.#jobCnxn === undefined) return;
    this.#turnQueue.charge(this.#jobCnxn, Math.max(0, this.#turn.front.workUnits - this.#chargedUnits));
    this.#jobCnxn = undefined;
  }

  #rememberJob(): void {
    if (!this.#turn.front.isBusy) return;
    const id = this.#turn.front.busyCnxn;
    this.#jobCnxn = id === undefined ? undefined : this.#cnxns.get(id);
    this.#chargedUnits = this.#turn.front.workUnits;
  }

  #feedStalled(): void {
    if (this.#turnQueue.waitingCount === 0 || this.#turn.front.isHolding) return;
    if (!this.#turn.front.isBusy) this.#unblock();
    while (this.#hasTurnBudget() && !this.#turn.front.isBusy) {
      const cnxn = this.#turnQueue.take();
      if (cnxn === undefined) break;
      if (this.#canFeed(cnxn)) {
        cnxn.isStalled = false;
        // If it has more after its quantum, it waits for another one, in this turn if there is
        // room.
        this.#feed(cnxn, undefined, 0, 0);
      } else {
        this.#turnQueue.block(cnxn);
      }
      this.#readGate.update(cnxn);
    }
    // Connections that wait for the core or for their client to read are checked when something
    // happens to them; those that wait for a quantum need another turn.
    if (this.#turnQueue.waitingCount > 0 && (!this.#hasTurnBudget() || this.#turn.front.isBusy)) this.#turn.needsAnother = true;
  }

  /** Connections whose requests the core accepts again wait for a quantum. */
  #unblock(): void {
    for (const cnxn of this.#turnQueue.takeBlocked()) {
      if (!cnxn.isStalled || cnxn.stage === 'closing') continue;
      if (this.#canTakeInput(cnxn)) this.#turnQueue.push(cnxn);
      else this.#turnQueue.block(cnxn);
    }
  }

  #hasTurnBudget(): boolean {
    return this.#turnFramesLeft > 0 && this.#turnUnits < stepsPerTurn * this.#options.stepUnits;
  }

  // --- The end of the input

  /** The client has sent its end. Frames before the end are processed before the end. */
  ended(cnxn: ClientCnxn): void {
    if (cnxn.takesFrames && cnxn.isStalled) cnxn.hasPeerEnded = true;
    else this.#end(cnxn);
  }

  /** The client has sent its end, and none of its input waits. */
  #end(cnxn: ClientCnxn): void {
    if (cnxn.stage === 'open') this.#observer.cnxnDropped();
    this.#cnxns.close(cnxn);
  }

  /**
   * Feeds what waits of a connection that is gone. All at once: there is no later turn, and none of
   * it has to be answered.
   */
  feedLastFrames(cnxn: ClientCnxn): void {
    try {
      cnxn.decoder.resume((reader) => {
        this.#observer.packetReceived(reader.remaining + 4);
        this.#turn.front.lastFrame(cnxn.stream, reader, this.#turn.now, cnxn.receivedMs);
        return true;
      });
    } catch (error) {
      // Garbage, and its sender is gone.
      if (!(error instanceof ProtocolError)) throw error;
    }
  }
}
