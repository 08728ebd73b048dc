/**
 * Transactions under one seed that decides who watches the votes, whether presence counts, what
 * sites vote, when connections break, stall and stay away until the session has expired, when
 * processes are killed and restart, and when the server dies. A killed site continues to run, cut
 * off, beside its restarted process, and one of the sites has two processes all the time: what each
 * of them finds out counts.
 */
import { type Client, connect, type ConnectOptions, KeeperError } from '@tskeeper/client';
import { SeededRandom } from '@tskeeper/runtime';
import type { ClientWorld } from '../../../client/test/support/client-world.ts';
import { RecipeError, TwoPhaseCommit, type TwoPhaseCommitOptions, type Vote } from '../../src/index.ts';
import { Storm, storyWorld } from '../support/storm.ts';

export class Tally {
  commit = 0;
  abort = 0;
  inPlace = 0;
  aborted = 0;
  timedOut = 0;
  expired = 0;
  killed = 0;
  unknownBegin = 0;
}

/** One transaction: what all clients have asked for, and what they have received. */
class Entry {
  readonly name: string;
  /** Whether it is known to have begun. */
  hasBegun = false;
  /**
   * The votes that sites have asked to write. A process that was killed before its vote may come
   * back with another vote, and find its former self still at work.
   */
  readonly #votes = new Set<string>();
  readonly acknowledging = new Set<string>();
  readonly done = new Set<string>();
  /** Another client may have voted in place of a site. */
  isExcused = false;
  #outcome: Vote | undefined;

  constructor(name: string) {
    this.name = name;
  }

  votes(site: string, vote: Vote): void {
    this.#votes.add(`${site} ${vote}`);
  }

  delivered(who: string, outcome: Vote): void {
    const missing = sites.filter((site) => !this.#votes.has(`${site} ${outcome}`));
    if (this.#outcome !== undefined && this.#outcome !== outcome)
      throw new Error(`${this.name}: ${who} received ${outcome}, and others ${this.#outcome}`);
    if (outcome === 'commit' && missing.length > 0)
      throw new Error(`${this.name}: ${who} received commit, for which ${missing.join()} has not voted`);
    if (outcome === 'abort' && !this.isExcused && missing.length === sites.length)
      throw new Error(`${this.name}: ${who} received abort, for which no site has voted`);
    this.#outcome = outcome;
  }

  get outcome(): Vote | undefined {
    return this.#outcome;
  }
}

const sites = ['berlin', 'paris', 'rome'];

class Story {
  readonly world: ClientWorld;
  readonly random: SeededRandom;
  readonly tally: Tally;
  readonly options: TwoPhaseCommitOptions;
  readonly entries: Entry[] = [];
  readonly trouble: unknown[] = [];
  readonly clients = new Set<Client>();
  names = 0;
  /** The faults are over, so each caller gets a reply without asking again. */
  isQuiet = false;
  isOver = false;

  constructor(world: ClientWorld, random: SeededRandom, tally: Tally) {
    this.world = world;
    this.random = random;
    this.tally = tally;
    this.options = { watchedBy: random.below(2) === 0 ? 'sites' : 'coordinator', presence: random.below(2) === 0 };
  }

  pause(random: SeededRandom, msMax: number): Promise<void> {
    return new Promise((resolve) => {
      this.world.clock.after(random.below(msMax), () => resolve());
    });
  }

  transaction(zk: Client, { name }: Entry): TwoPhaseCommit {
    return new TwoPhaseCommit(zk, name, this.options);
  }
}

/** A process, from its start until it is killed; and somewhat longer, as it does not notice. */
abstract class Process {
  readonly story: Story;
  readonly random: SeededRandom;
  readonly address: string;
  #zk: Client | undefined;
  #isKilled = false;

  constructor(story: Story) {
    this.story = story;
    this.random = new SeededRandom(story.random.uint32());
    this.address = `10.1.0.${story.world.clients + 1}`;
    const options = story.world.options({ sessionTimeoutMs: 2500, connectTimeoutMs: Infinity });
    void this.#run(options).catch((error: unknown) => story.trouble.push(error));
  }

  async #run(options: ConnectOptions): Promise<void> {
    while (!this.story.isOver && !this.#isKilled) {
      try {
        if (this.#zk === undefined || this.#zk.endReason !== undefined) {
          if (this.#zk !== undefined) this.story.clients.delete(this.#zk);
          this.#zk = await connect('server:2181', options);
          this.story.clients.add(this.#zk);
        }
        await this.step(this.#zk);
      } catch (error) {
        this.#judge(error);
      }
      await this.story.pause(this.random, 200);
    }
  }

  #judge(error: unknown): void {
    const { tally } = this.story;
    if (error instanceof RecipeError && error.code === 'TimedOut') tally.timedOut++;
    else if (KeeperError.is(error, 'SessionExpired')) tally.expired++;
    else if (!KeeperError.is(error, 'ConnectionLoss')) throw error;
  }

  kill(): void {
    this.#isKilled = true;
  }

  abstract step(zk: Client): Promise<void>;
}

class SiteProcess extends Process {
  readonly site: string;

  constructor(story: Story, site: string) {
    super(story);
    this.site = site;
  }

  override async step(zk: Client): Promise<void> {
    const entry = this.story.entries.find(({ done }) => !done.has(this.site));
    if (entry !== undefined) await this.#take(zk, entry);
  }

  async #take(zk: Client, entry: Entry): Promise<void> {
    const { story, random, site: name } = this;
    try {
      await using site = await story.transaction(zk, entry).join(name);
      const vote = random.below(4) === 0 ? 'abort' : 'commit';
      await story.pause(random, random.below(4) === 0 ? 3000 : 600);
      entry.votes(name, vote);
      if ((await site.vote(vote)) !== vote) story.tally.inPlace++;
      const outcome = await site.outcome(story.isQuiet ? {} : { timeoutMs: 3000 });
      entry.delivered(name, outcome);
      await story.pause(random, 600);
      entry.acknowledging.add(name);
      await site.acknowledge();
      entry.done.add(name);
    } catch (error) {
      if (!KeeperError.is(error, 'NoNode')) throw error;
      if (entry.hasBegun && !entry.acknowledging.has(name))
        throw new Error(`${entry.name} is gone before ${name} was done`, { cause: error });
      entry.done.add(name);
    }
  }
}

class CoordinatorProcess extends Process {
  override async step(zk: Client): Promise<void> {
    const { story, random } = this;
    const entry = new Entry(`/app/tx-${story.names++}`);
    // A site that is seen to be gone gets a vote in its place.
    entry.isExcused = story.options.presence === true;
    const transaction = story.transaction(zk, entry);
    try {
      await transaction.begin(sites, { data: 'move 5' });
      entry.hasBegun = true;
    } catch (error) {
      story.tally.unknownBegin++;
      throw error;
    } finally {
      story.entries.push(entry);
    }
    try {
      entry.delivered('the coordinator', await transaction.outcome(story.isQuiet ? {} : { timeoutMs: 500 + random.below(3000) }));
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) return;
      if (!(error instanceof RecipeError) || error.code !== 'TimedOut') throw error;
      if (random.below(2) === 0) return;
      entry.isExcused = true;
      story.tally.aborted++;
      try {
        entry.delivered('the coordinator', await transaction.abort());
      } catch (refusal) {
        if (!KeeperError.is(refusal, 'NoNode')) throw refusal;
      }
    }
  }
}

export async function run(seed: number, tally: Tally): Promise<void> {
  const { world, random } = await storyWorld(seed, 40);
  const observer = await world.connect({ sessionTimeoutMs: 40_000 });
  const story = new Story(world, random, tally);
  const start: (() => Process)[] = [
    ...[...sites, sites[0]!].map((site) => () => new SiteProcess(story, site)),
    () => new CoordinatorProcess(story),
    () => new CoordinatorProcess(story),
  ];
  const processes = start.map((each) => each());
  const cut = (address: string, steps: number) => {
    const server = world.address;
    if (random.below(2) === 0) world.wire.cut(address, server);
    else world.wire.cutOneWay(server, address);
    storm.later(steps, () => world.wire.heal(address, server));
  };
  const breakAll = (address: string) => {
    for (const cnxn of world.wire.cnxns) if (cnxn.dialer.address === address && !cnxn.forward.from.isClosed) world.break(cnxn);
  };
  const killAt = (at: number) => {
    tally.killed++;
    processes[at]!.kill();
    cut(processes[at]!.address, 4 + random.below(10));
    processes[at] = start[at]!();
  };
  const anyone = () => random.below(processes.length);
  const storm: Storm = new Storm(world, random, {
    steps: 40,
    breaks: 0,
    cuts: 0,
    restarts: 3,
    // Of a process, whatever connections it has.
    mishaps: [
      [20, () => breakAll(processes[anyone()]!.address)],
      [15, () => cut(processes[anyone()]!.address, 1 + random.below(5))],
      [10, () => killAt(anyone())],
    ],
    cutSteps: () => 0,
    stepMsMax: 500,
    parts: 5,
    isOver: () => story.trouble.length > 0,
  });
  await storm.pass();
  story.isQuiet = true;
  // The last transaction has begun, and one of its participants is gone for good.
  const begun = story.names;
  await world.untilSo(() => story.trouble.length > 0 || story.entries.length > begun);
  for (const each of processes.slice(sites.length + 1)) each.kill();
  await world.pass(random.below(10) * 100);
  const last = random.below(processes.length);
  processes[last]!.kill();
  cut(processes[last]!.address, Infinity);
  if (last <= sites.length) start[last]!();
  const isDone = () => story.entries.every(({ done }) => done.size === sites.length);
  for (let left = 400; story.trouble.length === 0 && !isDone(); left--) {
    if (left === 0)
      throw new Error(`no outcome received: ${story.entries.map(({ name, done }) => `${name} ${[...done].join()}`).join('; ')}`);
    await world.pass(500, 250);
  }
  // What an earlier session has left ends by now, and with it all waits for that.
  await world.pass(4000, 500);
  story.isOver = true;
  await world.pass(1000, 500);
  if (story.trouble.length > 0) throw story.trouble[0];
  const names = await world.until(observer.getChildren('/app')).catch((error: unknown) => {
    if (KeeperError.is(error, 'NoNode')) return { children: [] };
    throw error;
  });
  if (names.children.length > 0) throw new Error(`left behind: ${names.children.join()}`);
  for (const { outcome } of story.entries) if (outcome !== undefined) tally[outcome]++;
  await world.until(Promise.all([...story.clients].map((zk) => zk.close())));
  await world.close();
}
