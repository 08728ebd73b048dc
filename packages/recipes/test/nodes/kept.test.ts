/**
 * What persistent nodes guarantee, over seeds that decide when connections break, stall and stay
 * away until the session has expired, when the server dies, when a znode is deleted by hand or
 * another client takes its name, and when the data change: after the faults each exists, once, with
 * the data that were set last, and nothing of it is left after it is closed.
 */
import { ClientView, connect } from '@tskeeper/client';
import { describe, it, vi } from 'vitest';
import { expectHappened } from '../../../../test/breadth.ts';
import { PersistentNode, Sessions } from '../../src/index.ts';
import { type Canary, itFindsOut, overSeeds } from '../support/seeds.ts';
import { Storm, storyWorld } from '../support/storm.ts';

class Tally {
  sessions = 0;
  absent = 0;
  suspended = 0;
  deleted = 0;
  taken = 0;
  changed = 0;
}

async function run(seed: number, tally: Tally): Promise<void> {
  const { world, random } = await storyWorld(seed, 40);
  const observer = await world.connect({ sessionTimeoutMs: 40_000 });
  await world.until(observer.ensurePath('/nodes'));
  const trouble: unknown[] = [];
  const keep = async (name: string, mode: 'ephemeral' | 'ephemeralSequential' | 'persistent') => {
    const sessions = await Sessions.start((signal) =>
      connect('server:2181', world.options({ sessionTimeoutMs: 3000, connectTimeoutMs: Infinity, signal })),
    );
    sessions.onSession(() => tally.sessions++);
    const node = new PersistentNode(sessions, `/nodes/${name}`, 'first', { mode });
    node.onStateChange((state) => {
      if (state === 'absent' || state === 'suspended') tally[state]++;
      if (state === 'closed') trouble.push(node.signal.reason);
    });
    return { sessions, node, last: 'first' };
  };
  const kept = await world.until(Promise.all([keep('a', 'ephemeral'), keep('b-', 'ephemeralSequential'), keep('c', 'persistent')]));
  const changing: Promise<unknown>[] = [];
  const oneOf = () => kept[random.below(kept.length)]!;
  const deleteByHand = (path: string) => void observer.delete(path).catch(() => undefined);
  const storm = new Storm(world, random, {
    steps: 40,
    breaks: 15,
    cuts: 20,
    restarts: 3,
    mishaps: [
      [
        17,
        () => {
          tally.deleted++;
          deleteByHand(oneOf().node.path);
        },
      ],
      [
        10,
        // Another client has the name for a while.
        () => {
          tally.taken++;
          const { path } = kept[0].node;
          deleteByHand(path);
          observer.create(path, 'theirs', { mode: 'ephemeral' }).catch(() => undefined);
          storm.later(2 + random.below(4), () => deleteByHand(path));
        },
      ],
      [
        25,
        () => {
          const one = oneOf();
          one.last = `data ${++tally.changed}`;
          changing.push(one.node.setData(one.last));
        },
      ],
    ],
    cutSteps: () => 1 + random.below(25),
    stepMsMax: 500,
    parts: 5,
    isOver: () => trouble.length > 0,
  });
  await storm.pass();
  const data = new Map<string, string>();
  const isQuiet = () =>
    kept.every(({ node, last }) => node.state === 'present' && data.get(node.path) === last) && data.size === kept.length;
  for (let leftMs = 60_000; !isQuiet(); leftMs -= 200) {
    if (trouble.length > 0) throw trouble[0];
    if (leftMs === 0)
      throw new Error(`it is still not so: ${[...data].join(' ')}, and not ${kept.map(({ node, last }) => [node.path, last]).join(' ')}`);
    await world.pass(200, 200);
    data.clear();
    const { children } = await world.until(observer.getChildren('/nodes', { retry: true }));
    for (const name of children) {
      const found = await world.until(observer.getData(`/nodes/${name}`, { retry: true }).catch(() => undefined));
      data.set(`/nodes/${name}`, new TextDecoder().decode(found?.data ?? undefined));
    }
  }
  await world.until(Promise.all(changing));
  trouble.length = 0;
  await world.until(Promise.all(kept.map(({ node }) => node.close())));
  const { children } = await world.until(observer.getChildren('/nodes'));
  if (children.length > 0) throw new Error(`left behind: ${children.join()}`);
  await world.until(Promise.all(kept.map(({ sessions }) => sessions.close())));
  await world.close();
}

describe('persistent nodes', () => {
  it('B23: exist exactly once in the end, with the last data, over seeds', async () => {
    const tally = new Tally();
    await overSeeds(15, (seed) => run(seed, tally));
    expectHappened(tally, 10);
  });

  const exists = Object.getOwnPropertyDescriptor(ClientView.prototype, 'exists')!.value as ClientView['exists'];
  const create = Object.getOwnPropertyDescriptor(ClientView.prototype, 'create')!.value as ClientView['create'];
  const canaries: Record<string, Canary> = {
    'does not watch the znode that it has created': {
      plant: () =>
        vi.spyOn(ClientView.prototype, 'exists').mockImplementation(function (this: ClientView, each, { watch: _watch, ...options } = {}) {
          return exists.call(this, each, options);
        }),
      finds: /still not so/,
    },
    'takes any znode of the name for its own': {
      plant: () =>
        vi.spyOn(ClientView.prototype, 'create').mockImplementation(async function (this: ClientView, each, data, options) {
          try {
            return await create.call(this, each, data, options);
          } catch (error) {
            const stat = await exists.call(this, each);
            if (stat === null) throw error;
            return { path: each, stat };
          }
        }),
      finds: /still not so/,
    },
    'creates a sequential znode without a guid': {
      plant: () =>
        vi.spyOn(ClientView.prototype, 'create').mockImplementation(async function (this: ClientView, each, data, options = {}) {
          const { protection, ...others } = options;
          if (protection === undefined) return create.call(this, each, data, options);
          for (;;) {
            try {
              return await create.call(this, each, data, others);
            } catch (error) {
              if (this.endReason !== undefined) throw error;
            }
          }
        }),
      finds: /still not so|left behind/,
    },
  };

  itFindsOut(canaries, (seed) => run(seed, new Tally()), { enough: 1, atMost: 40 });
});
