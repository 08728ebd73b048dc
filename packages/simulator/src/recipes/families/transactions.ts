/**
 * Transactions, one after the other: each process is a site, and begins the next transaction when
 * it has none; others observe, and abort.
 */
import { type Client, KeeperError } from '@tskeeper/client';
import { TwoPhaseCommit, type TwoPhaseCommitOptions, type Vote } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, RecipeStory } from '../family.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { haveForAWhile } from './line-of-story.ts';
import { judgeTransaction, type Minutes } from './transaction-rules.ts';

export const transactions: Family = {
  what: 'processes agree on transactions, each as one of their sites',
  marks: [
    'a transaction was committed',
    'a transaction was aborted',
    'a vote was cast in place of a site',
    'a site came back to its vote',
    'an operator lost patience',
    'a coordinator went without a decision',
  ],
  draw: (random) => new TransactionStory(random),
};

const folder = '/transactions';

class TransactionStory implements RecipeStory {
  readonly processes: number;
  readonly restMsMax: number;
  readonly #presence: boolean;
  /** Undefined: each process chooses its own way, with the same result. */
  readonly #watching: TwoPhaseCommitOptions['watching'];
  /** Sites wait for the outcome without a limit, so that none returns and counts votes itself. */
  readonly #isPatient: boolean;
  readonly #sites: readonly string[];
  readonly #all: Minutes[] = [];
  #names = 0;

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(4);
    this.restMsMax = 1 + random.below(200);
    this.#presence = random.below(2) === 0;
    this.#watching = ([undefined, 'sites', 'coordinator', 'coordinator'] as const)[random.below(4)];
    this.#isPatient = random.below(3) > 0;
    this.#sites = Array.from({ length: this.processes }, (_, at) => `site-${at}`);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const site = this.#sites[process.number]!;
    const pending = () => this.#all.find(({ done }) => !done.has(site));
    if (pending() === undefined) await this.#begin(process, zk);
    const minutes = pending();
    if (minutes === undefined) return false;
    try {
      await this.#takePart(process, zk, site, minutes);
      return true;
    } catch (error) {
      if (!KeeperError.is(error, 'NoNode')) throw error;
      if (minutes.hasBegun && !minutes.acknowledging.has(site))
        process.complain(`${minutes.path} is gone, but ${site} has not acknowledged it: ${error.message}`);
      minutes.done.add(site);
      return false;
    }
  }

  #transaction(process: RecipeProcess, zk: Client, { path }: Minutes): TwoPhaseCommit {
    const watching = this.#watching ?? (process.below(2) === 0 ? 'sites' : 'coordinator');
    return new TwoPhaseCommit(zk, path, { watching, presence: this.#presence });
  }

  async #begin(process: RecipeProcess, zk: Client): Promise<void> {
    const minutes: Minutes = {
      path: `${folder}/tx-${this.#names++}`,
      sites: this.#sites,
      presence: this.#presence,
      hasBegun: false,
      isAborted: false,
      minds: new Set(),
      acknowledging: new Set(),
      done: new Set(),
      told: [],
    };
    try {
      await this.#transaction(process, zk, minutes).begin(this.#sites, { data: 'move 5' });
      minutes.hasBegun = true;
    } finally {
      this.#all.push(minutes);
    }
  }

  async #takePart(process: RecipeProcess, zk: Client, name: string, minutes: Minutes): Promise<void> {
    const signal = process.stopping;
    await using site = await this.#transaction(process, zk, minutes).join(name, { signal });
    const vote: Vote = process.below(8) === 0 ? 'abort' : 'commit';
    await process.pause(process.below(process.isHealed || process.below(3) > 0 ? 100 : 2000));
    const isBack = minutes.minds.has(`${name} commit`) || minutes.minds.has(`${name} abort`);
    minutes.minds.add(`${name} ${vote}`);
    const standing = await site.vote(vote, { signal });
    if (isBack) process.note('a site came back to its vote');
    if (!minutes.minds.has(`${name} ${standing}`)) process.note('a vote was cast in place of a site');
    this.#told(
      process,
      zk,
      minutes,
      await site.outcome(process.isHealed || this.#isPatient || process.below(3) > 0 ? { signal } : { timeoutMs: process.below(2500) }),
    );
    await process.pause(process.below(100));
    minutes.acknowledging.add(name);
    await site.acknowledge({ signal });
    minutes.done.add(name);
  }

  #told(process: RecipeProcess, zk: Client, { told }: Minutes, outcome: Vote): void {
    process.note(outcome === 'commit' ? 'a transaction was committed' : 'a transaction was aborted');
    told.push({ who: process.name, outcome, seenZxid: zk.lastZxid });
  }

  async meddle(operator: RecipeProcess, zk: Client): Promise<void> {
    const minutes = this.#all.find(({ done }) => done.size < this.#sites.length);
    if (minutes === undefined) return;
    if (this.#watching === 'coordinator' && operator.below(2) === 0) {
      // A process that takes the role of the coordinator and dies before it has decided.
      if (await haveForAWhile(operator, zk, `${minutes.path}/coordinator`, 2500)) operator.note('a coordinator went without a decision');
      return;
    }
    const transaction = this.#transaction(operator, zk, minutes);
    const isPatient = operator.below(3) > 0;
    if (!isPatient) {
      minutes.isAborted = true;
      operator.note('an operator lost patience');
    }
    try {
      this.#told(
        operator,
        zk,
        minutes,
        await (isPatient ? transaction.outcome({ timeoutMs: 1000 }) : transaction.abort({ timeoutMs: 1000 })),
      );
    } catch (error) {
      if (!KeeperError.is(error, 'NoNode')) throw error;
      operator.note('somebody who looked on came too late');
    }
  }

  /** A transaction that not every site has acknowledged stays, since programs have ended. */
  async left(zk: Client): Promise<readonly string[]> {
    const over = this.#all.filter(({ done }) => done.size === this.#sites.length);
    const stats = await Promise.all(over.map(({ path }) => zk.exists(path)));
    return over.filter((_, at) => stats[at] !== null).map(({ path }) => path);
  }

  judge({ history }: Evidence): readonly string[] {
    return this.#all.flatMap((minutes) => judgeTransaction(minutes, history));
  }
}
