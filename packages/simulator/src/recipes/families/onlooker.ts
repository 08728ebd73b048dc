/** A process that looks on at what others do, in the background of its turns: by a loop of a recipe, or by a copy that is at hand. */
import { type Client, KeeperError } from '@tskeeper/client';
import type { RecipeProcess } from '../recipe-process.ts';
import { judgeSightings, type Phase, type Sighting } from './onlooker-rules.ts';

/** By what it is of: what it is. */
export type Shown = ReadonlyMap<string, string>;

/** Requests that are answered one behind the other until what was told by then is shown: as those of two looks, as one may be under way, and of two that are begun anew. */
const answersOfLooks = 13;
/** A look that finds the leader gone is begun anew, so only so much may happen meanwhile. */
const txnsMeanwhile = 2n;

/** One loop of one session, from its first word to its last. */
export class Onlooker {
  readonly process: RecipeProcess;
  readonly zk: Client;
  readonly #sightings: Sighting[] = [];
  readonly #openedZxid: bigint;
  readonly #look: (() => void) | undefined;
  #last: Shown | undefined;
  #isPast = false;
  #losses = 0;
  /** Questions that are under way: behind how many losses of a connection each was sent, or `unsent` for want of one. */
  readonly #asked = new Set<{ readonly sent: number | 'unsent' }>();
  #isOver = false;

  /** Of a copy: `look` has it shown what is at hand. */
  constructor(process: RecipeProcess, zk: Client, look?: () => void) {
    this.process = process;
    this.zk = zk;
    this.#look = look;
    this.#openedZxid = zk.lastZxid;
    zk.on('state', () => {
      if (zk.state !== 'connected') this.#losses++;
    });
  }

  /** The client, for what repeats its questions behind a loss, as late as it likes: until then it cannot be up to date. */
  get attentive(): Client {
    const { zk } = this;
    const noted =
      (ask: (...args: unknown[]) => Promise<unknown>) =>
      (...args: unknown[]) => {
        const question = { sent: zk.state === 'connected' ? this.#losses : ('unsent' as const) };
        this.#asked.add(question);
        return ask.apply(zk, args).finally(() => this.#asked.delete(question));
      };
    return new Proxy(zk, {
      get: (_zk, key) => {
        const own: unknown = Reflect.get(zk, key, zk);
        if (typeof own !== 'function') return own;
        return key === 'getChildren' || key === 'getData' ? noted(own as never) : own.bind(zk);
      },
    });
  }

  /** Whether something that was asked ahead of the present connection is to be asked again. */
  get #isBehind(): boolean {
    return [...this.#asked].some(({ sent }) => sent !== this.#losses);
  }

  /** Whenever it begins to hear, and a moment later: what happens just then is the easiest to overlook. Calls back when it was up to date. */
  checkWhenConnected(path: string, checked: () => void): void {
    const { process, zk } = this;
    const check = async () => {
      const losses = this.#losses;
      if (process.below(2) === 0) await process.pause(process.below(100));
      while (this.#isBehind && this.#losses === losses) await process.pause(10);
      if (!this.isOver && (await this.catchesUp(path))) checked();
    };
    const soon = () => {
      if (zk.state !== 'connected') return;
      for (let checks = 2; checks > 0; checks--) void check().catch((error: unknown) => process.met(error));
    };
    zk.on('state', soon);
    soon();
  }

  /** Ends as the loop of the recipe does, and complains if that is not as its docs say. `isPastOf`: whether what is told says that it is of the past. */
  async follow<Value>(
    loop: AsyncIterable<Value>,
    shownOf: (value: Value) => Shown,
    signal: AbortSignal,
    isPastOf: (value: Value) => boolean = () => false,
  ): Promise<void> {
    const { process, zk } = this;
    try {
      for await (const value of loop) {
        if (signal.aborted) process.complain('looks on, though it has stopped');
        this.shows(shownOf(value), isPastOf(value));
      }
      if (zk.closedBecause !== 'closed') process.complain(`looks on no more, and its client is ${zk.closedBecause ?? zk.state}`);
    } catch (error) {
      const isEnd = KeeperError.is(error, 'SessionExpired', 'SessionMoved', 'AuthFailed') && zk.closedBecause !== undefined;
      if (!isEnd && !(signal.aborted && error === signal.reason)) process.complain(`looks on no more: ${String(error)}`);
    } finally {
      this.#isOver = true;
    }
  }

  shows(values: Shown, isPast = false): void {
    this.#last = values;
    this.#isPast = isPast;
    this.#sightings.push({ values, fromZxid: this.#openedZxid, atMs: this.process.nowMs });
  }

  /** What it shows is as of what its client has seen by now, if that has a connection, and keeps it. Resolves with whether that was so. */
  async catchesUp(path: string): Promise<boolean> {
    const { zk } = this;
    if (zk.state !== 'connected' || this.#isBehind) return false;
    const losses = this.#losses;
    const fromZxid = zk.lastZxid;
    for (let answers = answersOfLooks; answers > 0; answers--) await zk.exists(path);
    if (this.#losses !== losses || this.#isOver || zk.lastZxid - fromZxid > txnsMeanwhile) return false;
    this.upToDate(fromZxid);
    return true;
  }

  /** What it shows is to be as of this, or later. */
  upToDate(fromZxid: bigint): void {
    const { process } = this;
    this.#look?.();
    if (this.#last === undefined || this.#isPast)
      process.complain(`looks on, and is shown ${this.#last === undefined ? 'nothing' : 'the past'}`);
    else this.#sightings.push({ values: this.#last, fromZxid, atMs: process.nowMs });
  }

  get isOver(): boolean {
    return this.#isOver || this.process.dead || this.zk.closedBecause !== undefined;
  }

  judge(phases: ReadonlyMap<string, readonly Phase[]>): string[] {
    return judgeSightings(this.process.name, this.#sightings, phases);
  }
}
