/** What strikes the ensembles and the processes of recipe stories: faults of the other stories, and what happens to programs. */
import type { SeededRandom } from '@tskeeper/runtime';
import type { Fault } from '../faults/fault.ts';
import { faults } from '../faults/faults.ts';
import type { Stage } from '../story/stage.ts';
import { Seat } from './seat.ts';

function anySeat(stage: Stage): Seat {
  const actor = stage.anyActor();
  if (!(actor instanceof Seat)) throw new Error('only processes of recipes act in a recipe story');
  return actor;
}

/** Longer than a session lives, now and then. */
function howLong(random: SeededRandom): number {
  return random.below(3) === 0 ? 1500 + random.below(4500) : random.below(1500);
}

const standstill: Fault = {
  id: 'F14',
  what: 'a process of a recipe stands still, for longer than its session lives perhaps, and goes on as if nothing had been',
  strike: (stage, random) => anySeat(stage).process.standStill(howLong(random)),
};

const crash: Fault = {
  id: 'F1, F3',
  what: 'a process of a recipe ends, or its machine does; another begins a while later',
  strike: (stage, random) => anySeat(stage).crash(random.below(2) === 0 ? 'process' : 'machine', random.below(1500)),
};

const offline: Fault = {
  id: 'F28',
  what: 'a process of a recipe is cut off from all servers',
  strike: (stage, random) => anySeat(stage).sleep(howLong(random)),
};

const { kill, power, pause, slowDisk, cut, badWire, linkCut, move, wallClock, killLeader, lonelyLeader, absence, killAll, powerAll } =
  faults;
const { rollingRestart, partition, oneWayCut, leaderIsland, slowLink, flapping, peerReset } = faults;

/** Without those that are about disks that go bad, and about clients without manners. */
export const recipeFaults = {
  standstill,
  crash,
  offline,
  kill,
  power,
  pause,
  slowDisk,
  cut,
  badWire,
  linkCut,
  move,
  wallClock,
  killLeader,
  lonelyLeader,
  absence,
  killAll,
  powerAll,
  rollingRestart,
  partition,
  oneWayCut,
  leaderIsland,
  slowLink,
  flapping,
  peerReset,
} as const satisfies Record<string, Fault>;

export type RecipeFaultName = keyof typeof recipeFaults;
