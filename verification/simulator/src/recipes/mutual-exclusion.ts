/**
 * What processes believed to hold, and how long; and the rules for it. One checker serves every
 * hold by a place in a wait queue: locks, leaderships, permits. Everything is checked against the
 * history of the ensemble:
 *
 * - turn: a process that acquires a hold has seen that everyone who goes first is gone.
 * - loss: a hold whose znode is gone ends for its holder within the time that a server can lag,
 *   unless the process is paused; and no hold is lost without a reason.
 * - silence: no hold is suspended for longer than the session timeout.
 * - fence: a write through a hold is between the creation and the end of its znode, and never after
 *   a write of a later holder.
 * - witness: a store that refuses tokens lower than the highest it has seen never refuses one that
 *   still holds.
 * - herd: each process waits for the nearest of those who go first, and for no other.
 */
import type { Client, WriteOp } from '@tskeeper/client';
import { op, sequenceOf } from '@tskeeper/client';
import type { Millis } from '@tskeeper/protocol';
import type { HoldState } from '@tskeeper/recipes';
import type { Recording } from '../record/recording.ts';
import { parentOf } from '../record/parent-of.ts';
import type { ZnodeHistory, ZnodeLife } from './znode-history.ts';
import type { RecipeProcess } from './recipe-process.ts';

/** What `Hold` and `Leadership` have in common. */
export interface HoldHandle {
  readonly path: string;
  readonly fencingToken: bigint;
  readonly state: HoldState;
  readonly signal: AbortSignal;
  onStateChange(listener: (state: HoldState) => void): () => void;
  multi(ops: readonly WriteOp[]): Promise<unknown>;
}

/** One hold, as its holder believed it to be. */
export class ObservedHold {
  readonly process: RecipeProcess;
  readonly path: string;
  readonly token: bigint;
  readonly fromMs: Millis;
  /** What the client had seen when the hold began. */
  readonly seenZxid: bigint;
  /** When it was released or known to be lost; Infinity if neither. */
  toMs: Millis = Infinity;
  /** Lost although there was a connection. */
  isLostWhileConnected = false;
  /** While it is suspended: since when. */
  #suspendedMs: Millis | undefined;
  readonly #handle: HoldHandle;

  constructor(process: RecipeProcess, zk: Client, holding: HoldHandle) {
    this.process = process;
    this.path = holding.path;
    this.token = holding.fencingToken;
    this.fromMs = process.nowMs;
    this.seenZxid = zk.lastZxid;
    this.#handle = holding;
    process.holdCount++;
    let last: HoldState = 'held';
    const over = (state: HoldState) => {
      if (last === 'lost' || last === 'released') process.reportViolation(`${this.path} was ${last} and became ${state}`);
      last = state;
      this.#checkSuspension(process.nowMs);
      if (state === 'suspended') {
        process.hitMark('a hold was suspended');
        this.#suspendedMs = process.nowMs;
      }
      if (state === 'held') process.hitMark('a suspended hold was resumed');
      if (state === 'released') this.end();
      if (state !== 'lost') return;
      process.hitMark('a hold was lost');
      // While it was being released the holder did not count on it.
      this.isLostWhileConnected = zk.state === 'connected' && this.toMs === Infinity;
      this.end();
    };
    if (holding.state === 'lost') over('lost');
    holding.onStateChange(over);
  }

  #checkSuspension(nowMs: Millis): void {
    const fromMs = this.#suspendedMs;
    this.#suspendedMs = undefined;
    const { process } = this;
    if (fromMs === undefined || process.freezes.some(({ toMs }) => toMs >= fromMs)) return;
    // The client's clock counts whole milliseconds.
    if (nowMs - fromMs > process.timeoutMs + 2)
      process.reportViolation(
        `silence: ${this.path} was suspended for ${Math.round(nowMs - fromMs)} ms, longer than its session timeout of ${process.timeoutMs} ms`,
      );
  }

  /** The holder no longer counts on it. */
  end(): void {
    if (this.toMs !== Infinity) return;
    this.toMs = this.process.nowMs;
    this.process.holdCount--;
  }

  get isSuspended(): boolean {
    return this.#handle.state === 'suspended';
  }

  get isLost(): boolean {
    return this.#handle.signal.aborted;
  }

  /** Writes to a znode, fenced by the hold. */
  async write(path: string): Promise<void> {
    await this.#handle.multi([op.setData(path, `${this.path} ${this.token}`)]);
  }
}

/** A store outside the ensemble that remembers the token of each write and refuses lower ones. */
export class FencedStore {
  #highest = -1n;
  readonly refused: { readonly hold: ObservedHold; readonly atMs: Millis }[] = [];

  write(hold: ObservedHold): void {
    if (hold.token < this.#highest) {
      hold.process.hitMark('a stale write was fenced off');
      this.refused.push({ hold, atMs: hold.process.nowMs });
    } else this.#highest = hold.token;
  }
}

/** Which contenders go first, by the part of their names between guid and number. */
export interface WaitQueueRules {
  /** The parent of the contenders. */
  readonly path: string;
  readonly kinds: readonly string[];
  /** The path that a hold writes to; undefined if it does not. */
  readonly storePath?: string | undefined;
  /** Whether a contender of kind `ahead` has to go before one of `kind`. */
  readonly goesFirst: (ahead: string, kind: string) => boolean;
  /** How many of those who go first may still be there. Default: none. */
  readonly holdersMax?: number | undefined;
}

/** Ticks for which a partitioned server answers, and the time until all processes know. */
const staleServerMs = 2500;

export class MutualExclusionChecker {
  readonly all: ObservedHold[] = [];
  readonly fencedStore = new FencedStore();

  /** Records that a process has acquired a hold. */
  acquired(process: RecipeProcess, zk: Client, holding: HoldHandle, kind: string): ObservedHold {
    if ((numberOf(holding.path, kind) ?? 0) < 0) process.hitMark('a sequence number overflowed');
    const hold = new ObservedHold(process, zk, holding);
    this.all.push(hold);
    return hold;
  }

  check(rules: WaitQueueRules, history: ZnodeHistory, recording: Recording): string[] {
    const line = history.childrenOf(rules.path).flatMap((life) => {
      const kind = rules.kinds.find((each) => numberOf(life.path, each) !== undefined);
      return kind === undefined ? [] : [{ life, kind }];
    });
    const lag = staleServerMs + ((recording.limits.syncLimitTicks ?? 0) + 2) * recording.limits.tickMs;
    return [
      ...this.#checkTurns(rules, history, line),
      ...this.#checkLosses(history, lag),
      ...checkFencing(rules, history),
      ...this.#checkRefusals(history),
      ...checkHerdEffect(rules, line, recording),
    ];
  }

  #checkTurns({ goesFirst, holdersMax = 1 }: WaitQueueRules, history: ZnodeHistory, line: readonly Contender[]): string[] {
    return this.all.flatMap(({ process, path, token, seenZxid, fromMs }) => {
      const own = line.find(({ life }) => life === history.createdBy(path, token));
      if (own === undefined) return [`turn: ${process.name} holds ${path} by token ${token}, which no txn created`];
      const first = line.filter(
        ({ life, kind }) => life.czxid < own.life.czxid && life.deletedZxid > Number(seenZxid) && goesFirst(kind, own.kind),
      );
      if (first.length < holdersMax) return [];
      const who = first.map(({ life }) => `${life.path} (until ${life.deletedZxid})`).join(', ');
      return [
        `turn: ${process.name} acquired at ${fromMs.toFixed(3)}, at zxid ${seenZxid}, the hold ${path}, with these before it: ${who}`,
      ];
    });
  }

  #checkLosses(history: ZnodeHistory, lag: Millis): string[] {
    return this.all.flatMap(({ process, path, token, toMs, isLostWhileConnected }) => {
      const life = history.createdBy(path, token);
      if (life === undefined) return [];
      if (isLostWhileConnected && life.deletedMs > toMs)
        return [`loss: ${process.name} lost ${path} at ${toMs.toFixed(3)}, though it still exists`];
      const knownMs = Math.min(toMs, process.endedMs);
      let latestMs = life.deletedMs + lag + (life.deletedBy === 'its session' ? 0 : process.timeoutMs);
      for (const { fromMs, toMs: onMs } of process.freezes)
        if (fromMs <= latestMs && onMs > life.deletedMs) latestMs = Math.max(latestMs, onMs + lag);
      if (knownMs <= latestMs) return [];
      return [
        `loss: ${path} was gone at ${life.deletedMs} (${life.deletedBy}), but ${process.name} counted on it until ${knownMs.toFixed(3)}, ${Math.round(knownMs - life.deletedMs)} ms`,
      ];
    });
  }

  #checkRefusals(history: ZnodeHistory): string[] {
    return this.fencedStore.refused.flatMap(({ hold: { process, path, token }, atMs }) => {
      const life = history.createdBy(path, token);
      if (life === undefined || life.deletedMs <= atMs) return [];
      return [
        `witness: a write of ${process.name} at ${atMs.toFixed(3)} was refused, though it held ${path}: a later token had written before`,
      ];
    });
  }
}

interface Contender {
  readonly life: ZnodeLife;
  readonly kind: string;
}

/** The number after guid and kind in the name of a contender. */
export function numberOf(path: string, kind: string): number | undefined {
  const at = path.lastIndexOf(kind);
  return at === -1 ? undefined : sequenceOf(path.slice(at), kind);
}

/**
 * Writes with a token are between the creation and the end of the hold's znode, and in the order of
 * tokens if there is one holder at a time.
 */
export function checkFencing({ path: line, storePath, holdersMax }: WaitQueueRules, history: ZnodeHistory): string[] {
  const findings: string[] = [];
  let highest = -1n;
  for (const { path, data, zxid } of history.writes) {
    const [by, number] = data.split(' ');
    if (path !== storePath || number === undefined || parentOf(by!) !== line) continue;
    const token = BigInt(number);
    const life = history.createdBy(by!, token);
    if (life === undefined || life.deletedZxid <= zxid)
      findings.push(`fence: ${by} wrote at ${zxid}, but was gone at ${life?.deletedZxid}`);
    if (holdersMax === undefined && token < highest)
      findings.push(`fence: ${by} with token ${token} wrote at ${zxid}, after a holder with token ${highest}`);
    if (token > highest) highest = token;
  }
  return findings;
}

/**
 * A contender watches the nearest of those who go first and no other: then none wakes or waits
 * unnecessarily.
 */
function checkHerdEffect({ path, goesFirst }: WaitQueueRules, line: readonly Contender[], { cnxns }: Recording): string[] {
  const findings: string[] = [];
  const byPath = new Map(line.map((each) => [each.life.path, each]));
  // A contender that is deleting its place, without a reply so far, may take another one.
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
        ({ life }) => life.session === session && life.createdMs <= sentMs && life.deletedMs > sentMs && !isGivenUp(life.path, sentMs),
      );
      if (own.length !== 1 || own[0]!.life.czxid < watched.life.czxid) continue;
      const [{ life, kind }] = own as [Contender];
      if (!goesFirst(watched.kind, kind))
        findings.push(`herd: ${client} watches ${watched.life.path} for ${life.path}, which does not have to wait for it`);
      const between = line.find(
        (each) =>
          each.life.czxid > watched.life.czxid &&
          each.life.czxid < life.czxid &&
          each.life.deletedMs > sentMs &&
          goesFirst(each.kind, kind),
      );
      if (between !== undefined)
        findings.push(`herd: ${client} watches ${watched.life.path} for ${life.path}, though ${between.life.path} is between them`);
    }
  }
  return findings;
}
