/**
 * Attacks by peers that are not servers of the ensemble but speak to its servers as if they were.
 */
import { SeededRandom } from '@tskeeper/runtime';
import { type Attack, type AttackKind } from '../peers/attack.ts';
import { unknownPeerAttacks } from '../peers/unknown-peer-attacks.ts';
import { impersonatorAttacks } from '../peers/impersonator-attacks.ts';
import type { Run } from '../run/run.ts';
import type { Fault } from './fault.ts';

export const unknownPeer: Fault = {
  id: 'F30',
  description: "a peer outside the ensemble speaks to the ports of servers in ways that need no other server's id",
  ensembleOnly: true,
  inject: (run, random) => startAttacks(run, random, unknownPeerAttacks),
};

export const impersonator: Fault = {
  id: 'F30',
  description:
    "a peer outside the ensemble uses a server's id, or sends requests to the leader as those of clients; no guarantee to clients holds then",
  ensembleOnly: true,
  inject(run, random) {
    run.world.recording.isImpersonated = true;
    startAttacks(run, random, impersonatorAttacks);
  },
};

/** The attacks of one strike start within this time. */
const attackSpreadMs = 100;

function startAttacks(run: Run, random: SeededRandom, kinds: Readonly<Record<string, AttackKind>>): void {
  const names = Object.keys(kinds);
  for (let left = 1 + random.below(3); left > 0; left--) {
    const name = names[random.below(names.length)]!;
    run.schedule(random.below(attackSpreadMs), 'attack', undefined, () => {
      // In three of four cases a leader: other servers do not accept learners.
      const target = (random.below(4) > 0 ? run.leader : undefined) ?? run.anyServer();
      if (run.isHealed || target.process?.isServing !== true) return;
      let isDone = false;
      const reachedGoal = () => {
        if (!isDone) run.hitMark(`hostile ${name}`);
        isDone = true;
      };
      const context: Attack = {
        run,
        random: new SeededRandom(random.uint32()),
        peer: run.strangers.newHostilePeer(),
        target,
        targetZxid: target.process.runtime!.inspect.lastZxid(),
        reachedGoal,
      };
      kinds[name]!(context);
    });
  }
}
