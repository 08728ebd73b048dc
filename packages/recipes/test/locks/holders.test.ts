/**
 * What locks promise, held over seeds that decide when connections break, stall and stay away until the session has expired, when the server dies, and when
 * somebody deletes a znode of the line by hand:
 *
 * - while one holds alone, nobody else holds; but for the moments in which a holder has not heard yet that its znode was deleted by hand;
 * - what is written through a hold stands in the order of the tokens: nothing of a holder of the past behind anything of a later one;
 * - once it is quiet everyone has their turn, and nothing is left behind.
 */
import { type Client, ClientView, connect, KeeperError, op } from '@tskeeper/client';
import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it, vi } from 'vitest';
import { ClientWorld } from '../../../client/test/support/client-world.ts';
import { type Held, Lock, RecipeError, SharedLock } from '../../src/index.ts';
import { Held as HeldClass } from '../../src/line/held.ts';
import { Line, Place } from '../../src/line/line.ts';

const path = '/locks/x';

/** For a canary that goes past the hold. */
const clientOf = new WeakMap<Held, Client>();

class Tally {
  held = 0;
  shared = 0;
  lost = 0;
  suspended = 0;
  stale = 0;
  timedOut = 0;
  expired = 0;
  byHand = 0;
}

/** Who holds, in what way. */
class Register {
  readonly #holds = new Map<Held, 'alone' | 'shared'>();
  readonly #deleted: ReadonlySet<string>;

  constructor(deleted: ReadonlySet<string>) {
    this.#deleted = deleted;
  }

  enter(held: Held, how: 'alone' | 'shared'): void {
    for (const [other, otherHow] of this.#holds) {
      const isOver = other.state === 'lost' || other.state === 'released';
      if (isOver || this.#deleted.has(other.path) || (how === 'shared' && otherHow === 'shared')) continue;
      throw new Error(`two hold: ${other.path} (${otherHow}, ${other.state}) and ${held.path} (${how})`);
    }
    this.#holds.set(held, how);
  }

  leave(held: Held): void {
    this.#holds.delete(held);
  }
}

class Worker {
  client: Client | undefined;
  #stopped = false;
  /** Turns since the last that were had. */
  turns = 0;
  readonly #world: ClientWorld;
  readonly #random: SeededRandom;
  readonly #tally: Tally;
  readonly #register: Register;

  constructor(world: ClientWorld, random: SeededRandom, tally: Tally, register: Register) {
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
    if (this.client === undefined || this.client.closedBecause !== undefined) {
      this.client = await connect('server:2181', this.#world.options({ sessionTimeoutMs: 4000, connectTimeoutMs: Infinity }));
    }
    return this.client;
  }

  async #work(zk: Client): Promise<void> {
    const isShared = this.#random.below(3) === 0;
    const options = this.#random.below(4) === 0 ? { timeoutMs: 500 + this.#random.below(3000) } : {};
    const lock = new SharedLock(zk, path);
    const held = await (isShared ? lock.reading : lock.writing).acquire(options);
    clientOf.set(held, zk);
    this.#register.enter(held, isShared ? 'shared' : 'alone');
    this.#tally[isShared ? 'shared' : 'held']++;
    held.onStateChange((state) => {
      if (state === 'lost' || state === 'suspended') this.#tally[state]++;
    });
    this.turns++;
    try {
      // One that has much to do before it asks the ensemble for anything.
      if (this.#random.below(4) === 0) await this.#pause(this.#random.below(8000));
      for (let writes = this.#random.below(4); writes > 0; writes--) {
        await this.#pause(this.#random.below(400));
        if (held.signal.aborted) break;
        if (!isShared) await write(held);
      }
      // One that goes on although it has lost the lock.
      if (held.signal.aborted && !isShared) {
        await write(held);
        throw new Error(`${held.path} is lost, and has written all the same`);
      }
    } finally {
      this.#register.leave(held);
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

async function write(held: Held): Promise<void> {
  await held.multi([op.create('/log/e-', String(held.fencingToken), { mode: 'persistentSequential' })]);
}

async function run(seed: number, tally: Tally): Promise<void> {
  const random = new SeededRandom(seed);
  const world = await ClientWorld.start();
  const delayMsMax = random.below(2) === 0 ? 0 : 40;
  world.wire.mannersOf = () => ({ delayMs: random.below(delayMsMax + 1) });
  const observer = await world.connect({ sessionTimeoutMs: 40_000 });
  await world.until(observer.ensurePath('/log'));
  const deleted = new Set<string>();
  const register = new Register(deleted);
  const workers = [1, 2, 3, 4].map(() => new Worker(world, new SeededRandom(random.uint32()), tally, register));
  const trouble: unknown[] = [];
  const running = workers.map((worker) => worker.run());
  for (const each of running) each.catch((error: unknown) => void trouble.push(error));
  const cables = () => [...world.wire.cnxns].filter(({ dialer, forward }) => dialer.address !== '10.1.0.1' && !forward.from.gone);
  const cuts: { readonly at: number; readonly heal: () => void }[] = [];
  const deleteByHand = async () => {
    const line = await new SharedLock(observer, path).contenders();
    const victim = line[random.below(3)];
    if (victim === undefined) return;
    deleted.add(victim.path);
    tally.byHand++;
    await observer.delete(victim.path).catch(() => undefined);
  };
  for (let step = 0; step < 40 && trouble.length === 0; step++) {
    for (const { at, heal } of cuts.splice(0)) {
      if (at <= step) heal();
      else cuts.push({ at, heal });
    }
    const dice = random.below(100);
    const open = cables();
    const cable = open[random.below(Math.max(1, open.length))];
    if (dice < 25 && cable !== undefined) world.break(cable);
    else if (dice < 40 && cable !== undefined) {
      const [from, to] = [cable.dialer.address, cable.listener.address];
      world.wire.cut(from, to);
      cuts.push({ at: step + (random.below(3) === 0 ? 40 : 1 + random.below(8)), heal: () => world.wire.heal(from, to) });
    } else if (dice < 43) {
      world.kill();
      await world.boot();
    } else if (dice < 50) {
      deleteByHand().catch(() => undefined);
    }
    await world.pass(random.below(6) * 100, 100);
  }
  for (const { heal } of cuts) heal();
  for (const worker of workers) worker.turns = 0;
  await world.untilSo(() => trouble.length > 0 || workers.every(({ turns }) => turns > 1), 600_000);
  for (const worker of workers) worker.stop();
  if (trouble.length > 0) throw trouble[0];
  await world.until(Promise.all(running));
  await world.untilSo(() => observer.state === 'connected');
  const { children } = await world.until(observer.getChildren('/log'));
  const entries = await world.until(Promise.all(children.toSorted().map((name) => observer.getData(`/log/${name}`))));
  const tokens = entries.map(({ data }) => BigInt(new TextDecoder().decode(data ?? undefined)));
  tokens.forEach((token, at) => {
    if (at > 0 && token < tokens[at - 1]!) throw new Error(`entry ${at} of holder ${token} stands behind one of holder ${tokens[at - 1]}`);
  });
  await world.pass(2000);
  const left = await world.until(new Lock(observer, path, { name: '-' }).contenders());
  if (left.length > 0) throw new Error(`left behind: ${left.map(({ path: each }) => each).join()}`);
  await world.until(Promise.all(workers.map(async ({ client }) => client?.close())));
  await world.close();
}

describe('holders', () => {
  it.each([0, 50, 100])(
    'C1-21, C1-3: are never two, whatever happens, over the fifty seeds behind %i',
    async (behind) => {
      const tally = new Tally();
      for (let seed = behind + 1; seed <= behind + 50; seed++) {
        await run(seed, tally).catch((error: unknown) => {
          throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
        });
      }
      for (const [what, times] of Object.entries(tally)) expect(times, what).toBeGreaterThan(10);
    },
    60_000,
  );

  const join = Object.getOwnPropertyDescriptor(Line.prototype, 'join')!.value as Line['join'];
  const blocker = Object.getOwnPropertyDescriptor(Place.prototype, 'blocker')!.value as Place['blocker'];
  const canaries: Record<string, { readonly plant: () => void; readonly finds: RegExp }> = {
    'does not wait for its turn': {
      plant: () => vi.spyOn(Place.prototype, 'turn').mockResolvedValue(),
      finds: /two hold/,
    },
    'reads beside a writer that is not the first in line': {
      plant: () =>
        vi.spyOn(Place.prototype, 'blocker').mockImplementation(async function (this: Place, ahead, signal) {
          const found = await blocker.call(this, ahead, signal);
          return found?.kind === 'write-' && this.path.includes('read-') ? undefined : found;
        }),
      finds: /two hold/,
    },
    'does not look for the znode whose making was not answered': {
      plant: () =>
        vi.spyOn(Line.prototype, 'join').mockImplementation(async function (this: Line, kind, data, signal) {
          for (;;) {
            try {
              const { path: own, stat } = await this.zk.create(`${path}/${kind}`, data, {
                mode: 'ephemeralSequential',
                parents: 'container',
                signal,
              });
              return new Place(this, own, stat.czxid, undefined);
            } catch (error) {
              if (!KeeperError.is(error, 'ConnectionLoss')) throw error;
            }
          }
        }),
      finds: /still not so/,
    },
    'stays in line when it gives up': {
      plant: () =>
        vi.spyOn(Line.prototype, 'join').mockImplementation(async function (this: Line, kind, data, signal) {
          const place = await join.call(this, kind, data, signal);
          const leave = place.leave.bind(place);
          place.leave = () => (signal.aborted ? Promise.resolve() : leave());
          return place;
        }),
      finds: /still not so|left behind/,
    },
    'writes without asking whether it still holds': {
      plant: () =>
        vi.spyOn(HeldClass.prototype, 'multi').mockImplementation(async function (this: Held, ops) {
          return (await clientOf.get(this)!.multi(ops)) as never;
        }),
      finds: /written all the same|stands behind one of holder/,
    },
    'counts on its session for ever': {
      plant: () => vi.spyOn(ClientView.prototype, 'sessionLeftMs', 'get').mockReturnValue(1_000_000),
      finds: /two hold/,
    },
  };

  it.each(Object.keys(canaries))(
    'are found out when one %s',
    async (name) => {
      const { plant, finds } = canaries[name]!;
      plant();
      const caught: string[] = [];
      try {
        for (let seed = 1; seed <= 60 && caught.length < 3; seed++) {
          await run(seed, new Tally()).catch((error: unknown) => void caught.push(String(error)));
        }
      } finally {
        vi.restoreAllMocks();
      }
      expect(caught).toEqual([expect.stringMatching(finds), expect.stringMatching(finds), expect.stringMatching(finds)]);
    },
    60_000,
  );
});
