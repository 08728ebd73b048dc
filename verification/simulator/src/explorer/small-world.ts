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
import {
  counterOf,
  epochOf,
  formatQuorumConfig,
  type Millis,
  type Notification,
  notificationVersion,
  type QuorumConfig,
  type Sid,
  type Zxid,
} from '@tskeeper/protocol';
import type { Fingerprint, QuorumVerifier } from '@tskeeper/core/internal';
import { type Choice, encodeChoice, choiceText, type DecodedChoice, decodeChoice } from './choice.ts';
import { Invariants, type NamedTxn, Violation } from './invariants.ts';
import type { MarkName } from './marks.ts';
import { JointElections, type Quorums } from './joint-elections.ts';
import { clientRequests, SmallClient } from './small-client.ts';
import type { Scope } from './scope.ts';
import { isReconfig, membersText } from './txn-names.ts';
import { initialFile, isQuorum, type SmallEnsemble, sidsOfMembers, sidsOfVoters, smallEnsemble } from './small-ensemble.ts';
import { type OperatorSession, SmallOperator } from './small-operator.ts';
import type { SmallServerEnvironment } from './server-environment.ts';
import type { CrashDepth, DiskState, StoredTxn } from './small-disk.ts';
import { SmallNetwork } from './small-network.ts';
import { SmallNotifications } from './small-notifications.ts';
import { SmallServer } from './small-server.ts';

/**
 * The initial state of a world other than with empty disks: what a run left on them, with the
 * history of how it came about.
 */
export interface InitialState {
  readonly disks: readonly DiskState[];
  readonly invariants: Invariants;
  readonly writes: number;
  /** The session of the operator, and how often it has asked for a configuration. */
  readonly operatorSession: OperatorSession | undefined;
  readonly reconfigs: number;
}

export class SmallWorld implements SmallServerEnvironment, Quorums {
  readonly scope: Scope;
  readonly ensemble: SmallEnsemble;
  readonly invariants: Invariants;
  readonly servers: readonly SmallServer[];
  readonly #network: SmallNetwork;
  readonly #notifications: SmallNotifications;
  readonly #elections: JointElections;
  /** Marks that were hit since the last call of `takeHits`. */
  #hits = new Set<MarkName>();
  /** Who has proposed an epoch; only for marks. */
  readonly #proposers = new Map<number, Sid>();
  /** The persistent client. */
  readonly client: SmallClient;
  writes = 0;
  readonly #initialWrites: number;
  readonly operator: SmallOperator;
  readonly #initialReconfigs: number;
  #clientSteps = 0;
  #crashes = 0;
  #cutsMade = 0;
  #wakes = 0;
  #forcedElections = 0;
  #transfers = 0;
  #faultsStopped = false;
  readonly #proposed = new Map<Zxid, StoredTxn>();
  /** The txn before each txn in its leader's log. */
  readonly #predecessors = new Map<Zxid, StoredTxn | undefined>();

  constructor(scope: Scope, initialState?: InitialState) {
    if (scope.servers < 1 || scope.servers > 4)
      throw new Error('the explorer supports one to four servers, since a mask of them has at most five bits');
    if (initialState !== undefined && initialState.disks.length !== scope.servers)
      throw new Error(`the initial state is of ${initialState.disks.length} servers`);
    this.scope = scope;
    const sids = Array.from({ length: scope.servers }, (_, at) => at + 1);
    this.ensemble = smallEnsemble(scope.ensemble, scope.servers);
    this.invariants = initialState?.invariants.copy() ?? new Invariants((some, members) => isQuorum(this.ensemble, some, members));
    this.writes = this.#initialWrites = initialState?.writes ?? 0;
    const { operatorSession, reconfigs = 0 } = initialState ?? {};
    this.operator = new SmallOperator(
      () => this.invariants,
      (mark) => this.hit(mark),
      operatorSession,
      reconfigs,
    );
    this.#initialReconfigs = reconfigs;
    this.client = new SmallClient(
      () => this.invariants,
      (mark) => this.hit(mark),
    );
    this.servers = sids.map((sid, at) => new SmallServer(this, sid, initialState?.disks[at]));
    this.#network = new SmallNetwork(this.servers);
    this.#notifications = new SmallNotifications(scope.elections, this.servers, this.#network);
    this.#elections = new JointElections(this.ensemble, this, this.invariants, this.#network, this.#notifications, scope.wakes);
    for (const { disk } of this.servers) for (const [at, txn] of disk.durable.entries()) this.proposed(txn, disk.durable[at - 1]);
    for (const server of this.servers) server.start();
  }

  /** The content of the disks, for another world to begin with. */
  captureState(): InitialState {
    return {
      disks: this.servers.map(({ disk }) => disk.state),
      invariants: this.invariants.copy(),
      writes: this.writes,
      operatorSession: this.operator.session,
      reconfigs: this.operator.requests,
    };
  }

  initialFile(sid: Sid): QuorumConfig {
    return initialFile(this.ensemble, sid);
  }

  get isReconfigurable(): boolean {
    return this.ensemble.configs.length > 0;
  }

  get verifier(): QuorumVerifier {
    return this.ensemble.verifier;
  }

  /** The members of the configuration in force. */
  get membersInForce(): string {
    return this.invariants.members ?? membersText(this.ensemble.members);
  }

  /**
   * Whether these servers are a quorum of the configuration in force, and of every other that one of
   * them counts by.
   */
  isQuorum(servers: readonly SmallServer[]): boolean {
    const sids = servers.map(({ sid }) => sid);
    if (!isQuorum(this.ensemble, sids, this.membersInForce)) return false;
    return servers.every((server) => server.knownMembers().every((members) => isQuorum(this.ensemble, sids, members)));
  }

  /**
   * Whether a server with the latest history of these votes in every configuration that one of them
   * counts by. If only others have it, those cannot lead, since some do not know the configuration
   * in which they vote, and no other can lead them: a quorum without them must come together.
   */
  canElectLatest(servers: readonly SmallServer[]): boolean {
    if (!this.isReconfigurable) return true;
    const lastOf = ({ disk }: SmallServer): Zxid => disk.logged.at(-1)?.zxid ?? 0;
    const epoch = Math.max(...servers.map(({ disk }) => disk.currentEpoch));
    const latest = servers.filter(({ disk }) => disk.currentEpoch === epoch);
    const last = Math.max(...latest.map(lastOf));
    const configs = servers.flatMap((server) => server.knownMembers().map(sidsOfVoters));
    return latest.some((server) => lastOf(server) === last && configs.every((sids) => sids.includes(server.sid)));
  }

  /**
   * Whether these servers, by default every member of the configuration in force, serve under it,
   * with the files that it needs, and none is pending.
   */
  isSettled(serving: readonly SmallServer[], sids = sidsOfMembers(this.membersInForce)): boolean {
    return sids.every((sid) => {
      const server = serving.find((each) => each.sid === sid);
      if (server === undefined || server.disk.configs.waiting > 0) return false;
      return server.configs.lastSeen === undefined && membersText(server.configs.active) === this.membersInForce;
    });
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
    return this.#network.hasUnreachablePeer(sid);
  }

  proposed(txn: StoredTxn, before: StoredTxn | undefined): void {
    this.#proposed.set(txn.zxid, txn);
    this.#predecessors.set(txn.zxid, before);
  }

  /**
   * An epoch has begun with a known history; any other zxid is that of a txn, which follows those
   * before it in the log of its leader.
   */
  historyOf(zxid: Zxid): StoredTxn[] {
    const last = counterOf(zxid) === 0 ? this.invariants.initialHistory(epochOf(zxid))?.at(-1)?.zxid : zxid;
    const history: StoredTxn[] = [];
    for (let txn = this.#proposed.get(last ?? 0); txn !== undefined; txn = this.#predecessors.get(txn.zxid)) history.unshift(txn);
    return history;
  }

  notify(from: Sid, to: Sid, notification: Notification): void {
    this.#notifications.send(from, to, notification);
  }

  // ---- choices

  /** What can happen next, in a fixed order. */
  choices(): Choice[] {
    const found: Choice[] = [];
    const { scope, servers } = this;
    for (const server of servers) if (server.peer !== undefined) this.#choicesOf(server, found);
    this.#electionChoices(found);
    for (const { sid, peer } of servers) if (peer === undefined) found.push(encodeChoice('start', sid));
    for (const [a, b] of this.#network.cutPairs()) found.push(encodeChoice('heal', a, b));
    if (this.writes - this.#initialWrites < scope.txns) {
      for (const { sid, peer } of servers) if (peer?.server !== undefined) found.push(encodeChoice('write', sid));
    }
    if (this.#clientSteps < scope.clientSteps) this.#clientChoices(found);
    if (this.operator.requests - this.#initialReconfigs < scope.reconfigs) this.#reconfigChoices(found);
    if (this.#transfers < scope.transfers) this.#transferChoices(found);
    if (this.#crashes < scope.crashes) {
      for (const { sid, peer, disk } of servers) {
        if (peer === undefined) continue;
        for (const { log, epochs, configs } of disk.crashDepths()) found.push(encodeChoice('crash', sid, log, epochs, configs));
      }
    }
    if (this.#cutsMade < scope.cuts) {
      for (let a = 1; a < servers.length; a++) {
        for (let b = a + 1; b <= servers.length; b++)
          if (!this.#network.isCut(a, b)) found.push(encodeChoice('cut', a, b), encodeChoice('refuse', a, b));
      }
    }
    return found;
  }

  /** The operator asks the leader, or the first server that follows it, for another configuration. */
  #reconfigChoices(found: Choice[]): void {
    if (this.operator.session === undefined) return;
    const serving = this.servers.filter(({ peer }) => peer?.server !== undefined);
    for (const role of ['leading', 'learning'] as const) {
      const server = serving.find(({ peer }) => peer!.role === role);
      if (server === undefined) continue;
      const own = membersText(server.configs.active);
      for (const [at, config] of this.ensemble.configs.entries()) {
        if (membersText(config) !== own) found.push(encodeChoice('reconfig', server.sid, at));
      }
    }
  }

  /** An operator asks the leader to give the lead to another server, in step or not. */
  #transferChoices(found: Choice[]): void {
    const leader = this.servers.find(({ peer }) => peer?.role === 'leading' && peer.server !== undefined);
    if (leader === undefined) return;
    for (const { sid, peer } of this.servers)
      if (peer !== undefined && sid !== leader.sid) found.push(encodeChoice('transfer', leader.sid, sid));
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
    const { sid, disk, streams, clockMs } = server;
    const peer = server.peer!;
    for (const { channel, inbox, remoteEnd, from } of streams.ends.values()) {
      if (this.#network.cutBetween(from, sid) === 'unanswered') continue;
      if (inbox.length > 0 || remoteEnd === undefined) found.push(encodeChoice('packet', sid, channel));
      if (inbox.length > 0 && remoteEnd === undefined) found.push(encodeChoice('break', sid, channel));
    }
    if (disk.canAnswerLog) found.push(encodeChoice('log', sid));
    if (disk.canAnswerEpoch) found.push(encodeChoice('file', sid));
    if (disk.configs.waiting > 0) found.push(encodeChoice('config', sid));
    if (streams.dialing !== undefined) found.push(encodeChoice('dial', sid));
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
        for (let mask = 1; mask < 1 << servers.length; mask++) if (this.#elections.mayElect(mask)) found.push(encodeChoice('elect', mask));
        return;
      case 'each':
        this.#notifications.addChoices(found);
        return;
      case 'any':
        if (this.#forcedElections >= scope.forcedElections || servers.length < 3) return;
        for (const { sid, isLooking, election } of servers) {
          if (isLooking && election.announcedLooking) for (const other of servers) found.push(encodeChoice('finalize', sid, other.sid));
        }
        return;
      default:
        return;
    }
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
    const before = invariants.committed.length;
    invariants.check(this.servers.map((server) => server.view()));
    const { committed } = invariants;
    if (this.isReconfigurable && committed.length > before) this.#markReconfigs(committed.slice(before));
    if (this.scope.ensemble === 'groups') this.#markGroupAlone();
    if (committed.length > 1 && epochOf(committed[0]!.zxid) !== epochOf(committed.at(-1)!.zxid)) this.hit('commits in two epochs');
  }

  #markReconfigs(committed: readonly NamedTxn[]): void {
    for (const { zxid } of committed.filter(({ name }) => isReconfig(name))) {
      this.hit('configuration changed');
      if (this.invariants.committed.some((txn) => txn.zxid < zxid && isReconfig(txn.name)))
        this.hit('configuration changed and changed back');
      const isByItsLeader = this.servers.some(({ peer }) => peer?.role === 'leading' && peer.epoch === epochOf(zxid));
      if (!isByItsLeader && !this.servers.some(({ peer }) => peer?.role === 'learning' && peer.epoch === epochOf(zxid)))
        this.hit('pending configuration completed by a later leader');
    }
  }

  #markGroupAlone(): void {
    const [one, other, third] = this.servers.map(({ disk }) => disk.durable.at(-1)?.zxid ?? 0);
    const last = this.invariants.committed.at(-1)?.zxid ?? 0;
    if (Math.min(one!, other!) > Math.max(last, third!)) this.hit('one group is not a quorum');
  }

  #execute({ kind, a, b, c, d }: DecodedChoice): void {
    const server = this.servers[a - 1]!;
    switch (kind) {
      case 'notify':
        return this.#notifications.deliver(a, b);
      case 'packet':
        return server.receive(server.streams.ends.get(b)!);
      case 'break': {
        const end = server.streams.ends.get(b)!;
        end.inbox.length = 0;
        return server.receive(end);
      }
      case 'dial':
        return this.#dial(server);
      case 'log':
        return server.logDone();
      case 'file':
        return server.fileDone();
      case 'config':
        return server.configDone();
      case 'reconfig':
        return server.reconfigure(this.ensemble.configs[b]!);
      case 'transfer':
        this.#transfers++;
        return server.transferLeadership(b);
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
        return this.#crash(server, { log: b, epochs: c, configs: d });
      case 'start':
        return server.start();
      case 'cut':
        this.#cutsMade++;
        this.#network.cut(a, b, 'unanswered');
        return;
      case 'refuse':
        return this.#refuse(server, this.servers[b - 1]!);
      case 'refusal':
        return this.#notifications.refused(a, b);
      case 'finalize':
        this.#forcedElections++;
        return this.#forceElection(server, b);
      case 'heal':
        this.#network.heal(a, b);
        return;
      case 'elect':
        return this.#elections.elect(a);
      default:
        kind satisfies never;
    }
  }

  /** From now on each refuses the other, and their connections break. */
  #refuse(one: SmallServer, other: SmallServer): void {
    this.#cutsMade++;
    this.#network.cut(one.sid, other.sid, 'refused');
    for (const end of [...one.streams.ends.values(), ...other.streams.ends.values()]) {
      if ((end.owner === one.sid ? other : one).sid === end.from) end.remoteEnd = undefined;
    }
  }

  /**
   * Makes a server believe that an election was won by another, or by itself. The others are made
   * to say so, whatever they think: everything that follows must be safe with any leader.
   */
  #forceElection(server: SmallServer, leader: Sid): void {
    const others = this.servers.filter((each) => each !== server);
    if (leader !== server.sid) {
      const vote = {
        leader,
        zxid: 0,
        electionEpoch: 1,
        peerEpoch: 0,
        version: notificationVersion,
        config: formatQuorumConfig(this.ensemble.members),
      };
      const third = others.find(({ sid }) => sid !== leader)!;
      server.notified(third.sid, { ...vote, state: 'following' });
      server.notified(leader, { ...vote, state: 'leading' });
      return;
    }
    const [other] = others;
    server.notified(other!.sid, { ...this.#notifications.inTransit(server.sid, other!.sid)!, state: 'looking' });
    if (server.isLooking) server.wake();
  }

  #dial(server: SmallServer): void {
    const target = this.servers[server.streams.dialing! - 1]!;
    server.streams.dialing = undefined;
    const isReached = !this.#network.isCut(server.sid, target.sid);
    if (isReached && target.isLooking) this.hit('refused by a leader not yet leading');
    // Only a server that leads accepts learners.
    if (!isReached || target.peer?.role !== 'leading') {
      server.dialFailed(isReached ? 'refused' : 'unanswered');
      return;
    }
    const here = server.streams.open(target.sid);
    const there = target.streams.open(server.sid);
    here.remoteEnd = there;
    there.remoteEnd = here;
    target.accepted(there.channel);
    server.dialled(here.channel);
  }

  #crash(server: SmallServer, depth: CrashDepth): void {
    this.#crashes++;
    server.crash(depth);
    this.#notifications.crashed(server.sid);
  }

  // ---- peace

  /**
   * From here on there are no more faults, and elections follow the actual notifications. `healing`
   * is explained at `Healing` (quiescence.ts); to call this again heals what is needed by then.
   */
  stopFaults(healing: 'all' | 'core'): void {
    this.#faultsStopped = true;
    if (healing === 'all' || !this.#hasCore('up or down')) this.#network.healAll();
    for (const server of this.servers) if (server.peer === undefined && (healing === 'all' || !this.#hasCore('up'))) server.start();
  }

  /** Whether there is a quorum of servers that reach each other. */
  #hasCore(which: 'up' | 'up or down'): boolean {
    for (let mask = 1; mask < 1 << this.servers.length; mask++) {
      const members = this.#network.members(mask);
      if (!this.isQuorum(members) || !this.canElectLatest(members)) continue;
      const areThere = which === 'up or down' || members.every(({ peer }) => peer !== undefined);
      if (areThere && this.#network.isWhole(mask)) return true;
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
    for (const number of [this.writes, this.#clientSteps, this.#crashes, this.#cutsMade, this.#wakes, this.#forcedElections])
      to.number(number);
    if (this.scope.transfers > 0) to.number(this.#transfers);
    this.#elections.fingerprint(to);
    this.#network.fingerprint(to);
    this.#notifications.fingerprint(to);
    for (const server of this.servers) server.fingerprint(to);
    if (this.scope.clientSteps > 0) this.client.fingerprint(to);
    if (this.isReconfigurable) this.operator.fingerprint(to);
    this.invariants.fingerprint(to);
  }

  describe(): string {
    return this.servers
      .map((server) => {
        const { sid, role, serves, epoch, durable, logged, acceptedEpoch, currentEpoch } = server.view();
        const { active, lastSeen } = server.configs;
        const life = server.peer === undefined ? 'down' : `${role ?? 'looking'}${serves ? `, serves in epoch ${epoch}` : ''}`;
        return `server ${sid}: ${life}; log ${logged.map(({ zxid }) => `0x${zxid.toString(16)}`).join(' ')}, ${durable.length} durable; epochs ${acceptedEpoch} ${currentEpoch}; members ${membersText(active)}${lastSeen === undefined ? '' : `, next ${membersText(lastSeen)}`}`;
      })
      .join('\n');
  }
}
