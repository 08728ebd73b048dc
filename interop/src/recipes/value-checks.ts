/** Numbers that ours share with kazoo and Curator. */
import assert from 'node:assert/strict';

import { type Check, until } from './ground.ts';
import type { PeerKind } from './peer.ts';

interface Agreement {
  readonly name: string;
  /** Kinds of recipes, and what comes behind the path. Curator's SharedCount makes the znode, since it takes none without data, as kazoo makes it. */
  readonly openings: Partial<Record<PeerKind, readonly [recipe: string, ...options: string[]]>>;
}

const numbers: readonly Agreement[] = [
  { name: "kazoo's Counter", openings: { ours: ['number', 'text'], kazoo: ['counter'] } },
  {
    name: "Curator's SharedCount, and kazoo's Counter in that form",
    openings: { Curator: ['shared-count'], ours: ['number', 'int32'], kazoo: ['counter', 'curator'] },
  },
  { name: "Curator's DistributedAtomicLong", openings: { ours: ['number', 'int64'], Curator: ['atomic-long'] } },
];

function sumCheck({ name, openings }: Agreement): Check {
  return {
    name: `${name}: what each adds the others find`,
    async run({ peers, root }) {
      const open = ([kind, [recipe, ...options]]: [string, readonly [string, ...string[]]]) =>
        peers[kind as PeerKind].open(recipe, root, ...options);
      const handles = await Promise.all(Object.entries(openings).map(open));
      let sum = 0;
      for (let round = 0; round < 3; round++) {
        for (const handle of handles) {
          sum += 1000;
          assert.equal(await handle.tell('add', '1000'), String(sum));
          sum -= 1;
          assert.equal(await handle.tell('add', '-1'), String(sum));
        }
      }
      await until('all know it', async () =>
        (await Promise.all(handles.map((each) => each.tell('value')))).every((each) => each === String(sum)),
      );
    },
  };
}

const together: Check = {
  name: "Curator's DistributedAtomicLong: nothing is lost while both add at once",
  async run({ peers, root }) {
    const handles = await Promise.all([peers.ours.open('number', root, 'int64'), peers.Curator.open('atomic-long', root)]);
    const rounds = 25;
    const adds = async (index: number) => {
      for (let round = 0; round < rounds; round++) await handles[index]!.tell('add', String(index + 1));
    };
    await Promise.all([adds(0), adds(1)]);
    assert.equal(await handles[0].tell('value'), String(rounds * 3));
  },
};

const shared: Check = {
  name: "Curator's SharedValue: what either sets the other is told, and who has not seen it yet sets nothing",
  async run({ peers, root }) {
    const [ours, theirs] = [
      await peers.ours.open('shared-value', root, 'begun'),
      await peers.Curator.open('shared-value', root, 'begun too'),
    ];
    const all = [ours, theirs];
    const seen = async () => await Promise.all(all.map((each) => each.tell('value')));
    await until('both have the same', async () => new Set(await seen()).size === 1);
    for (const [sets, told] of [
      [ours, theirs],
      [theirs, ours],
    ] as const) {
      const text = sets === ours ? 'of ours' : 'of Curator';
      assert.equal(await sets.tell('set', text), 'yes');
      // It goes by what it has seen, whatever it has been told since.
      assert.equal(await told.tell('set', 'too late'), 'no');
      await until('both know it', async () => (await seen()).every((each) => each === text));
    }
  },
};

export const valueChecks: readonly Check[] = [...numbers.map(sumCheck), together, shared];
