/**
 * What discovery guarantees, over seeds that decide when connections break, and stay away until
 * sessions have expired, when the server dies, and when the znode of an instance is deleted by
 * hand. Processes register, change their fields, unregister, and register again; others observe.
 *
 * - An observer shows only fields that the instance has had, and never older ones than before;
 * - after the faults, exactly the registered instances are shown, with their last fields, and
 *   nothing is left of the others.
 */
import { connect, type ClientView } from '@tskeeper/client';
import { SeededRandom } from '@tskeeper/runtime';
import { describe, it, vi } from 'vitest';
import { expectHappened } from '../../../../test/breadth.ts';
import { RecipeError, Registration, ServiceCache, ServiceDiscovery, Sessions, type ServiceProvider } from '../../src/index.ts';
import { PersistentNode } from '../../src/nodes/persistent-node.ts';
import { type Canary, itFindsOut, overSeeds } from '../support/seeds.ts';
import { Storm, storyWorld } from '../support/storm.ts';

class Tally {
  registered = 0;
  unregistered = 0;
  updated = 0;
  shown = 0;
  expired = 0;
  byHand = 0;
  timedOut = 0;
}

/** A process with one instance, which counts its changes. */
class Process {
  readonly id: string;
  /** Its last change; continues through all its registrations. */
  said = 0;
  /** It has given up waiting for its last change, which may or may not have been written. */
  isUncertain = false;
  registration: Registration<number> | undefined;
  #stopped = false;
  readonly #registry: ServiceDiscovery<number>;
  readonly #random: SeededRandom;
  readonly #tally: Tally;
  readonly #pause: (ms: number) => Promise<void>;

  constructor(id: string, sessions: Sessions, random: SeededRandom, tally: Tally, pause: (ms: number) => Promise<void>) {
    this.id = id;
    this.#registry = new ServiceDiscovery(sessions, '/services');
    this.#random = random;
    this.#tally = tally;
    this.#pause = pause;
  }

  async run(): Promise<void> {
    while (!this.#stopped) {
      await this.#act();
      await this.#pause(this.#random.below(600));
    }
  }

  async #act(): Promise<void> {
    const dice = this.#random.below(10);
    const options = dice % 2 === 0 ? { timeoutMs: 200 + 100 * dice } : {};
    try {
      if (this.registration === undefined) {
        this.isUncertain = false;
        this.registration = await this.#registry.register({ name: 'api', id: this.id, address: 'a', payload: ++this.said }, options);
        this.#tally.registered++;
      } else if (dice < 6) {
        this.isUncertain = true;
        await this.registration.update({ payload: ++this.said }, options);
        this.isUncertain = false;
        this.#tally.updated++;
      } else {
        const { registration } = this;
        this.registration = undefined;
        await registration.unregister();
        this.#tally.unregistered++;
      }
    } catch (error) {
      if (!(error instanceof RecipeError) || error.code !== 'TimedOut') throw error;
      this.#tally.timedOut++;
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Repeats a change that may have been lost. */
  async repeat(): Promise<void> {
    if (this.isUncertain) await this.registration?.update({ payload: this.said });
  }
}

/** Compares what is shown with the changes. */
class Onlooker {
  readonly #provider: ServiceProvider<number>;
  readonly #processes: readonly Process[];
  readonly #tally: Tally;
  readonly #seen = new Map<string, number>();

  constructor(provider: ServiceProvider<number>, processes: readonly Process[], tally: Tally) {
    this.#provider = provider;
    this.#processes = processes;
    this.#tally = tally;
  }

  look(): void {
    for (const { id, payload } of this.#provider.instances) {
      const { said } = this.#processes.find((each) => each.id === id)!;
      if (payload > said) throw new Error(`${id} is shown with ${payload}, and has said no more than ${said}`);
      const seen = this.#seen.get(id) ?? 0;
      if (payload < seen) throw new Error(`${id} is shown with ${payload}, and was with ${seen}`);
      if (payload > seen) this.#tally.shown++;
      this.#seen.set(id, payload);
    }
  }

  isAsSaid(): boolean {
    const said = this.#processes.filter(({ registration }) => registration !== undefined).map((each) => `${each.id} ${each.said}`);
    const shown = this.#provider.instances.map(({ id, payload }) => `${id} ${payload}`);
    return this.#provider.isSynced && said.join() === shown.join();
  }
}

async function run(seed: number, tally: Tally): Promise<void> {
  const { world, random } = await storyWorld(seed, 40);
  const pause = (ms: number) => new Promise<void>((resolve) => void world.clock.after(ms, resolve));
  const observer = await world.connect({ sessionTimeoutMs: 40_000 });
  const open = () => connect('server:2181', world.options({ sessionTimeoutMs: 4000, connectTimeoutMs: Infinity }));
  const start = async () => {
    const sessions = await world.until(Sessions.start(open));
    sessions.onSession(() => tally.expired++);
    tally.expired--;
    return sessions;
  };
  const all = [await start(), await start(), await start()];
  const processes = ['p', 'q'].map((id, at) => new Process(id, all[at]!, new SeededRandom(random.uint32()), tally, pause));
  const provider = new ServiceDiscovery<number>(all[2]!, '/services').provider('api');
  const onlooker = new Onlooker(provider, processes, tally);
  const deleteByHand = () => {
    tally.byHand++;
    void observer.delete(`/services/api/${random.below(2) === 0 ? 'p' : 'q'}`).catch(() => undefined);
  };
  const trouble: unknown[] = [];
  const running = processes.map((each) => each.run());
  for (const each of running) each.catch((error: unknown) => void trouble.push(error));
  const storm = new Storm(world, random, {
    steps: 25,
    breaks: 20,
    cuts: 20,
    restarts: 3,
    mishaps: [[12, () => deleteByHand()]],
    cutSteps: () => (random.below(3) === 0 ? 25 : 1 + random.below(8)),
    stepMsMax: 750,
    parts: 5,
    isOver: () => trouble.length > 0,
    look: () => onlooker.look(),
  });
  await storm.pass();
  for (const each of processes) each.stop();
  await world.untilSo(() => trouble.length > 0, 1).catch(() => undefined);
  if (trouble.length > 0) throw trouble[0];
  await world.until(Promise.all(running));
  await world.until(Promise.all(processes.map((each) => each.repeat())));
  await world.untilSo(() => {
    onlooker.look();
    return onlooker.isAsSaid();
  });
  const closing = Promise.all(processes.map(async (each) => each.registration?.unregister()));
  await world.until(closing);
  await world.pass(2000, 500);
  await world.untilSo(() => observer.state === 'connected');
  const left = await world.until(new ServiceDiscovery(observer, '/services').instances('api'));
  if (left.length > 0) throw new Error(`left behind: ${left.map(({ id }) => id).join()}`);
  await world.until(Promise.all(all.map((each) => each.close())));
  await world.close();
}

describe('instances', () => {
  it('B26: are found exactly as they are registered, under failures, over seeds', async () => {
    const tally = new Tally();
    await overSeeds(16, (seed) => run(seed, tally));
    expectHappened(tally, 3);
  });

  const setData = Object.getOwnPropertyDescriptor(PersistentNode.prototype, 'setData')!.value as PersistentNode['setData'];
  const canaries: Record<string, Canary> = {
    'is registered in the first session only': {
      plant: () =>
        vi.spyOn(Sessions.prototype, 'onSession').mockImplementation(function (this: Sessions, begin) {
          begin(this.client);
          return () => undefined;
        }),
      finds: /still not so|still not settled/,
    },
    'writes the last change but one': {
      plant: () => {
        const last = new WeakMap<PersistentNode, string>();
        vi.spyOn(PersistentNode.prototype, 'setData').mockImplementation(function (this: PersistentNode, data, options) {
          const said = last.get(this) ?? (data as string);
          last.set(this, data as string);
          return setData.call(this, said, options);
        });
      },
      finds: /still not so|was with/,
    },
    'stays when it is unregistered': {
      plant: () => vi.spyOn(PersistentNode.prototype, 'close').mockResolvedValue(),
      finds: /still not so|left behind|still not settled|was with/,
    },
    'is shown in an old state, by a cache that never closes': {
      plant: () => {
        const first = new WeakMap<ClientView, ServiceCache['instances']>();
        vi.spyOn(ServiceCache.prototype, 'instances', 'get').mockImplementation(function (this: ServiceCache) {
          const now = [...this].flatMap(({ data }) => (data === undefined ? [] : [data]));
          const kept = first.get(this as never);
          if (kept === undefined && now.length > 0) first.set(this as never, now);
          return kept ?? now;
        } as never);
      },
      finds: /still not so|was with/,
    },
  };

  itFindsOut(canaries, (seed) => run(seed, new Tally()), { enough: 2, atMost: 40 });
});
