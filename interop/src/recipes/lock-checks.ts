/** Locks of ours, kazoo and Curator in one queue. */
import assert from 'node:assert/strict';

import { type Check, type Contender, type Ground, Journal, lastWaits, lineAt, until } from './ground.ts';
import type { Peer, PeerKind } from './peer.ts';

/**
 * How a lock is opened so that the names of its contenders agree with those of the others: kind of
 * recipe, and what follows the path.
 */
type Opening = readonly [recipe: string, ...names: string[]];

interface Agreement {
  readonly name: string;
  readonly openings: Partial<Record<PeerKind, Opening>>;
}

/** Which locks can share one queue, and with which names. */
const locks: readonly Agreement[] = [
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

async function opened(peer: Peer, path: string, [recipe, ...names]: Opening, who: string = peer.kind): Promise<Contender> {
  return { who, handle: await peer.open(recipe, path, ...names) };
}

function openedAll({ peers, root }: Ground, openings: Agreement['openings']): Promise<Contender[]> {
  return Promise.all(Object.entries(openings).map(([kind, opening]) => opened(peers[kind as PeerKind], root, opening)));
}

/**
 * Each joins when the one before it waits; then each acquires the lock in its turn, and none
 * earlier.
 */
async function inTurn(ground: Ground, contenders: readonly Contender[]): Promise<void> {
  const journal = new Journal();
  const answers: Promise<void>[] = [];
  for (const [index, { who, handle }] of contenders.entries()) {
    answers.push(journal.note(`${who} has it`, handle.tell('acquire')));
    if (index === 0) await answers[0];
    else await lastWaits(ground, ground.root, index + 1);
  }
  for (const [index, { who, handle }] of contenders.entries()) {
    await answers[index];
    journal.lines.push(`${who} releases it`);
    await handle.tell('release');
  }
  assert.deepEqual(
    journal.lines,
    contenders.flatMap(({ who }) => [`${who} has it`, `${who} releases it`]),
  );
  assert.deepEqual(await lineAt(ground.zk, ground.root), []);
}

function turnChecks({ name, openings }: Agreement): Check[] {
  return [
    {
      name: `${name}: each acquires it in its turn, in any order of kinds`,
      hasRoot: openings.kazoo !== undefined,
      async run(ground) {
        const contenders = await openedAll(ground, openings);
        await inTurn(ground, contenders);
        await inTurn(ground, contenders.toReversed());
      },
    },
    {
      name: `${name}: only one is inside at a time, and no increment is lost`,
      hasRoot: openings.kazoo !== undefined,
      async run(ground) {
        const contenders = await openedAll(ground, openings);
        const counter = `${ground.root}-counter`;
        const rounds = 15;
        await ground.zk.create(counter, '0');
        await Promise.all(contenders.map(({ handle }) => handle.tell('count_up', counter, String(rounds))));
        const { data } = await ground.zk.getData(counter);
        assert.equal(new TextDecoder().decode(data ?? undefined), String(rounds * contenders.length));
      },
    },
  ];
}

/**
 * A holder is killed, and the other acquires the lock when the session has expired, not before; in
 * both directions.
 */
function killCheck({ name, openings }: Agreement): Check {
  return {
    name: `${name}: the other acquires it after its holder is killed`,
    hasRoot: openings.kazoo !== undefined,
    async run(ground) {
      const kinds = Object.keys(openings) as PeerKind[];
      for (const [victim, heir] of [kinds, kinds.toReversed()]) {
        const mortal = await ground.another(victim!);
        const [dies, waits] = [
          await opened(mortal, ground.root, openings[victim!]!),
          await opened(ground.peers[heir!], ground.root, openings[heir!]!),
        ];
        await dies.handle.tell('acquire');
        const [first] = await lineAt(ground.zk, ground.root);
        const acquired = waits.handle.tell('acquire');
        await lastWaits(ground, ground.root, 2);
        await ground.kill(mortal);
        await acquired;
        assert.equal(await ground.zk.exists(`${ground.root}/${first}`), null);
        await waits.handle.tell('release');
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
  async run(ground) {
    const { root, peers } = ground;
    const mortal = await ground.another('Curator');
    const holder = await opened(peers.kazoo, root, ['named-lock', '-lock-']);
    const middle = await opened(mortal, root, ['lock']);
    const last = await opened(peers.ours, root, ['lock', 'lock-']);
    const journal = new Journal();
    await holder.handle.tell('acquire');
    void middle.handle.tell('acquire');
    await lastWaits(ground, root, 2);
    const acquired = journal.note('ours has it', last.handle.tell('acquire'));
    await lastWaits(ground, root, 3);
    await ground.kill(mortal);
    await lastWaits(ground, root, 2);
    journal.lines.push('kazoo releases it');
    await holder.handle.tell('release');
    await acquired;
    assert.deepEqual(journal.lines, ['kazoo releases it', 'ours has it']);
    await last.handle.tell('release');
  },
};

/**
 * Readers together, a writer alone, and a reader after a waiting writer waits: with each side's in
 * every position.
 */
function sharedCheck(theirs: 'kazoo' | 'Curator', names: readonly [string, string], first: PeerKind): Check {
  return {
    name: `readers and writers of ours and ${theirs}, ${first} first`,
    hasRoot: theirs === 'kazoo',
    async run(ground) {
      const { root, peers } = ground;
      const other = first === 'ours' ? theirs : 'ours';
      const side = (peer: Peer, recipe: string, who: string) =>
        opened(peer, root, peer.kind === 'ours' ? [recipe, ...names] : [recipe], who);
      const [one, two] = [await ground.another(first), await ground.another(other)];
      const reader = await side(peers[first], 'read-lock', 'reader of the first');
      const second = await side(peers[other], 'read-lock', 'reader of the other');
      const writer = await side(one, 'write-lock', 'writer');
      const late = await side(two, 'read-lock', 'late reader');
      const journal = new Journal();
      await reader.handle.tell('acquire');
      await second.handle.tell('acquire');
      const writes = journal.note('writes', writer.handle.tell('acquire'));
      await lastWaits(ground, root, 3);
      const reads = journal.note('reads late', late.handle.tell('acquire'));
      await lastWaits(ground, root, 4);
      await reader.handle.tell('release');
      await until('three in the queue', async () => (await lineAt(ground.zk, root)).length === 3);
      journal.lines.push('the last reader leaves');
      await second.handle.tell('release');
      await writes;
      journal.lines.push('the writer leaves');
      await writer.handle.tell('release');
      await reads;
      assert.deepEqual(journal.lines, ['the last reader leaves', 'writes', 'the writer leaves', 'reads late']);
      await late.handle.tell('release');
      await Promise.all([one.kill(), two.kill()]);
    },
  };
}

/** Names that differ do not work together, as the guide says. */
const strangers: Check = {
  name: 'with names that differ there is no common queue: ours does not see a kazoo Lock at all',
  hasRoot: true,
  async run(ground) {
    const [ours, kazoo] = [
      await opened(ground.peers.ours, ground.root, ['lock', 'lock-']),
      await opened(ground.peers.kazoo, ground.root, ['lock']),
    ];
    await kazoo.handle.tell('acquire');
    assert.equal(await ours.handle.tell('try_acquire'), 'yes');
    await ours.handle.tell('release');
    await kazoo.handle.tell('release');
  },
};

const goneLine: Check = {
  name: 'kazoo does not create a deleted queue again, as ours does',
  async run({ peers, root, zk }) {
    const [ours, kazoo] = [await opened(peers.ours, root, ['lock', '__lock__']), await opened(peers.kazoo, root, ['lock'])];
    await ours.handle.tell('acquire');
    assert.equal(await kazoo.handle.tell('try_acquire'), 'no');
    await ours.handle.tell('release');
    await until('the server has deleted the container', async () => (await zk.exists(root)) === null);
    await assert.rejects(kazoo.handle.tell('acquire'), /NoNode/);
    await ours.handle.tell('acquire');
    await ours.handle.tell('release');
  },
};

const severalAtOnce: Check = {
  name: "a MultiLock of ours and Curator's InterProcessMultiLock, named in one order: only one is inside at a time, and none waits forever",
  async run({ peers, root, zk }) {
    const paths = ['a', 'b', 'c'].map((name) => `${root}/${name}`);
    const counter = `${root}-counter`;
    const rounds = 8;
    await zk.create(counter, '0');
    const openings = [
      [peers.ours, paths.toReversed()],
      [peers.Curator, paths],
      [peers.ours, paths.slice(1)],
    ] as const;
    const handles = await Promise.all(openings.map(([peer, names]) => peer.open('multi-lock', ...names)));
    await Promise.all(handles.map((each) => each.tell('count_up', counter, String(rounds))));
    const { data } = await zk.getData(counter);
    assert.equal(new TextDecoder().decode(data ?? undefined), String(rounds * handles.length));
  },
};

export const lockChecks: readonly Check[] = [
  ...locks.flatMap(turnChecks),
  ...locks.slice(0, 2).map(killCheck),
  killedWaiter,
  ...sharedLocks.flatMap(({ theirs, names }) => [sharedCheck(theirs, names, 'ours'), sharedCheck(theirs, names, theirs)]),
  strangers,
  goneLine,
  severalAtOnce,
];
