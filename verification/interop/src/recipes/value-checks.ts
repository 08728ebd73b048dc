/** Numbers shared by ours, kazoo and Curator. */
import assert from 'node:assert/strict';

import { type Check, type RecipeCheckContext, until } from './check-context.ts';
import type { Handle, RecipeClientKind } from './recipe-client.ts';

interface ValuePair {
  readonly name: string;
  /**
   * Kinds of recipes, and the arguments after the path. Curator's SharedCount creates the znode,
   * since it accepts none without data, as kazoo creates it.
   */
  readonly openings: Partial<Record<RecipeClientKind, readonly [recipe: string, ...options: string[]]>>;
}

const numbers: readonly ValuePair[] = [
  { name: "kazoo's Counter", openings: { ours: ['number', 'text'], kazoo: ['counter'] } },
  {
    name: "Curator's SharedCount, and kazoo's Counter in that form",
    openings: { Curator: ['shared-count'], ours: ['number', 'int32'], kazoo: ['counter', 'curator'] },
  },
  { name: "Curator's DistributedAtomicLong", openings: { ours: ['number', 'int64'], Curator: ['atomic-long'] } },
  {
    name: "Curator's DistributedAtomicInteger, and kazoo's Counter in that form",
    openings: { Curator: ['atomic-integer'], ours: ['number', 'int32'], kazoo: ['counter', 'curator'] },
  },
];

/** One of each kind, for one number. */
async function openHandles({ openings }: ValuePair, { clients, root }: RecipeCheckContext): Promise<readonly Handle[]> {
  const open = ([kind, [recipe, ...options]]: [string, readonly [string, ...string[]]]) =>
    clients[kind as RecipeClientKind].open(recipe, root, ...options);
  return await Promise.all(Object.entries(openings).map(open));
}

function sumCheck(agreement: ValuePair): Check {
  return {
    name: `${agreement.name}: the additions of each are visible to the others`,
    async run(context) {
      const handles = await openHandles(agreement, context);
      let sum = 0;
      for (let round = 0; round < 3; round++) {
        for (const handle of handles) {
          sum += 1000;
          assert.equal(await handle.call('add', '1000'), String(sum));
          sum -= 1;
          assert.equal(await handle.call('add', '-1'), String(sum));
        }
      }
      await until('all have it', async () =>
        (await Promise.all(handles.map((each) => each.call('value')))).every((each) => each === String(sum)),
      );
    },
  };
}

/** All add at once, each its own amount. */
function togetherCheck(agreement: ValuePair): Check {
  return {
    name: `${agreement.name}: no addition is lost while all add at once`,
    async run(context) {
      const handles = await openHandles(agreement, context);
      const rounds = 25;
      const adds = async (handle: Handle, index: number) => {
        for (let round = 0; round < rounds; round++) await handle.call('add', String(10 ** index));
      };
      await Promise.all(handles.map(adds));
      const sum = handles.reduce((total, _, index) => total + rounds * 10 ** index, 0);
      await until('all have it', async () =>
        (await Promise.all(handles.map((each) => each.call('value')))).every((each) => each === String(sum)),
      );
    },
  };
}

/** A combination that does not work, as the guide says. */
const overflow: Check = {
  name: "ours rejects a sum that 8 bytes cannot hold, and it overflows in Curator's DistributedAtomicLong, which ours read as it is",
  async run({ clients, root }) {
    const [ours, theirs] = [await clients.ours.open('number', root, 'int64'), await clients.Curator.open('atomic-long', root)];
    const most = String(2n ** 63n - 1n);
    assert.equal(await theirs.call('add', most), most);
    await assert.rejects(ours.call('add', '1'), /RangeError|bigint64/);
    assert.equal(await theirs.call('value'), most);
    assert.equal(await theirs.call('add', '1'), String(-(2n ** 63n)));
    assert.equal(await ours.call('value'), String(-(2n ** 63n)));
  },
};

const shared: Check = {
  name: "Curator's SharedValue: each receives what the other sets, and a client that has not received it yet sets nothing",
  async run({ clients, root }) {
    const [ours, theirs] = [
      await clients.ours.open('shared-value', root, 'begun'),
      await clients.Curator.open('shared-value', root, 'begun too'),
    ];
    const all = [ours, theirs];
    const seen = async () => await Promise.all(all.map((each) => each.call('value')));
    await until('both have the same', async () => new Set(await seen()).size === 1);
    for (const [sets, delivered] of [
      [ours, theirs],
      [theirs, ours],
    ] as const) {
      const text = sets === ours ? 'of ours' : 'of Curator';
      assert.equal(await sets.call('set', text), 'yes');
      // It uses the version it has seen, whatever has changed since.
      assert.equal(await delivered.call('set', 'too late'), 'no');
      await until('both have it', async () => (await seen()).every((each) => each === text));
    }
  },
};

export const valueChecks: readonly Check[] = [...numbers.flatMap((each) => [sumCheck(each), togetherCheck(each)]), overflow, shared];
