/** Elections of ours, kazoo and Curator with candidates of several kinds. */
import assert from 'node:assert/strict';

import { type Check, type Contender, type Ground, Journal, lastWaits, lineAt, until } from './ground.ts';
import type { Peer } from './peer.ts';

interface Agreement {
  readonly theirs: 'kazoo' | 'Curator';
  /** Of theirs. */
  readonly recipe: string;
  /** For ours. */
  readonly name: string;
}

const elections: readonly Agreement[] = [
  { theirs: 'Curator', recipe: 'latch', name: 'latch-' },
  { theirs: 'Curator', recipe: 'selector', name: 'lock-' },
  { theirs: 'kazoo', recipe: 'election', name: '__lock__' },
];

async function candidate(peer: Peer, { root }: Ground, { recipe, name }: Agreement, who: string): Promise<Contender> {
  const handle = peer.kind === 'ours' ? await peer.open('election', root, name, who) : await peer.open(recipe, root, who);
  return { who, handle };
}

function turnCheck(agreement: Agreement): Check {
  const { theirs, recipe, name } = agreement;
  return {
    name: `election ${name} and ${theirs}'s ${recipe}: each leads in its turn, and all see the same candidates`,
    hasRoot: theirs === 'kazoo',
    async run(ground) {
      for (const [first, second] of [['ours', theirs] as const, [theirs, 'ours'] as const]) {
        const all = [
          await candidate(ground.peers[first], ground, agreement, 'anna'),
          await candidate(ground.peers[second], ground, agreement, 'bert'),
        ];
        const journal = new Journal();
        const [leads, follows] = all as [Contender, Contender];
        await leads.handle.tell('lead');
        const turn = journal.note('bert leads', follows.handle.tell('lead'));
        await lastWaits(ground, ground.root, 2);
        // On another handle, as a waiting one does nothing else.
        const looksOn = await Promise.all(
          [ground.peers.ours, ground.peers[theirs]].map((peer) => candidate(peer, ground, agreement, 'looks on')),
        );
        const seen = await Promise.all(looksOn.map(({ handle }) => handle.tell('contenders')));
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
        await leads.handle.tell('resign');
        await turn;
        assert.deepEqual(journal.lines, ['anna resigns', 'bert leads']);
        await follows.handle.tell('resign');
        await until('no candidate', async () => (await lineAt(ground.zk, ground.root)).length === 0);
      }
    },
  };
}

function killCheck(agreement: Agreement): Check {
  const { theirs, recipe, name } = agreement;
  return {
    name: `election ${name} and ${theirs}'s ${recipe}: the other candidate leads after the leader is killed`,
    hasRoot: theirs === 'kazoo',
    async run(ground) {
      for (const [first, second] of [['ours', theirs] as const, [theirs, 'ours'] as const]) {
        const mortal = await ground.another(first);
        await (await candidate(mortal, ground, agreement, 'anna')).handle.tell('lead');
        const heir = await candidate(ground.peers[second], ground, agreement, 'bert');
        const leads = heir.handle.tell('lead');
        await lastWaits(ground, ground.root, 2);
        await ground.kill(mortal);
        await leads;
        assert.equal((await lineAt(ground.zk, ground.root)).length, 1);
        await heir.handle.tell('resign');
      }
    },
  };
}

export const electionChecks: readonly Check[] = elections.flatMap((agreement) => [turnCheck(agreement), killCheck(agreement)]);
