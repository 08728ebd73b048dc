/** Locks of ours, kazoo and Curator in one queue. */
import assert from 'node:assert/strict';

import { type Check, type Contender, type RecipeCheckContext, Journal, untilLastWaits, waitQueueAt, until } from './check-context.ts';
import type { RecipeClient, RecipeClientKind } from './recipe-client.ts';

/**
 * How a lock is opened so that the names of its contenders agree with those of the others: kind of
 * recipe, and what follows the path.
 */
type HandleArguments = readonly [recipe: string, ...names: string[]];

interface LockPair {
  readonly name: string;
  readonly openings: Partial<Record<RecipeClientKind, HandleArguments>>;
}

/** Which locks can share one queue, and with which names. */
const locks: readonly LockPair[] = [
  { name: 'lock-, the default, and InterProcessMutex', openings: { ours: ['lock', 'lock-'], Curator: ['lock'] } },
  { name: '__lock__ and kazoo Lock', openings: { ours: ['lock', '__lock__'], kazoo: ['lock'] } },
  // kazoo's Lock with the names of a subclass: one queue for all three.
  {
    name: 'lock-, InterProcessMutex and a kazoo Lock with that name',
    openings: { ours: ['lock', 'lock-'], Curator: ['lock'], kazoo: ['named-lock', '-lock-'] },
  },
];

const sharedLocks: readonly { readonly theirs: 'kazoo' | 'Curator'; readonly names: readonly [read: string, write: string] }[] = [
  { theirs: 'kazoo', names: ['__rlock__', '__lock__'] },
  { theirs: 'Curator', names: ['__READ__', '__WRIT__'] },
];

async function openContender(
  peer: RecipeClient,
  path: string,
  [recipe, ...names]: HandleArguments,
  who: string = peer.kind,
): Promise<Contender> {
  return { who, handle: await peer.open(recipe, path, ...names) };
}

function openContenders({ clients, root }: RecipeCheckContext, openings: LockPair['openings']): Promise<Contender[]> {
  return Promise.all(Object.entries(openings).map(([kind, opening]) => openContender(clients[kind as RecipeClientKind], root, opening)));
}

/**
 * Each joins when the one before it waits; then each acquires the lock in this order, and none
 * earlier.
 */
async function inTurn(context: RecipeCheckContext, contenders: readonly Contender[]): Promise<void> {
  const journal = new Journal();
  const answers: Promise<void>[] = [];
  for (const [index, { who, handle }] of contenders.entries()) {
    answers.push(journal.recordAnswer(`${who} has it`, handle.call('acquire')));
    if (index === 0) await answers[0];
    else await untilLastWaits(context, context.root, index + 1);
  }
  for (const [index, { who, handle }] of contenders.entries()) {
    await answers[index];
    journal.lines.push(`${who} releases it`);
    await handle.call('release');
  }
  assert.deepEqual(
    journal.lines,
    contenders.flatMap(({ who }) => [`${who} has it`, `${who} releases it`]),
  );
  assert.deepEqual(await waitQueueAt(context.zk, context.root), []);
}

function turnChecks({ name, openings }: LockPair): Check[] {
  return [
    {
      name: `${name}: each acquires it in order, in any order of kinds`,
      hasRoot: openings.kazoo !== undefined,
      async run(context) {
        const contenders = await openContenders(context, openings);
        await inTurn(context, contenders);
        await inTurn(context, contenders.toReversed());
      },
    },
    {
      name: `${name}: only one is inside at a time, and no increment is lost`,
      hasRoot: openings.kazoo !== undefined,
      async run(context) {
        const contenders = await openContenders(context, openings);
        const counter = `${context.root}-counter`;
        const rounds = 15;
        await context.zk.create(counter, '0');
        await Promise.all(contenders.map(({ handle }) => handle.call('count_up', counter, String(rounds))));
        const { data } = await context.zk.getData(counter);
        assert.equal(new TextDecoder().decode(data ?? undefined), String(rounds * contenders.length));
      },
    },
  ];
}

/**
 * A holder is killed, and the other acquires the lock when the session has expired, not before; in
 * both directions.
 */
function killCheck({ name, openings }: LockPair): Check {
  return {
    name: `${name}: the other acquires it after its holder is killed`,
    hasRoot: openings.kazoo !== undefined,
    async run(context) {
      const kinds = Object.keys(openings) as RecipeClientKind[];
      for (const [victim, heir] of [kinds, kinds.toReversed()]) {
        const mortal = await context.startClient(victim!);
        const [dies, waits] = [
          await openContender(mortal, context.root, openings[victim!]!),
          await openContender(context.clients[heir!], context.root, openings[heir!]!),
        ];
        await dies.handle.call('acquire');
        const [first] = await waitQueueAt(context.zk, context.root);
        const acquired = waits.handle.call('acquire');
        await untilLastWaits(context, context.root, 2);
        await context.killClient(mortal);
        await acquired;
        assert.equal(await context.zk.exists(`${context.root}/${first}`), null);
        await waits.handle.call('release');
      }
    },
  };
}

/**
 * A killed waiter in the middle does not let the next one acquire the lock before the holder
 * releases it.
 */
const killedWaiter: Check = {
  name: 'a killed waiter of Curator in the middle of the queue leaves the next one waiting for the holder',
  hasRoot: true,
  async run(context) {
    const { root, clients } = context;
    const mortal = await context.startClient('Curator');
    const holder = await openContender(clients.kazoo, root, ['named-lock', '-lock-']);
    const middle = await openContender(mortal, root, ['lock']);
    const last = await openContender(clients.ours, root, ['lock', 'lock-']);
    const journal = new Journal();
    await holder.handle.call('acquire');
    void middle.handle.call('acquire');
    await untilLastWaits(context, root, 2);
    const acquired = journal.recordAnswer('ours has it', last.handle.call('acquire'));
    await untilLastWaits(context, root, 3);
    await context.killClient(mortal);
    await untilLastWaits(context, root, 2);
    journal.lines.push('kazoo releases it');
    await holder.handle.call('release');
    await acquired;
    assert.deepEqual(journal.lines, ['kazoo releases it', 'ours has it']);
    await last.handle.call('release');
  },
};

/**
 * Readers together, a writer alone, and a reader after a waiting writer waits: with each side's in
 * every position.
 */
function sharedCheck(theirs: 'kazoo' | 'Curator', names: readonly [string, string], first: RecipeClientKind): Check {
  return {
    name: `readers and writers of ours and ${theirs}, ${first} first`,
    hasRoot: theirs === 'kazoo',
    async run(context) {
      const { root, clients } = context;
      const other = first === 'ours' ? theirs : 'ours';
      const side = (peer: RecipeClient, recipe: string, who: string) =>
        openContender(peer, root, peer.kind === 'ours' ? [recipe, ...names] : [recipe], who);
      const [one, two] = [await context.startClient(first), await context.startClient(other)];
      const reader = await side(clients[first], 'read-lock', 'reader of the first');
      const second = await side(clients[other], 'read-lock', 'reader of the other');
      const writer = await side(one, 'write-lock', 'writer');
      const late = await side(two, 'read-lock', 'late reader');
      const journal = new Journal();
      await reader.handle.call('acquire');
      await second.handle.call('acquire');
      const writes = journal.recordAnswer('writes', writer.handle.call('acquire'));
      await untilLastWaits(context, root, 3);
      const reads = journal.recordAnswer('reads late', late.handle.call('acquire'));
      await untilLastWaits(context, root, 4);
      await reader.handle.call('release');
      await until('three in the queue', async () => (await waitQueueAt(context.zk, root)).length === 3);
      journal.lines.push('the last reader leaves');
      await second.handle.call('release');
      await writes;
      journal.lines.push('the writer leaves');
      await writer.handle.call('release');
      await reads;
      assert.deepEqual(journal.lines, ['the last reader leaves', 'writes', 'the writer leaves', 'reads late']);
      await late.handle.call('release');
      await Promise.all([one.kill(), two.kill()]);
    },
  };
}

/** Names that differ do not work together, as the guide says. */
const differentNames: Check = {
  name: 'with names that differ there is no common queue: ours does not see a kazoo Lock at all',
  hasRoot: true,
  async run(context) {
    const [ours, kazoo] = [
      await openContender(context.clients.ours, context.root, ['lock', 'lock-']),
      await openContender(context.clients.kazoo, context.root, ['lock']),
    ];
    await kazoo.handle.call('acquire');
    assert.equal(await ours.handle.call('try_acquire'), 'yes');
    await ours.handle.call('release');
    await kazoo.handle.call('release');
  },
};

const deletedParent: Check = {
  name: 'kazoo does not create a deleted queue again, as ours does',
  async run({ clients, root, zk }) {
    const [ours, kazoo] = [
      await openContender(clients.ours, root, ['lock', '__lock__']),
      await openContender(clients.kazoo, root, ['lock']),
    ];
    await ours.handle.call('acquire');
    assert.equal(await kazoo.handle.call('try_acquire'), 'no');
    await ours.handle.call('release');
    await until('the server has deleted the container', async () => (await zk.exists(root)) === null);
    await assert.rejects(kazoo.handle.call('acquire'), /NoNode/);
    await ours.handle.call('acquire');
    await ours.handle.call('release');
  },
};

const severalAtOnce: Check = {
  name: "a MultiLock of ours and Curator's InterProcessMultiLock, named in one order: only one is inside at a time, and none waits forever",
  async run({ clients, root, zk }) {
    const paths = ['a', 'b', 'c'].map((name) => `${root}/${name}`);
    const counter = `${root}-counter`;
    const rounds = 8;
    await zk.create(counter, '0');
    const openings = [
      [clients.ours, paths.toReversed()],
      [clients.Curator, paths],
      [clients.ours, paths.slice(1)],
    ] as const;
    const handles = await Promise.all(openings.map(([peer, names]) => peer.open('multi-lock', ...names)));
    await Promise.all(handles.map((each) => each.call('count_up', counter, String(rounds))));
    const { data } = await zk.getData(counter);
    assert.equal(new TextDecoder().decode(data ?? undefined), String(rounds * handles.length));
  },
};

export const lockChecks: readonly Check[] = [
  ...locks.flatMap(turnChecks),
  ...locks.slice(0, 2).map(killCheck),
  killedWaiter,
  ...sharedLocks.flatMap(({ theirs, names }) => [sharedCheck(theirs, names, 'ours'), sharedCheck(theirs, names, theirs)]),
  differentNames,
  deletedParent,
  severalAtOnce,
];
