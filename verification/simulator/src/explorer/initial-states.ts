/**
 * Disks with which a search begins: states that faults and recoveries produced in a small world of
 * their own, so they are reachable. All servers are down and start. A search that begins there
 * reaches in a few choices what would take a hundred from empty disks.
 */
import { type Choice, encodeChoice, type ChoiceKind, decodeChoice } from './choice.ts';
import { type Scope, scopeDefaults } from './scope.ts';
import type { SearchStart } from './search.ts';
import { type InitialState, SmallWorld } from './small-world.ts';

export const initialStateNames = [
  'empty',
  'uncommitted tail',
  'two uncommitted tails',
  'lagging server',
  'interrupted join',
  'accepted epoch',
  'later accepted epoch',
  'uncommitted snapshot',
  'pending configuration',
  'missed reconfiguration',
] as const;
export type InitialStateName = (typeof initialStateNames)[number];

/** Large enough never to be exhausted. */
const unlimitedScope: Scope = { ...scopeDefaults, txns: 14, reconfigs: 14, crashes: 14, cuts: 0, wakes: 100 };
const growingScope: Scope = { ...unlimitedScope, servers: 4, ensemble: 'growing' };

/** The servers that an initial state is of, and the configurations that they may have. */
export function ensembleOfInitialState(name: InitialStateName): Pick<Scope, 'servers' | 'ensemble'> {
  const { servers, ensemble } = name === 'pending configuration' || name === 'missed reconfiguration' ? growingScope : scopeDefaults;
  return { servers, ensemble };
}

/** Returns undefined for empty disks. */
export function buildInitialState(name: InitialStateName): InitialState | undefined {
  switch (name) {
    case 'empty':
      return undefined;
    case 'uncommitted tail':
      return uncommittedTail();
    case 'two uncommitted tails':
      return twoUncommittedTails();
    case 'lagging server':
      return leftBehind();
    case 'interrupted join':
      return interruptedJoin();
    case 'accepted epoch':
      return epochAccepted();
    case 'later accepted epoch':
      return laterEpochAccepted();
    case 'uncommitted snapshot':
      return snapshotAhead();
    case 'pending configuration':
      return pendingConfiguration();
    case 'missed reconfiguration':
      return missedReconfiguration();
    default:
      return name satisfies never;
  }
}

/** The third leads, and all have one txn. */
function withOneTxn(): ScriptedRun {
  const director = new ScriptedRun();
  director.serve([1, 2, 3]);
  director.commit(3, [1, 2, 3]);
  return director;
}

/** And the third has another txn that no other server has. */
function withUncommittedTail(): ScriptedRun {
  const director = withOneTxn();
  director.logAlone(3);
  return director;
}

/** It has crashed with that txn, and the second leads the first. */
function withTailAndNewLeader(): ScriptedRun {
  const director = withUncommittedTail();
  director.crash(3);
  director.serve([1, 2]);
  return director;
}

/** All have one txn; the third, which led, has another that no other server has. */
function uncommittedTail(): InitialState {
  return withUncommittedTail().crashAll();
}

/**
 * Each of two leaders left a txn that no other server has, in different epochs, after one that all
 * have.
 */
function twoUncommittedTails(): InitialState {
  const director = withTailAndNewLeader();
  director.logAlone(2);
  return director.crashAll();
}

/** The first has one txn, and the others have four, of two epochs. */
function leftBehind(): InitialState {
  const director = withOneTxn();
  director.crash(1);
  director.commit(3, [2, 3]);
  director.crash(3);
  director.start(3);
  director.serve([2, 3]);
  director.commit(3, [2, 3]);
  director.commit(3, [2, 3]);
  return director.crashAll();
}

/**
 * The third, with a tail of its own, returned to a leader that had continued without it, and
 * crashed after it had accepted the epoch.
 */
function interruptedJoin(): InitialState {
  const director = withTailAndNewLeader();
  director.start(3);
  director.until('the third has accepted the epoch of the second', [1, 2, 3], (world) => world.servers[2]!.disk.acceptedEpoch === 2);
  return director.crashAll();
}

/**
 * The third accepted an epoch as the leader that it was about to become, and crashed before any
 * other server learned of it.
 */
function epochAccepted(): InitialState {
  const director = withOneTxn();
  for (const sid of [2, 3]) director.crash(sid);
  acceptEpochAlone(director, 2);
  return director.crashAll();
}

/**
 * The same once more: the epoch to which the two others will come without it is lower than that.
 */
function laterEpochAccepted(): InitialState {
  const director = withOneTxn();
  for (const sid of [2, 3]) director.crash(sid);
  acceptEpochAlone(director, 2);
  director.crash(3);
  acceptEpochAlone(director, 3);
  return director.crashAll();
}

function acceptEpochAlone(director: ScriptedRun, epoch: number): void {
  director.crash(1);
  director.start(3);
  director.start(1);
  director.until('the third has accepted an epoch', [1, 3], (world) => world.servers[2]!.disk.acceptedEpoch === epoch);
}

/**
 * The third received a snapshot with a txn that only its leader had, and that leader crashed before
 * its epoch began.
 */
function snapshotAhead(): InitialState {
  const director = withTailAndNewLeader();
  director.logAlone(2);
  director.crash(1);
  director.start(3);
  director.until('the third has the snapshot of the second', [2, 3], ({ servers }) => servers[2]!.disk.snapshot !== undefined);
  return director.crashAll();
}

/** Four servers, of which the fourth is not a member, and one txn. */
function withJoiner(): ScriptedRun {
  const director = new ScriptedRun(new SmallWorld(growingScope));
  director.serve([1, 2, 3, 4]);
  director.commit(3, [1, 2, 3, 4]);
  return director;
}

/** The third, which led, and the fourth have logged that the fourth joins, and no other server has. */
function pendingConfiguration(): InitialState {
  const director = withJoiner();
  director.reconfigure(3);
  director.until('the third and the fourth have it', [3, 4], ({ servers }) =>
    [2, 3].every((at) => servers[at]!.disk.durable.length === 2 && servers[at]!.disk.isWritten),
  );
  return director.crashAll();
}

/** The fourth has joined while the first was down. */
function missedReconfiguration(): InitialState {
  const director = withJoiner();
  director.crash(1);
  director.reconfigure(3);
  director.until('the others use it', [2, 3, 4], (world) => world.isSettled(world.servers, [2, 3, 4]));
  director.commit(3, [2, 3, 4]);
  return director.crashAll();
}

const faultFreeKinds: readonly ChoiceKind[] = ['packet', 'log', 'file', 'config', 'dial'];
const stepsMax = 2000;

/** The choices by which the two others come to serve without the third. */
export function choicesToServeWithoutThird({ scope, initialState }: SearchStart): Choice[] {
  const director = new ScriptedRun(new SmallWorld(scope, initialState));
  director.serve([1, 2]);
  return director.choices;
}

/**
 * From an initial state in which the third server has a tail: the choices after which it is about
 * to truncate that for the two others.
 */
export function choicesToTruncation({ scope, initialState }: SearchStart): Choice[] {
  const director = new ScriptedRun(new SmallWorld(scope, initialState));
  director.serve([1, 2]);
  const cuts = ({ servers }: SmallWorld) => servers[2]!.disk.logQueue.some(({ kind }) => kind === 'truncate');
  director.until('the third cuts its log', [1, 2, 3], cuts);
  return director.choices;
}

/** Makes choices that lead to a state, for some of the servers; the others do nothing. */
class ScriptedRun {
  readonly #world: SmallWorld;
  readonly choices: Choice[] = [];

  constructor(world: SmallWorld = new SmallWorld(unlimitedScope)) {
    this.#world = world;
  }

  serve(sids: readonly number[]): void {
    const isServing = ({ servers }: SmallWorld) => sids.every((sid) => servers[sid - 1]!.peer?.server !== undefined);
    this.until(`${sids.join()} serve`, sids, isServing);
  }

  /** A client of the leader creates a session, and every listed server has the txn. */
  commit(leader: number, sids: readonly number[]): void {
    const log = () => this.#world.servers[leader - 1]!.disk.durable;
    const count = log().length + 1;
    this.#make(encodeChoice('write', leader));
    const has = ({ servers }: SmallWorld) =>
      log().length === count && sids.every((sid) => servers[sid - 1]!.peer!.replica.lastZxid === log().at(-1)!.zxid);
    this.until(`${sids.join()} have it`, sids, has);
  }

  /** A client asks the leader for the second configuration of the ensemble. */
  reconfigure(leader: number): void {
    this.#make(encodeChoice('reconfig', leader, 1));
  }

  /** The write gets only as far as the log of the leader. */
  logAlone(leader: number): void {
    const count = this.#world.servers[leader - 1]!.disk.durable.length + 1;
    this.#make(encodeChoice('write', leader));
    this.until('it is logged', [leader], (world) => world.servers[leader - 1]!.disk.durable.length === count);
  }

  /** What the server was sending is lost with it. */
  crash(sid: number): void {
    this.#make(encodeChoice('crash', sid, 0, 0));
    const isBroken = (code: Choice) => decodeChoice(code).kind === 'break';
    for (let code = this.#world.choices().find(isBroken); code !== undefined; code = this.#world.choices().find(isBroken)) this.#make(code);
  }

  start(sid: number): void {
    this.#make(encodeChoice('start', sid));
  }

  /** Makes the choices of these servers that happen without faults until the condition holds. */
  until(what: string, sids: readonly number[], isSo: (world: SmallWorld) => boolean): void {
    const mask = sids.reduce((all, sid) => all | (1 << (sid - 1)), 0);
    for (let step = 0; !isSo(this.#world); step++) {
      const code = this.#next(sids, mask);
      if (code === undefined || step > stepsMax) throw new Error(`found no choices until ${what}:\n${this.#world.describe()}`);
      this.#make(code);
    }
  }

  crashAll(): InitialState {
    for (const { sid, peer } of this.#world.servers) if (peer !== undefined) this.crash(sid);
    return this.#world.captureState();
  }

  #next(sids: readonly number[], mask: number): Choice | undefined {
    const choices = this.#world.choices().map((code) => ({ code, ...decodeChoice(code) }));
    const of = (kind: ChoiceKind) => choices.find((each) => each.kind === kind && sids.includes(each.a))?.code;
    for (const kind of faultFreeKinds) {
      const code = of(kind);
      if (code !== undefined) return code;
    }
    const due = choices.find(({ code, a }) => sids.includes(a) && this.#world.isDue(code));
    return due?.code ?? choices.find(({ kind, a }) => kind === 'elect' && a === mask)?.code ?? of('wake') ?? of('sleep');
  }

  #make(code: Choice): void {
    this.choices.push(code);
    this.#world.apply(code);
  }
}
