/** What those do who are no server of the ensemble, and speak to its servers as if they were. */
import { SeededRandom } from '@tskeeper/runtime';
import { type Attack, type Kind } from '../peers/attack.ts';
import { harmlessKinds } from '../peers/harmless-kinds.ts';
import { impersonatingKinds } from '../peers/impersonating-kinds.ts';
import type { Stage } from '../story/stage.ts';
import type { Fault } from './fault.ts';

export const stranger: Fault = {
  id: 'F30',
  what: 'somebody who is no server speaks to the ports of servers, in any way that needs the number of no other server',
  ofEnsembles: true,
  strike: (stage, random) => attack(stage, random, harmlessKinds),
};

export const impersonator: Fault = {
  id: 'F30',
  what: 'somebody bears the number of a server, or asks its leader on behalf of clients; no promise to clients holds then',
  ofEnsembles: true,
  strike(stage, random) {
    stage.world.recording.isImpersonated = true;
    attack(stage, random, impersonatingKinds);
  },
};

/** Between two of one strike. */
const apartMs = 100;

function attack(stage: Stage, random: SeededRandom, kinds: Readonly<Record<string, Kind>>): void {
  const names = Object.keys(kinds);
  for (let left = 1 + random.below(3); left > 0; left--) {
    const name = names[random.below(names.length)]!;
    stage.after(random.below(apartMs), 'attack', undefined, () => {
      // In three of four a server that leads: others do not listen to learners.
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
