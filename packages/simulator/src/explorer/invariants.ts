/**
 * What must hold in every state of an ensemble, in the words of the TLA+ specifications of ZooKeeper (Protocol spec and Remix), and what must
 * be on disk before a word is given (P30, P31 of the catalogue). It sees servers as plain values and shares no rule with the machines.
 *
 * Beside the state of the moment it keeps what a specification calls history variables: who has led an epoch, with which history that epoch
 * began, what was proposed, and what has been committed. All of them follow from what was seen, and are part of the state that is explored.
 */
import { counterOf, epochOf, formatZxid, type Sid, type Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '@tskeeper/core/internal';
import { isError, isPut } from './txn-names.ts';

export const invariants = {
  Leadership1: 'two servers never lead the same epoch at the same time',
  Leadership2: 'an epoch is only ever led by one server',
  PrefixConsistency: 'of what two servers have committed, one is a beginning of the other',
  Integrity: 'only what a leader has proposed is in a log',
  Agreement: 'a zxid names one txn, whoever has it',
  TotalOrder: 'txns are committed in one order, at every server',
  LocalPrimaryOrder: 'the txns of an epoch are committed as they were proposed, none left out',
  GlobalPrimaryOrder: 'no txn of an earlier epoch is committed behind one of a later',
  PrimaryIntegrity: 'a leader has all that was committed in earlier epochs before it proposes',
  ProcessConsistency: 'who serves in an epoch has the history that it began with',
  MonotonicRead: 'what a server has served once it does not take back',
  LeaderLogCompleteness: 'the log of a leader that serves has everything committed in earlier epochs',
  CommittedLogDurability: 'what is committed is durable at a quorum',
  MemoryIsLog: 'the txns that are kept for learners are the last of those applied, none left out',
  StateIsLog: 'the state that is served is that of the log up to its last zxid',
  AcknowledgedIsCommitted: 'what a client was told to be done is committed',
  EpochFiles: 'on disk, acceptedEpoch is never behind currentEpoch',
  HistoryBeforeEpoch: 'currentEpoch is on disk only where the history that the epoch began with is',
  AcceptedBeforeWord: 'a new epoch is on disk before it is proposed or accepted',
  DurableBeforeAck: 'NEWLEADER and proposals are acknowledged when they are durable, and not before',
  NewLeaderFirst: 'no proposal of an epoch is acknowledged before currentEpoch says that it has begun',
  VotesFromDisk: 'who looks for a leader votes for itself with the last txn on its disk, and the disk is at rest',
  ElectsTheBest: 'nobody of those who elect a leader has a later history than it has',
  Settles: 'who looks for a leader and can reach a quorum that has one finds it, and a quorum whose members all look settles in time',
  NothingRolledBack: 'a client that has seen a state is never shown an earlier one, whichever servers it comes to',
  SyncThenRead: 'a read behind a sync has all that was acknowledged to anybody before it was asked for',
  ReadsOfHistory: 'a read is the state at its zxid in what is committed',
  Liveness: 'when nothing more goes wrong, the ensemble comes to serve',
  Legality: 'no server is sent what it cannot make sense of, and no machine throws',
} as const;

export type InvariantName = keyof typeof invariants;

export class Violation extends Error {
  readonly invariant: InvariantName;

  constructor(invariant: InvariantName, what: string) {
    super(`${invariant} (${invariants[invariant]}): ${what}`);
    this.invariant = invariant;
  }
}

/** A txn as it stands in a log. `name` tells it from every other. */
export interface NamedTxn {
  readonly zxid: Zxid;
  readonly name: string;
}

/** A server as the invariants see it. */
export interface ServerView {
  readonly sid: Sid;
  /** Undefined while it is down, or neither leads nor learns. */
  readonly role: 'leading' | 'learning' | undefined;
  readonly serves: boolean;
  /** The epoch in which it serves. */
  readonly epoch: number | undefined;
  /** Everything that is durable, what a snapshot stands for included. */
  readonly durable: readonly NamedTxn[];
  /** That, and what is on its way to the disk. */
  readonly logged: readonly NamedTxn[];
  /** Up to here the state in memory has it. */
  readonly appliedZxid: Zxid;
  /** Names of the txns whose effect is in the state in memory; undefined where nobody looks. */
  readonly state: readonly string[] | undefined;
  /** Zxids of what is kept in memory for learners, in order; undefined where nobody looks. */
  readonly remembered: readonly Zxid[] | undefined;
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
}

/** Whether these servers are a quorum, or more. */
export type IsQuorum = (sids: readonly Sid[]) => boolean;

export class Invariants {
  readonly #isQuorum: IsQuorum;
  readonly #leaders = new Map<number, Sid>();
  /** With which history an epoch begins: that of its leader, from the moment it writes down currentEpoch. */
  readonly #beginnings = new Map<number, readonly NamedTxn[]>();
  readonly #proposed = new Map<Zxid, string>();
  #committed: readonly NamedTxn[] = [];
  /** What clients have been told in this step. */
  readonly #told: string[] = [];
  /** The latest txn that anybody was told is done. */
  #acknowledged: Zxid = 0;
  /** What a client has read in this step, and at which zxid. */
  readonly #reads: { readonly name: string; readonly zxid: Zxid }[] = [];
  /** How far each server has served. */
  readonly #served = new Map<Sid, Zxid>();

  constructor(isQuorum: IsQuorum) {
    this.#isQuorum = isQuorum;
  }

  /** With the same past, and a future of its own. */
  copy(): Invariants {
    const copy = new Invariants(this.#isQuorum);
    for (const [epoch, sid] of this.#leaders) copy.#leaders.set(epoch, sid);
    for (const [epoch, beginning] of this.#beginnings) copy.#beginnings.set(epoch, beginning);
    for (const [zxid, name] of this.#proposed) copy.#proposed.set(zxid, name);
    for (const [sid, zxid] of this.#served) copy.#served.set(sid, zxid);
    copy.#committed = this.#committed;
    copy.#acknowledged = this.#acknowledged;
    return copy;
  }

  get committed(): readonly NamedTxn[] {
    return this.#committed;
  }

  fingerprint(to: Fingerprint): void {
    for (const numbers of [this.#leaders, this.#served]) {
      for (const key of [...numbers.keys()].sort((a, b) => a - b)) {
        to.number(key);
        to.number(numbers.get(key)!);
      }
    }
    for (const epoch of [...this.#beginnings.keys()].sort((a, b) => a - b)) {
      to.number(epoch);
      for (const { zxid } of this.#beginnings.get(epoch)!) to.number(zxid);
    }
    for (const zxid of [...this.#proposed.keys()].sort((a, b) => a - b)) {
      to.number(zxid);
      to.text(this.#proposed.get(zxid)!);
    }
    to.number(this.#acknowledged);
    to.number(this.#committed.length);
    for (const { zxid, name } of this.#committed) {
      to.number(zxid);
      to.text(name);
    }
  }

  // ---- what happens

  /** A leader sends a txn to its log. */
  proposed(epoch: number, { zxid, name }: NamedTxn, before: readonly NamedTxn[]): void {
    if (epochOf(zxid) !== epoch) throw new Violation('Integrity', `the leader of epoch ${epoch} proposes ${formatZxid(zxid)}`);
    const known = this.#proposed.get(zxid);
    if (known !== undefined && known !== name) throw new Violation('Agreement', `two txns are proposed as ${formatZxid(zxid)}`);
    const counter = counterOf(zxid);
    if (counter !== 1 && before.at(-1)?.zxid !== zxid - 1) {
      throw new Violation('LocalPrimaryOrder', `${formatZxid(zxid)} is proposed behind ${formatZxid(before.at(-1)?.zxid ?? 0)}`);
    }
    const missing = this.#committed.find((txn) => epochOf(txn.zxid) < epoch && !before.some((own) => own.zxid === txn.zxid));
    if (missing !== undefined) {
      throw new Violation('PrimaryIntegrity', `${formatZxid(zxid)} is proposed by one that lacks ${formatZxid(missing.zxid)}`);
    }
    this.#proposed.set(zxid, name);
  }

  /**
   * currentEpoch has been written. Later the history may lose again what no quorum had, when the server follows a leader of a later epoch;
   * at this moment it is all there.
   */
  epochWritten({ sid, currentEpoch, durable }: ServerView): void {
    const missing = missingOf(this.#beginnings.get(currentEpoch), durable);
    if (missing === undefined) return;
    throw new Violation('HistoryBeforeEpoch', `${sid} has currentEpoch ${currentEpoch} on disk, and not ${formatZxid(missing.zxid)}`);
  }

  /** A server asks for its currentEpoch to be written. */
  epochBegun(epoch: number, { role, sid, logged }: ServerView): void {
    if (role !== 'leading') return;
    if (this.#beginnings.has(epoch)) throw new Violation('Leadership2', `${sid} begins epoch ${epoch}, which has begun already`);
    this.#beginnings.set(epoch, [...logged]);
  }

  /** A leader proposes an epoch. */
  epochProposed(epoch: number, { sid, acceptedEpoch }: ServerView): void {
    if (acceptedEpoch < epoch) {
      throw new Violation('AcceptedBeforeWord', `${sid} proposes epoch ${epoch}, and has ${acceptedEpoch} on disk`);
    }
  }

  /** A learner has accepted the epoch that it was told. */
  epochAccepted(epoch: number, { sid, acceptedEpoch }: ServerView): void {
    if (acceptedEpoch < epoch) {
      throw new Violation('AcceptedBeforeWord', `${sid} accepts epoch ${epoch}, and has ${acceptedEpoch} on disk`);
    }
  }

  /** A learner acknowledges a txn, or NEWLEADER. */
  acknowledged(zxid: Zxid, { sid, durable, currentEpoch }: ServerView): void {
    if (counterOf(zxid) > 0) {
      if (currentEpoch < epochOf(zxid)) {
        // A leader of ZooKeeper takes the first ACK for that of NEWLEADER, and ends at any other (ZOOKEEPER-4685).
        throw new Violation('NewLeaderFirst', `${sid} acknowledges ${formatZxid(zxid)}, and has currentEpoch ${currentEpoch} on disk`);
      }
      if (durable.some((txn) => txn.zxid === zxid)) return;
      throw new Violation('DurableBeforeAck', `${sid} acknowledges ${formatZxid(zxid)}, which is not on its disk`);
    }
    const epoch = epochOf(zxid);
    if (currentEpoch !== epoch)
      throw new Violation('DurableBeforeAck', `${sid} acknowledges epoch ${epoch}, and has ${currentEpoch} on disk`);
    const missing = missingOf(this.#beginnings.get(epoch), durable);
    if (missing === undefined) return;
    throw new Violation('DurableBeforeAck', `${sid} acknowledges epoch ${epoch} without ${formatZxid(missing.zxid)} on disk`);
  }

  /** A server that looks for a leader votes for itself. At the beginning of an epoch it stands behind its last txn. */
  voted(zxid: Zxid, { sid, durable, logged }: ServerView): void {
    const last = durable.at(-1)?.zxid ?? 0;
    if (logged.length !== durable.length || logged.at(-1)?.zxid !== durable.at(-1)?.zxid) {
      throw new Violation('VotesFromDisk', `${sid} looks for a leader, and its log is not what its disk has`);
    }
    if (counterOf(zxid) > 0 ? zxid !== last : zxid < last) {
      throw new Violation('VotesFromDisk', `${sid} votes with ${formatZxid(zxid)}, and its disk has ${formatZxid(last)}`);
    }
  }

  /**
   * These have found a leader among themselves. Were it not the best of them, discovery would still keep it from leading, and all that is
   * lost is time: nothing else here would show it.
   */
  elected(leader: ServerView, voters: readonly ServerView[]): void {
    const lastOf = ({ durable }: ServerView) => durable.at(-1)?.zxid ?? 0;
    for (const voter of voters) {
      const isLater =
        voter.currentEpoch === leader.currentEpoch ? lastOf(voter) > lastOf(leader) : voter.currentEpoch > leader.currentEpoch;
      if (!isLater) continue;
      const [its, own] = [leader, voter].map((one) => `epoch ${one.currentEpoch} and ${formatZxid(lastOf(one))}`);
      throw new Violation('ElectsTheBest', `${leader.sid} is elected with ${its}; ${voter.sid} has ${own}`);
    }
  }

  /** A client is told that its session is there. What is committed is seen when the step is over, so it is judged then. */
  told(name: string): void {
    this.#told.push(name);
  }

  get acknowledgedZxid(): Zxid {
    return this.#acknowledged;
  }

  /** A client reads the put of that name, or none, at that zxid: returns which txn it was. What is committed is seen when the step is over. */
  read(name: string, zxid: Zxid): Zxid {
    this.#reads.push({ name, zxid });
    if (name === '') return 0;
    for (const [proposed, its] of this.#proposed) if (its === name) return proposed;
    throw new Violation('ReadsOfHistory', `a client reads "${name}", which nobody has proposed`);
  }

  // ---- what is

  check(servers: readonly ServerView[]): void {
    for (const server of servers) {
      this.#checkEpochFiles(server);
      this.#checkLog(server);
    }
    this.#checkLeaders(servers);
    for (const server of servers) {
      if (!server.serves) continue;
      this.served(server);
      this.#checkMemory(server);
    }
    this.#checkDurability(servers);
    for (const name of this.#told.splice(0)) {
      const done = this.#committed.find((txn) => txn.name === name);
      this.#acknowledged = Math.max(this.#acknowledged, done?.zxid ?? 0);
      if (done !== undefined) continue;
      throw new Violation('AcknowledgedIsCommitted', `a client is told of ${name}, which is not committed`);
    }
    for (const { name, zxid } of this.#reads.splice(0)) {
      const last = lastPut(this.#committed.filter((txn) => txn.zxid <= zxid)) ?? '';
      if (last !== name)
        throw new Violation('ReadsOfHistory', `a client reads "${name}" at ${formatZxid(zxid)}, where the history has "${last}"`);
    }
  }

  #checkEpochFiles({ sid, acceptedEpoch, currentEpoch }: ServerView): void {
    if (acceptedEpoch >= currentEpoch) return;
    throw new Violation('EpochFiles', `${sid} has acceptedEpoch ${acceptedEpoch}, currentEpoch ${currentEpoch}`);
  }

  #checkLog({ sid, logged }: ServerView): void {
    let before: NamedTxn | undefined;
    for (const txn of logged) {
      const known = this.#proposed.get(txn.zxid);
      if (known === undefined) throw new Violation('Integrity', `${sid} has ${formatZxid(txn.zxid)}, which nobody has proposed`);
      if (known !== txn.name) throw new Violation('Agreement', `${formatZxid(txn.zxid)} is another txn at ${sid} than it was proposed as`);
      if (before !== undefined && before.zxid >= txn.zxid)
        throw new Violation('TotalOrder', `${sid} has ${formatZxid(txn.zxid)} out of order`);
      const isNext = counterOf(txn.zxid) === 1 || before?.zxid === txn.zxid - 1;
      if (!isNext) throw new Violation('LocalPrimaryOrder', `the log of ${sid} lacks a txn before ${formatZxid(txn.zxid)}`);
      before = txn;
    }
  }

  #checkLeaders(servers: readonly ServerView[]): void {
    const leading = servers.filter(({ role, serves }) => role === 'leading' && serves);
    for (const { sid, epoch } of leading) {
      const other = leading.find((one) => one.sid !== sid && one.epoch === epoch);
      if (other !== undefined) throw new Violation('Leadership1', `${sid} and ${other.sid} lead epoch ${epoch}`);
      const known = this.#leaders.get(epoch!);
      if (known !== undefined && known !== sid) throw new Violation('Leadership2', `${sid} leads epoch ${epoch}, which ${known} has led`);
    }
    for (const { sid, epoch, logged } of leading) {
      this.#leaders.set(epoch!, sid);
      const missing = this.#committed.find((txn) => epochOf(txn.zxid) < epoch! && !has(logged, txn));
      if (missing !== undefined) {
        throw new Violation('LeaderLogCompleteness', `${sid} leads epoch ${epoch} without ${formatZxid(missing.zxid)}, which is committed`);
      }
    }
  }

  /** A server shows clients what it has applied: that is committed. */
  served({ sid, epoch, logged, appliedZxid, state }: ServerView): void {
    const applied = logged.filter(({ zxid }) => zxid <= appliedZxid);
    const missing = missingOf(this.#beginnings.get(epoch!), applied);
    if (missing !== undefined)
      throw new Violation('ProcessConsistency', `${sid} serves in epoch ${epoch} without ${formatZxid(missing.zxid)}`);
    if (state !== undefined && state.join() !== stateBehind(applied).join()) {
      throw new Violation(
        'StateIsLog',
        `${sid} serves ${state.length} txns, and its log has ${applied.length} up to ${formatZxid(appliedZxid)}`,
      );
    }
    const last = applied.at(-1)?.zxid ?? 0;
    const before = this.#served.get(sid) ?? 0;
    if (last < before) throw new Violation('MonotonicRead', `${sid} has served ${formatZxid(before)}, and serves ${formatZxid(last)}`);
    this.#served.set(sid, last);
    this.#commit(sid, applied);
  }

  #commit(sid: Sid, applied: readonly NamedTxn[]): void {
    const committed = this.#committed;
    for (let at = 0; at < Math.min(applied.length, committed.length); at++) {
      if (applied[at]!.name === committed[at]!.name) continue;
      throw new Violation(
        'PrefixConsistency',
        `at place ${at} ${sid} has committed ${formatZxid(applied[at]!.zxid)}, and others ${formatZxid(committed[at]!.zxid)}`,
      );
    }
    for (const txn of applied.slice(committed.length)) {
      const last = this.#committed.at(-1);
      if (last !== undefined && epochOf(txn.zxid) < epochOf(last.zxid)) {
        throw new Violation('GlobalPrimaryOrder', `${formatZxid(txn.zxid)} is committed behind ${formatZxid(last.zxid)}`);
      }
      for (const [epoch, beginning] of this.#beginnings) {
        if (!this.#leaders.has(epoch) || epoch <= epochOf(txn.zxid) || has(beginning, txn)) continue;
        throw new Violation('PrimaryIntegrity', `${formatZxid(txn.zxid)} is committed, and epoch ${epoch} has been led without it`);
      }
      this.#committed = [...this.#committed, txn];
    }
  }

  #checkMemory({ sid, logged, appliedZxid, remembered }: ServerView): void {
    // Who keeps nothing knows it: a leader then goes by the last txn that it has applied.
    if (remembered === undefined || remembered.length === 0) return;
    const applied = logged.filter(({ zxid }) => zxid <= appliedZxid);
    const end = applied.slice(-remembered.length).map(({ zxid }) => zxid);
    if (end.join() === remembered.join()) return;
    throw new Violation(
      'MemoryIsLog',
      `${sid} keeps ${remembered.map(formatZxid).join(', ')} for learners, and its log ends with ${end.map(formatZxid).join(', ') || 'nothing'}`,
    );
  }

  #checkDurability(servers: readonly ServerView[]): void {
    for (const txn of this.#committed) {
      const having = servers.filter(({ durable }) => has(durable, txn)).map(({ sid }) => sid);
      if (this.#isQuorum(having)) continue;
      throw new Violation(
        'CommittedLogDurability',
        `${formatZxid(txn.zxid)} is committed, and on the disks of ${having.join(', ') || 'nobody'}`,
      );
    }
  }
}

function lastPut(txns: readonly NamedTxn[]): string | undefined {
  return txns.findLast(({ name }) => isPut(name))?.name;
}

/** What is there once these are applied: every session, and the last put. */
function stateBehind(txns: readonly NamedTxn[]): string[] {
  const sessions = txns.map(({ name }) => name).filter((name) => !isPut(name) && !isError(name));
  const put = lastPut(txns);
  return (put === undefined ? sessions : [...sessions, put]).sort();
}

function has(history: readonly NamedTxn[], txn: NamedTxn): boolean {
  return history.some(({ zxid, name }) => zxid === txn.zxid && name === txn.name);
}

/** The first txn of a beginning that a history lacks. */
function missingOf(beginning: readonly NamedTxn[] | undefined, history: readonly NamedTxn[]): NamedTxn | undefined {
  return beginning?.find((txn) => !has(history, txn));
}
