/** What strikes the ensembles and the processes of recipe stories: faults of the other stories, and what happens to programs. */
import type { SeededRandom } from '@tskeeper/runtime';
import type { Fault } from '../faults/fault.ts';
import { faults } from '../faults/faults.ts';
import type { Stage } from '../story/stage.ts';
import { Seat } from './seat.ts';

/** One that holds something now and then, as it has the most to lose. */
function anySeat(stage: Stage, random: SeededRandom): Seat {
  const seats = stage.actors.filter((actor) => actor instanceof Seat);
  const holders = seats.filter(({ process }) => process.holds > 0);
  const from = holders.length > 0 && random.below(2) === 0 ? holders : seats;
  return from[random.below(from.length)]!;
}

/** Longer than a session lives, now and then. */
function howLong(random: SeededRandom): number {
  switch (random.below(6)) {
    case 0:
      return 6000 + random.below(8000);
    case 1:
      return 1500 + random.below(2500);
    default:
      return random.below(1500);
  }
}

const standstill: Fault = {
  id: 'F14',
  what: 'a process of a recipe stands still, for longer than its session lives perhaps, and goes on as if nothing had been',
  strike: (stage, random) => anySeat(stage, random).process.standStill(howLong(random)),
};

const stutter: Fault = {
  id: 'F14',
  what: 'a process of a recipe stands still for a moment, again and again: what has come meanwhile comes to it all at once',
  strike(stage, random) {
    const { process } = anySeat(stage, random);
    let times = 5 + random.below(20);
    const next = () => {
      if (times-- === 0 || stage.isHealed) return;
      process.standStill(1 + random.below(40));
      stage.after(random.below(60), 'stutter', undefined, next);
    };
    next();
  },
};

const crash: Fault = {
  id: 'F1, F3',
  what: 'a process of a recipe ends, or its machine does; another begins a while later',
  strike: (stage, random) => anySeat(stage, random).crash(random.below(2) === 0 ? 'process' : 'machine', random.below(1500)),
};

const offline: Fault = {
  id: 'F28',
  what: 'a process of a recipe is cut off from all servers',
  strike: (stage, random) => anySeat(stage, random).sleep(howLong(random)),
};

const silence: Fault = {
  id: 'F29',
  what: 'a server answers the pings of a process and nothing else, until that leaves it, or for a while if it never does',
  strike(stage, random) {
    const { process } = anySeat(stage, random);
    const { wire } = process;
    const [kind, ms] = [random.below(2) === 0 ? 'no answers' : 'no requests', random.below(800)] as const;
    process.silence(kind);
    if (process.requestTimeoutMs !== undefined) return;
    stage.after(ms, 'silence', undefined, () => {
      if (process.wire === wire) wire?.forward.resetAfter(0);
    });
  },
};

function without<All extends object, Name extends keyof All>(all: All, names: readonly Name[]): Omit<All, Name> {
  return Object.fromEntries(Object.entries(all).filter(([name]) => !names.includes(name as Name))) as Omit<All, Name>;
}

/** What is about disks that go bad, clients without manners, false servers and names that do not resolve; and what others do here as well. */
const leftOut = [
  ...(['diskError', 'diskFull', 'wipe', 'logRot', 'snapshotRot', 'epochRot', 'lostLog'] as const),
  ...(['halfFrame', 'babble', 'flood', 'impostor'] as const),
  ...(['deafName'] as const),
  // Whoever bears the number of a server may write what it likes, and no promise of a recipe holds then.
  ...(['impersonator'] as const),
  // As `rollingRestart` and `offline`.
  ...(['stop', 'sleep'] as const),
];

/** In the order of `faults`, as a seed draws by that. */
export const recipeFaults = {
  standstill,
  stutter,
  crash,
  offline,
  silence,
  ...without(faults, leftOut),
} as const satisfies Record<string, Fault>;

export type RecipeFaultName = keyof typeof recipeFaults;
