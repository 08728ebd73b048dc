/**
 * A process that observes others in the background of its turns: by a loop of a recipe, or by a
 * copy that it holds.
 */
import { type Client, KeeperError } from '@tskeeper/client';
import type { RecipeProcess } from '../recipe-process.ts';
import { checkObservations, type Phase, type Observation } from './observation-rules.ts';

/** Values by key. */
export type Shown = ReadonlyMap<string, string>;

/**
 * Number of requests, sent one after the other, after whose replies everything reported so far is
 * shown: those of two reads, as one may be in progress, and of two that are restarted.
 */
const catchUpRequests = 13;
/** A read that finds the leader gone is restarted, so only this many txns may happen meanwhile. */
const catchUpTxnsMax = 2n;

/** One loop of one session, from its first to its last value. */
export class RecipeObserver {
  readonly process: RecipeProcess;
  readonly zk: Client;
  readonly #observations: Observation[] = [];
  readonly #openedZxid: bigint;
  readonly #refresh: (() => void) | undefined;
  #last: Shown | undefined;
  #isPast = false;
  #losses = 0;
  /**
   * Requests in progress: the number of connection losses before each was sent, or `unsent` if
   * there was no connection.
   */
  readonly #pendingReads = new Set<{ readonly sent: number | 'unsent' }>();
  #isOver = false;

  /** For a copy: `look` shows its current content. */
  constructor(process: RecipeProcess, zk: Client, look?: () => void) {
    this.process = process;
    this.zk = zk;
    this.#refresh = look;
    this.#openedZxid = zk.lastZxid;
    zk.on('state', () => {
      if (zk.state !== 'connected') this.#losses++;
    });
  }

  /**
   * The client, which notes requests that are repeated after a loss at any later time: until then
   * the observer cannot be up to date.
   */
  get trackedClient(): Client {
    const { zk } = this;
    const noted =
      (ask: (...args: unknown[]) => Promise<unknown>) =>
      (...args: unknown[]) => {
        const question = { sent: zk.state === 'connected' ? this.#losses : ('unsent' as const) };
        this.#pendingReads.add(question);
        return ask.apply(zk, args).finally(() => this.#pendingReads.delete(question));
      };
    return new Proxy(zk, {
      get: (_zk, key) => {
        const own: unknown = Reflect.get(zk, key, zk);
        if (typeof own !== 'function') return own;
        return key === 'getChildren' || key === 'getData' ? noted(own as never) : own.bind(zk);
      },
    });
  }

  /** Whether a request from before the current connection is to be repeated. */
  get #hasStaleReads(): boolean {
    return [...this.#pendingReads].some(({ sent }) => sent !== this.#losses);
  }

  /**
   * Checks whenever the client connects, and a moment later: what happens just then is the easiest
   * to miss. Calls back if the observer was up to date.
   */
  checkWhenConnected(path: string, checked: () => void): void {
    const { process, zk } = this;
    const check = async () => {
      const losses = this.#losses;
      if (process.below(2) === 0) await process.sleep(process.below(100));
      while (this.#hasStaleReads && this.#losses === losses) await process.sleep(10);
      if (!this.isOver && (await this.checkCaughtUp(path))) checked();
    };
    const soon = () => {
      if (zk.state !== 'connected') return;
      for (let checks = 2; checks > 0; checks--) void check().catch((error: unknown) => process.handleError(error));
    };
    zk.on('state', soon);
    soon();
  }

  /**
   * Follows the loop of a recipe to its end, and complains if that differs from its documentation.
   * `isPastOf` returns whether a value says that it may be outdated.
   */
  async follow<Value>(
    loop: AsyncIterable<Value>,
    shownOf: (value: Value) => Shown,
    signal: AbortSignal,
    isPastOf: (value: Value) => boolean = () => false,
  ): Promise<void> {
    const { process, zk } = this;
    try {
      for await (const value of loop) {
        if (signal.aborted) process.reportViolation('its observer continues after it was aborted');
        this.record(shownOf(value), isPastOf(value));
      }
      if (zk.endReason !== 'closed') process.reportViolation(`its observer ended while its client is ${zk.endReason ?? zk.state}`);
    } catch (error) {
      const isEnd = KeeperError.is(error, 'SessionExpired', 'SessionMoved', 'AuthFailed') && zk.endReason !== undefined;
      if (!isEnd && !(signal.aborted && error === signal.reason)) process.reportViolation(`its observer failed: ${String(error)}`);
    } finally {
      this.#isOver = true;
    }
  }

  record(values: Shown, isPast = false): void {
    this.#last = values;
    this.#isPast = isPast;
    this.#observations.push({ values, fromZxid: this.#openedZxid, atMs: this.process.nowMs });
  }

  /**
   * Checks that it shows what its client has seen by now, if the client has a connection and keeps
   * it. Resolves with whether that could be checked.
   */
  async checkCaughtUp(path: string): Promise<boolean> {
    const { zk } = this;
    if (zk.state !== 'connected' || this.#hasStaleReads) return false;
    const losses = this.#losses;
    const fromZxid = zk.lastZxid;
    for (let answers = catchUpRequests; answers > 0; answers--) await zk.exists(path);
    if (this.#losses !== losses || this.#isOver || zk.lastZxid - fromZxid > catchUpTxnsMax) return false;
    this.expectUpToDate(fromZxid);
    return true;
  }

  /** What it shows must be of this zxid or later. */
  expectUpToDate(fromZxid: bigint): void {
    const { process } = this;
    this.#refresh?.();
    if (this.#last === undefined || this.#isPast)
      process.reportViolation(`its observer shows ${this.#last === undefined ? 'nothing' : 'an outdated state'}`);
    else this.#observations.push({ values: this.#last, fromZxid, atMs: process.nowMs });
  }

  get isOver(): boolean {
    return this.#isOver || this.process.isDead || this.zk.endReason !== undefined;
  }

  judge(phases: ReadonlyMap<string, readonly Phase[]>): string[] {
    return checkObservations(this.process.name, this.#observations, phases);
  }
}
