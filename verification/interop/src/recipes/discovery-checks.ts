/** Service instances registered and looked up by ours and by Curator's x-discovery. */
import assert from 'node:assert/strict';

import { type Check, type RecipeCheckContext, Journal, until } from './check-context.ts';
import type { Handle } from './recipe-client.ts';

const both = ['ours', 'Curator'] as const;

interface InstanceText {
  readonly type?: string;
  readonly enabled?: 'on' | 'off';
}

/** How each side shows an instance. */
function line(id: string, payload: string, { type = 'DYNAMIC', enabled = 'on' }: InstanceText = {}): string {
  return `${id} http://10.0.0.1:8080/${id} ${payload} ${type} ${enabled}`;
}

/** Observers, one of each kind, with a cache and a provider. */
async function openObservers({ clients, root }: RecipeCheckContext, recipe = 'services', form = 'compatible'): Promise<readonly Handle[]> {
  const handles = await Promise.all(both.map((kind) => clients[kind].open(recipe, root, form)));
  await Promise.all(handles.map((each) => each.call('watch', 'api')));
  return handles;
}

/** Resolves when all see exactly these, in queries and in their caches. */
async function allSee(handles: readonly Handle[], ...lines: string[]): Promise<void> {
  const expected = lines.toSorted().join(',');
  let seen: readonly string[] = [];
  const look = async (): Promise<boolean> => {
    seen = await Promise.all(handles.flatMap((each) => [each.call('instances', 'api'), each.call('cached')]));
    return seen.every((text) => text === expected);
  };
  try {
    await until(`all see ${expected}`, look);
  } catch (error) {
    throw new Error(`${String(error)}; they see ${seen.join(' / ')}`, { cause: error });
  }
}

/**
 * Resolves when each would choose all of these, at different times: providers have caches of their
 * own.
 */
async function allChoose(handles: readonly Handle[], ...ids: string[]): Promise<void> {
  for (const handle of handles) {
    await until(`it chooses ${ids.join(',')}`, async () => {
      const found = new Set<string>();
      for (let time = 0; time < 2; time++) found.add(await handle.call('choose'));
      return [...found].sort().join(',') === ids.join(',');
    });
  }
}

function findCheck(form: 'compatible' | 'all'): Check {
  const fields = form === 'all' ? 'all fields' : 'the fields of its default';
  return {
    name: `Curator's x-discovery with ${fields}: each finds the other's instances, their updates, and their removal`,
    async run(context) {
      const all = await openObservers(context, 'services', form);
      const [ours, theirs] = all as [Handle, Handle];
      await ours.call('register', 'api', 'a', 'one', 'DYNAMIC');
      await theirs.call('register', 'api', 'b', 'two', 'DYNAMIC');
      await allSee(all, line('a', 'one'), line('b', 'two'));
      assert.deepEqual(await Promise.all(all.map((each) => each.call('names'))), ['api', 'api']);
      await allChoose(all, 'a', 'b');
      await ours.call('change', 'three', 'on');
      await theirs.call('change', 'four', 'on');
      await allSee(all, line('a', 'three'), line('b', 'four'));
      await ours.call('change', 'three', 'off');
      await allSee(all, line('a', 'three', { enabled: 'off' }), line('b', 'four'));
      await allChoose(all, 'b');
      // By default Curator does not write that it is disabled, so not even Curator sees it.
      const enabled = form === 'all' ? 'off' : 'on';
      await theirs.call('change', 'five', 'off');
      await allSee(all, line('a', 'three', { enabled: 'off' }), line('b', 'five', { enabled }));
      await allChoose(all, form === 'all' ? 'none' : 'b');
      await Promise.all(all.map((each) => each.call('unregister')));
      await allSee(all);
    },
  };
}

const killed: Check = {
  name: "Curator's x-discovery: a killed instance is found by no client after its session has ended, and a static one by all",
  async run(context) {
    const all = await openObservers(context);
    const statics: string[] = [];
    for (const kind of both) {
      const mortal = await context.startClient(kind);
      const [dynamic, fixed] = [
        await mortal.open('services', context.root, 'compatible'),
        await mortal.open('services', context.root, 'compatible'),
      ];
      await dynamic.call('register', 'api', 'dies', kind, 'DYNAMIC');
      await fixed.call('register', 'api', `stays-${kind}`, 'up', 'STATIC');
      statics.push(line(`stays-${kind}`, 'up', { type: 'STATIC' }));
      await allSee(all, ...statics, line('dies', kind));
      await context.killClient(mortal);
      await allSee(all, ...statics);
    }
    // With the holder of its id.
    for (const kind of both) {
      const handle = all[both.indexOf(kind === 'ours' ? 'Curator' : 'ours')]!;
      await handle.call('register', 'api', `stays-${kind}`, 'anew', 'STATIC');
      await handle.call('unregister');
    }
    await allSee(all);
  },
};

const sameId: Check = {
  name: "Curator's x-discovery: for one id, ours waits until Curator's is removed or killed, and Curator's takes over that of a killed one at once",
  async run(context) {
    const all = await openObservers(context);
    const [ours, theirs] = all as [Handle, Handle];
    const mortal = await context.startClient('Curator');
    const mortals = await mortal.open('services', context.root, 'compatible');
    for (const [first, ends] of [
      [theirs, () => theirs.call('unregister')],
      [mortals, () => context.killClient(mortal)],
    ] as const) {
      await first.call('register', 'api', 'x', 'first', 'DYNAMIC');
      const journal = new Journal();
      const registered = journal.recordAnswer('ours is registered', ours.call('register', 'api', 'x', 'second', 'DYNAMIC'));
      await allSee(all.slice(1), line('x', 'first'));
      journal.lines.push("Curator's ends");
      await ends();
      await registered;
      assert.deepEqual(journal.lines, ["Curator's ends", 'ours is registered']);
      await allSee(all, line('x', 'second'));
      await ours.call('unregister');
    }
    const dies = await context.startClient('ours');
    await (await dies.open('services', context.root)).call('register', 'api', 'x', 'dead', 'DYNAMIC');
    await allSee(all, line('x', 'dead'));
    await context.killClient(dies);
    await theirs.call('register', 'api', 'x', 'alive', 'DYNAMIC');
    await allSee(all, line('x', 'alive'));
  },
};

const payloads: Check = {
  name: "Curator's x-discovery: payloads that are objects of a class, and instances of each type",
  async run(context) {
    const all = await openObservers(context, 'zoned-services');
    const [ours, theirs] = all as [Handle, Handle];
    await ours.call('register', 'api', 'a', 'eu', 'PERMANENT');
    await theirs.call('register', 'api', 'b', 'us', 'DYNAMIC_SEQUENTIAL');
    await allSee(all, line('a', 'zone eu', { type: 'PERMANENT' }), line('b', 'zone us', { type: 'DYNAMIC_SEQUENTIAL' }));
    await ours.call('unregister');
    await allSee(all, line('b', 'zone us', { type: 'DYNAMIC_SEQUENTIAL' }));
  },
};

export const discoveryChecks: readonly Check[] = [findCheck('compatible'), findCheck('all'), killed, sameId, payloads];
