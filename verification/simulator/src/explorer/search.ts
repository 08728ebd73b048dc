/**
 * Searches the states of a small world. A state is reached again by its choices from the beginning,
 * since machines cannot be copied; so the cost of a search is the path back to the state from which
 * it continues. There are four orders:
 *
 *     chains    continues from a state that has choices left, in turn the shallowest and one from
 *               anywhere, and descends, by a choice that was not made yet each time, until it reaches
 *               a state without one. A known state does not end a chain: to go on from there is as
 *               good as to return, since states with equal fingerprints continue alike. In the end
 *               every state is explored.
 *     complete  as chains, always from the shallowest state; and a chain that has reached a state
 *               without choices left goes on by known choices to the nearest state that has some.
 *               The fastest way to the end of a scope: near it, most chains of the other order lead
 *               to one choice.
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
import { StateGraph } from './state-graph.ts';
import { type StateId, StateTable } from './state-table.ts';

export type SearchOrder = 'chains' | 'complete' | 'breadth' | 'walks';

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
   * After every so many choices that led to a known state, and after every so many walks, faults
   * cease, and the ensemble must come to serve: first with a healthy quorum, then with all servers.
   * Default: never.
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
  /** The known choices of each state, in the order `complete`. */
  readonly #graph: StateGraph | undefined;
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
  /** How often, since faults last ceased, a choice has led to a known state, or there was none. */
  #arrivals = 0;
  #quiescences = 0;
  #longestRecoveryMs = 0;
  #healing: Healing | undefined;

  constructor(options: SearchOptions) {
    this.#options = options;
    this.#randomState = options.seed >>> 0;
    if (options.order === 'complete') this.#graph = new StateGraph((state) => this.#mayGoOn(state));
  }

  run(): SearchResult {
    try {
      const world = this.#begin();
      this.#open[0] = [this.#states.add(hashOf(world), -1, 0)];
      const { order } = this.#options;
      let isComplete = false;
      while (!isComplete && !this.#options.shouldStop(this.#progress)) {
        if (order === 'walks') this.#walk();
        else isComplete = !this.#expandNext(order);
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
  #expandNext(order: SearchOrder): boolean {
    const state = order === 'chains' && ++this.#picks % 2 === 0 ? this.#randomOpen() : this.#shallowestOpen();
    if (state === undefined) return false;
    const world = this.#begin();
    this.#follow(world, this.#states.pathTo(state), state);
    let at = this.#descend(world, state);
    if (order !== 'breadth') {
      while (at !== -1 && !this.#isQuiescenceDue) at = this.#mayGoOn(at) ? this.#descend(world, at) : this.#goToNearest(world, at);
    }
    this.#maybeQuiesce(world);
    return true;
  }

  /** Makes known choices, which lead to a known state. */
  #follow(world: SmallWorld, choices: readonly Choice[], state: StateId): void {
    for (const code of choices) this.#make(world, code);
    if (hashOf(world) !== this.#states.hash(state))
      throw new Error(`the same choices led to another state, at depth ${this.#states.depth(state)}`);
  }

  /**
   * Goes on by known choices to the nearest state from which the search may continue. Returns it, or
   * -1 if there is none, or if the order does not ask for it.
   */
  #goToNearest(world: SmallWorld, from: StateId): StateId {
    const way = this.#graph?.nearest(from);
    if (way === undefined) return -1;
    this.#follow(world, way.choices, way.state);
    return way.state;
  }

  #shallowestOpen(): StateId | undefined {
    for (; this.#shallowest < this.#open.length; this.#shallowest++) {
      const state = this.#openAt(this.#shallowest);
      if (state !== undefined) return state;
    }
    return undefined;
  }

  /** A state at a random depth: otherwise deep states would come last. */
  #randomOpen(): StateId | undefined {
    for (let depth = this.#below(this.#open.length); depth >= 0; depth--) {
      const state = this.#openAt(depth);
      if (state !== undefined) return state;
    }
    return this.#shallowestOpen();
  }

  /** The latest state of this depth with choices left. */
  #openAt(depth: number): StateId | undefined {
    const states = this.#open[depth]!;
    while (states.length > 0 && !this.#states.hasChoicesLeft(states.at(-1)!)) states.pop();
    return states.at(-1);
  }

  get #isQuiescenceDue(): boolean {
    const { quiesceEvery } = this.#options;
    return quiesceEvery !== undefined && this.#arrivals >= quiesceEvery;
  }

  /** Ceases faults in the world at the end of a path, which is no longer needed. */
  #maybeQuiesce(world: SmallWorld): void {
    if (!this.#isQuiescenceDue) return;
    this.#arrivals = 0;
    // First with a healthy quorum, then with all servers.
    for (const healing of ['core', 'all'] as const) {
      this.#healing = healing;
      this.#longestRecoveryMs = Math.max(this.#longestRecoveryMs, runToQuiescence(world, healing));
      this.#quiescences++;
    }
    this.#healing = undefined;
  }

  /** Makes the next choice of a state. Returns the state that it leads to, or -1 if none was left. */
  #descend(world: SmallWorld, state: StateId): StateId {
    const choices = world.choices();
    const turn = this.#states.takeChoiceIndex(state, choices.length);
    if (turn === -1) {
      this.#arrivals++;
      return -1;
    }
    const code = choiceOrder(choices, (this.#states.hash(state) + this.#options.seed) % orderEnd)[turn]!;
    world.takeHits();
    this.#make(world, code);
    const added = this.#states.add(hashOf(world), state, code);
    const reached = added < 0 ? -1 - added : added;
    this.#graph?.add(state, code, reached);
    if (added < 0) this.#arrivals++;
    else this.#reachedNew(reached, world.takeHits());
    return reached;
  }

  #reachedNew(state: StateId, hits: ReturnType<SmallWorld['takeHits']>): void {
    this.#marks.add(hits);
    const depth = this.#states.depth(state);
    this.#depth = Math.max(this.#depth, depth);
    if (depth >= this.#options.depthMax) return;
    while (this.#open.length <= depth) this.#open.push([]);
    this.#open[depth]!.push(state);
    this.#shallowest = Math.min(this.#shallowest, depth);
  }

  /** Whether the search may continue from a state. */
  #mayGoOn(state: StateId): boolean {
    return this.#states.hasChoicesLeft(state) && this.#states.depth(state) < this.#options.depthMax;
  }

  #walk(): void {
    const world = this.#begin();
    for (let depth = 1; depth <= this.#options.depthMax; depth++) {
      const code = this.#draw(world.choices());
      if (code === undefined) break;
      this.#make(world, code);
      const isNew = this.#states.add(hashOf(world), -1, 0) >= 0;
      const hits = world.takeHits();
      if (isNew) this.#marks.add(hits);
      this.#depth = Math.max(this.#depth, depth);
    }
    this.#arrivals++;
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
  // Two worlds in one state may list its choices in different orders.
  const sorted = choices.toSorted((a, b) => a - b);
  const first = (order >>> 3) % sorted.length;
  const rotated = [...sorted.slice(first), ...sorted.slice(0, first)];
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
