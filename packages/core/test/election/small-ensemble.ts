/**
 * A small ensemble in one process, for elections: machines as in production, connections that
 * delay, break and are refused, servers that crash and restart. One seed determines everything.
 *
 * The phases after an election are simulated in outline: a server that follows connects to its
 * leader, a leader without a quorum in time gives up, one with a quorum begins a new epoch and
 * synchronises its followers. Just enough for a wrong election to be repeated, as it would be.
 *
 * Invariants are checked at each event, by rules of this file's own: it shares neither the order of
 * votes nor the quorums with the machines.
 */
import type { Notification, Sid } from '@tskeeper/protocol';
import type { ElectionOptions } from '../../src/election/election-options.ts';
import { FastLeaderElection } from '../../src/election/fast-leader-election.ts';
import { HierarchicalQuorum } from '../../src/quorum/hierarchical-quorum.ts';
import { MajorityQuorum } from '../../src/quorum/majority-quorum.ts';
import type { Vote } from '../../src/election/vote.ts';
import type { QuorumVerifier } from '../../src/quorum/quorum-verifier.ts';

export interface ServerSpec {
  readonly sid: Sid;
  readonly role: 'participant' | 'observer';
  readonly epoch: number;
  readonly zxid: number;
  /** When it starts. */
  readonly startMs: number;
  readonly earlySettling: boolean;
}

export interface EnsembleSpec {
  readonly seed: number;
  readonly servers: readonly ServerSpec[];
  /** Undefined: majority. */
  readonly groups?: ReadonlyMap<number, readonly Sid[]>;
  readonly weights?: ReadonlyMap<Sid, number>;
  readonly delayMaxMs: number;
  /** Faults happen until then. */
  readonly faultsUntilMs: number;
  /** Probability of each kind, in percent, at each possible moment of a fault. */
  readonly faults: { readonly crash: number; readonly cut: number; readonly close: number; readonly leaderCrash: number };
  /** Voters that stay down after the faults; the others must work without them. */
  readonly downForEver: readonly Sid[];
  readonly maxNotificationIntervalMs: number;
  /**
   * Each server receives at the start of each election the wrong input that no other can be
   * reached.
   */
  readonly falseAlarms?: boolean;
  /** A defect of all machines, to show that the checks can fail. */
  readonly broken?: Broken;
}

/**
 * Machines see mirrored histories, so that the worst one seems the best; or use another verifier
 * than the checks. This breaks them from outside: the machines are those of production.
 */
export interface Broken {
  readonly mirror?: 'zxid' | 'epoch';
  readonly verifier?: (sound: QuorumVerifier) => QuorumVerifier;
}

interface Server {
  readonly spec: ServerSpec;
  epoch: number;
  zxid: number;
  up: boolean;
  /** Incremented with each start of the process; events of an earlier one are void. */
  life: number;
  machine: FastLeaderElection | undefined;
  phase: 'down' | 'looking' | 'connecting' | 'attached' | 'leading';
  leader: Sid | undefined;
  readonly followers: Set<Sid>;
  established: boolean;
  /** How often it has entered an election. */
  elections: number;
  /** Its data when it entered the present one. */
  entered: { epoch: number; zxid: number };
  readonly dialling: Set<Sid>;
  readonly wasConnected: Set<Sid>;
}

interface Direction {
  waiting: Notification | undefined;
  last: Notification | undefined;
  lastArrivalMs: number;
}

interface Link {
  open: boolean;
  cut: boolean;
  /** Messages in flight belong to a connection and are lost with it. */
  generation: number;
  /** From the lower sid to the higher one, and back. */
  readonly directions: readonly [Direction, Direction];
}

interface Event {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

export interface Tally {
  messages: number;
  leaders: number;
  /** When a server last became leader. */
  electedAtMs: number;
}

const mirror = 0x10_0000_0000;

export class SmallEnsemble {
  readonly violations: string[] = [];
  readonly tally: Tally = { messages: 0, leaders: 0, electedAtMs: 0 };
  readonly #spec: EnsembleSpec;
  readonly #servers = new Map<Sid, Server>();
  readonly #links = new Map<string, Link>();
  readonly #voters: readonly Sid[];
  readonly #verifier: QuorumVerifier;
  readonly #events: Event[] = [];
  /** Servers that have announced a vote, and whether their own history was no better. */
  readonly #announced = new Map<string, Map<Sid, boolean>>();
  readonly #staysDown = new Set<Sid>();
  #random: number;
  #order = 0;
  #nowMs = 0;

  constructor(spec: EnsembleSpec) {
    this.#spec = spec;
    this.#random = spec.seed | 0;
    this.#voters = spec.servers.filter(({ role }) => role === 'participant').map(({ sid }) => sid);
    const sound =
      spec.groups === undefined
        ? new MajorityQuorum(this.#voters)
        : new HierarchicalQuorum({ voters: this.#voters, groups: spec.groups, weights: spec.weights ?? new Map() });
    this.#verifier = spec.broken?.verifier?.(sound) ?? sound;
    for (const server of spec.servers) {
      this.#servers.set(server.sid, {
        spec: server,
        epoch: server.epoch,
        zxid: server.zxid,
        up: false,
        life: 0,
        machine: undefined,
        phase: 'down',
        leader: undefined,
        followers: new Set(),
        established: false,
        elections: 0,
        entered: { epoch: 0, zxid: 0 },
        dialling: new Set(),
        wasConnected: new Set(),
      });
      this.#after(server.startMs, () => this.#startProcess(this.#server(server.sid)));
    }
    for (const [index, { sid: a }] of spec.servers.entries()) {
      for (const { sid: b } of spec.servers.slice(index + 1)) this.#links.set(this.#key(a, b), newLink());
    }
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Runs until no event is left, or until `untilMs`. */
  run(untilMs: number): void {
    for (let event = this.#events[0]; event !== undefined && event.atMs <= untilMs; event = this.#events[0]) {
      pop(this.#events);
      this.#nowMs = event.atMs;
      event.run();
      if (this.tally.messages > 20_000) {
        this.#violated('servers talk without end');
        return;
      }
    }
  }

  /** Plans faults and their ends. */
  planFaults(): void {
    const { faultsUntilMs, faults } = this.#spec;
    for (let at = this.#below(100); at < faultsUntilMs; at += 20 + this.#below(300)) {
      this.#after(at, () => {
        if (this.#below(100) < faults.leaderCrash) {
          const leader = [...this.#servers.values()].find(({ established }) => established);
          if (leader !== undefined) this.#crash(leader, this.#below(1500));
        }
        if (this.#below(100) < faults.crash) this.#crash(this.#anyServer(), this.#below(1500));
        if (this.#below(100) < faults.cut) this.#cut(this.#anyServer(), this.#below(2) === 0, this.#below(1500));
        if (this.#below(100) < faults.close && this.#servers.size > 1) this.#closeLink(...this.#anyLink());
      });
    }
    this.#after(faultsUntilMs, () => this.#heal());
  }

  #heal(): void {
    for (const link of this.#links.values()) link.cut = false;
    for (const server of this.#servers.values()) {
      const { sid } = server.spec;
      if (this.#spec.downForEver.includes(sid)) {
        this.#staysDown.add(sid);
        this.#crash(server, undefined);
      } else {
        this.#startProcess(server);
      }
    }
  }

  /** Starts a server that was down, and does nothing else. */
  start(sid: Sid): void {
    this.#staysDown.delete(sid);
    this.#startProcess(this.#server(sid));
  }

  /** Kills the process of the leader. */
  crashLeader(): Sid | undefined {
    const leader = [...this.#servers.values()].find(({ established }) => established);
    if (leader !== undefined) this.#crash(leader, undefined);
    return leader?.spec.sid;
  }

  /** How often each server has entered an election. */
  elections(): Map<Sid, number> {
    return new Map([...this.#servers].map(([sid, { elections }]) => [sid, elections]));
  }

  /**
   * Why this is not an ensemble in which one leads, a quorum follows and all agree; empty if it is.
   */
  unsettled(): string[] {
    const up = [...this.#servers.values()].filter(({ up: isUp }) => isUp);
    const leaders = up.filter(({ established }) => established);
    const [leader] = leaders;
    if (leader === undefined || leaders.length > 1) return [`${leaders.length} leaders: ${this.#describe()}`];
    const { sid } = leader.spec;
    return up
      .filter((server) => server !== leader)
      .filter((server) => server.phase !== 'attached' || server.leader !== sid || server.machine!.outcome?.vote.leader !== sid)
      .map((server) => `server ${server.spec.sid} does not follow ${sid}: ${this.#describe()}`);
  }

  leader(): Sid | undefined {
    return [...this.#servers.values()].find(({ established }) => established)?.spec.sid;
  }

  #describe(): string {
    return [...this.#servers.values()]
      .map(({ spec, phase, machine }) => {
        return `${spec.sid} ${phase} round ${machine?.electionEpoch} vote ${machine?.outcome?.vote.leader}`;
      })
      .join('; ');
  }

  // ---- processes

  #startProcess(server: Server): void {
    if (server.up || this.#staysDown.has(server.spec.sid)) return;
    server.up = true;
    server.life++;
    server.dialling.clear();
    server.wasConnected.clear();
    const { sid, role: ownRole, earlySettling: earlyFinalization } = server.spec;
    const options: ElectionOptions = {
      sid,
      earlyFinalization,
      maxNotificationIntervalMs: this.#spec.maxNotificationIntervalMs,
    };
    const config = {
      verifier: this.#verifier,
      activeVerifier: this.#verifier,
      text: 'version=0',
      version: 0,
      ownRole,
      announcedVoters: [],
      pendingText: undefined,
    };
    const links = { notify: (to: Sid, notification: Notification) => this.#send(server, to, this.#mirrored(notification)) };
    const configs = {
      configSeen: () => {
        this.#violated('a configuration was seen');
        return false;
      },
      pendingConfigSeen: () => undefined,
    };
    server.machine = new FastLeaderElection(options, config, links, configs);
    this.#look(server);
  }

  #crash(server: Server, backAfterMs: number | undefined): void {
    if (!server.up) return;
    const { sid } = server.spec;
    server.up = false;
    server.phase = 'down';
    server.machine = undefined;
    for (const other of this.#servers.keys()) {
      if (other === sid) continue;
      this.#closeLink(sid, other);
      const direction = this.#direction(sid, other);
      direction.waiting = undefined;
      direction.last = undefined;
    }
    this.#leave(server);
    if (backAfterMs !== undefined) this.#after(backAfterMs, () => this.#startProcess(server));
  }

  /** Stops leading or following; its followers notice later. */
  #leave(server: Server): void {
    const { sid } = server.spec;
    for (const follower of server.followers) this.#lost(this.#server(follower), sid, 1 + this.#below(30));
    server.followers.clear();
    server.established = false;
    const leader = server.leader === undefined ? undefined : this.#server(server.leader);
    server.leader = undefined;
    if (leader?.followers.delete(sid)) this.#afterLoss(leader);
  }

  #lost(follower: Server, leader: Sid, afterMs: number): void {
    const { life, elections } = follower;
    this.#after(afterMs, () => {
      if (follower.life !== life || follower.elections !== elections || !follower.up || follower.leader !== leader) return;
      this.#look(follower);
    });
  }

  #afterLoss(leader: Server): void {
    if (!leader.established || this.#verifier.containsQuorum(this.#withFollowers(leader))) return;
    const { life, elections } = leader;
    this.#after(100 + this.#below(200), () => {
      if (leader.life !== life || leader.elections !== elections || !leader.up) return;
      if (!this.#verifier.containsQuorum(this.#withFollowers(leader))) this.#look(leader);
    });
  }

  #look(server: Server): void {
    this.#leave(server);
    server.phase = 'looking';
    server.elections++;
    server.entered = { epoch: server.epoch, zxid: server.zxid };
    const { zxid, peerEpoch } = this.#mirrored({ zxid: server.zxid, peerEpoch: server.epoch });
    this.#turn(server, (machine) => machine.start(zxid, peerEpoch, this.#now()));
    if (this.#spec.falseAlarms !== true) return;
    for (const other of this.#servers.keys()) {
      if (other !== server.spec.sid) this.#turn(server, (machine) => machine.unreachable(other, this.#now()));
    }
  }

  /** One input and its effects. */
  #turn(server: Server, input: (machine: FastLeaderElection) => void): void {
    const machine = server.machine!;
    input(machine);
    const { outcome } = machine;
    if (server.phase === 'looking' && outcome !== undefined) {
      if (outcome.state === 'leading') this.#lead(server);
      else this.#connect(server, outcome.vote.leader, 5);
    }
    const deadline = machine.deadline();
    if (deadline === undefined) return;
    const { life } = server;
    this.#after(Math.max(0, deadline - this.#nowMs), () => {
      const due = server.life === life && server.up ? machine.deadline() : undefined;
      if (due !== undefined && due <= this.#nowMs) this.#turn(server, (it) => it.wake(this.#now()));
    });
  }

  // ---- phases after an election, in outline

  #lead(server: Server): void {
    server.phase = 'leading';
    this.tally.electedAtMs = this.#nowMs;
    this.#checkElected(server);
    const { life, elections } = server;
    this.#establish(server);
    this.#after(1500, () => {
      if (server.life === life && server.elections === elections && server.up && !server.established) this.#look(server);
    });
  }

  #connect(server: Server, leader: Sid, tries: number): void {
    server.phase = 'connecting';
    const { life, elections } = server;
    this.#after(1 + this.#below(10), () => {
      if (server.life !== life || server.elections !== elections || !server.up) return;
      if (this.#mayFollow(server, leader)) {
        this.#attach(server, this.#server(leader));
      } else if (tries > 1) {
        this.#after(100, () => {
          if (server.life === life && server.elections === elections && server.up) this.#connect(server, leader, tries - 1);
        });
      } else {
        this.#look(server);
      }
    });
  }

  /**
   * The leader listens. Before its epoch has begun it refuses a learner with a better history;
   * later it truncates that history.
   */
  #mayFollow(server: Server, sid: Sid): boolean {
    const leader = this.#server(sid);
    if (leader.phase !== 'leading' || this.#link(server.spec.sid, sid).cut) return false;
    return leader.established || server.spec.role === 'observer' || !isBetter(server, leader);
  }

  #attach(server: Server, leader: Server): void {
    server.phase = 'attached';
    server.leader = leader.spec.sid;
    leader.followers.add(server.spec.sid);
    if (leader.established) this.#bringInStep(server, leader);
    else this.#establish(leader);
  }

  #bringInStep(server: Server, leader: Server): void {
    server.epoch = leader.epoch;
    server.zxid = leader.zxid;
    this.#raiseVote(server);
  }

  #raiseVote(server: Server): void {
    server.machine!.updateVote(this.#mirrored({ zxid: 0, peerEpoch: server.epoch }).peerEpoch);
  }

  #establish(leader: Server): void {
    if (!this.#verifier.containsQuorum(this.#withFollowers(leader))) return;
    leader.established = true;
    this.tally.leaders++;
    this.#checkEstablished(leader);
    const followers = [...leader.followers].map((sid) => this.#server(sid));
    leader.epoch = Math.max(leader.epoch, ...followers.map(({ epoch }) => epoch)) + 1;
    this.#raiseVote(leader);
    for (const follower of followers) this.#bringInStep(follower, leader);
  }

  #withFollowers(leader: Server): Set<Sid> {
    return new Set([leader.spec.sid, ...leader.followers]);
  }

  // ---- invariants

  /**
   * A server that becomes leader got the votes of a quorum, in one round, none of which had a
   * better history.
   */
  #checkElected(server: Server): void {
    const { sid } = server.spec;
    const vote = this.#mirrored(server.machine!.outcome!.vote);
    if (vote.leader !== sid) this.#violated(`${sid} leads by a vote for ${vote.leader}`);
    // A leader that failed and restarted before its followers noticed is still their leader.
    const announced = [voteKey(vote), followKey(vote)].flatMap((key) => [...(this.#announced.get(key) ?? [])]);
    const noBetter = new Set(announced.filter(([, holds]) => holds).map(([voter]) => voter));
    noBetter.add(sid);
    if (!this.#isQuorum(new Set([...announced.map(([voter]) => voter), sid]))) this.#violated(`${sid} leads without the votes of a quorum`);
    else if (!this.#isQuorum(noBetter)) this.#violated(`${sid} leads although its history is not the best of those who voted for it`);
    if (!this.#voters.includes(sid) || this.#weight(sid) === 0) this.#violated(`${sid} leads and has no voice`);
  }

  #checkEstablished(server: Server): void {
    if (!this.#isQuorum(this.#withFollowers(server))) this.#violated(`${server.spec.sid} began an epoch without a quorum`);
    for (const other of this.#servers.values()) {
      if (other !== server && other.established && this.#isQuorum(this.#withFollowers(other))) {
        this.#violated(`${server.spec.sid} and ${other.spec.sid} lead at the same time`);
      }
    }
  }

  #weight(sid: Sid): number {
    return this.#spec.weights?.get(sid) ?? 1;
  }

  #isQuorum(sids: ReadonlySet<Sid>): boolean {
    const voters = [...sids].filter((sid) => this.#voters.includes(sid));
    if (this.#spec.groups === undefined) return voters.length > this.#voters.length / 2;
    const sum = (some: readonly Sid[]): number => some.reduce((total, sid) => total + this.#weight(sid), 0);
    const groups = [...this.#spec.groups.values()].filter((group) => sum(group) > 0);
    return groups.filter((group) => sum(group.filter((sid) => voters.includes(sid))) > sum(group) / 2).length > groups.length / 2;
  }

  #noteAnnounced(server: Server, notification: Notification): void {
    if (server.spec.role === 'observer') return;
    if (notification.state === 'looking') this.#noteVoter(server, voteKey(notification), notification);
    if (notification.state === 'following') this.#noteVoter(server, followKey(notification), notification);
  }

  #noteVoter(server: Server, key: string, vote: Notification): void {
    // A server without weight may vote for any server; and one that too few can reach votes for
    // another with an equal history.
    const holds =
      vote.leader === server.spec.sid ||
      this.#weight(server.spec.sid) === 0 ||
      !isBetter(server.entered, { epoch: vote.peerEpoch, zxid: vote.zxid });
    const voters = this.#announced.get(key) ?? new Map<Sid, boolean>();
    this.#announced.set(key, voters.set(server.spec.sid, holds));
  }

  #violated(what: string): void {
    this.violations.push(`seed ${this.#spec.seed}, at ${this.#nowMs} ms: ${what} (${this.#describe()})`);
  }

  // ---- the network

  #mirrored<T extends { readonly zxid: number; readonly peerEpoch: number }>(vote: T): T {
    const { mirror: mirrored } = this.#spec.broken ?? {};
    if (mirrored === undefined || vote.zxid < -1) return vote;
    return mirrored === 'zxid' ? { ...vote, zxid: mirror - vote.zxid } : { ...vote, peerEpoch: mirror - vote.peerEpoch };
  }

  #send(server: Server, to: Sid, notification: Notification): void {
    const { sid } = server.spec;
    this.tally.messages++;
    this.#noteAnnounced(server, notification);
    const direction = this.#direction(sid, to);
    direction.last = notification;
    if (this.#link(sid, to).open) {
      this.#carry(sid, to, notification);
    } else {
      direction.waiting = notification;
      this.#dial(server, to);
    }
  }

  #carry(from: Sid, to: Sid, notification: Notification): void {
    const link = this.#link(from, to);
    const direction = this.#direction(from, to);
    const { generation } = link;
    direction.lastArrivalMs = Math.max(direction.lastArrivalMs, this.#nowMs + this.#delay());
    this.#at(direction.lastArrivalMs, () => {
      // A cut cable does not lose what TCP repeats, unless the connection is closed.
      if (link.generation !== generation || link.cut) return;
      this.#turn(this.#server(to), (machine) => machine.notified(from, this.#mirrored(notification), this.#now()));
    });
  }

  #dial(server: Server, to: Sid): void {
    const { sid } = server.spec;
    if (server.dialling.has(to)) return;
    server.dialling.add(to);
    const { life } = server;
    this.#after(this.#delay(), () => {
      if (server.life !== life || !server.up) return;
      server.dialling.delete(to);
      const link = this.#link(sid, to);
      if (link.cut) return;
      const other = this.#server(to);
      if (!other.up) {
        if (server.wasConnected.has(to)) this.#turn(server, (machine) => machine.unreachable(to, this.#now()));
        return;
      }
      // A second connection of the pair replaces the first, with its messages in flight; or is
      // itself refused.
      if (link.open && this.#below(4) > 0) return;
      link.open = true;
      link.generation++;
      for (const [one, another] of [
        [server, other],
        [other, server],
      ] as const) {
        one.wasConnected.add(another.spec.sid);
        one.machine!.reachable(another.spec.sid);
        const direction = this.#direction(one.spec.sid, another.spec.sid);
        const message = direction.waiting ?? direction.last;
        direction.waiting = undefined;
        direction.lastArrivalMs = 0;
        if (message !== undefined) this.#carry(one.spec.sid, another.spec.sid, message);
      }
    });
  }

  /** Messages in flight are lost; both sides notice soon, and dial once. */
  #closeLink(a: Sid, b: Sid): void {
    const link = this.#link(a, b);
    if (!link.open) return;
    link.open = false;
    link.generation++;
    for (const [one, another] of [
      [a, b],
      [b, a],
    ] as const) {
      const server = this.#server(one);
      const { life } = server;
      this.#after(1 + this.#below(5), () => {
        if (server.up && server.life === life && !link.open) this.#dial(server, another);
      });
    }
  }

  /** Cuts a server off from one other or from all. Cut connections are closed. */
  #cut(server: Server, fromAll: boolean, forMs: number): void {
    const { sid } = server.spec;
    const others = [...this.#servers.keys()].filter((other) => other !== sid);
    for (const other of fromAll ? others : [others[this.#below(others.length)]].filter((one) => one !== undefined)) {
      const link = this.#link(sid, other);
      link.cut = true;
      this.#closeLink(sid, other);
      for (const [one, another] of [
        [server, this.#server(other)],
        [this.#server(other), server],
      ] as const) {
        if (one.leader !== another.spec.sid) continue;
        another.followers.delete(one.spec.sid);
        this.#afterLoss(another);
        this.#lost(one, another.spec.sid, 100 + this.#below(200));
      }
      this.#after(forMs, () => {
        link.cut = false;
      });
    }
  }

  #key(a: Sid, b: Sid): string {
    return a < b ? `${a} ${b}` : `${b} ${a}`;
  }

  #link(a: Sid, b: Sid): Link {
    return this.#links.get(this.#key(a, b))!;
  }

  #direction(from: Sid, to: Sid): Direction {
    return this.#link(from, to).directions[from < to ? 0 : 1];
  }

  #server(sid: Sid): Server {
    return this.#servers.get(sid)!;
  }

  #anyServer(): Server {
    return this.#server(this.#spec.servers[this.#below(this.#spec.servers.length)]!.sid);
  }

  #anyLink(): [Sid, Sid] {
    const { servers } = this.#spec;
    const first = this.#below(servers.length);
    const second = (first + 1 + this.#below(servers.length - 1)) % servers.length;
    return [servers[first]!.sid, servers[second]!.sid];
  }

  // ---- time and randomness

  #now(): { elapsedMs: number; wallMs: number } {
    return { elapsedMs: this.#nowMs, wallMs: 0 };
  }

  #delay(): number {
    return 1 + this.#below(this.#spec.delayMaxMs);
  }

  #below(limit: number): number {
    this.#random = (this.#random + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#random ^ (this.#random >>> 15), 1 | this.#random);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  }

  #after(delayMs: number, run: () => void): void {
    this.#at(this.#nowMs + delayMs, run);
  }

  #at(atMs: number, run: () => void): void {
    push(this.#events, { atMs, order: this.#order++, run });
  }
}

function voteKey({ leader, zxid, electionEpoch, peerEpoch }: Vote): string {
  return `${leader} ${zxid} ${electionEpoch} ${peerEpoch}`;
}

/** Some followers have the epoch of their leader in their vote already. */
function followKey({ leader, electionEpoch }: Vote): string {
  return `follow ${leader} ${electionEpoch}`;
}

function newLink(): Link {
  const direction = (): Direction => ({ waiting: undefined, last: undefined, lastArrivalMs: 0 });
  return { open: false, cut: false, generation: 0, directions: [direction(), direction()] };
}

function isBetter(a: { epoch: number; zxid: number }, b: { epoch: number; zxid: number }): boolean {
  return a.epoch > b.epoch || (a.epoch === b.epoch && a.zxid > b.zxid);
}

// A binary heap, ordered by time and then by the order of planning.
function isEarlier(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

function push(heap: Event[], event: Event): void {
  let at = heap.push(event) - 1;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (!isEarlier(event, heap[parent]!)) break;
    heap[at] = heap[parent]!;
    at = parent;
  }
  heap[at] = event;
}

function pop(heap: Event[]): void {
  const last = heap.pop()!;
  if (heap.length === 0) return;
  let at = 0;
  for (;;) {
    let child = at * 2 + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && isEarlier(heap[child + 1]!, heap[child]!)) child++;
    if (!isEarlier(heap[child]!, last)) break;
    heap[at] = heap[child]!;
    at = child;
  }
  heap[at] = last;
}
