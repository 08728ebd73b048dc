/** A process that looks on at what others do, in the background of its turns: by a loop of a recipe, or by a copy that is at hand. */
import { type Client, KeeperError } from '@tskeeper/client';
import type { Millis } from '@tskeeper/protocol';
import type { RecipeProcess } from '../recipe-process.ts';
import { judgeSightings, type Phase, type Sighting } from './onlooker-rules.ts';

/** By what it is of: what it is. */
export type Shown = ReadonlyMap<string, string>;

/** Requests that are answered one behind the other until what was told by then is shown: more than those of two looks, as one may be under way. */
const answersOfTwoLooks = 10;

/** One loop of one session, from its first word to its last. */
export class Onlooker {
  readonly process: RecipeProcess;
  readonly zk: Client;
  readonly #sightings: Sighting[] = [];
  readonly #openedZxid: bigint;
  #last: Shown | undefined;
  /** Connections that were lost since it was up to date: so often may what it asks have been asked in vain. */
  #losses = 0;
  #lostMs = 0;
  #isOver = false;

  constructor(process: RecipeProcess, zk: Client) {
    this.process = process;
    this.zk = zk;
    this.#openedZxid = zk.lastZxid;
    zk.on('state', () => {
      if (zk.state === 'connected') return;
      this.#losses++;
      this.#lostMs = process.nowMs;
    });
  }

  /** In how many ms at most what it has asked in vain is asked again: a client takes its time, and more with each loss. */
  get #repeatedIn(): Millis {
    if (this.#losses === 0) return 0;
    return Math.max(0, this.#lostMs + Math.min(5000, 100 * 2 ** (this.#losses - 1)) - this.process.nowMs);
  }

  /** Whenever it begins to hear, and a moment later: what happens just then is the easiest to overlook. Calls back when it was up to date. */
  checkWhenConnected(path: string, checked: () => void): void {
    const { process, zk } = this;
    const check = async () => {
      await process.pause(this.#repeatedIn + (process.below(2) === 0 ? 0 : process.below(100)));
      if (!this.isOver && (await this.catchesUp(path))) checked();
    };
    const soon = () => {
      if (zk.state !== 'connected') return;
      for (let checks = 2; checks > 0; checks--) void check().catch((error: unknown) => process.met(error));
    };
    zk.on('state', soon);
    soon();
  }

  /** Ends as the loop of the recipe does, and complains if that is not as its docs say. */
  async follow<Value>(loop: AsyncIterable<Value>, shownOf: (value: Value) => Shown, signal: AbortSignal): Promise<void> {
    const { process, zk } = this;
    try {
      for await (const value of loop) {
        if (signal.aborted) process.complain(`looks on, though it has stopped`);
        this.shows(shownOf(value));
      }
      if (zk.closedBecause !== 'closed') process.complain(`looks on no more, and its client is ${zk.closedBecause ?? zk.state}`);
    } catch (error) {
      const isEnd = KeeperError.is(error, 'SessionExpired', 'SessionMoved', 'AuthFailed') && zk.closedBecause !== undefined;
      if (!isEnd && !(signal.aborted && error === signal.reason)) process.complain(`looks on no more: ${String(error)}`);
    } finally {
      this.#isOver = true;
    }
  }

  shows(values: Shown): void {
    this.#last = values;
    this.#sightings.push({ values, fromZxid: this.#openedZxid, toZxid: this.zk.lastZxid });
  }

  /** What it shows is as of what its client has seen by now, if that has a connection, and keeps it. Resolves with whether that was so. */
  async catchesUp(path: string): Promise<boolean> {
    const { zk } = this;
    if (zk.state !== 'connected' || this.#repeatedIn > 0) return false;
    const losses = this.#losses;
    const fromZxid = zk.lastZxid;
    for (let answers = answersOfTwoLooks; answers > 0; answers--) await zk.exists(path);
    if (this.#losses !== losses || this.#isOver) return false;
    this.#losses = 0;
    this.upToDate(fromZxid);
    return true;
  }

  /** What it shows is to be as of this, or later. */
  upToDate(fromZxid: bigint): void {
    const { process, zk } = this;
    if (this.#last === undefined) process.complain('looks on, and has been shown nothing');
    else this.#sightings.push({ values: this.#last, fromZxid, toZxid: zk.lastZxid });
  }

  get isOver(): boolean {
    return this.#isOver || this.process.dead;
  }

  judge(phases: ReadonlyMap<string, readonly Phase[]>): string[] {
    return judgeSightings(this.process.name, this.#sightings, phases);
  }
}
