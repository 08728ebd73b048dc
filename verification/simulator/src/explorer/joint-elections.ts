/**
 * Elections as one choice: all members of a set receive each other's notifications, and time passes
 * when there are none, until each member has left LOOKING. That such an election ends, and elects
 * the server with the latest history, is checked here.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Fingerprint } from '@tskeeper/core/internal';
import { type Invariants, Violation } from './invariants.ts';
import { type SmallEnsemble, sidsOfVoters } from './small-ensemble.ts';
import type { SmallNetwork } from './small-network.ts';
import type { SmallNotifications } from './small-notifications.ts';
import type { SmallServer } from './small-server.ts';

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
/**
 * The same with four voters: all of three must agree if one is down, and two of them with the same history may
 * avoid each other in turn, for twice as long each time.
 */
const settleOfFourMaxMs = 10_000;
/**
 * The same while some of them know a pending configuration. Others settle with a quorum of the active
 * one and leave again, since those need more, and each change of a vote takes longer.
 */
const settleWithPendingMaxMs = 60_000;
/** More rounds than the servers need. */
const exchangeRoundsMax = 20;
/** A server that is not looking repeats an answer to the same question only after this time. */
const repeatAnswerMs = 100;

/** Within what time some of these settle, if all look and one of them can be elected. */
function settleMsOf(servers: readonly SmallServer[]): Millis {
  const configs = new Set(servers.flatMap((server) => server.knownMembers()));
  if (configs.size > 1) return settleWithPendingMaxMs;
  const hasFourVoters = [...configs].some((members) => sidsOfVoters(members).length > 3);
  return hasFourVoters ? settleOfFourMaxMs : settleMaxMs;
}

function sidsText(servers: readonly SmallServer[]): string {
  return servers.map(({ sid }) => sid).join(', ');
}

/** What the world knows of its configurations. */
export interface Quorums {
  /** Whether these servers are a quorum of every configuration that they know. */
  isQuorum(servers: readonly SmallServer[]): boolean;
  /** Whether a server with the latest history of them votes in every configuration that they know. */
  canElectLatest(servers: readonly SmallServer[]): boolean;
}

export class JointElections {
  readonly #ensemble: SmallEnsemble;
  readonly #quorums: Quorums;
  readonly #invariants: Invariants;
  readonly #network: SmallNetwork;
  readonly #notifications: SmallNotifications;
  readonly #fruitlessMax: number;
  /** Elections after which as many servers look as before. */
  #fruitless = 0;

  constructor(
    ensemble: SmallEnsemble,
    quorums: Quorums,
    invariants: Invariants,
    network: SmallNetwork,
    notifications: SmallNotifications,
    fruitlessMax: number,
  ) {
    this.#ensemble = ensemble;
    this.#quorums = quorums;
    this.#invariants = invariants;
    this.#network = network;
    this.#notifications = notifications;
    this.#fruitlessMax = fruitlessMax;
  }

  /** A quorum whose members reach each other and of which one looks for a leader. */
  mayElect(mask: number): boolean {
    const members = this.#network.members(mask);
    if (members.some(({ peer }) => peer === undefined) || !members.some(({ isLooking }) => isLooking)) return false;
    if (!this.#network.isWhole(mask) || !this.#quorums.isQuorum(members)) return false;
    // Members that are not looking may be unable to help the others, which would ask again forever; so
    // would members of which none can be elected.
    if (this.#fruitless < this.#fruitlessMax) return true;
    return members.every(({ isLooking }) => isLooking) && this.#quorums.canElectLatest(members);
  }

  elect(mask: number): void {
    const members = this.#network.members(mask);
    const lookedBefore = members.filter(({ isLooking }) => isLooking).length;
    const hasLeader = this.#hasLeader(members);
    let looking = lookedBefore;
    const mustElect = this.#quorums.canElectLatest(members);
    const settleMs = settleMsOf(members);
    let passedMs = 0;
    while (looking > 0 && passedMs < electionMaxMs) {
      this.#exchangeNotifications(members);
      passedMs += this.#advanceClocks(members);
      looking = members.filter(({ isLooking }) => isLooking).length;
      if (looking < members.length || lookedBefore < members.length || passedMs <= (mustElect ? settleMs : settleMaxMs)) continue;
      if (!mustElect) break;
      throw new Violation('ElectionTerminates', `${sidsText(members)} all look, and none has found a leader after ${passedMs} ms`);
    }
    if (hasLeader && mustElect && looking > 0) {
      const lost = members.filter(({ isLooking }) => isLooking);
      throw new Violation('ElectionTerminates', `among ${sidsText(members)} ${sidsText(lost)} find no leader`);
    }
    if (looking === lookedBefore) this.#fruitless++;
    if (lookedBefore === members.length) this.#checkElected(members);
  }

  /**
   * Delivers the notifications among the members, and all answers to them, without time passing.
   */
  #exchangeNotifications(members: readonly SmallServer[]): void {
    for (let round = 0, wasSaid = true; wasSaid; round++) {
      if (round > exchangeRoundsMax) throw new Violation('ElectionTerminates', `${sidsText(members)} answer each other endlessly`);
      wasSaid = false;
      for (const from of members) {
        for (const to of members) {
          if (this.#notifications.inTransit(from.sid, to.sid) === undefined) continue;
          wasSaid = true;
          this.#notifications.deliver(from.sid, to.sid);
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
    if (leader === undefined || members.some(({ election }) => election.hasFailedAttempt)) return;
    const { neverLead } = this.#ensemble;
    const configs = members.flatMap((member) => member.knownMembers().map(sidsOfVoters));
    const voters = members.filter(({ sid }) => !neverLead.includes(sid) && configs.every((sids) => sids.includes(sid)));
    this.#invariants.elected(
      leader.view(),
      voters.map((voter) => voter.view()),
    );
  }

  /** One of the members leads, and a quorum of them serves in its epoch. */
  #hasLeader(members: readonly SmallServer[]): boolean {
    const leader = members.find(({ peer }) => peer?.role === 'leading' && peer.server !== undefined);
    const epoch = leader?.peer?.epoch;
    const synced = members.filter(({ peer }) => peer?.server !== undefined && peer.epoch === epoch);
    return leader !== undefined && this.#quorums.isQuorum(synced);
  }

  fingerprint(to: Fingerprint): void {
    to.number(this.#fruitless);
  }
}
