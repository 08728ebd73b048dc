/**
 * Transactions, one after the other: each process is a site, and begins the next transaction when
 * it has none; others observe, and abort.
 */
import { type Client, KeeperError } from '@tskeeper/client';
import { TwoPhaseCommit, type TwoPhaseCommitOptions, type Vote } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { holdEphemeralBriefly } from './family-helpers.ts';
import { checkTransaction, type TransactionRecord } from './transaction-rules.ts';

export const transactions: Family = {
  description: 'processes agree on transactions, each as one of their sites',
  marks: [
    'a transaction was committed',
    'a transaction was aborted',
    'a vote was cast for an absent participant',
    'a participant restarted after its vote',
    'an operator aborted',
    'a coordinator crashed without a decision',
  ],
  drawRun: (random) => new TransactionRun(random),
};

const folder = '/transactions';

class TransactionRun implements FamilyRun {
  readonly processes: number;
  readonly pauseMsMax: number;
  readonly #presence: boolean;
  /** Undefined: each process chooses its own way, with the same result. */
  readonly #watching: TwoPhaseCommitOptions['watchedBy'];
  /** Sites wait for the outcome without a limit, so that none returns and counts votes itself. */
  readonly #isPatient: boolean;
  readonly #sites: readonly string[];
  readonly #transactions: TransactionRecord[] = [];
  #names = 0;

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(4);
    this.pauseMsMax = 1 + random.below(200);
    this.#presence = random.below(2) === 0;
    this.#watching = ([undefined, 'sites', 'coordinator', 'coordinator'] as const)[random.below(4)];
    this.#isPatient = random.below(3) > 0;
    this.#sites = Array.from({ length: this.processes }, (_, at) => `site-${at}`);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const site = this.#sites[process.number]!;
    const pending = () => this.#transactions.find(({ done }) => !done.has(site));
    if (pending() === undefined) await this.#begin(process, zk);
    const minutes = pending();
    if (minutes === undefined) return false;
    try {
      await this.#takePart(process, zk, site, minutes);
      return true;
    } catch (error) {
      if (!KeeperError.is(error, 'NoNode')) throw error;
      if (minutes.hasBegun && !minutes.acknowledging.has(site))
        process.reportViolation(`${minutes.path} is gone, but ${site} has not acknowledged it: ${error.message}`);
      minutes.done.add(site);
      return false;
    }
  }

  #transaction(process: RecipeProcess, zk: Client, { path }: TransactionRecord): TwoPhaseCommit {
    const watchedBy = this.#watching ?? (process.below(2) === 0 ? 'sites' : 'coordinator');
    return new TwoPhaseCommit(zk, path, { watchedBy, presence: this.#presence });
  }

  async #begin(process: RecipeProcess, zk: Client): Promise<void> {
    const minutes: TransactionRecord = {
      path: `${folder}/tx-${this.#names++}`,
      sites: this.#sites,
      presence: this.#presence,
      hasBegun: false,
      isAborted: false,
      requestedVotes: new Set(),
      acknowledging: new Set(),
      done: new Set(),
      reportedOutcomes: [],
    };
    try {
      await this.#transaction(process, zk, minutes).begin(this.#sites, { data: 'move 5' });
      minutes.hasBegun = true;
    } finally {
      this.#transactions.push(minutes);
    }
  }

  async #takePart(process: RecipeProcess, zk: Client, name: string, minutes: TransactionRecord): Promise<void> {
    const signal = process.stopping;
    await using site = await this.#transaction(process, zk, minutes).join(name, { signal });
    const vote: Vote = process.below(8) === 0 ? 'abort' : 'commit';
    await process.sleep(process.below(process.isHealed || process.below(3) > 0 ? 100 : 2000));
    const isBack = minutes.requestedVotes.has(`${name} commit`) || minutes.requestedVotes.has(`${name} abort`);
    minutes.requestedVotes.add(`${name} ${vote}`);
    const standing = await site.vote(vote, { signal });
    if (isBack) process.hitMark('a participant restarted after its vote');
    if (!minutes.requestedVotes.has(`${name} ${standing}`)) process.hitMark('a vote was cast for an absent participant');
    this.#recordOutcome(
      process,
      zk,
      minutes,
      await site.outcome(process.isHealed || this.#isPatient || process.below(3) > 0 ? { signal } : { timeoutMs: process.below(2500) }),
    );
    await process.sleep(process.below(100));
    minutes.acknowledging.add(name);
    await site.acknowledge({ signal });
    minutes.done.add(name);
  }

  #recordOutcome(process: RecipeProcess, zk: Client, { reportedOutcomes }: TransactionRecord, outcome: Vote): void {
    process.hitMark(outcome === 'commit' ? 'a transaction was committed' : 'a transaction was aborted');
    reportedOutcomes.push({ who: process.name, outcome, seenZxid: zk.lastZxid });
  }

  async operatorAction(operator: RecipeProcess, zk: Client): Promise<void> {
    const minutes = this.#transactions.find(({ done }) => done.size < this.#sites.length);
    if (minutes === undefined) return;
    if (this.#watching === 'coordinator' && operator.below(2) === 0) {
      // A process that takes the role of the coordinator and dies before it has decided.
      if (await holdEphemeralBriefly(operator, zk, `${minutes.path}/coordinator`, 2500))
        operator.hitMark('a coordinator crashed without a decision');
      return;
    }
    const transaction = this.#transaction(operator, zk, minutes);
    const isPatient = operator.below(3) > 0;
    if (!isPatient) {
      minutes.isAborted = true;
      operator.hitMark('an operator aborted');
    }
    try {
      this.#recordOutcome(
        operator,
        zk,
        minutes,
        await (isPatient ? transaction.outcome({ timeoutMs: 1000 }) : transaction.abort({ timeoutMs: 1000 })),
      );
    } catch (error) {
      if (!KeeperError.is(error, 'NoNode')) throw error;
      operator.hitMark('an observer came too late');
    }
  }

  /** A transaction that not every site has acknowledged stays, since programs have ended. */
  async leftovers(zk: Client): Promise<readonly string[]> {
    const over = this.#transactions.filter(({ done }) => done.size === this.#sites.length);
    const stats = await Promise.all(over.map(({ path }) => zk.exists(path)));
    return over.filter((_, at) => stats[at] !== null).map(({ path }) => path);
  }

  check({ history }: Evidence): readonly string[] {
    return this.#transactions.flatMap((minutes) => checkTransaction(minutes, history));
  }
}
