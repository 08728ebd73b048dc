/**
 * What must hold in every state of an ensemble, with the names of the TLA+ specifications of
 * ZooKeeper (Protocol spec and Remix), and what must be durable before a server states it (P30,
 * P31). The checks see servers as plain values and share no rule with the machines.
 *
 * Besides the current state they keep history variables, as a specification calls them: who led an
 * epoch, with which history it began, what was proposed, and what was committed. All of them follow
 * from what was seen, and are part of the explored state.
 */
import { counterOf, epochOf, formatZxid, type Sid, type Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '@tskeeper/core/internal';
import { isError, isPut, isReconfig, membersOf } from './txn-names.ts';

export const invariants = {
  Leadership1: 'two servers never lead the same epoch at the same time',
  Leadership2: 'an epoch is only ever led by one server',
  PrefixConsistency: 'of what two servers have committed, one is a prefix of the other',
  Integrity: 'a log holds only what a leader has proposed',
  Agreement: 'a zxid names one txn on every server',
  TotalOrder: 'txns are committed in one order, at every server',
  LocalPrimaryOrder: 'the txns of an epoch are committed in the order of their proposal, without gaps',
  GlobalPrimaryOrder: 'no txn of an earlier epoch is committed after one of a later',
  PrimaryIntegrity: 'a leader has everything committed in earlier epochs before it proposes',
  ProcessConsistency: 'a server that serves in an epoch has the history with which it began',
  MonotonicRead: 'a server does not take back what it has served',
  LeaderLogCompleteness: 'the log of a leader that serves has everything committed in earlier epochs',
  CommittedLogDurability: 'a committed txn is durable on a quorum of the configuration in force',
  JointQuorum: 'a configuration is committed by a quorum of it, and by one of the configuration before it',
  EpochQuorum: 'a leader serves in an epoch that a quorum of each configuration that may be in force has begun',
  ActiveIsCommitted: 'a server uses a configuration alone only once it is committed',
  LeaderVotes: 'a server leads only under a configuration in which it votes',
  CommittedLogMatchesLog: 'the txns kept in memory for learners are the last of those applied, without gaps',
  StateMatchesLog: 'the served state is that of the log up to its last zxid',
  AcknowledgedIsCommitted: 'a write acknowledged to a client is committed',
  EpochFiles: 'on disk, acceptedEpoch is never lower than currentEpoch',
  HistoryBeforeEpoch: 'currentEpoch is on disk only with the history with which the epoch began',
  AcceptedEpochDurable: 'a new epoch is on disk before a server proposes or accepts it',
  DurableBeforeAck: 'a server acknowledges NEWLEADER and proposals only after they are durable',
  NewLeaderAckFirst: 'a server acknowledges no proposal of an epoch before its currentEpoch is that epoch',
  VotesFromDisk: 'a server that looks for a leader votes for itself with the last txn on its disk, while the disk is idle',
  ElectsLatestHistory: 'no voter has a later history than the leader it elects',
  ElectionTerminates:
    'a server that looks for a leader finds that of a quorum it can reach, and a quorum whose members all look elects one in time',
  NothingRolledBack: 'a client never sees a state earlier than one it has seen, on any server',
  SyncThenRead: 'a read after a sync shows every write acknowledged to any client before the sync was sent',
  ReadsMatchHistory: 'a read returns the committed state at its zxid',
  Liveness: 'when faults cease, the ensemble comes to serve',
  NoProtocolError: 'no server receives a packet that it does not expect, and no machine throws',
} as const;

export type InvariantName = keyof typeof invariants;

export class Violation extends Error {
  readonly invariant: InvariantName;

  constructor(invariant: InvariantName, what: string) {
    super(`${invariant} (${invariants[invariant]}): ${what}`);
    this.invariant = invariant;
  }
}

/** A txn in a log. `name` is unique. */
export interface NamedTxn {
  readonly zxid: Zxid;
  readonly name: string;
}

/** A server as the invariants see it. */
export interface ServerView {
  readonly sid: Sid;
  /** Undefined while the server is down, or neither leads nor learns. */
  readonly role: 'leading' | 'learning' | undefined;
  readonly serves: boolean;
  /** The epoch in which it serves. */
  readonly epoch: number | undefined;
  /** Everything that is durable, including the txns that a snapshot covers. */
  readonly durable: readonly NamedTxn[];
  /** The same, and what is being written. */
  readonly logged: readonly NamedTxn[];
  /** The state in memory includes the txns up to here. */
  readonly appliedZxid: Zxid;
  /** Names of the txns whose effect is in the state in memory; undefined if not needed. */
  readonly state: readonly string[] | undefined;
  /** Zxids of the txns kept in memory for learners, in order; undefined if not needed. */
  readonly committedLogZxids: readonly Zxid[] | undefined;
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
  /** The version of its active configuration: the zxid of a txn, or one without a txn. */
  readonly configVersion: number;
}

/**
 * Whether these servers include a quorum of the configuration with these members; undefined stands
 * for the initial one.
 */
export type IsQuorum = (sids: readonly Sid[], members: string | undefined) => boolean;

/** The effect of a reconfig on a state. */
export function versionName(version: number): string {
  return `version ${version.toString(16)}`;
}

export class Invariants {
  readonly #isQuorum: IsQuorum;
  readonly #leaders = new Map<number, Sid>();
  /**
   * By epoch: the history with which it begins, which is that of its leader when it writes
   * currentEpoch.
   */
  readonly #initialHistories = new Map<number, readonly NamedTxn[]>();
  readonly #proposed = new Map<Zxid, string>();
  #committed: readonly NamedTxn[] = [];
  /** Writes that were acknowledged to clients in this step. */
  readonly #received: string[] = [];
  /** The latest txn that was acknowledged to any client. */
  #acknowledged: Zxid = 0;
  /** What a client read in this step, and at which zxid. */
  readonly #reads: { readonly name: string; readonly zxid: Zxid }[] = [];
  /** The last zxid up to which each server has served. */
  readonly #served = new Map<Sid, Zxid>();
  /** The members of the configuration in force, which is committed; undefined for the initial one. */
  #members: string | undefined;
  /** The configurations that were committed in this step, each with the one before it. */
  readonly #reconfigured: { readonly txn: NamedTxn; readonly before: string | undefined }[] = [];

  constructor(isQuorum: IsQuorum) {
    this.#isQuorum = isQuorum;
  }

  /** A copy with the same past and a future of its own. */
  copy(): Invariants {
    const copy = new Invariants(this.#isQuorum);
    for (const [epoch, sid] of this.#leaders) copy.#leaders.set(epoch, sid);
    for (const [epoch, beginning] of this.#initialHistories) copy.#initialHistories.set(epoch, beginning);
    for (const [zxid, name] of this.#proposed) copy.#proposed.set(zxid, name);
    for (const [sid, zxid] of this.#served) copy.#served.set(sid, zxid);
    copy.#committed = this.#committed;
    copy.#acknowledged = this.#acknowledged;
    copy.#members = this.#members;
    return copy;
  }

  get committed(): readonly NamedTxn[] {
    return this.#committed;
  }

  /** The members of the last committed configuration; undefined if that is the initial one. */
  get members(): string | undefined {
    return this.#members;
  }

  /** The history with which an epoch began; undefined if it has not begun. */
  initialHistory(epoch: number): readonly NamedTxn[] | undefined {
    return this.#initialHistories.get(epoch);
  }

  fingerprint(to: Fingerprint): void {
    for (const numbers of [this.#leaders, this.#served]) {
      for (const key of [...numbers.keys()].sort((a, b) => a - b)) {
        to.number(key);
        to.number(numbers.get(key)!);
      }
    }
    for (const epoch of [...this.#initialHistories.keys()].sort((a, b) => a - b)) {
      to.number(epoch);
      for (const { zxid } of this.#initialHistories.get(epoch)!) to.number(zxid);
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
      throw new Violation('LocalPrimaryOrder', `${formatZxid(zxid)} is proposed after ${formatZxid(before.at(-1)?.zxid ?? 0)}`);
    }
    const missing = this.#committed.find((txn) => epochOf(txn.zxid) < epoch && !before.some((own) => own.zxid === txn.zxid));
    if (missing !== undefined) {
      throw new Violation('PrimaryIntegrity', `${formatZxid(zxid)} is proposed by a leader that lacks ${formatZxid(missing.zxid)}`);
    }
    this.#proposed.set(zxid, name);
  }

  /**
   * currentEpoch has been written. Later the server may lose txns again that no quorum had, when it
   * follows a leader of a later epoch; now the whole history must be there.
   */
  epochWritten({ sid, currentEpoch, durable }: ServerView): void {
    const missing = firstMissing(this.#initialHistories.get(currentEpoch), durable);
    if (missing === undefined) return;
    throw new Violation('HistoryBeforeEpoch', `${sid} has currentEpoch ${currentEpoch} on disk without ${formatZxid(missing.zxid)}`);
  }

  /** A server requests the write of its currentEpoch. */
  epochBegun(epoch: number, { role, sid, logged }: ServerView): void {
    if (role !== 'leading') return;
    if (this.#initialHistories.has(epoch)) throw new Violation('Leadership2', `${sid} begins epoch ${epoch}, which has begun already`);
    this.#initialHistories.set(epoch, [...logged]);
  }

  /** A leader proposes an epoch. */
  epochProposed(epoch: number, { sid, acceptedEpoch }: ServerView): void {
    if (acceptedEpoch < epoch) {
      throw new Violation('AcceptedEpochDurable', `${sid} proposes epoch ${epoch}, but has acceptedEpoch ${acceptedEpoch} on disk`);
    }
  }

  /** A learner has accepted the epoch that its leader proposed. */
  epochAccepted(epoch: number, { sid, acceptedEpoch }: ServerView): void {
    if (acceptedEpoch < epoch) {
      throw new Violation('AcceptedEpochDurable', `${sid} accepts epoch ${epoch}, but has acceptedEpoch ${acceptedEpoch} on disk`);
    }
  }

  /** A learner acknowledges a txn, or NEWLEADER. */
  acknowledged(zxid: Zxid, { sid, durable, currentEpoch }: ServerView): void {
    if (counterOf(zxid) > 0) {
      if (currentEpoch < epochOf(zxid)) {
        // A leader of ZooKeeper takes the first ACK for that of NEWLEADER, and ends at any other
        // (ZOOKEEPER-4685).
        throw new Violation('NewLeaderAckFirst', `${sid} acknowledges ${formatZxid(zxid)}, but has currentEpoch ${currentEpoch} on disk`);
      }
      if (durable.some((txn) => txn.zxid === zxid)) return;
      throw new Violation('DurableBeforeAck', `${sid} acknowledges ${formatZxid(zxid)}, which is not on its disk`);
    }
    const epoch = epochOf(zxid);
    if (currentEpoch !== epoch)
      throw new Violation('DurableBeforeAck', `${sid} acknowledges epoch ${epoch}, but has currentEpoch ${currentEpoch} on disk`);
    const missing = firstMissing(this.#initialHistories.get(epoch), durable);
    if (missing === undefined) return;
    throw new Violation('DurableBeforeAck', `${sid} acknowledges epoch ${epoch} without ${formatZxid(missing.zxid)} on disk`);
  }

  /**
   * A server that looks for a leader votes for itself. At the beginning of an epoch the zxid is
   * later than its last txn.
   */
  voted(zxid: Zxid, { sid, durable, logged }: ServerView): void {
    const last = durable.at(-1)?.zxid ?? 0;
    if (logged.length !== durable.length || logged.at(-1)?.zxid !== durable.at(-1)?.zxid) {
      throw new Violation('VotesFromDisk', `${sid} looks for a leader while its log differs from its disk`);
    }
    if (counterOf(zxid) > 0 ? zxid !== last : zxid < last) {
      throw new Violation('VotesFromDisk', `${sid} votes with ${formatZxid(zxid)}, but its disk has ${formatZxid(last)}`);
    }
  }

  /**
   * These servers elected a leader. If it were not the best of them, discovery would still keep it
   * from leading, and only time would be lost: no other invariant would show it.
   */
  elected(leader: ServerView, voters: readonly ServerView[]): void {
    const lastOf = ({ durable }: ServerView) => durable.at(-1)?.zxid ?? 0;
    for (const voter of voters) {
      const isLater =
        voter.currentEpoch === leader.currentEpoch ? lastOf(voter) > lastOf(leader) : voter.currentEpoch > leader.currentEpoch;
      if (!isLater) continue;
      const [its, own] = [leader, voter].map((one) => `epoch ${one.currentEpoch} and ${formatZxid(lastOf(one))}`);
      throw new Violation('ElectsLatestHistory', `${leader.sid} is elected with ${its}; ${voter.sid} has ${own}`);
    }
  }

  /**
   * A client receives the confirmation of its session or its put. What is committed is known at the
   * end of the step, and checked then.
   */
  clientAcknowledged(name: string): void {
    this.#received.push(name);
  }

  get acknowledgedZxid(): Zxid {
    return this.#acknowledged;
  }

  /**
   * A client reads the put of that name, or none, at that zxid. Returns the zxid of the put. What
   * is committed is known at the end of the step.
   */
  clientRead(name: string, zxid: Zxid): Zxid {
    this.#reads.push({ name, zxid });
    if (name === '') return 0;
    for (const [proposed, its] of this.#proposed) if (its === name) return proposed;
    throw new Violation('ReadsMatchHistory', `a client reads "${name}", which no leader has proposed`);
  }

  // ---- what is

  check(servers: readonly ServerView[]): void {
    for (const server of servers) {
      this.#checkEpochFiles(server);
      this.#checkLog(server);
    }
    const { members } = this;
    const begun = this.#checkLeaders(servers);
    for (const server of servers) {
      if (!server.serves) continue;
      this.checkServed(server);
      this.#checkCommittedLog(server);
    }
    for (const server of servers) this.#checkActiveConfig(server);
    this.#checkDurability(servers);
    for (const leader of begun) for (const config of [members, this.#members]) this.#checkEpochQuorum(leader, servers, config);
    for (const server of servers) this.#checkLeaderVotes(server);
    for (const name of this.#received.splice(0)) {
      const done = this.#committed.find((txn) => txn.name === name);
      this.#acknowledged = Math.max(this.#acknowledged, done?.zxid ?? 0);
      if (done !== undefined) continue;
      throw new Violation('AcknowledgedIsCommitted', `${name} was acknowledged to a client, but is not committed`);
    }
    for (const { name, zxid } of this.#reads.splice(0)) {
      const last = lastPut(this.#committed.filter((txn) => txn.zxid <= zxid)) ?? '';
      if (last !== name)
        throw new Violation('ReadsMatchHistory', `a client reads "${name}" at ${formatZxid(zxid)}, but the history has "${last}"`);
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
      if (known === undefined) throw new Violation('Integrity', `${sid} has ${formatZxid(txn.zxid)}, which no leader has proposed`);
      if (known !== txn.name) throw new Violation('Agreement', `${formatZxid(txn.zxid)} at ${sid} is not the txn that was proposed`);
      if (before !== undefined && before.zxid >= txn.zxid)
        throw new Violation('TotalOrder', `${sid} has ${formatZxid(txn.zxid)} out of order`);
      const isNext = counterOf(txn.zxid) === 1 || before?.zxid === txn.zxid - 1;
      if (!isNext) throw new Violation('LocalPrimaryOrder', `the log of ${sid} lacks a txn before ${formatZxid(txn.zxid)}`);
      before = txn;
    }
  }

  /** Returns the leaders that serve for the first time. */
  #checkLeaders(servers: readonly ServerView[]): ServerView[] {
    const leading = servers.filter(({ role, serves }) => role === 'leading' && serves);
    for (const { sid, epoch } of leading) {
      const other = leading.find((one) => one.sid !== sid && one.epoch === epoch);
      if (other !== undefined) throw new Violation('Leadership1', `${sid} and ${other.sid} lead epoch ${epoch}`);
      const known = this.#leaders.get(epoch!);
      if (known !== undefined && known !== sid) throw new Violation('Leadership2', `${sid} leads epoch ${epoch}, which ${known} led`);
    }
    const begun = leading.filter(({ epoch }) => !this.#leaders.has(epoch!));
    for (const { sid, epoch, logged } of leading) {
      this.#leaders.set(epoch!, sid);
      const missing = this.#committed.find((txn) => epochOf(txn.zxid) < epoch! && !has(logged, txn));
      if (missing !== undefined) {
        throw new Violation('LeaderLogCompleteness', `${sid} leads epoch ${epoch} without ${formatZxid(missing.zxid)}, which is committed`);
      }
    }
    return begun;
  }

  #checkEpochQuorum({ sid, epoch }: ServerView, servers: readonly ServerView[], members: string | undefined): void {
    const begun = servers.filter(({ currentEpoch }) => currentEpoch >= epoch!).map((server) => server.sid);
    if (this.#isQuorum(begun, members)) return;
    throw new Violation(
      'EpochQuorum',
      `${sid} serves in epoch ${epoch}, which only ${begun.join(', ')} have begun, and those are not a quorum of ${members ?? 'the initial configuration'}`,
    );
  }

  /**
   * A configuration is active that no server has shown to a client yet: a leader that completes it,
   * and has no place in it, does not serve.
   */
  #checkActiveConfig({ sid, configVersion, logged }: ServerView): void {
    if (counterOf(configVersion) === 0 || this.#committed.some(({ zxid }) => zxid === configVersion)) return;
    const history = logged.filter(({ zxid }) => zxid <= configVersion);
    if (history.at(-1)?.zxid !== configVersion)
      throw new Violation('ActiveIsCommitted', `${sid} uses configuration ${formatZxid(configVersion)}, which is not committed`);
    this.#commit(sid, history);
  }

  #checkLeaderVotes({ sid, role, serves, configVersion }: ServerView): void {
    const name = role === 'leading' && serves ? this.#proposed.get(configVersion) : undefined;
    const members = name === undefined ? undefined : membersOf(name);
    if (members === undefined || members.split(' ').includes(`${sid}`)) return;
    throw new Violation('LeaderVotes', `${sid} leads under the configuration ${members}`);
  }

  /** A server shows clients what it has applied, so that is committed. */
  checkServed({ sid, epoch, logged, appliedZxid, state }: ServerView): void {
    const applied = logged.filter(({ zxid }) => zxid <= appliedZxid);
    const missing = firstMissing(this.#initialHistories.get(epoch!), applied);
    if (missing !== undefined)
      throw new Violation('ProcessConsistency', `${sid} serves in epoch ${epoch} without ${formatZxid(missing.zxid)}`);
    if (state !== undefined && state.join() !== stateAfter(applied).join()) {
      throw new Violation(
        'StateMatchesLog',
        `${sid} serves ${state.length} txns, but its log has ${applied.length} up to ${formatZxid(appliedZxid)}`,
      );
    }
    const last = applied.at(-1)?.zxid ?? 0;
    const before = this.#served.get(sid) ?? 0;
    if (last < before) throw new Violation('MonotonicRead', `${sid} served ${formatZxid(before)} before, and now ${formatZxid(last)}`);
    this.#served.set(sid, last);
    this.#commit(sid, applied);
  }

  #commit(sid: Sid, applied: readonly NamedTxn[]): void {
    const committed = this.#committed;
    for (let at = 0; at < Math.min(applied.length, committed.length); at++) {
      if (applied[at]!.name === committed[at]!.name) continue;
      throw new Violation(
        'PrefixConsistency',
        `at index ${at} ${sid} has committed ${formatZxid(applied[at]!.zxid)}, but others ${formatZxid(committed[at]!.zxid)}`,
      );
    }
    for (const txn of applied.slice(committed.length)) {
      const last = this.#committed.at(-1);
      if (last !== undefined && epochOf(txn.zxid) < epochOf(last.zxid)) {
        throw new Violation('GlobalPrimaryOrder', `${formatZxid(txn.zxid)} is committed after ${formatZxid(last.zxid)}`);
      }
      for (const [epoch, beginning] of this.#initialHistories) {
        if (!this.#leaders.has(epoch) || epoch <= epochOf(txn.zxid) || has(beginning, txn)) continue;
        throw new Violation('PrimaryIntegrity', `${formatZxid(txn.zxid)} is committed, but epoch ${epoch} was led without it`);
      }
      this.#committed = [...this.#committed, txn];
      const members = membersOf(txn.name);
      if (members === undefined) continue;
      this.#reconfigured.push({ txn, before: this.#members });
      this.#members = members;
    }
  }

  #checkCommittedLog({ sid, logged, appliedZxid, committedLogZxids }: ServerView): void {
    // A leader that holds no txns in memory knows it, and uses the last txn that it has applied.
    if (committedLogZxids === undefined || committedLogZxids.length === 0) return;
    const applied = logged.filter(({ zxid }) => zxid <= appliedZxid);
    const end = applied.slice(-committedLogZxids.length).map(({ zxid }) => zxid);
    if (end.join() === committedLogZxids.join()) return;
    throw new Violation(
      'CommittedLogMatchesLog',
      `${sid} keeps ${committedLogZxids.map(formatZxid).join(', ')} for learners, but its log ends with ${end.map(formatZxid).join(', ') || 'nothing'}`,
    );
  }

  #checkDurability(servers: readonly ServerView[]): void {
    const having = (txn: NamedTxn): Sid[] => servers.filter(({ durable }) => has(durable, txn)).map(({ sid }) => sid);
    for (const { txn, before } of this.#reconfigured.splice(0)) {
      const sids = having(txn);
      if (this.#isQuorum(sids, before) && this.#isQuorum(sids, membersOf(txn.name))) continue;
      throw new Violation('JointQuorum', `${formatZxid(txn.zxid)} is committed, but only durable on ${sids.join(', ') || 'no server'}`);
    }
    for (const txn of this.#committed) {
      const sids = having(txn);
      if (this.#isQuorum(sids, this.#members)) continue;
      throw new Violation(
        'CommittedLogDurability',
        `${formatZxid(txn.zxid)} is committed, but only durable on ${sids.join(', ') || 'no server'}`,
      );
    }
  }
}

function lastPut(txns: readonly NamedTxn[]): string | undefined {
  return txns.findLast(({ name }) => isPut(name))?.name;
}

/** The state after these txns: every session, the last put and the last configuration. */
function stateAfter(txns: readonly NamedTxn[]): string[] {
  const state = txns.map(({ name }) => name).filter((name) => !isPut(name) && !isError(name) && !isReconfig(name));
  const put = lastPut(txns);
  if (put !== undefined) state.push(put);
  const reconfig = txns.findLast(({ name }) => isReconfig(name));
  if (reconfig !== undefined) state.push(versionName(reconfig.zxid));
  return state.sort();
}

function has(history: readonly NamedTxn[], txn: NamedTxn): boolean {
  return history.some(({ zxid, name }) => zxid === txn.zxid && name === txn.name);
}

/** The first txn of a beginning that a history lacks. */
function firstMissing(initialHistory: readonly NamedTxn[] | undefined, history: readonly NamedTxn[]): NamedTxn | undefined {
  return initialHistory?.find((txn) => !has(history, txn));
}
