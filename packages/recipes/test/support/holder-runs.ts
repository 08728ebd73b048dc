/**
 * What all holds guarantee, over seeds that decide when connections break, stall and stay away
 * until the session has expired, when the server dies, and when a znode of a queue is deleted by
 * hand:
 *
 * - two holders that exclude each other never hold at once, except in the moments before a holder
 *   learns that its znode was deleted by hand;
 * - writes through an exclusive hold are in the order of the tokens: none of a former holder
 *   follows one of a later holder;
 * - after the faults each contender gets its turn, and nothing is left behind.
 */
import { type Client, connect, KeeperError, op } from '@tskeeper/client';
import { SeededRandom } from '@tskeeper/runtime';
import type { ClientWorld } from '../../../client/test/support/client-world.ts';
import { type Hold as RecipeHold, RecipeError, type WaitOptions } from '../../src/index.ts';
import { assertInOrder, entriesOf } from './log.ts';
import { overSeeds } from './seeds.ts';
import { Storm, storyWorld } from './storm.ts';

/** The recipe under test. */
export interface Subject {
  /** One more turn of a worker, in one of the possible ways. */
  acquire(zk: Client, random: SeededRandom, options: WaitOptions): Promise<Hold>;
  /** Whether a holder of this kind may hold together with the others. */
  mayHold(how: string, others: readonly string[]): boolean;
  /**
   * The znodes of all holders and waiters: they may be deleted by hand, and none is left in the
   * end.
   */
  znodes(zk: Client): Promise<readonly string[]>;
}

export interface Hold {
  readonly held: Pick<RecipeHold, 'state' | 'signal' | 'multi' | 'release' | 'onStateChange'>;
  readonly paths: readonly string[];
  readonly how: string;
  /** The mark in what an exclusive holder writes; undefined for others. */
  readonly token: bigint | undefined;
}

/** For a canary that writes past the hold. */
export const clientOf = new WeakMap<object, Client>();

export class Tally {
  alone = 0;
  beside = 0;
  lost = 0;
  suspended = 0;
  stale = 0;
  timedOut = 0;
  expired = 0;
  byHand = 0;
}

/** The holders, and how they hold. */
class Register {
  readonly #holds = new Set<Hold>();
  readonly #subject: Subject;
  readonly #deleted: ReadonlySet<string>;

  constructor(subject: Subject, deleted: ReadonlySet<string>) {
    this.#subject = subject;
    this.#deleted = deleted;
  }

  enter(hold: Hold): void {
    const others = [...this.#holds].filter(
      ({ held, paths }) => held.state !== 'lost' && held.state !== 'released' && !paths.some((path) => this.#deleted.has(path)),
    );
    const hows = others.map(({ how }) => how);
    if (!this.#subject.mayHold(hold.how, hows)) {
      const named = others.map(({ how, paths, held }) => `${paths.join()} (${how}, ${held.state})`);
      throw new Error(`two hold: ${hold.paths.join()} (${hold.how}) and ${named.join(' and ')}`);
    }
    this.#holds.add(hold);
  }

  leave(hold: Hold): void {
    this.#holds.delete(hold);
  }
}

class Worker {
  client: Client | undefined;
  #stopped = false;
  /** Turns since the last reset. */
  turns = 0;
  readonly #world: ClientWorld;
  readonly #random: SeededRandom;
  readonly #tally: Tally;
  readonly #register: Register;
  readonly #subject: Subject;

  constructor(world: ClientWorld, random: SeededRandom, tally: Tally, register: Register, subject: Subject) {
    this.#subject = subject;
    this.#world = world;
    this.#random = random;
    this.#tally = tally;
    this.#register = register;
  }

  async run(): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.#work(await this.#session());
      } catch (error) {
        this.#judge(error);
      }
      await this.#pause(this.#random.below(200));
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  async #session(): Promise<Client> {
    if (this.client === undefined || this.client.endReason !== undefined) {
      this.client = await connect('server:2181', this.#world.options({ sessionTimeoutMs: 4000, connectTimeoutMs: Infinity }));
    }
    return this.client;
  }

  async #work(zk: Client): Promise<void> {
    const options = this.#random.below(4) === 0 ? { timeoutMs: 500 + this.#random.below(3000) } : {};
    const hold = await this.#subject.acquire(zk, this.#random, options);
    const { held, token } = hold;
    clientOf.set(held, zk);
    this.#register.enter(hold);
    this.#tally[token === undefined ? 'beside' : 'alone']++;
    held.onStateChange((state) => {
      if (state === 'lost' || state === 'suspended') this.#tally[state]++;
    });
    this.turns++;
    try {
      // A holder that is busy for long before it sends a request.
      if (this.#random.below(4) === 0) await this.#pause(this.#random.below(8000));
      for (let writes = this.#random.below(4); writes > 0; writes--) {
        await this.#pause(this.#random.below(400));
        if (held.signal.aborted) break;
        await write(hold);
      }
      // A holder that continues although it has lost its hold.
      if (held.signal.aborted) {
        await write(hold);
        throw new Error(`${hold.paths.join()} was lost, and still wrote`);
      }
    } finally {
      this.#register.leave(hold);
      await held.release();
    }
  }

  #judge(error: unknown): void {
    if (error instanceof RecipeError) {
      if (error.code === 'TimedOut') this.#tally.timedOut++;
      else this.#tally.stale++;
    } else if (KeeperError.is(error, 'SessionExpired')) this.#tally.expired++;
    else if (!KeeperError.is(error, 'ConnectionLoss')) throw error;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#world.clock.after(ms, () => resolve());
    });
  }
}

async function write({ held, token }: Hold): Promise<void> {
  await held.multi([op.create('/log/e-', String(token ?? ''), { mode: 'persistentSequential' })]);
}

async function run(subject: Subject, seed: number, tally: Tally): Promise<void> {
  const { world, random } = await storyWorld(seed, 40);
  const observer = await world.connect({ sessionTimeoutMs: 40_000 });
  await world.until(observer.ensurePath('/log'));
  const deleted = new Set<string>();
  const register = new Register(subject, deleted);
  const workers = [1, 2, 3, 4].map(() => new Worker(world, new SeededRandom(random.uint32()), tally, register, subject));
  const trouble: unknown[] = [];
  const running = workers.map((worker) => worker.run());
  for (const each of running) each.catch((error: unknown) => void trouble.push(error));
  const deleteByHand = async () => {
    const znodes = await subject.znodes(observer);
    const victim = znodes[random.below(Math.min(3, znodes.length))];
    if (victim === undefined) return;
    deleted.add(victim);
    tally.byHand++;
    await observer.delete(victim).catch(() => undefined);
  };
  const storm = new Storm(world, random, {
    steps: 40,
    breaks: 25,
    cuts: 15,
    restarts: 3,
    mishaps: [[7, () => void deleteByHand().catch(() => undefined)]],
    cutSteps: () => (random.below(3) === 0 ? 40 : 1 + random.below(8)),
    stepMsMax: 500,
    parts: 5,
    isOver: () => trouble.length > 0,
  });
  await storm.pass();
  for (const worker of workers) worker.turns = 0;
  await world.untilSo(() => trouble.length > 0 || workers.every(({ turns }) => turns > 1), 600_000);
  for (const worker of workers) worker.stop();
  if (trouble.length > 0) throw trouble[0];
  await world.until(Promise.all(running));
  const entries = await entriesOf(world, observer, '/log');
  assertInOrder(
    '/log',
    entries.filter((token) => token !== ''),
  );
  await world.pass(2000);
  const left = await world.until(subject.znodes(observer));
  if (left.length > 0) throw new Error(`left behind: ${left.join()}`);
  await world.until(Promise.all(workers.map(async ({ client }) => client?.close())));
  await world.close();
}

/** This many seeds after the given one. */
export async function runSeeds(subject: Subject, behind: number, count: number): Promise<Tally> {
  const tally = new Tally();
  await overSeeds(count, (seed) => run(subject, seed, tally), behind + 1);
  return tally;
}

/** The story of the subject under a seed, for canaries. */
export function runOf(subject: Subject): (seed: number) => Promise<void> {
  return (seed) => run(subject, seed, new Tally());
}
