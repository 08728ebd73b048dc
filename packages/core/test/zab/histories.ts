/**
 * A small ensemble of histories only: servers that elect, log, commit, crash and restart by Zab's
 * rules, and whose learners are synchronised by the rules under test. Every state it reaches is one
 * that real servers can be in.
 *
 * At each synchronisation the rules are tried with every form in which the leader might have its
 * history: all sizes of memory, with the log on disk and without, the log beginning at each of its
 * txns. Each must leave the learner with the leader's history, and truncate nothing committed.
 */
import { makeZxid } from '@tskeeper/protocol';
import { CommittedLog } from '../../src/zab/committed-log.ts';
import {
  type LogStep,
  LogWalk,
  type OpenedPlan,
  planSync,
  type SnapshotPlan,
  type SyncFacts,
  type SyncPlan,
} from '../../src/zab/sync-plan.ts';

export interface Walk {
  readonly result: OpenedPlan | SnapshotPlan | undefined;
  next(zxid: number, min: number, max: number): LogStep;
  end(min: number): 'met' | 'refused';
}

/** The code under test, which can be broken on purpose. */
export interface Rules {
  plan(facts: SyncFacts, committed: CommittedLog): SyncPlan;
  walk(learnerLast: number, wholeFrom: number): Walk;
}

export const rules: Rules = {
  plan: planSync,
  walk: (learnerLast, wholeFrom) => new LogWalk(learnerLast, wholeFrom),
};

/**
 * A txn is its zxid and a unique number: two leaders may never assign one zxid to two txns, and
 * here it would show.
 */
interface Txn {
  readonly zxid: number;
  readonly id: number;
}

interface Server {
  readonly sid: number;
  /** All its txns, in the log or in its snapshot. */
  history: readonly Txn[];
  /**
   * The content of its log on disk: after a SNAP it continues after a hole, and txns before the
   * hole may have been discarded.
   */
  disk: readonly Txn[];
  /** The zxid of the snapshot from which it was started, or that it was sent. */
  wholeFrom: number;
  /** Its last zxid if that is not a txn: the beginning of an epoch. */
  standsAt: number;
  acceptedEpoch: number;
  currentEpoch: number;
  /** It follows the leader, and has acknowledged NEWLEADER. */
  follows: boolean;
}

interface Leading {
  readonly server: Server;
  readonly epoch: number;
  counter: number;
  committed: number;
}

/** The next event, made of numbers so that a generator can shrink it. */
export interface Happening {
  readonly what: 'elect' | 'propose' | 'join' | 'restart' | 'lose' | 'newcomer';
  readonly who: number;
  readonly bits: number;
}

export class Ensemble {
  readonly #rules: Rules;
  readonly #voters: number;
  readonly servers: Server[];
  #leading: Leading | undefined;
  #committed: readonly Txn[] = [];
  #ids = 0;
  /** How often each way of synchronising was taken, so that a test can check coverage. */
  readonly seen: Map<string, number>;

  /** The last server is an observer. */
  constructor(count: number, tested: Rules, seen: Map<string, number>) {
    this.#rules = tested;
    this.#voters = count - 1;
    this.seen = seen;
    this.servers = Array.from({ length: count }, (_, sid) => emptyServer(sid));
  }

  happens({ what, who, bits }: Happening): void {
    const server = this.servers[who % this.servers.length]!;
    switch (what) {
      case 'elect':
        this.#elect(bits);
        return;
      case 'propose':
        this.#propose(who, bits);
        return;
      case 'join':
        if (this.#leading !== undefined && this.#leading.server !== server) this.#join(this.#leading, server, bits);
        return;
      case 'restart':
        this.#stop(server);
        this.#restart(server, bits);
        return;
      case 'lose':
        this.#stop(server);
        return;
      case 'newcomer':
        // One more observer that joins with an empty disk, replacing the last.
        this.servers[this.servers.length - 1] = emptyServer(this.servers.length - 1);
        return;
      default:
        what satisfies never;
    }
  }

  #stop(server: Server): void {
    server.follows = false;
    if (this.#leading?.server !== server) return;
    this.#leading = undefined;
    for (const each of this.servers) each.follows = false;
  }

  /**
   * Starts from one of the snapshots that it may have written since the last start; memory contains
   * the later txns.
   */
  #restart(server: Server, bits: number): void {
    const moments = [server.wholeFrom, ...server.history.map(({ zxid }) => zxid), server.standsAt].filter(
      (zxid) => zxid >= server.wholeFrom,
    );
    server.wholeFrom = moments[bits % moments.length]!;
    // Only a snapshot stores the beginning of an epoch.
    if (server.wholeFrom < server.standsAt) server.standsAt = 0;
  }

  #elect(bits: number): void {
    if (this.#leading !== undefined) this.#stop(this.#leading.server);
    const voters = this.servers.slice(0, this.#voters);
    const present = voters.filter(({ sid }) => ((bits >> (sid * 2)) & 3) !== 0);
    if (present.length * 2 <= this.#voters) return;
    const epoch = Math.max(...present.map(({ acceptedEpoch }) => acceptedEpoch)) + 1;
    for (const each of present) each.acceptedEpoch = epoch;
    const leader = present.reduce((best, each) => (isAhead(each, best) ? each : best));
    leader.currentEpoch = epoch;
    const acked = [leader];
    for (const each of present) {
      if (each === leader) continue;
      // Some do not reach NEWLEADER, and some crash on the way.
      const fate = (bits >> (10 + each.sid * 2)) & 3;
      if (fate === 0) continue;
      this.#synchronise(leader, leader.history, each, fate === 1 ? bits >> 20 : undefined);
      if (fate === 1) continue;
      each.currentEpoch = epoch;
      acked.push(each);
    }
    if (acked.length * 2 <= this.#voters) return;
    this.#expectPrefix(this.#committed, leader.history, 'the new leader lacks what was committed');
    this.#committed = leader.history;
    leader.standsAt = makeZxid(epoch, 0);
    this.#leading = { server: leader, epoch, counter: 0, committed: leader.history.length };
    for (const each of acked) each.follows = each !== leader;
  }

  #propose(count: number, bits: number): void {
    const leading = this.#leading;
    if (leading === undefined) return;
    for (let i = 0; i < 1 + (count % 4); i++) {
      log(leading.server, { zxid: makeZxid(leading.epoch, ++leading.counter), id: ++this.#ids });
    }
    for (const each of this.servers) if (each.follows) this.#receive(leading, each, (bits >> (each.sid * 4)) & 7);
    this.#commit(leading);
  }

  /** Accepts some further proposals; an observer, only committed ones. */
  #receive({ server, committed }: Leading, follower: Server, count: number): void {
    const end = follower.sid < this.#voters ? server.history.length : committed;
    for (const txn of server.history.slice(follower.history.length, Math.min(end, follower.history.length + count))) log(follower, txn);
  }

  #commit(leading: Leading): void {
    const lengths = [leading.server, ...this.servers.filter(({ follows, sid }) => follows && sid < this.#voters)]
      .map(({ history }) => history.length)
      .sort((a, b) => b - a);
    leading.committed = Math.max(leading.committed, lengths[Math.floor(this.#voters / 2)] ?? 0);
    this.#committed = leading.server.history.slice(0, leading.committed);
  }

  /** Connects to a leader that serves already; perhaps it has followed it before. */
  #join(leading: Leading, learner: Server, bits: number): void {
    learner.follows = false;
    learner.acceptedEpoch = Math.max(learner.acceptedEpoch, leading.epoch);
    const crashes = (bits & 3) === 0;
    this.#synchronise(leading.server, this.#committed, learner, crashes ? bits >> 2 : undefined);
    if (crashes) return;
    learner.currentEpoch = leading.epoch;
    // Some save where the epoch began, as our own and some of ZooKeeper's servers do.
    if ((bits & 4) !== 0 && learner.history.length === 0) learner.standsAt = makeZxid(leading.epoch, 0);
    learner.follows = true;
    this.#receive(leading, learner, (bits >> 4) & 7);
    this.#commit(leading);
  }

  /**
   * Tries every way, then continues with one of them. `crashAfter`: the learner gets only that far.
   */
  #synchronise(leader: Server, history: readonly Txn[], learner: Server, crashAfter: number | undefined): void {
    const inMemory = history.filter(({ zxid }) => zxid > leader.wholeFrom);
    const leaderLast = Math.max(history.at(-1)?.zxid ?? 0, leader.standsAt);
    const ways: { readonly committed: CommittedLog; readonly logFrom: number | undefined }[] = [];
    for (let memory = 0; memory <= inMemory.length; memory++) {
      const committed = committedLogOf(memory === 0 ? [] : inMemory.slice(-memory));
      ways.push({ committed, logFrom: undefined });
      const facts = { learnerLast: last(learner), leaderLast, forceSnapshotSync: false, logBytesMax: Infinity };
      if (planSync(facts, committed).kind !== 'readLog') continue;
      for (let logFrom = 0; logFrom <= leader.disk.length; logFrom++) ways.push({ committed, logFrom });
    }
    const before: Server = { ...learner };
    const chosen = (history.length * 7 + learner.history.length * 3 + (crashAfter ?? 0)) % ways.length;
    for (const [i, { committed, logFrom }] of ways.entries()) {
      const trial: Server = i === chosen ? learner : { ...before };
      const { plan, sent, through } = this.#planFor(leader, leaderLast, committed, last(before), logFrom);
      this.seen.set(through, (this.seen.get(through) ?? 0) + 1);
      const txns = plan.kind === 'snap' ? [] : [...sent, ...zxidsAbove(committed, plan.from)].map((zxid) => txnOf(leader, zxid));
      const crash = i === chosen ? crashAfter : undefined;
      this.#apply(trial, plan, txns, history, leaderLast, crash);
      if (crash === undefined) {
        const way = `memory of ${committed.length}, log from ${logFrom ?? 'nowhere'}, ${plan.kind}`;
        if (!isSame(trial.history, history)) throw new Error(`${way}: ${show(before)} became ${show(trial)}, not ${show({ history })}`);
      }
    }
  }

  #planFor(
    leader: Server,
    leaderLast: number,
    committed: CommittedLog,
    learnerLast: number,
    logFrom: number | undefined,
  ): { plan: OpenedPlan | SnapshotPlan; sent: number[]; through: string } {
    const facts = { learnerLast, leaderLast, forceSnapshotSync: false, logBytesMax: logFrom === undefined ? undefined : Infinity };
    const plan = this.#rules.plan(facts, committed);
    const named = (chosen: OpenedPlan | SnapshotPlan): string => (chosen.kind === 'snap' ? chosen.reason : chosen.kind);
    if (plan.kind !== 'readLog') return { plan, sent: [], through: named(plan) };
    const walk = this.#rules.walk(plan.from, leader.wholeFrom);
    const sent: number[] = [];
    for (const { zxid } of leader.disk.slice(logFrom)) {
      const step = walk.next(zxid, committed.min(leaderLast), committed.max(leaderLast));
      if (step === 'send') sent.push(zxid);
      if (step === 'met' || step === 'refused') break;
    }
    walk.end(committed.min(leaderLast));
    const { result } = walk;
    if (result === undefined) throw new Error('the log has ended, and there is no result');
    return { plan: result, sent, through: `log: ${named(result)}` };
  }

  #apply(
    learner: Server,
    plan: OpenedPlan | SnapshotPlan,
    txns: readonly Txn[],
    history: readonly Txn[],
    leaderLast: number,
    crashAfter: number | undefined,
  ): void {
    const before = learner.history;
    if (plan.kind === 'snap') {
      if (crashAfter !== undefined) return;
      learner.history = history;
      // Nothing above the snapshot may stay in the log. Txns below stay, discarded or not.
      learner.disk = learner.disk.filter(({ zxid }) => zxid <= leaderLast);
      learner.wholeFrom = learner.standsAt = leaderLast;
    } else {
      if (plan.kind === 'trunc') {
        if (!before.some(({ zxid }) => zxid === last(learner)))
          throw new Error(`TRUNC of ${show(learner)}, which has no txn at its last zxid`);
        // A learner of ZooKeeper searches for the txn itself, and truncates after whatever it finds
        // in its place.
        if (!before.some(({ zxid }) => zxid === plan.zxid)) throw new Error(`TRUNC to ${plan.zxid}, which ${show(learner)} has not`);
        learner.history = before.filter(({ zxid }) => zxid <= plan.zxid);
        learner.disk = learner.disk.filter(({ zxid }) => zxid <= plan.zxid);
      }
      for (const txn of txns.slice(0, crashAfter === undefined ? txns.length : crashAfter % (txns.length + 1))) {
        const at = learner.history.at(-1)?.zxid ?? 0;
        if (txn.zxid <= at) throw new Error(`txn ${txn.zxid} is sent after ${at}`);
        log(learner, txn);
      }
    }
    const lost = this.#committed.find((txn) => before.includes(txn) && !learner.history.includes(txn));
    if (lost !== undefined) throw new Error(`${show(learner)} lost the committed txn ${lost.zxid}`);
  }

  #expectPrefix(prefix: readonly Txn[], whole: readonly Txn[], message: string): void {
    if (!isSame(prefix, whole.slice(0, prefix.length)))
      throw new Error(`${message}: ${show({ history: prefix })}, ${show({ history: whole })}`);
  }
}

function emptyServer(sid: number): Server {
  return { sid, history: [], disk: [], wholeFrom: 0, standsAt: 0, acceptedEpoch: 0, currentEpoch: 0, follows: false };
}

function log(server: Server, txn: Txn): void {
  server.history = [...server.history, txn];
  server.disk = [...server.disk, txn];
}

function last({ history, standsAt }: Server): number {
  return Math.max(history.at(-1)?.zxid ?? 0, standsAt);
}

function isAhead(a: Server, b: Server): boolean {
  return a.currentEpoch !== b.currentEpoch ? a.currentEpoch > b.currentEpoch : last(a) > last(b);
}

function committedLogOf(txns: readonly Txn[]): CommittedLog {
  const committed = new CommittedLog({ countMax: 500, bytesMax: 1 << 20 });
  for (const { zxid } of txns) committed.append(zxid, Buffer.alloc(0));
  return committed;
}

function zxidsAbove(committed: CommittedLog, zxid: number): number[] {
  const zxids: number[] = [];
  committed.forEachAbove(zxid, (each) => zxids.push(each) > 0);
  return zxids;
}

/** What a leader sends for a zxid: the txn in its memory, or else in its log. */
function txnOf({ history, disk }: Server, zxid: number): Txn {
  const here = (txn: Txn): boolean => txn.zxid === zxid;
  return history.find(here) ?? disk.find(here)!;
}

function isSame(a: readonly Txn[], b: readonly Txn[]): boolean {
  return a.length === b.length && a.every(({ id }, i) => id === b[i]!.id);
}

function show({ history }: { readonly history: readonly Txn[] }): string {
  return `[${history.map(({ zxid }) => `${Math.floor(zxid / 2 ** 32)}:${zxid >>> 0}`).join(' ')}]`;
}
