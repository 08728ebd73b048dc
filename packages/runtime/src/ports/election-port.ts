/**
 * The election port: notifications from and to the other servers of the ensemble, over one connection for each pair.
 *
 * Either side may dial. Of the two connections that may come about the one dialled by the larger sid is kept: a server that is dialled by a
 * smaller one closes that connection and dials back, and one that has dialled a larger one closes as soon as it has said who it is. For the
 * smaller server a dial is therefore a request to be dialled.
 *
 * Only the newest message to a server counts, so one at most waits for it. A message may be lost with a connection, and nobody would know;
 * so the last one is said again over each new connection.
 *
 * The core learns when a server has certainly gone (`unreachable`): its connection has closed, and it has been dialled once more and refused.
 * That is why a closed connection is followed by a dial at once; see docs/internals/election.md for what hangs on it.
 *
 * The owner drives it in turns, as the client port: what happens, as it happens, then `endTurn` once. Nothing is dialled or sent before
 * that, and the core is never called from inside a call of its own.
 */
import type { Now } from '@tskeeper/core';
import {
  formatHostPort,
  type HostPort,
  type InitialMessage,
  InitialMessageVersion,
  type Millis,
  type Notification,
  ProtocolError,
  Reader,
  readNotification,
  type Sid,
  writeInitialMessage,
  writeNotification,
  Writer,
} from '@tskeeper/protocol';
import type { Clock } from '../clock.ts';
import type { Logger } from '../logger.ts';
import type { Endpoint, Listener, Network, ReceivedBatch, StreamId } from '../network.ts';
import { bindListener } from './bind-listener.ts';
import { Dialler, type DialOutcome } from './dialler.ts';
import { ElectionCnxn, ElectionLink } from './election-link.ts';
import { HalfOpen } from './half-open.ts';
import { LimitedLog } from './limited-log.ts';
import type { ElectionCore, PeerServer } from './peer-core.ts';
import { SendList } from './send-list.ts';

export interface ElectionPortOptions {
  /** myid. */
  readonly sid: Sid;
  /** zookeeper.cnxTimeout: for one look-up of a name, or for connecting to one address. */
  readonly cnxTimeoutMs: Millis;
  /** zookeeper.quorumCnxnTimeoutMs, or tickTime x syncLimit: for who has dialled to say who it is. */
  readonly initialMessageTimeoutMs: Millis;
  /** multiAddress.enabled: the initial message names all own addresses and not just the first. */
  readonly multiAddressEnabled: boolean;
  /** zookeeper.electionPortBindRetry: how often it is tried to listen; 0 = until it works. */
  readonly bindTriesMax: number;
  /** Connections that have not said who they are. */
  readonly halfOpenMax: number;
  /** Servers that are connected and not in the configuration: observers without a number, servers that are about to be added. */
  readonly strangersMax: number;
}

/** Those of ZooKeeper with a tick of 2 s, where it has any. */
export const electionPortDefaults = {
  cnxTimeoutMs: 5000,
  initialMessageTimeoutMs: 10_000,
  multiAddressEnabled: false,
  bindTriesMax: 3,
  halfOpenMax: 256,
  strangersMax: 256,
} as const satisfies Omit<ElectionPortOptions, 'sid'>;

export interface ElectionPortParts {
  readonly network: Network;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  readonly core: ElectionCore;
  readonly options: ElectionPortOptions;
  readonly logger: Logger;
  /** Runs something as a turn of its own, `endTurn` included. */
  readonly turn: (work: (now: Now) => void) => void;
}

/**
 * A server that was asked to dial back gets this long before it is asked again. Being asked makes it drop the connection it has, so two servers
 * that ask and answer at the same time could go on for ever.
 */
const dialBackMs: Millis = 500;
/** A server whose connections close as soon as they are made is not dialled for each of them at once. */
const redialPauseMs: Millis = 1000;
/** How long the other side may take to notice that we have closed, and what it may still send meanwhile. */
const lingerMs: Millis = 2000;
const discardedBytesMax = 1024 * 1024;
/** Messages of one connection before another gets its turn. */
const messagesPerGo = 64;

export class ElectionPort {
  readonly #network: Network;
  readonly #clock: Pick<Clock, 'now' | 'after'>;
  readonly #core: ElectionCore;
  readonly #options: ElectionPortOptions;
  readonly #log: LimitedLog;
  readonly #dialler: Dialler;

  readonly #listeners = new Set<Listener>();
  readonly #cnxns = new Map<StreamId, ElectionCnxn>();
  readonly #halfOpen: HalfOpen<ElectionCnxn>;
  /** The one that has been closing for longest comes first. */
  readonly #closing = new Set<ElectionCnxn>();
  #stalled: ElectionCnxn[] = [];

  readonly #links = new Map<Sid, ElectionLink>();
  /** Those to be dialled later. */
  readonly #postponed = new Set<ElectionLink>();
  #strangers = 0;
  #dirty: ElectionLink[] = [];
  /** Connections that are over once what they are to say has been sent. */
  #parting: ElectionCnxn[] = [];
  #greeting: Buffer;

  readonly #reader = new Reader();
  readonly #sends = new SendList();
  /** The last notification that was put into bytes: the same one goes to everyone. */
  #encoded: { readonly notification: Notification; readonly frame: Buffer } | undefined;
  #order = 0;
  #nextAnonymous: Sid = -1;
  #feeding: ElectionCnxn | undefined;
  #allowance = 0;
  #now: Now = { elapsedMs: 0, wallMs: 0 };
  #unfinished = false;
  #isShut = false;

  readonly #onFrame = (reader: Reader): boolean => this.#message(reader);

  constructor(parts: ElectionPortParts, servers: readonly PeerServer[]) {
    this.#network = parts.network;
    this.#clock = parts.clock;
    this.#core = parts.core;
    this.#options = parts.options;
    this.#log = new LimitedLog(parts.logger);
    this.#dialler = new Dialler(parts);
    this.#halfOpen = new HalfOpen(parts.options.halfOpenMax, parts.options.initialMessageTimeoutMs);
    this.#greeting = this.#takeServers(servers);
  }

  // --- The configuration

  /**
   * Another configuration is in force. Connections stay: a server that is removed still has to be told things, and goes when it closes. New
   * addresses are used by the next dial.
   */
  setServers(servers: readonly PeerServer[]): void {
    this.#greeting = this.#takeServers(servers);
  }

  #takeServers(servers: readonly PeerServer[]): Buffer {
    for (const link of this.#links.values()) {
      if (!link.isListed) continue;
      link.isListed = false;
      link.addresses = [];
      this.#strangers++;
    }
    let own: readonly HostPort[] = [];
    for (const { sid, electionAddresses } of servers) {
      if (sid === this.#options.sid) {
        own = electionAddresses;
        continue;
      }
      let link = this.#links.get(sid);
      if (link === undefined) this.#links.set(sid, (link = new ElectionLink(sid)));
      else if (!link.isListed) this.#strangers--;
      link.isListed = true;
      link.addresses = electionAddresses;
    }
    for (const link of this.#links.values()) this.#maybeForget(link);
    const { oneAddress, addresses } = InitialMessageVersion;
    const { sid, multiAddressEnabled } = this.#options;
    const writer = new Writer(64);
    if (multiAddressEnabled) writeInitialMessage(writer, { sid, protocolVersion: addresses, addresses: own });
    else writeInitialMessage(writer, { sid, protocolVersion: oneAddress, addresses: own.slice(0, 1) });
    return Buffer.from(writer.written());
  }

  // --- Listening

  /**
   * Listens on one of the own election addresses; a wildcard host stands for all addresses of the machine. Tries again as `bindTriesMax` says,
   * a second apart, and for as long as a name does not resolve. Rejects with a sentence for the operator, who has to end the process: a
   * server that cannot be dialled must not vote.
   */
  async listen(address: HostPort): Promise<Listener | undefined> {
    const listener = await bindListener(this.#network, this.#clock, this.#log, {
      what: 'election port',
      address,
      triesMax: this.#options.bindTriesMax,
      isOver: () => this.#isShut,
    });
    if (listener !== undefined) this.#listeners.add(listener);
    return listener;
  }

  owns(listener: Listener): boolean {
    return this.#listeners.has(listener);
  }

  ownsStream(stream: StreamId): boolean {
    return this.#cnxns.has(stream) || this.#dialler.ownsStream(stream);
  }

  /** Dials and accepts nobody from now on, and closes the connections there are; what was to be said over them is still sent. */
  async shutDown(now: Now): Promise<void> {
    this.#now = now;
    this.#isShut = true;
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    this.#dialler.cancelAll();
    this.#postponed.clear();
    for (const link of this.#links.values()) link.dial = link.dialBack = undefined;
    for (const cnxn of this.#cnxns.values()) {
      if (cnxn.link !== undefined) this.#flushLink(cnxn.link);
      this.#close(cnxn);
    }
    await Promise.all(listeners.map((listener) => listener.close()));
  }

  // --- What the network reports

  accepted(stream: StreamId, listener: Listener, remote: Endpoint, now: Now): void {
    this.#now = now;
    if (!this.#listeners.has(listener)) {
      this.#network.reset(stream);
      return;
    }
    const cnxn = this.#add(stream, remote);
    const leaving = this.#halfOpen.add(cnxn);
    if (leaving === undefined) return;
    this.#log.warn(
      'flood',
      now.elapsedMs,
      `${nameOf(leaving)} was closed: too many connections to the election port do not say who they are.`,
    );
    this.#drop(leaving);
  }

  connected(stream: StreamId, now: Now): void {
    this.#now = now;
    this.#dialler.connected(stream, now);
  }

  /** Takes the connections of this port out of the batch and leaves the others alone. */
  received(batch: ReceivedBatch, now: Now): void {
    this.#now = now;
    for (let index = 0; index < batch.count; index++) {
      const cnxn = this.#cnxns.get(batch.streams[index]!);
      if (cnxn !== undefined) this.#receive(cnxn, batch.buffers[index]!, batch.starts[index]!, batch.ends[index]!);
    }
  }

  drained(stream: StreamId, now: Now): void {
    this.#now = now;
    const cnxn = this.#cnxns.get(stream);
    if (cnxn === undefined || !cnxn.isHeld) return;
    cnxn.isHeld = false;
    if (cnxn.stage === 'closing') this.#parting.push(cnxn);
    else if (cnxn.link !== undefined) this.#markDirty(cnxn.link);
  }

  ended(stream: StreamId, now: Now): void {
    this.#now = now;
    const cnxn = this.#cnxns.get(stream);
    if (cnxn === undefined || cnxn.stage === 'closing') return;
    if (cnxn.isStalled) cnxn.hasEnded = true;
    else this.#close(cnxn);
  }

  closed(stream: StreamId, error: string | undefined, now: Now): void {
    this.#now = now;
    const cnxn = this.#cnxns.get(stream);
    if (cnxn === undefined) {
      this.#dialler.closed(stream, error, now);
      return;
    }
    this.#leave(cnxn);
    cnxn.stage = 'closing';
    this.#closing.delete(cnxn);
    this.#cnxns.delete(stream);
    cnxn.cutter.close();
  }

  // --- What the core asks for

  /** As `ElectionOut.notify`. */
  notify(to: Sid, notification: Notification): void {
    const link = this.#links.get(to);
    if (link === undefined) {
      if (to !== this.#options.sid)
        this.#log.warn('stranger', this.#now.elapsedMs, `There is no way to reach server ${to}: it is not in the configuration.`);
      return;
    }
    if (this.#encoded?.notification !== notification) this.#encoded = { notification, frame: frameOf(notification) };
    link.waiting = link.last = this.#encoded.frame;
    link.dialDueMs = -Infinity;
    this.#markDirty(link);
  }

  // --- Time

  /** When to call `wake` if nothing else happens. */
  deadline(): Millis | undefined {
    let due = Math.min(this.#dialler.deadline() ?? Infinity, this.#halfOpen.deadline() ?? Infinity);
    for (const first of this.#closing) {
      due = Math.min(due, first.closingMs + lingerMs);
      break;
    }
    for (const { dialDueMs } of this.#postponed) due = Math.min(due, dialDueMs);
    return due === Infinity ? undefined : due;
  }

  /** More can be done at once: the owner should hold another turn soon. */
  get unfinished(): boolean {
    return this.#unfinished;
  }

  /** Gives up on those whose time is over. */
  wake(now: Now): void {
    this.#now = now;
    this.#dialler.wake(now);
    for (const link of this.#postponed) if (link.dialDueMs <= now.elapsedMs) this.#markDirty(link);
    for (const cnxn of this.#halfOpen.takeDue(now.elapsedMs)) {
      this.#log.warn(
        'silent',
        now.elapsedMs,
        `${nameOf(cnxn)} did not say who it is within ${this.#options.initialMessageTimeoutMs} ms, and was closed.`,
      );
      this.#drop(cnxn);
    }
    for (const cnxn of this.#closing) {
      if (now.elapsedMs - cnxn.closingMs < lingerMs) break;
      this.#drop(cnxn);
    }
  }

  // --- The end of a turn

  /** Hears those who had to wait, dials whom the turn has made necessary to dial, and hands all output to the network at once. */
  endTurn(now: Now): void {
    this.#now = now;
    this.#unfinished = false;
    this.#feedStalled();
    const dirty = this.#dirty;
    this.#dirty = [];
    for (const link of dirty) {
      link.isDirty = false;
      if (link.cnxn !== undefined) this.#flushLink(link);
      else if (link.dialDueMs < Infinity) this.#maybeDial(link);
      this.#maybeForget(link);
    }
    this.#send();
    this.#sendEnds();
  }

  /** One write for each stream. */
  #flushLink({ cnxn }: ElectionLink): void {
    if (cnxn === undefined || cnxn.isHeld) return;
    const { greeting, link } = cnxn;
    const waiting = link!.waiting;
    cnxn.greeting = link!.waiting = undefined;
    if (greeting !== undefined && waiting !== undefined) this.#sends.add(cnxn.stream, Buffer.concat([greeting, waiting]));
    else if (greeting !== undefined || waiting !== undefined) this.#sends.add(cnxn.stream, (greeting ?? waiting)!);
  }

  #send(): void {
    this.#sends.send(this.#network, (stream) => {
      const cnxn = this.#cnxns.get(stream);
      if (cnxn !== undefined) cnxn.isHeld = true;
    });
  }

  #sendEnds(): void {
    const parting = this.#parting;
    this.#parting = [];
    for (const cnxn of parting) {
      if (cnxn.isHeld || cnxn.endSent || !this.#closing.has(cnxn)) continue;
      cnxn.endSent = true;
      this.#network.end(cnxn.stream);
    }
  }

  #markDirty(link: ElectionLink): void {
    if (link.isDirty) return;
    link.isDirty = true;
    this.#dirty.push(link);
  }

  // --- Connections

  #add(stream: StreamId, remote: Endpoint): ElectionCnxn {
    const cnxn = new ElectionCnxn(stream, remote, this.#now.elapsedMs, this.#order++, this.#reader);
    this.#cnxns.set(stream, cnxn);
    return cnxn;
  }

  #receive(cnxn: ElectionCnxn, bytes: Buffer, start: number, end: number): void {
    let at = start;
    if (cnxn.stage === 'initial') {
      try {
        at = cnxn.collector.feed(bytes, start, end);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        this.#closeMalformed(cnxn, error);
        return;
      }
      const { message } = cnxn.collector;
      if (message === undefined) return;
      this.#halfOpen.delete(cnxn);
      this.#introduced(cnxn, message);
    }
    if (cnxn.stage === 'closing') {
      // Read on, since closing a socket with unread input makes the kernel reset it, and what we said last could be lost. Not without end.
      cnxn.discardedBytes += end - at;
      if (cnxn.discardedBytes > discardedBytesMax) this.#drop(cnxn);
      return;
    }
    this.#feed(cnxn, bytes, at, end);
  }

  /** Whoever dialled has said who it is. */
  #introduced(cnxn: ElectionCnxn, { sid, addresses }: InitialMessage): void {
    const { elapsedMs } = this.#now;
    const own = this.#options.sid;
    if (sid === own || (sid !== undefined && sid < 0)) {
      const claim = sid === own ? 'is that of this server: two servers have one myid, or one dials itself' : 'is none';
      this.#log.warn('sid', elapsedMs, `${nameOf(cnxn)} was closed: it says that its number is ${sid}, which ${claim}.`);
      this.#close(cnxn);
      return;
    }
    const link = this.#linkOf(sid ?? this.#nextAnonymous);
    if (link === undefined) {
      this.#log.warn(
        'strangers',
        elapsedMs,
        `${nameOf(cnxn)} was closed: ${this.#strangers} servers outside the configuration are connected already.`,
      );
      this.#close(cnxn);
    } else if (sid === undefined) {
      // An observer without a number counts as larger than anyone, so that it keeps what it has dialled.
      this.#nextAnonymous--;
      this.#keep(link, cnxn);
    } else if (sid > own) {
      this.#keepAccepted(link, cnxn);
    } else {
      this.#dialBack(link, cnxn, addresses);
    }
  }

  /** A smaller server has dialled: it asks to be dialled, and believes that it has no connection with us. */
  #dialBack(link: ElectionLink, cnxn: ElectionCnxn, addresses: readonly HostPort[]): void {
    this.#close(cnxn);
    const old = link.cnxn;
    if (old !== undefined) {
      this.#cutLink(link);
      this.#close(old);
    }
    link.dialBack = [...addresses, ...link.addresses.filter((address) => !addresses.some((other) => isSame(address, other)))];
    if (link.dialBack.length === 0) {
      link.dialBack = undefined;
      this.#log.warn('stranger', this.#now.elapsedMs, `Server ${link.sid} at ${nameOf(cnxn)} wants to be dialled, and does not say where.`);
    }
    link.dialDueMs = -Infinity;
    this.#markDirty(link);
  }

  #keepAccepted(link: ElectionLink, cnxn: ElectionCnxn): void {
    const { cnxn: old } = link;
    // It was dialled before the one we have: a late message of a connection that its owner has given up.
    if (old !== undefined && old.order > cnxn.order) {
      this.#close(cnxn);
      return;
    }
    // The dial under way would only make the other side drop this connection and dial again.
    if (link.dial !== undefined) this.#dialler.cancel(link.dial);
    link.dial = undefined;
    this.#keep(link, cnxn);
  }

  /** This is the connection with that server from now on. */
  #keep(link: ElectionLink, cnxn: ElectionCnxn): void {
    const old = link.cnxn;
    cnxn.stage = 'open';
    cnxn.link = link;
    link.cnxn = cnxn;
    link.dialBack = undefined;
    link.dialDueMs = Infinity;
    this.#postponed.delete(link);
    link.isUnreachableTold = true;
    link.lastFailure = '';
    link.waiting = link.last;
    if (old !== undefined) {
      old.link = undefined;
      this.#close(old);
    }
    this.#markDirty(link);
    this.#core.reachable(link.sid);
  }

  /** The server's link; a new one for a server that is not in the configuration, unless there are too many of those. */
  #linkOf(sid: Sid): ElectionLink | undefined {
    let link = this.#links.get(sid);
    if (link !== undefined || this.#strangers >= this.#options.strangersMax) return link;
    this.#strangers++;
    this.#links.set(sid, (link = new ElectionLink(sid)));
    return link;
  }

  /** Nothing leads to a server outside the configuration but the connection it has made. */
  #maybeForget(link: ElectionLink): void {
    if (link.isListed || link.cnxn !== undefined || link.dial !== undefined || link.isDirty) return;
    if (this.#links.get(link.sid) !== link) return;
    this.#postponed.delete(link);
    this.#links.delete(link.sid);
    this.#strangers--;
  }

  // --- Dialling

  #maybeDial(link: ElectionLink): void {
    const { elapsedMs } = this.#now;
    if (this.#isShut || link.dial !== undefined) {
      link.dialDueMs = Infinity;
      return;
    }
    if (link.sid > this.#options.sid) link.dialDueMs = Math.max(link.dialDueMs, link.askedMs + dialBackMs);
    if (link.dialDueMs > elapsedMs) {
      this.#postponed.add(link);
      return;
    }
    link.dialDueMs = Infinity;
    this.#postponed.delete(link);
    const hosts = link.dialBack ?? link.addresses;
    link.dialBack = undefined;
    if (hosts.length === 0) return;
    const limits = { attemptMs: this.#options.cnxTimeoutMs, totalMs: Infinity };
    link.dial = this.#dialler.dial(hosts, limits, this.#now, (outcome, now) => {
      this.#now = now;
      link.dial = undefined;
      if (outcome.kind === 'open') this.#dialled(link, outcome);
      else this.#dialFailed(link, outcome);
    });
  }

  #dialled(link: ElectionLink, { stream, remote }: Extract<DialOutcome, { kind: 'open' }>): void {
    const cnxn = this.#add(stream, remote);
    link.lastFailure = '';
    if (link.sid < this.#options.sid) {
      cnxn.greeting = this.#greeting;
      this.#keep(link, cnxn);
    } else {
      link.askedMs = this.#now.elapsedMs;
      this.#sends.add(stream, this.#greeting);
      this.#close(cnxn);
    }
  }

  #dialFailed(link: ElectionLink, { refused, reason }: Extract<DialOutcome, { kind: 'failed' }>): void {
    if (reason !== link.lastFailure) this.#log.warn('dial', this.#now.elapsedMs, `Server ${link.sid} cannot be reached: ${reason}.`);
    link.lastFailure = reason;
    // A dial and a connection are never there together, so this one was begun since the last connection closed.
    if (refused && link.isListed && !link.isUnreachableTold) {
      link.isUnreachableTold = true;
      this.#core.unreachable(link.sid, this.#now);
    }
    if (link.dialBack !== undefined) link.dialDueMs = -Infinity;
    this.#markDirty(link);
  }

  // --- Going away

  /** The connection is no longer the one with that server. */
  #cutLink(link: ElectionLink): void {
    link.cnxn!.link = undefined;
    link.cnxn = undefined;
    link.isUnreachableTold = false;
  }

  /** Out of everything that is about living connections. */
  #leave(cnxn: ElectionCnxn): void {
    this.#halfOpen.delete(cnxn);
    const { link } = cnxn;
    if (link === undefined) return;
    this.#cutLink(link);
    link.redialMs = Math.max(this.#now.elapsedMs, link.redialMs + redialPauseMs);
    link.dialDueMs = Math.min(link.dialDueMs, link.redialMs);
    this.#markDirty(link);
  }

  /** No more input; what is to be sent goes out, then the end. */
  #close(cnxn: ElectionCnxn): void {
    if (cnxn.stage === 'closing') return;
    this.#leave(cnxn);
    cnxn.stage = 'closing';
    cnxn.closingMs = this.#now.elapsedMs;
    cnxn.cutter.close();
    this.#closing.add(cnxn);
    this.#parting.push(cnxn);
    if (!cnxn.isStalled) return;
    cnxn.isStalled = false;
    this.#network.resume(cnxn.stream);
  }

  /** At once. `closed` follows. */
  #drop(cnxn: ElectionCnxn): void {
    this.#close(cnxn);
    this.#closing.delete(cnxn);
    this.#network.reset(cnxn.stream);
  }

  #closeMalformed(cnxn: ElectionCnxn, error: ProtocolError): void {
    const who = cnxn.link === undefined ? nameOf(cnxn) : `Server ${cnxn.link.sid} at ${nameOf(cnxn)}`;
    this.#log.warn('malformed', this.#now.elapsedMs, `${who} was closed on the election port: ${error.message}.`);
    this.#close(cnxn);
  }

  // --- Messages

  /** `bytes` undefined: those that were kept. */
  #feed(cnxn: ElectionCnxn, bytes: Buffer | undefined, start = 0, end = 0): void {
    this.#feeding = cnxn;
    this.#allowance = messagesPerGo;
    let wantsMore = true;
    try {
      wantsMore = bytes === undefined ? cnxn.cutter.resume(this.#onFrame) : cnxn.cutter.feed(bytes, start, end, this.#onFrame);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#closeMalformed(cnxn, error);
    } finally {
      this.#feeding = undefined;
    }
    if (cnxn.stage === 'closing') return;
    if (!wantsMore) {
      this.#stall(cnxn);
    } else if (cnxn.hasEnded) {
      this.#close(cnxn);
    }
  }

  #stall(cnxn: ElectionCnxn): void {
    this.#stalled.push(cnxn);
    if (cnxn.isStalled) return;
    cnxn.isStalled = true;
    this.#network.pause(cnxn.stream);
  }

  #feedStalled(): void {
    const stalled = this.#stalled;
    if (stalled.length === 0) return;
    this.#stalled = [];
    for (const cnxn of new Set(stalled)) {
      if (!cnxn.isStalled || cnxn.stage === 'closing') continue;
      this.#feed(cnxn, undefined);
      if (cnxn.cutter.stopped || !cnxn.isStalled) continue;
      cnxn.isStalled = false;
      this.#network.resume(cnxn.stream);
    }
    if (this.#stalled.length > 0) this.#unfinished = true;
  }

  /** The frame cutter's consumer. Returns whether the connection may hand over another one. */
  #message(reader: Reader): boolean {
    const cnxn = this.#feeding!;
    const { sid } = cnxn.link!;
    let notification: Notification;
    try {
      notification = readNotification(reader);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      // It costs the message and nothing else: whoever is thrown out for one he does not understand himself never votes again (ZOOKEEPER-3769).
      this.#log.warn(
        'notification',
        this.#now.elapsedMs,
        `A notification of server ${sid} at ${nameOf(cnxn)} was dropped: ${error.message}.`,
      );
      return --this.#allowance > 0;
    }
    this.#core.notified(sid, notification, this.#now);
    return --this.#allowance > 0 && cnxn.stage === 'open';
  }
}

function frameOf(notification: Notification): Buffer {
  const writer = new Writer(256);
  const start = writer.beginFrame();
  writeNotification(writer, notification);
  writer.endFrame(start);
  return Buffer.from(writer.written());
}

function isSame(a: HostPort, b: HostPort): boolean {
  return a.host === b.host && a.port === b.port;
}

function nameOf({ remote }: ElectionCnxn): string {
  return formatHostPort({ host: remote.address, port: remote.port });
}
