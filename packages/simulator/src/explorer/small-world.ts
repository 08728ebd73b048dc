/**
 * A few production servers in an ensemble, from `Peer` down to every byte between them, where
 * nothing happens by itself: each state has a list of what can happen next, and the explorer
 * chooses. A state cannot be copied; it is reached again by the same choices.
 *
 * Each server has a clock of its own that moves only by a choice: no rule of the protocol may rely
 * on how long anything takes. Streams keep their order in each direction. A newer notification
 * replaces one that has not been delivered. A disk answers its log in order and its epoch files in
 * order, independently of each other.
 */
import { epochOf, type Millis, type Notification, notificationVersion, type Sid, type Zxid } from '@tskeeper/protocol';
import type { Fingerprint, QuorumVerifier } from '@tskeeper/core/internal';
import { type Choice, encodeChoice, choiceText, type DecodedChoice, decodeChoice } from './choice.ts';
import { Invariants, Violation } from './invariants.ts';
import type { MarkName } from './marks.ts';
import { clientRequests, SmallClient } from './small-client.ts';
import type { Scope } from './scope.ts';
import { isPut } from './txn-names.ts';
import { isQuorum, type SmallEnsemble, smallEnsemble } from './small-ensemble.ts';
import { configText, type DiskState, SmallServer, type StoredTxn, type SmallServerEnvironment } from './small-server.ts';

/**
 * A server that has looked for long without success asks again after a minute; one without a leader
 * after the second time finds none.
 */
const electionMaxMs = 125_000;
/**
 * If all look: the time for which others and the server itself may avoid one server, plus an
 * election. No server has to ask again.
 */
const settleMaxMs = 5000;
/** More rounds than three servers need. */
const exchangeRoundsMax = 20;
/** A server that is not looking repeats an answer to the same question only after this time. */
const repeatAnswerMs = 100;
/** Server ids are lower. */
const sidLimit = 16;

/**
 * The initial state of a world other than with empty disks: what a run left on them, with the
 * history of how it came about.
 */
export interface InitialState {
  readonly disks: readonly DiskState[];
  readonly invariants: Invariants;
  readonly writes: number;
}

export class SmallWorld implements SmallServerEnvironment {
  readonly scope: Scope;
  readonly ensemble: SmallEnsemble;
  readonly invariants: Invariants;
  readonly servers: readonly SmallServer[];
  /** By sender and receiver. */
  readonly #notifications = new Map<number, Notification>();
  /** The last notification each sent, which is sent again over a new connection. */
  readonly #lastSent = new Map<number, Notification>();
  /** By owner and peer: a connection for notifications, as far as the owner knows. */
  readonly #electionCnxns = new Set<number>();
  /** By mask of a pair: whether a connection attempt is refused or gets no answer. */
  readonly #cuts = new Map<number, 'unanswered' | 'refused'>();
  /** Marks that were hit since the last call of `takeHits`. */
  #hits = new Set<MarkName>();
  /** Who has proposed an epoch; only for marks. */
  readonly #proposers = new Map<number, Sid>();
  /** The persistent client. */
  readonly client: SmallClient;
  writes = 0;
  readonly #initialWrites: number;
  #clientSteps = 0;
  #crashes = 0;
  #cutsMade = 0;
  #wakes = 0;
  /** Exchanges of notifications after which as many servers look as before. */
  #fruitlessElections = 0;
  #forcedElections = 0;
  #faultsStopped = false;
  readonly #proposed = new Map<Zxid, StoredTxn>();
  /** The txn before each txn in its leader's log. */
  readonly #predecessors = new Map<Zxid, StoredTxn | undefined>();

  constructor(scope: Scope, initialState?: InitialState) {
    if (scope.servers < 1 || scope.servers > 3)
      throw new Error('the explorer supports one to three servers, since a mask of them has three bits');
    this.scope = scope;
    const sids = Array.from({ length: scope.servers }, (_, at) => at + 1);
    this.ensemble = smallEnsemble(scope.ensemble, scope.servers);
    this.invariants = initialState?.invariants.copy() ?? new Invariants((some) => isQuorum(this.ensemble, some));
    this.writes = this.#initialWrites = initialState?.writes ?? 0;
    this.client = new SmallClient(
      () => this.invariants,
      (mark) => this.hit(mark),
    );
    this.servers = sids.map((sid, at) => new SmallServer(this, sid, initialState?.disks[at]));
    for (const server of this.servers) server.start();
  }

  /** The content of the disks, for another world to begin with. */
  captureState(): InitialState {
    return { disks: this.servers.map(({ disk }) => disk), invariants: this.invariants.copy(), writes: this.writes };
  }

  get verifier(): QuorumVerifier {
    return this.ensemble.verifier;
  }

  isQuorum(servers: readonly SmallServer[]): boolean {
    return isQuorum(
      this.ensemble,
      servers.map(({ sid }) => sid),
    );
  }

  isObserver(sid: Sid): boolean {
    return this.ensemble.observers.includes(sid);
  }

  hit(mark: MarkName): void {
    this.#hits.add(mark);
  }

  takeHits(): Iterable<MarkName> {
    const hits = this.#hits;
    if (hits.size > 0) this.#hits = new Set();
    return hits;
  }

  epochProposed(sid: Sid, epoch: number): void {
    const known = this.#proposers.get(epoch);
    if (known === undefined) this.#proposers.set(epoch, sid);
    else if (known !== sid) this.hit('epoch proposed twice');
  }

  hasUnreachablePeer(sid: Sid): boolean {
    return this.servers.some((other) => other.sid !== sid && other.peer !== undefined && this.#cutOf(sid, other.sid) === 'unanswered');
  }

  proposed(txn: StoredTxn, before: StoredTxn | undefined): void {
    this.#predecessors.set(txn.zxid, before);
  }

  /**
   * Only the last put shows in a state: those before it follow from the order in which they were
   * proposed.
   */
  historyOf(zxid: Zxid, state: readonly string[]): StoredTxn[] {
    for (const { logged } of this.servers) for (const txn of logged) this.#proposed.set(txn.zxid, txn);
    const seen = [...this.#proposed.values()].filter(({ name }) => state.includes(name)).sort((a, b) => a.zxid - b.zxid);
    if (!state.some(isPut)) return seen;
    const history: StoredTxn[] = [];
    for (let txn = this.#proposed.get(zxid) ?? seen.at(-1); txn !== undefined; txn = this.#predecessors.get(txn.zxid)) history.unshift(txn);
    return history;
  }

  notify(from: Sid, to: Sid, notification: Notification): void {
    this.#notifications.set(directionOf(from, to), notification);
    if (this.scope.elections === 'each') this.#lastSent.set(directionOf(from, to), notification);
  }

  // ---- choices

  /** What can happen next, in a fixed order. */
  choices(): Choice[] {
    const found: Choice[] = [];
    const { scope, servers } = this;
    for (const server of servers) if (server.peer !== undefined) this.#choicesOf(server, found);
    this.#electionChoices(found);
    for (const { sid, peer } of servers) if (peer === undefined) found.push(encodeChoice('start', sid));
    for (const mask of this.#cuts.keys()) found.push(this.#healChoice(mask));
    if (this.writes - this.#initialWrites < scope.txns) {
      for (const { sid, peer } of servers) if (peer?.server !== undefined) found.push(encodeChoice('write', sid));
    }
    if (this.#clientSteps < scope.clientSteps) this.#clientChoices(found);
    if (this.#crashes < scope.crashes) {
      for (const { sid, peer, logQueue, fileQueue } of servers) {
        if (peer === undefined) continue;
        // A read changes nothing on disk.
        const stored = logQueue.filter(({ kind }) => kind !== 'read').length;
        for (let log = 0; log <= stored; log++) {
          for (let file = 0; file <= fileQueue.length; file++) found.push(encodeChoice('crash', sid, log, file));
        }
      }
    }
    if (this.#cutsMade < scope.cuts) {
      for (let a = 1; a < servers.length; a++) {
        for (let b = a + 1; b <= servers.length; b++)
          if (!this.#isCut(a, b)) found.push(encodeChoice('cut', a, b), encodeChoice('refuse', a, b));
      }
    }
    return found;
  }

  #clientChoices(found: Choice[]): void {
    const { client } = this;
    const mayWrite = this.writes - this.#initialWrites < this.scope.txns;
    if (client.isIdle)
      for (const kind of clientRequests.keys()) if (kind > 0 || mayWrite) found.push(encodeChoice('request', client.connectedTo!, kind));
    for (const { sid, peer } of this.servers) {
      if (peer?.server !== undefined && client.connectedTo !== sid && (client.hasSession || mayWrite))
        found.push(encodeChoice('connect', sid));
    }
  }

  #choicesOf(server: SmallServer, found: Choice[]): void {
    const { sid, streamEnds, logQueue, fileQueue, dialing, clockMs } = server;
    const peer = server.peer!;
    for (const { channel, inbox, remoteEnd, from } of streamEnds.values()) {
      if (this.#cutOf(from, sid) === 'unanswered') continue;
      if (inbox.length > 0 || remoteEnd === undefined) found.push(encodeChoice('packet', sid, channel));
      if (inbox.length > 0 && remoteEnd === undefined) found.push(encodeChoice('break', sid, channel));
    }
    if (logQueue.length > 0) found.push(encodeChoice('log', sid));
    if (fileQueue.length > 0) found.push(encodeChoice('file', sid));
    if (dialing !== undefined) found.push(encodeChoice('dial', sid));
    const deadline = peer.deadline();
    if (deadline === undefined) return;
    // Work that is due at once takes no time.
    if (deadline <= clockMs) {
      found.push(encodeChoice('wake', sid));
      return;
    }
    if (this.#wakes >= this.scope.wakes) return;
    if (peer.role === 'leading') found.push(encodeChoice('sleep', sid));
    else if (peer.role === 'learning') found.push(encodeChoice('wake', sid));
    else if (!server.isLooking) found.push(encodeChoice('wake', sid), encodeChoice('sleep', sid));
    else if (this.scope.elections === 'each') found.push(encodeChoice('wake', sid));
  }

  #electionChoices(found: Choice[]): void {
    const { scope, servers } = this;
    switch (this.#faultsStopped ? 'each' : scope.elections) {
      case 'together':
        for (let mask = 1; mask < 1 << servers.length; mask++) if (this.#mayElect(mask)) found.push(encodeChoice('elect', mask));
        return;
      case 'each':
        this.#notificationChoices(found);
        return;
      case 'any':
        if (this.#forcedElections >= scope.forcedElections || servers.length < 3) return;
        for (const { sid, isLooking, announcedLooking } of servers) {
          if (isLooking && announcedLooking) for (const other of servers) found.push(encodeChoice('finalize', sid, other.sid));
        }
        return;
      default:
        return;
    }
  }

  /**
   * What servers can receive from others: notifications, and the news that one refuses connections.
   */
  #notificationChoices(found: Choice[]): void {
    for (const way of ascending(this.#notifications.keys())) {
      const { from, to } = sidsOf(way);
      if (this.#refuses(from, to) ? this.#electionCnxns.has(way) : !this.#isCut(from, to)) found.push(encodeChoice('notify', from, to));
    }
    for (const way of ascending(this.#electionCnxns)) {
      const { from, to } = sidsOf(way);
      if (this.servers[from - 1]!.peer !== undefined && this.#refuses(from, to)) found.push(encodeChoice('refusal', from, to));
    }
  }

  /** The host answers, but nothing listens there. */
  #refuses(from: Sid, to: Sid): boolean {
    const cut = this.#cutOf(from, to);
    return cut === 'refused' || (cut === undefined && this.servers[to - 1]!.peer === undefined);
  }

  #healChoice(mask: number): Choice {
    const [a, b] = [1, 2, 3].filter((sid) => (mask & (1 << (sid - 1))) !== 0);
    return encodeChoice('heal', a!, b);
  }

  #pairMask(a: Sid, b: Sid): number {
    return (1 << (a - 1)) | (1 << (b - 1));
  }

  #cutOf(a: Sid, b: Sid): 'unanswered' | 'refused' | undefined {
    return this.#cuts.get(this.#pairMask(a, b));
  }

  #isCut(a: Sid, b: Sid): boolean {
    return this.#cutOf(a, b) !== undefined;
  }

  #members(mask: number): SmallServer[] {
    return this.servers.filter(({ sid }) => (mask & (1 << (sid - 1))) !== 0);
  }

  /** A quorum whose members reach each other and of which one looks for a leader. */
  #mayElect(mask: number): boolean {
    const members = this.#members(mask);
    if (!this.isQuorum(members)) return false;
    if (members.some(({ peer }) => peer === undefined) || !members.some(({ isLooking }) => isLooking)) return false;
    // Members that are not looking may be unable to help the others, who would ask again for ever.
    if (this.#fruitlessElections >= this.scope.wakes && !members.every(({ isLooking }) => isLooking)) return false;
    for (const cut of this.#cuts.keys()) if ((cut & mask) === cut) return false;
    return true;
  }

  // ---- what happens

  /** Makes a choice, which must be one of `choices`. Throws a `Violation`. */
  apply(code: Choice): void {
    try {
      this.#execute(decodeChoice(code));
      this.#check();
    } catch (error) {
      if (error instanceof Violation) throw error;
      throw new Violation('NoProtocolError', `${choiceText(code)}: ${error instanceof Error ? error.stack : String(error)}`);
    }
  }

  #check(): void {
    const { invariants } = this;
    invariants.check(this.servers.map((server) => server.view()));
    const { committed } = invariants;
    if (this.scope.ensemble === 'groups') this.#markGroupAlone();
    if (committed.length > 1 && epochOf(committed[0]!.zxid) !== epochOf(committed.at(-1)!.zxid)) this.hit('commits in two epochs');
  }

  #markGroupAlone(): void {
    const [one, other, third] = this.servers.map(({ durable }) => durable.at(-1)?.zxid ?? 0);
    const last = this.invariants.committed.at(-1)?.zxid ?? 0;
    if (Math.min(one!, other!) > Math.max(last, third!)) this.hit('one group is no quorum');
  }

  #execute({ kind, a, b, c }: DecodedChoice): void {
    const server = this.servers[a - 1]!;
    switch (kind) {
      case 'notify':
        return this.#deliver(a, b);
      case 'packet':
        return server.receive(server.streamEnds.get(b)!);
      case 'break': {
        const end = server.streamEnds.get(b)!;
        end.inbox.length = 0;
        return server.receive(end);
      }
      case 'dial':
        return this.#dial(server);
      case 'log':
        return server.logDone();
      case 'file':
        return server.fileDone();
      case 'wake':
        if (server.peer!.deadline()! > server.clockMs) this.#wakes++;
        return server.wake();
      case 'sleep':
        this.#wakes++;
        return server.pauseLong();
      case 'write':
        return server.openSession(++this.writes);
      case 'connect': {
        this.#clientSteps++;
        if (!this.client.hasSession) this.writes++;
        for (const each of this.servers) if (each.sid === this.client.connectedTo) each.clientDisconnects();
        return server.clientConnects(this.#clientSteps);
      }
      case 'request':
        this.#clientSteps++;
        if (clientRequests[b] === 'put') this.writes++;
        return server.clientRequests(clientRequests[b]!);
      case 'crash':
        return this.#crash(server, b, c);
      case 'start':
        return server.start();
      case 'cut':
        this.#cutsMade++;
        this.#cuts.set(this.#pairMask(a, b), 'unanswered');
        return;
      case 'refuse':
        return this.#refuse(server, this.servers[b - 1]!);
      case 'refusal':
        this.#electionCnxns.delete(directionOf(a, b));
        return server.unreachable(b);
      case 'finalize':
        this.#forcedElections++;
        return this.#forceElection(server, b);
      case 'heal':
        this.#cuts.delete(this.#pairMask(a, b));
        return;
      case 'elect':
        return this.#elect(a);
      default:
        kind satisfies never;
    }
  }

  #deliver(from: Sid, to: Sid): void {
    const way = directionOf(from, to);
    const notification = this.#notifications.get(way)!;
    this.#notifications.delete(way);
    const [sender, receiver] = [this.servers[from - 1]!, this.servers[to - 1]!];
    if (this.#refuses(from, to)) {
      this.#electionCnxns.delete(way);
      if (sender.peer !== undefined) sender.unreachable(to);
      return;
    }
    this.#connectForElection(from, to);
    if (receiver.peer !== undefined) receiver.notified(from, notification);
  }

  /** Makes a connection if there is none: the last notification of each is sent again over it. */
  #connectForElection(from: Sid, to: Sid): void {
    const [there, back] = [directionOf(from, to), directionOf(to, from)];
    if (this.#electionCnxns.has(there) && this.#electionCnxns.has(back)) return;
    this.#electionCnxns.add(there);
    this.#electionCnxns.add(back);
    const said = this.#lastSent.get(back);
    if (said !== undefined && !this.#notifications.has(back)) this.#notifications.set(back, said);
  }

  /** From now on each refuses the other, and their connections break. */
  #refuse(one: SmallServer, other: SmallServer): void {
    this.#cutsMade++;
    this.#cuts.set(this.#pairMask(one.sid, other.sid), 'refused');
    for (const end of [...one.streamEnds.values(), ...other.streamEnds.values()]) {
      if ((end.server === one ? other : one).sid === end.from) end.remoteEnd = undefined;
    }
  }

  /**
   * Makes a server believe that an election was won by another, or by itself. The others are made
   * to say so, whatever they think: everything that follows must be safe whoever leads.
   */
  #forceElection(server: SmallServer, leader: Sid): void {
    const others = this.servers.filter((each) => each !== server);
    if (leader !== server.sid) {
      const vote = { leader, zxid: 0, electionEpoch: 1, peerEpoch: 0, version: notificationVersion, config: configText };
      const third = others.find(({ sid }) => sid !== leader)!;
      server.notified(third.sid, { ...vote, state: 'following' });
      server.notified(leader, { ...vote, state: 'leading' });
      return;
    }
    const [other] = others;
    server.notified(other!.sid, { ...this.#notifications.get(directionOf(server.sid, other!.sid))!, state: 'looking' });
    if (server.isLooking) server.wake();
  }

  #dial(server: SmallServer): void {
    const target = this.servers[server.dialing! - 1]!;
    server.dialing = undefined;
    const isReached = !this.#isCut(server.sid, target.sid);
    if (isReached && target.isLooking) this.hit('refused by a leader not yet leading');
    // Only a server that leads accepts learners.
    if (!isReached || target.peer?.role !== 'leading') {
      server.dialFailed(isReached ? 'refused' : 'unanswered');
      return;
    }
    const here = server.openStreamEnd(target.sid);
    const there = target.openStreamEnd(server.sid);
    here.remoteEnd = there;
    there.remoteEnd = here;
    target.accepted(there.channel);
    server.dialled(here.channel);
  }

  #crash(server: SmallServer, log: number, file: number): void {
    this.#crashes++;
    server.crash(log, file);
    for (const each of this.servers) {
      const { sid } = each;
      each.peerDisconnected(server.sid);
      // Notifications from it that are not yet sent are lost with it. Those to it stay in transit
      // if each is a choice of its own.
      this.#notifications.delete(directionOf(server.sid, sid));
      this.#lastSent.delete(directionOf(server.sid, sid));
      this.#electionCnxns.delete(directionOf(server.sid, sid));
      if (this.scope.elections === 'together') this.#notifications.delete(directionOf(sid, server.sid));
    }
  }

  /**
   * All members receive each other's notifications, and time passes when there are none, until no
   * member looks any more.
   */
  #elect(mask: number): void {
    const members = this.#members(mask);
    const lookedBefore = members.filter(({ isLooking }) => isLooking).length;
    const hasLeader = this.#hasLeader(members);
    let looking = lookedBefore;
    let passedMs = 0;
    while (looking > 0 && passedMs < electionMaxMs) {
      this.#exchangeNotifications(members);
      passedMs += this.#advanceClocks(members);
      looking = members.filter(({ isLooking }) => isLooking).length;
      if (looking < members.length || lookedBefore < members.length || passedMs <= settleMaxMs) continue;
      throw new Violation(
        'ElectionTerminates',
        `${members.map(({ sid }) => sid).join(', ')} all look, and none has found a leader after ${passedMs} ms`,
      );
    }
    if (hasLeader && looking > 0) {
      const lost = members.filter(({ isLooking }) => isLooking);
      throw new Violation(
        'ElectionTerminates',
        `among ${members.map(({ sid }) => sid).join(', ')} ${lost.map(({ sid }) => sid).join(', ')} find no leader`,
      );
    }
    if (looking === lookedBefore) this.#fruitlessElections++;
    if (lookedBefore === members.length) this.#checkElected(members);
  }

  /**
   * Delivers the notifications among the members, and all answers to them, without time passing.
   */
  #exchangeNotifications(members: readonly SmallServer[]): void {
    for (let round = 0, wasSaid = true; wasSaid; round++) {
      if (round > exchangeRoundsMax)
        throw new Violation('ElectionTerminates', `${members.map(({ sid }) => sid).join(', ')} answer each other endlessly`);
      wasSaid = false;
      for (const from of members) {
        for (const to of members) {
          if (!this.#notifications.has(directionOf(from.sid, to.sid))) continue;
          wasSaid = true;
          this.#deliver(from.sid, to.sid);
        }
      }
    }
  }

  /** Time passes equally for those that look, until one of them is due. Returns how much. */
  #advanceClocks(members: readonly SmallServer[]): Millis {
    const looking = members.filter(({ isLooking }) => isLooking);
    if (looking.length === 0) return 0;
    const ms = Math.min(...looking.map(({ peer, clockMs }) => Math.max(0, peer!.deadline()! - clockMs)));
    for (const member of members) {
      if (looking.includes(member)) member.advanceClock(ms);
      else member.clockMs += repeatAnswerMs;
    }
    return ms;
  }

  #checkElected(members: readonly SmallServer[]): void {
    const leader = members.find(({ peer }) => peer?.role === 'leading');
    // A server that was followed without success is avoided for a while.
    if (leader === undefined || members.some(({ hasFailedAttempt }) => hasFailedAttempt)) return;
    const { neverLead } = this.ensemble;
    const voters = members.filter(({ sid }) => !neverLead.includes(sid)).map((member) => member.view());
    this.invariants.elected(leader.view(), voters);
  }

  /** One of the members leads, and a quorum of them serves in its epoch. */
  #hasLeader(members: readonly SmallServer[]): boolean {
    const leader = members.find(({ peer }) => peer?.role === 'leading' && peer.server !== undefined);
    const epoch = leader?.peer?.epoch;
    const synced = members.filter(({ peer }) => peer?.server !== undefined && peer.epoch === epoch);
    return leader !== undefined && this.isQuorum(synced);
  }

  // ---- peace

  /**
   * From here on there are no more faults, and elections follow the actual notifications. See
   * `Healing`.
   */
  stopFaults(healing: 'all' | 'core'): void {
    this.#faultsStopped = true;
    if (healing === 'all' || !this.#hasCore('up or down')) this.#cuts.clear();
    for (const server of this.servers) if (server.peer === undefined && (healing === 'all' || !this.#hasCore('up'))) server.start();
  }

  /** Whether there is a quorum of servers that reach each other. */
  #hasCore(which: 'up' | 'up or down'): boolean {
    for (let mask = 1; mask < 1 << this.servers.length; mask++) {
      const members = this.#members(mask);
      if (!this.isQuorum(members)) continue;
      const areThere = which === 'up or down' || members.every(({ peer }) => peer !== undefined);
      if (areThere && !ascending(this.#cuts.keys()).some((cut) => (cut & mask) === cut)) return true;
    }
    return false;
  }

  /** Whether a server is due now. */
  isDue(code: Choice): boolean {
    const { kind, a } = decodeChoice(code);
    const server = this.servers[a - 1]!;
    return kind === 'wake' && server.peer!.deadline()! <= server.clockMs;
  }

  /** How much time may pass before a server is due. */
  nextDeadlineMs(): Millis | undefined {
    const left = this.servers.flatMap(({ peer, clockMs }) => {
      const deadline = peer?.deadline();
      return deadline === undefined ? [] : [Math.max(0, deadline - clockMs)];
    });
    return left.length === 0 ? undefined : Math.min(...left);
  }

  /** Time passes, equally for all servers. */
  advanceClocks(ms: Millis): void {
    for (const server of this.servers) server.advanceClock(ms);
    this.#check();
  }

  // ---- state

  fingerprint(to: Fingerprint): void {
    for (const number of [
      this.writes,
      this.#clientSteps,
      this.#crashes,
      this.#cutsMade,
      this.#wakes,
      this.#fruitlessElections,
      this.#forcedElections,
    ])
      to.number(number);
    for (const mask of ascending(this.#cuts.keys())) {
      to.number(mask);
      to.text(this.#cuts.get(mask)!);
    }
    for (const way of ascending(this.#electionCnxns)) to.number(way);
    for (const notifications of [this.#notifications, this.#lastSent]) {
      to.number(notifications.size);
      for (const way of ascending(notifications.keys())) {
        const { state, leader, zxid, electionEpoch, peerEpoch } = notifications.get(way)!;
        to.number(way);
        to.text(state);
        for (const number of [leader, zxid, electionEpoch, peerEpoch]) to.number(number);
      }
    }
    for (const server of this.servers) server.fingerprint(to);
    if (this.scope.clientSteps > 0) this.client.fingerprint(to);
    this.invariants.fingerprint(to);
  }

  describe(): string {
    return this.servers
      .map((server) => {
        const { sid, role, serves, epoch, durable, logged, acceptedEpoch, currentEpoch } = server.view();
        const life = server.peer === undefined ? 'down' : `${role ?? 'looking'}${serves ? `, serves in epoch ${epoch}` : ''}`;
        return `server ${sid}: ${life}; log ${logged.map(({ zxid }) => `0x${zxid.toString(16)}`).join(' ')}, ${durable.length} durable; epochs ${acceptedEpoch} ${currentEpoch}`;
      })
      .join('\n');
  }
}

/** A sender and a receiver as one number. */
function directionOf(from: Sid, to: Sid): number {
  return from * sidLimit + to;
}

function sidsOf(way: number): { readonly from: Sid; readonly to: Sid } {
  return { from: Math.floor(way / sidLimit), to: way % sidLimit };
}

function ascending(numbers: Iterable<number>): number[] {
  return [...numbers].sort((a, b) => a - b);
}
