/**
 * Attacks by peers that are not servers of the ensemble but speak to its servers as if they were.
 */
import { SeededRandom } from '@tskeeper/runtime';
import { type Attack, type Kind } from '../peers/attack.ts';
import { harmlessKinds } from '../peers/harmless-kinds.ts';
import { impersonatingKinds } from '../peers/impersonating-kinds.ts';
import type { Stage } from '../story/stage.ts';
import type { Fault } from './fault.ts';

export const stranger: Fault = {
  id: 'F30',
  what: "a peer outside the ensemble speaks to the ports of servers in ways that need no other server's id",
  ofEnsembles: true,
  strike: (stage, random) => attack(stage, random, harmlessKinds),
};

export const impersonator: Fault = {
  id: 'F30',
  what: "a peer outside the ensemble uses a server's id, or sends requests to the leader on behalf of clients; no guarantee to clients holds then",
  ofEnsembles: true,
  strike(stage, random) {
    stage.world.recording.isImpersonated = true;
    attack(stage, random, impersonatingKinds);
  },
};

/** The attacks of one strike start within this time. */
const apartMs = 100;

function attack(stage: Stage, random: SeededRandom, kinds: Readonly<Record<string, Kind>>): void {
  const names = Object.keys(kinds);
  for (let left = 1 + random.below(3); left > 0; left--) {
    const name = names[random.below(names.length)]!;
    stage.after(random.below(apartMs), 'attack', undefined, () => {
      // In three of four cases a leader: other servers do not accept learners.
      const target = (random.below(4) > 0 ? stage.leader : undefined) ?? stage.anyServer();
      if (stage.isHealed || target.process?.serving !== true) return;
      let isDone = false;
      const done = () => {
        if (!isDone) stage.note(`hostile ${name}`);
        isDone = true;
      };
      const parts: Attack = {
        stage,
        random: new SeededRandom(random.uint32()),
        peer: stage.newHostilePeer(),
        target,
        near: target.process.runtime!.inspect.lastZxid(),
        done,
      };
      kinds[name]!(parts);
    });
  }
}
