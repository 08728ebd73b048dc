/** Elections of ours, kazoo and Curator with candidates of several kinds. */
import assert from 'node:assert/strict';

import { type Check, type Contender, type RecipeCheckContext, Journal, untilLastWaits, waitQueueAt, until } from './check-context.ts';
import type { RecipeClient } from './recipe-client.ts';

interface ElectionPair {
  readonly theirs: 'kazoo' | 'Curator';
  /** Of theirs. */
  readonly recipe: string;
  /** For ours. */
  readonly name: string;
}

const elections: readonly ElectionPair[] = [
  { theirs: 'Curator', recipe: 'latch', name: 'latch-' },
  { theirs: 'Curator', recipe: 'selector', name: 'lock-' },
  { theirs: 'kazoo', recipe: 'election', name: '__lock__' },
];

async function candidate(
  peer: RecipeClient,
  { root }: RecipeCheckContext,
  { recipe, name }: ElectionPair,
  who: string,
): Promise<Contender> {
  const handle = peer.kind === 'ours' ? await peer.open('election', root, name, who) : await peer.open(recipe, root, who);
  return { who, handle };
}

function turnCheck(agreement: ElectionPair): Check {
  const { theirs, recipe, name } = agreement;
  return {
    name: `election ${name} and ${theirs}'s ${recipe}: each leads in order, and all see the same candidates`,
    hasRoot: theirs === 'kazoo',
    async run(context) {
      for (const [first, second] of [['ours', theirs] as const, [theirs, 'ours'] as const]) {
        const all = [
          await candidate(context.clients[first], context, agreement, 'anna'),
          await candidate(context.clients[second], context, agreement, 'bert'),
        ];
        const journal = new Journal();
        const [leads, follows] = all as [Contender, Contender];
        await leads.handle.call('lead');
        const turn = journal.recordAnswer('bert leads', follows.handle.call('lead'));
        await untilLastWaits(context, context.root, 2);
        // On another handle, as a waiting one does nothing else.
        const looksOn = await Promise.all(
          [context.clients.ours, context.clients[theirs]].map((peer) => candidate(peer, context, agreement, 'looks on')),
        );
        const seen = await Promise.all(looksOn.map(({ handle }) => handle.call('contenders')));
        // Curator counts every child of the path, including our acknowledgement of the leader; it
        // takes that for one more candidate, without a vote.
        assert.deepEqual(
          seen.map((text) => text.split(',').slice(0, 2)),
          [
            ['anna', 'bert'],
            ['anna', 'bert'],
          ],
        );
        journal.lines.push('anna resigns');
        await leads.handle.call('resign');
        await turn;
        assert.deepEqual(journal.lines, ['anna resigns', 'bert leads']);
        await follows.handle.call('resign');
        await until('no candidate', async () => (await waitQueueAt(context.zk, context.root)).length === 0);
      }
    },
  };
}

function killCheck(agreement: ElectionPair): Check {
  const { theirs, recipe, name } = agreement;
  return {
    name: `election ${name} and ${theirs}'s ${recipe}: the other candidate leads after the leader is killed`,
    hasRoot: theirs === 'kazoo',
    async run(context) {
      for (const [first, second] of [['ours', theirs] as const, [theirs, 'ours'] as const]) {
        const mortal = await context.startClient(first);
        await (await candidate(mortal, context, agreement, 'anna')).handle.call('lead');
        const heir = await candidate(context.clients[second], context, agreement, 'bert');
        const leads = heir.handle.call('lead');
        await untilLastWaits(context, context.root, 2);
        await context.killClient(mortal);
        await leads;
        assert.equal((await waitQueueAt(context.zk, context.root)).length, 1);
        await heir.handle.call('resign');
      }
    },
  };
}

export const electionChecks: readonly Check[] = elections.flatMap((agreement) => [turnCheck(agreement), killCheck(agreement)]);
