/**
 * Searches the states of a small world. A state is reached again by its choices from the beginning,
 * since machines cannot be copied; so the cost of a search is the path back to the state from which
 * it continues. There are three orders:
 *
 *     chains    continues from a state that has choices left, in turn the shallowest and one from
 *               anywhere, and descends, to a new state each time, until a state is known. Nearly
 *               every step finds something, and in the end every state is explored.
 *     breadth   explores all states of a depth before the next: a violation is found on its shortest
 *               path. Slow.
 *     walks     descends randomly from the beginning, again and again. Deep at once, and never
 *               complete.
 */
import { type Choice, encodeChoice, decodeChoice } from './choice.ts';
import { Violation } from './invariants.ts';
import { runToQuiescence, type Healing } from './quiescence.ts';
import { MarkCounts } from './marks.ts';
import type { Scope } from './scope.ts';
import { clientRequests } from './small-client.ts';
import { type InitialState, SmallWorld } from './small-world.ts';
import { StateHash } from './state-hash.ts';
import { type StateId, StateTable } from './state-table.ts';

export type SearchOrder = 'chains' | 'breadth' | 'walks';

/** Where a search begins. */
export interface SearchStart {
  readonly scope: Scope;
  /** The initial content of the disks; empty by default. */
  readonly initialState?: InitialState | undefined;
}

export interface SearchOptions extends SearchStart {
  /** Choices that are made before the search begins. */
  readonly prefix: readonly Choice[];
  readonly order: SearchOrder;
  /** Decides which choice of a state comes first, and where walks go. */
  readonly seed: number;
  /** No state at this depth is continued from. */
  readonly depthMax: number;
  /** Called between two paths: whether to end. */
  readonly shouldStop: (progress: Progress) => boolean;
  /**
   * After every so many paths faults cease, and the ensemble must come to serve: first with a
   * healthy quorum, then with all servers. Default: never.
   */
  readonly quiesceEvery?: number;
}

export interface Progress {
  /** Number of distinct states. */
  readonly states: number;
  /** Number of choices made, including those of paths back. */
  readonly steps: number;
  readonly depth: number;
  readonly marks: MarkCounts;
  /**
   * How often faults ceased, and the longest time until the ensemble served, in ms of its own time.
   */
  readonly quiescences: number;
  readonly longestRecoveryMs: number;
}

export interface SearchResult extends Progress {
  /** Nothing is left to explore within the scope and the depth. Never true for walks. */
  readonly isComplete: boolean;
  /**
   * The first violation, the choices that lead to it including the opening, and the kind of peace
   * that followed if it is one of liveness.
   */
  readonly violation: { readonly error: Violation; readonly run: readonly Choice[]; readonly healing: Healing | undefined } | undefined;
}

export function hashOf(world: SmallWorld): number {
  const hash = new StateHash();
  world.fingerprint(hash);
  return hash.value;
}

export function search(options: SearchOptions): SearchResult {
  return new Search(options).run();
}

class Search {
  readonly #options: SearchOptions;
  readonly #states = new StateTable();
  /** By depth: the states that have choices left. */
  readonly #open: StateId[][] = [];
  #shallowest = 0;
  #steps = 0;
  #depth = 0;
  #randomState: number;
  /** The choices since the world began, for the report of a violation. */
  #run: Choice[] = [];
  readonly #marks = new MarkCounts();
  #picks = 0;
  #descents = 0;
  #quiescences = 0;
  #longestRecoveryMs = 0;
  #healing: Healing | undefined;

  constructor(options: SearchOptions) {
    this.#options = options;
    this.#randomState = options.seed >>> 0;
  }

  run(): SearchResult {
    try {
      const world = this.#begin();
      this.#open[0] = [this.#states.add(hashOf(world), -1, 0)];
      const { order } = this.#options;
      let isComplete = false;
      while (!isComplete && !this.#options.shouldStop(this.#progress)) {
        if (order === 'walks') this.#walk();
        else isComplete = !this.#expandNext(order === 'chains');
      }
      return { ...this.#progress, isComplete, violation: undefined };
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      return { ...this.#progress, isComplete: false, violation: { error, run: this.#run, healing: this.#healing } };
    }
  }

  get #progress(): Progress {
    return {
      states: this.#states.count,
      steps: this.#steps,
      depth: this.#depth,
      marks: this.#marks,
      quiescences: this.#quiescences,
      longestRecoveryMs: this.#longestRecoveryMs,
    };
  }

  #begin(): SmallWorld {
    this.#run = [];
    const { scope, initialState, prefix } = this.#options;
    const world = new SmallWorld(scope, initialState);
    for (const code of prefix) this.#make(world, code);
    return world;
  }

  #make(world: SmallWorld, code: Choice): void {
    this.#run.push(code);
    this.#steps++;
    world.apply(code);
  }

  /** Continues from the next state with choices left. Returns whether there was one. */
  #expandNext(inChains: boolean): boolean {
    const state = inChains && ++this.#picks % 2 === 0 ? this.#takeRandom() : this.#takeShallowest();
    if (state === undefined) return false;
    const world = this.#begin();
    for (const code of this.#states.pathTo(state)) this.#make(world, code);
    if (hashOf(world) !== this.#states.hash(state))
      throw new Error(`the same choices led to another state, at depth ${this.#states.depth(state)}`);
    let at: StateId = this.#descend(world, state);
    if (inChains) while (at !== -1) at = this.#descend(world, at);
    else if (at !== -1) this.#pushOpen(at);
    this.#maybeQuiesce(world);
    return true;
  }

  #takeShallowest(): StateId | undefined {
    while (this.#open[this.#shallowest]?.length === 0) this.#shallowest++;
    return this.#open[this.#shallowest]?.pop();
  }

  /** A state at a random depth: otherwise deep states would come last. */
  #takeRandom(): StateId | undefined {
    for (let depth = this.#below(this.#open.length); depth >= 0; depth--) {
      const state = this.#open[depth]!.pop();
      if (state !== undefined) return state;
    }
    return this.#takeShallowest();
  }

  /** Ceases faults in the world at the end of a path, which is no longer needed. */
  #maybeQuiesce(world: SmallWorld): void {
    const { quiesceEvery } = this.#options;
    if (quiesceEvery === undefined || ++this.#descents % quiesceEvery !== 0) return;
    // First with a healthy quorum, then with all servers.
    for (const healing of ['core', 'all'] as const) {
      this.#healing = healing;
      this.#longestRecoveryMs = Math.max(this.#longestRecoveryMs, runToQuiescence(world, healing));
      this.#quiescences++;
    }
    this.#healing = undefined;
  }

  /**
   * Makes the next choice of a state. Returns the new state if it is one and may be continued from,
   * otherwise -1.
   */
  #descend(world: SmallWorld, state: StateId): StateId {
    const choices = world.choices();
    if (choices.length === 0) return -1;
    const turn = this.#states.nextChoiceIndex(state);
    if (turn + 1 < choices.length) this.#pushOpen(state);
    const code = choiceOrder(choices, (this.#states.hash(state) + this.#options.seed) % orderEnd)[turn]!;
    world.takeHits();
    this.#make(world, code);
    const next = this.#states.add(hashOf(world), state, code);
    if (next === -1) return -1;
    this.#marks.add(world.takeHits());
    const depth = this.#states.depth(next);
    this.#depth = Math.max(this.#depth, depth);
    return depth < this.#options.depthMax ? next : -1;
  }

  #pushOpen(state: StateId): void {
    const depth = this.#states.depth(state);
    while (this.#open.length <= depth) this.#open.push([]);
    this.#open[depth]!.push(state);
    this.#shallowest = Math.min(this.#shallowest, depth);
  }

  #walk(): void {
    const world = this.#begin();
    for (let depth = 1; depth <= this.#options.depthMax; depth++) {
      const code = this.#draw(world.choices());
      if (code === undefined) break;
      this.#make(world, code);
      const isNew = this.#states.add(hashOf(world), -1, 0) !== -1;
      const hits = world.takeHits();
      if (isNew) this.#marks.add(hits);
      this.#depth = Math.max(this.#depth, depth);
    }
    this.#maybeQuiesce(world);
  }

  /**
   * Faults are chosen half as often as they are listed; otherwise all of them would come before
   * anything has begun.
   */
  #draw(choices: readonly Choice[]): Choice | undefined {
    const code = choices[this.#below(choices.length)];
    if (code === undefined) return undefined;
    return isFault(code) && this.#below(2) === 0 ? choices[this.#below(choices.length)] : code;
  }

  #below(end: number): number {
    // xorshift, which is good enough to choose a path.
    let x = this.#randomState || 1;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#randomState = x >>> 0;
    return end === 0 ? 0 : this.#randomState % end;
  }
}

function isFault(code: Choice): boolean {
  const { kind } = decodeChoice(code);
  return kind === 'crash' || kind === 'cut' || kind === 'refuse' || kind === 'sleep' || kind === 'wake';
}

const orderEnd = 2 ** 31;

/**
 * The order in which the choices of a state are made, by a number. One of eight states has its
 * faults among the other choices; in the others they come last, since otherwise all allowed faults
 * would happen in the first few steps, before there is anything to disturb.
 */
function choiceOrder(choices: readonly Choice[], order: number): Choice[] {
  const first = (order >>> 3) % choices.length;
  const rotated = [...choices.slice(first), ...choices.slice(0, first)];
  return order % 8 === 0 ? rotated : [...rotated.filter((code) => !isFault(code)), ...rotated.filter(isFault)];
}

/**
 * The result of a run. Choices that are not available at their turn are skipped, which `shrinkRun`
 * needs.
 */
export function replayRun(
  { scope, initialState }: SearchStart,
  run: readonly Choice[],
  healing?: Healing,
): { world: SmallWorld; error: Violation | undefined; made: Choice[] } {
  const world = new SmallWorld(scope, initialState);
  const made: Choice[] = [];
  try {
    for (const code of run) {
      if (!world.choices().includes(code)) continue;
      made.push(code);
      world.apply(code);
    }
    if (healing !== undefined)
      for (const each of ['core', 'all'] as const) if (each === 'core' || healing === 'all') runToQuiescence(world, each);
  } catch (error) {
    if (error instanceof Violation) return { world, error, made };
    throw error;
  }
  return { world, error: undefined, made };
}

/**
 * Removes from a run what its violation does not need, piece by piece, until every choice is
 * needed.
 */
export function shrinkRun(start: SearchStart, run: readonly Choice[], { invariant }: Violation, healing?: Healing): Choice[] {
  let best = [...run];
  /** Removes pieces of this size. Returns whether there was one. */
  const removePieces = (size: number): boolean => {
    const { length } = best;
    for (let at = length - size; at >= 0; at -= size) {
      const { error, made } = replayRun(start, [...best.slice(0, at), ...best.slice(at + size)], healing);
      if (error?.invariant === invariant && made.length < best.length) best = made;
    }
    return best.length < length;
  };
  for (let size = best.length >> 1; size > 1; size >>= 1) removePieces(size);
  while (removePieces(1));
  return best;
}

/**
 * After `choicesToServe`, the persistent client creates a session at the first server and writes.
 */
export function choicesToClientWrite(start: SearchStart): Choice[] {
  const run = choicesToServe(start);
  const world = new SmallWorld(start.scope, start.initialState);
  for (const code of run) world.apply(code);
  for (const code of [encodeChoice('connect', 1), encodeChoice('request', 1, clientRequests.indexOf('put'))]) {
    world.apply(code);
    run.push(code);
    while (!world.client.isIdle) {
      const choices = world.choices();
      const next =
        choices.find((each) => ['packet', 'log', 'config'].includes(decodeChoice(each).kind)) ?? choices.find((each) => world.isDue(each));
      if (next === undefined) throw new Error(`the client gets no reply:\n${world.describe()}`);
      world.apply(next);
      run.push(next);
    }
  }
  return run;
}

/** After `choicesToServe`, a client creates a session at the leader, and every server has it. */
export function choicesToSession(start: SearchStart): Choice[] {
  const run = choicesToServe(start);
  const world = new SmallWorld(start.scope, start.initialState);
  const make = (code: Choice): void => {
    world.apply(code);
    run.push(code);
  };
  for (const code of run) world.apply(code);
  make(encodeChoice('write', world.servers.find(({ peer }) => peer!.role === 'leading')!.sid));
  const work = (): Choice | undefined => {
    const choices = world.choices();
    return (
      choices.find((each) => ['packet', 'log', 'file', 'config'].includes(decodeChoice(each).kind)) ??
      choices.find((each) => world.isDue(each))
    );
  };
  for (let next = work(); next !== undefined; next = work()) make(next);
  return run;
}

/** After `choicesToSession`, the operator asks the leader for the second configuration. */
export function choicesToReconfig(start: SearchStart): Choice[] {
  const run = choicesToSession(start);
  const world = new SmallWorld(start.scope, start.initialState);
  for (const code of run) world.apply(code);
  return [...run, encodeChoice('reconfig', world.servers.find(({ peer }) => peer!.role === 'leading')!.sid, 1)];
}

/** The choices that bring an ensemble to serve without faults. */
export function choicesToServe({ scope, initialState }: SearchStart): Choice[] {
  const world = new SmallWorld(scope, initialState);
  const run: Choice[] = [];
  const best = scope.servers;
  const all = (1 << scope.servers) - 1;
  while (!world.servers.every(({ peer }) => peer?.server !== undefined)) {
    const choices = world.choices();
    const code =
      choices.find((each) => ['packet', 'log', 'file', 'config', 'dial', 'notify'].includes(decodeChoice(each).kind)) ??
      choices.find((each) => world.isDue(each)) ??
      choices.find((each) => decodeChoice(each).kind === 'elect' && decodeChoice(each).a === all) ??
      choices.find((each) => decodeChoice(each).kind === 'finalize' && decodeChoice(each).b === best) ??
      choices.find((each) => decodeChoice(each).kind === 'wake');
    if (code === undefined) throw new Error(`the ensemble does not come to serve:\n${world.describe()}`);
    world.apply(code);
    run.push(code);
  }
  return run;
}
