/**
 * A server's part in elections: the connections over which notifications arrive, and what the
 * explorer must know to choose and check elections. Most of it decides nothing in the server
 * itself.
 */
import type { Notification, Sid } from '@tskeeper/protocol';
import { type ElectionLinks, type Observer, type Peer, silentObserver } from '@tskeeper/core';
import type { Fingerprint } from '@tskeeper/core/internal';
import type { ServerState } from './server-environment.ts';

export class SmallElection implements ElectionLinks {
  readonly #server: ServerState;
  /** Whether it has not finished an election since it lost its last leader. */
  isWithoutLeader = false;
  /**
   * Whether it has announced that it looks for a leader, and has neither followed nor led since.
   */
  announcedLooking = false;
  /** Whether it has followed or led, and does not serve. */
  #hasTriedRole = false;
  /** Whether it has followed or led since it last served, without coming to serve. */
  hasFailedAttempt = false;
  /** The server that it voted for last, while it looks. */
  #votesFor: Sid | undefined;
  /**
   * The servers with which it has a connection for notifications: one that connects anew is
   * `reachable` again.
   */
  readonly connected = new Set<Sid>();
  /** The servers that it knows to refuse connections; only for marks. */
  readonly refusingPeers = new Set<Sid>();
  readonly observer: Observer;

  constructor(server: ServerState) {
    this.#server = server;
    this.observer = {
      ...silentObserver,
      roleEnded: (reason) => {
        if (reason === 'later epoch accepted') server.world.hit('leader yields to a later epoch');
        else if (reason === 'role changed') server.world.hit('role changed');
        else if (reason === 'resigned' && !server.isVoter) server.world.hit('leader removed');
      },
      notice: (notice) => {
        if (notice.kind !== 'transferEnded') return;
        server.world.hit(notice.outcome === 'handed over' ? 'lead handed over' : 'transfer given up');
        // It may reply to clients in this turn, and no longer serves at the end of it.
        if (notice.outcome === 'handed over') server.world.invariants.checkServed(server.view());
      },
      roleChanged: (role) => {
        if (role === 'looking') this.isWithoutLeader = true;
      },
      elected: () => {
        this.isWithoutLeader = false;
      },
      leaderAppointed: (leader) => {
        this.isWithoutLeader = false;
        server.world.hit(leader === server.sid ? 'leads without an election' : 'follows without an election');
      },
    };
  }

  // --- what the peer says

  notify(to: Sid, notification: Notification): void {
    const { state, leader, zxid } = notification;
    const { sid, world } = this.#server;
    if (state === 'looking') {
      this.announcedLooking = true;
      this.#votesFor = leader;
      this.hasFailedAttempt ||= this.#hasTriedRole;
      if (leader === sid) world.invariants.voted(zxid, this.#server.view());
    }
    world.notify(sid, to, notification);
  }

  /**
   * A new connection makes the server `reachable` with the next notification that arrives over it.
   */
  reconnect(sid: Sid): void {
    this.connected.delete(sid);
  }

  /** It follows a leader, or tries to. */
  follows(): void {
    this.announcedLooking = false;
    this.#hasTriedRole = true;
  }

  // --- what happens to the server

  /** A connection to the server is refused. */
  refusedBy(sid: Sid): void {
    this.refusingPeers.add(sid);
    this.connected.delete(sid);
  }

  /**
   * A server whose role ended looks again, and announces it, once its disk has answered every
   * request.
   */
  afterTurn({ role, server }: Peer): void {
    if (role !== 'looking') this.announcedLooking = false;
    if (role === 'leading') this.#hasTriedRole = true;
    if (server !== undefined) this.#hasTriedRole = this.hasFailedAttempt = false;
  }

  /** Forgets the last vote before time passes, and returns it for `afterWake`. */
  takeVote(): Sid | undefined {
    const votedFor = this.#votesFor;
    this.#votesFor = undefined;
    return votedFor;
  }

  /**
   * If it has changed its vote and looks as before, too few share the vote, as far as it knows:
   * notifications may still be in transit.
   */
  afterWake(votedFor: Sid | undefined, looksAsBefore: boolean): void {
    if (looksAsBefore && this.#votesFor !== votedFor) this.hasFailedAttempt = true;
    this.#votesFor ??= votedFor;
  }

  crash(): void {
    this.announcedLooking = this.#hasTriedRole = this.hasFailedAttempt = false;
    this.refusingPeers.clear();
    this.connected.clear();
  }

  fingerprint(to: Fingerprint): void {
    for (const flag of [this.announcedLooking, this.#hasTriedRole, this.hasFailedAttempt]) to.number(flag ? 1 : 0);
    for (const sid of [...this.connected].sort((a, b) => a - b)) to.number(sid);
  }
}
