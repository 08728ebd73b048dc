/**
 * Who believed to hold what, and for how long; and what must be true of it. One judge for whatever is held by a place in a line: locks, leads,
 * permits. Everything is held against the history of the ensemble:
 *
 * - turn: whoever is told that its turn has come has seen that nobody is there any more who has to go first.
 * - loss: a hold whose znode is gone is over for its holder within what a server can be behind, unless it stands still; and none is lost without a reason.
 * - silence: no hold is suspended for longer than a session lasts that no server hears of.
 * - fence: what is written through a hold stands between the creation and the end of its znode, and never behind what a later holder wrote.
 * - witness: what refuses a lower token than it has seen never refuses one that still holds.
 * - herd: each waits for the nearest of those who have to go first, and for nobody else.
 */
import type { Client, WriteOp } from '@tskeeper/client';
import { op, sequenceOf } from '@tskeeper/client';
import type { Millis } from '@tskeeper/protocol';
import type { HoldState } from '@tskeeper/recipes';
import type { Recording } from '../record/recording.ts';
import { parentOf } from '../replay/replay.ts';
import type { History, ZnodeLife } from './history.ts';
import type { RecipeProcess } from './recipe-process.ts';

/** What `Held` and `Leadership` have in common. */
export interface Holding {
  readonly path: string;
  readonly fencingToken: bigint;
  readonly state: HoldState;
  readonly signal: AbortSignal;
  onStateChange(listener: (state: HoldState) => void): () => void;
  multi(ops: readonly WriteOp[]): Promise<unknown>;
}

/** One hold, as its holder believed it to be. */
export class Hold {
  readonly process: RecipeProcess;
  readonly path: string;
  readonly token: bigint;
  readonly fromMs: Millis;
  /** What the client had seen when it was told. */
  readonly seenZxid: bigint;
  /** Given back, or known to be lost. Infinity: neither. */
  toMs: Millis = Infinity;
  /** Lost, although there was a connection. */
  isLostWhileConnected = false;
  /** As long as it is suspended: since when. */
  #suspendedMs: Millis | undefined;
  readonly #holding: Holding;

  constructor(process: RecipeProcess, zk: Client, holding: Holding) {
    this.process = process;
    this.path = holding.path;
    this.token = holding.fencingToken;
    this.fromMs = process.nowMs;
    this.seenZxid = zk.lastZxid;
    this.#holding = holding;
    process.holds++;
    let last: HoldState = 'held';
    const over = (state: HoldState) => {
      if (last === 'lost' || last === 'released') process.complain(`${this.path} was ${last}, and is ${state} now`);
      last = state;
      this.#suspendedUntil(process.nowMs);
      if (state === 'suspended') {
        process.note('a hold was suspended');
        this.#suspendedMs = process.nowMs;
      }
      if (state === 'held') process.note('a hold that was suspended went on');
      if (state === 'released') this.over();
      if (state !== 'lost') return;
      process.note('a hold was lost');
      // While it was being given back nobody counted on it.
      this.isLostWhileConnected = zk.state === 'connected' && this.toMs === Infinity;
      this.over();
    };
    if (holding.state === 'lost') over('lost');
    holding.onStateChange(over);
  }

  #suspendedUntil(nowMs: Millis): void {
    const fromMs = this.#suspendedMs;
    this.#suspendedMs = undefined;
    const { process } = this;
    if (fromMs === undefined || process.standstills.some(({ toMs }) => toMs >= fromMs)) return;
    // The client's clock counts whole milliseconds.
    if (nowMs - fromMs > process.timeoutMs + 2)
      process.complain(
        `silence: ${this.path} was suspended for ${Math.round(nowMs - fromMs)} ms, and its session lasts ${process.timeoutMs} ms`,
      );
  }

  /** The holder does not count on it any more. */
  over(): void {
    if (this.toMs !== Infinity) return;
    this.toMs = this.process.nowMs;
    this.process.holds--;
  }

  get isSuspended(): boolean {
    return this.#holding.state === 'suspended';
  }

  get isLost(): boolean {
    return this.#holding.signal.aborted;
  }

  /** Writes to a znode, all at once or not at all, as long as the hold lasts. */
  async write(path: string): Promise<void> {
    await this.#holding.multi([op.setData(path, `${this.path} ${this.token}`)]);
  }
}

/** A store outside of the ensemble that takes along the token of each write, and refuses a lower one than it has seen. */
export class Witness {
  #highest = -1n;
  readonly refused: { readonly hold: Hold; readonly atMs: Millis }[] = [];

  write(hold: Hold): void {
    if (hold.token < this.#highest) {
      hold.process.note('a late write was refused by its token');
      this.refused.push({ hold, atMs: hold.process.nowMs });
    } else this.#highest = hold.token;
  }
}

/** Who has to go first, by what stands in the names of the two between guid and number. */
export interface LineRules {
  /** Below which contenders stand. */
  readonly path: string;
  readonly kinds: readonly string[];
  /** Where a hold writes; undefined when it does not. */
  readonly store?: string | undefined;
  /** Whether one of `ahead` has to go before one of `kind` may. */
  readonly goesFirst: (ahead: string, kind: string) => boolean;
  /** How many of those who go first may be there still. Default: none. */
  readonly places?: number | undefined;
}

/** Ticks for which a server that is cut off answers, and what else passes until everybody knows. */
const behindMs = 2500;

export class Holds {
  readonly all: Hold[] = [];
  readonly witness = new Witness();

  /** Its turn has come, as the program is told. */
  enter(process: RecipeProcess, zk: Client, holding: Holding, kind: string): Hold {
    if ((numberOf(holding.path, kind) ?? 0) < 0) process.note('a number ran over');
    const hold = new Hold(process, zk, holding);
    this.all.push(hold);
    return hold;
  }

  judge(rules: LineRules, history: History, recording: Recording): string[] {
    const line = history.below(rules.path).flatMap((life) => {
      const kind = rules.kinds.find((each) => numberOf(life.path, each) !== undefined);
      return kind === undefined ? [] : [{ life, kind }];
    });
    const lag = behindMs + ((recording.limits.syncLimitTicks ?? 0) + 2) * recording.limits.tickMs;
    return [
      ...this.#turns(rules, history, line),
      ...this.#losses(history, lag),
      ...fences(rules, history),
      ...this.#refusals(history),
      ...herds(rules, line, recording),
    ];
  }

  #turns({ goesFirst, places = 1 }: LineRules, history: History, line: readonly Contending[]): string[] {
    return this.all.flatMap(({ process, path, token, seenZxid, fromMs }) => {
      const own = line.find(({ life }) => life === history.born(path, token));
      if (own === undefined) return [`turn: ${process.name} holds ${path} by token ${token}, and no txn has made it`];
      const first = line.filter(
        ({ life, kind }) => life.czxid < own.life.czxid && life.goneZxid > Number(seenZxid) && goesFirst(kind, own.kind),
      );
      if (first.length < places) return [];
      const who = first.map(({ life }) => `${life.path} (until ${life.goneZxid})`).join(', ');
      return [
        `turn: ${process.name} was told at ${fromMs.toFixed(3)}, at zxid ${seenZxid}, that it holds ${path}, with these ahead: ${who}`,
      ];
    });
  }

  #losses(history: History, lag: Millis): string[] {
    return this.all.flatMap(({ process, path, token, toMs, isLostWhileConnected }) => {
      const life = history.born(path, token);
      if (life === undefined) return [];
      if (isLostWhileConnected && life.goneMs > toMs)
        return [`loss: ${process.name} has lost ${path} at ${toMs.toFixed(3)}, and it is there still`];
      const knownMs = Math.min(toMs, process.endedMs);
      let latestMs = life.goneMs + lag + (life.goneBy === 'its session' ? 0 : process.timeoutMs);
      for (const { fromMs, toMs: onMs } of process.standstills)
        if (fromMs <= latestMs && onMs > life.goneMs) latestMs = Math.max(latestMs, onMs + lag);
      if (knownMs <= latestMs) return [];
      return [
        `loss: ${path} was gone at ${life.goneMs} (${life.goneBy}), and ${process.name} counted on it until ${knownMs.toFixed(3)}, ${Math.round(knownMs - life.goneMs)} ms`,
      ];
    });
  }

  #refusals(history: History): string[] {
    return this.witness.refused.flatMap(({ hold: { process, path, token }, atMs }) => {
      const life = history.born(path, token);
      if (life === undefined || life.goneMs <= atMs) return [];
      return [
        `witness: a write of ${process.name} at ${atMs.toFixed(3)} was refused, though it held ${path}: somebody with a later token was there before`,
      ];
    });
  }
}

interface Contending {
  readonly life: ZnodeLife;
  readonly kind: string;
}

/** What stands behind guid and kind in the name of a contender. */
export function numberOf(path: string, kind: string): number | undefined {
  const at = path.lastIndexOf(kind);
  return at === -1 ? undefined : sequenceOf(path.slice(at), kind);
}

/** What is written by token stands between the creation and the end of the hold's znode, and in the order of tokens where one holds at a time. */
export function fences({ path: line, store, places }: LineRules, history: History): string[] {
  const findings: string[] = [];
  let highest = -1n;
  for (const { path, data, zxid } of history.writes) {
    const [by, number] = data.split(' ');
    if (path !== store || number === undefined || parentOf(by!) !== line) continue;
    const token = BigInt(number);
    const life = history.born(by!, token);
    if (life === undefined || life.goneZxid <= zxid) findings.push(`fence: ${by} wrote at ${zxid}, and was gone at ${life?.goneZxid}`);
    if (places === undefined && token < highest)
      findings.push(`fence: ${by} with token ${token} wrote at ${zxid}, behind a holder with token ${highest}`);
    if (token > highest) highest = token;
  }
  return findings;
}

/** A contender's watch is on the nearest of those who have to go first, and on nobody else: then nobody is woken for nothing, nor waits for nothing. */
function herds({ path, goesFirst }: LineRules, line: readonly Contending[], { cnxns }: Recording): string[] {
  const findings: string[] = [];
  const byPath = new Map(line.map((each) => [each.life.path, each]));
  // Who gives its place up, and has no answer yet, may look for another one.
  const givenUpMs = new Map<string, Millis>();
  for (const { requests } of cnxns) {
    for (const { name, record, sentMs } of requests) {
      if (name !== 'delete') continue;
      const { path: place } = record as { readonly path: string };
      givenUpMs.set(place, Math.min(sentMs, givenUpMs.get(place) ?? Infinity));
    }
  }
  const isGivenUp = (place: string, atMs: Millis) => (givenUpMs.get(place) ?? Infinity) <= atMs;
  for (const { client, requests } of cnxns) {
    for (const { session, name, record, sentMs } of requests) {
      const asked = record as { readonly path?: string; readonly watch?: boolean } | undefined;
      if (name !== 'exists' || asked?.watch !== true || parentOf(asked.path ?? '') !== path) continue;
      const watched = byPath.get(asked.path!);
      if (watched === undefined || watched.life.session === session) continue;
      const own = line.filter(
        ({ life }) => life.session === session && life.madeMs <= sentMs && life.goneMs > sentMs && !isGivenUp(life.path, sentMs),
      );
      if (own.length !== 1 || own[0]!.life.czxid < watched.life.czxid) continue;
      const [{ life, kind }] = own as [Contending];
      if (!goesFirst(watched.kind, kind))
        findings.push(`herd: ${client} watches ${watched.life.path} for ${life.path}, which need not wait for it`);
      const between = line.find(
        (each) =>
          each.life.czxid > watched.life.czxid && each.life.czxid < life.czxid && each.life.goneMs > sentMs && goesFirst(each.kind, kind),
      );
      if (between !== undefined)
        findings.push(`herd: ${client} watches ${watched.life.path} for ${life.path}, though ${between.life.path} is between them`);
    }
  }
  return findings;
}
