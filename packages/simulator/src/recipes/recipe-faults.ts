/**
 * Faults of the ensembles and the processes in recipe runs: faults of the other runs, and faults of
 * programs.
 */
import type { SeededRandom } from '@tskeeper/runtime';
import type { Fault } from '../faults/fault.ts';
import { faults } from '../faults/faults.ts';
import type { Stage } from '../story/stage.ts';
import { Seat } from './seat.ts';

/** Any process, but often one that holds something, as it has the most to lose. */
function anySeat(stage: Stage, random: SeededRandom): Seat {
  const seats = stage.actors.filter((actor) => actor instanceof Seat);
  const holders = seats.filter(({ process }) => process.holds > 0);
  const from = holders.length > 0 && random.below(2) === 0 ? holders : seats;
  return from[random.below(from.length)]!;
}

/** Sometimes longer than a session timeout. */
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
  what: 'a process of a recipe is paused, possibly for longer than its session timeout, and then continues',
  strike: (stage, random) => anySeat(stage, random).process.standStill(howLong(random)),
};

const stutter: Fault = {
  id: 'F14',
  what: 'a process of a recipe is paused briefly many times, and receives what arrived meanwhile at once',
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
  what: 'a process of a recipe or its machine ends; another starts after a while',
  strike: (stage, random) => anySeat(stage, random).crash(random.below(2) === 0 ? 'process' : 'machine', random.below(1500)),
};

const offline: Fault = {
  id: 'F28',
  what: 'a process of a recipe loses its links to all servers',
  strike: (stage, random) => anySeat(stage, random).sleep(howLong(random)),
};

const silence: Fault = {
  id: 'F29',
  what: 'a server answers only the pings of a process, until the process leaves it, or for a while if it never does',
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

/**
 * Excluded: damaged disks, misbehaving clients, false servers and unresolvable names; and faults
 * that others cover here.
 */
const leftOut = [
  ...(['diskError', 'diskFull', 'wipe', 'logRot', 'snapshotRot', 'epochRot', 'lostLog'] as const),
  ...(['halfFrame', 'babble', 'flood', 'impostor'] as const),
  ...(['deafName'] as const),
  // A peer that uses a server's id may write anything, so no rule of a recipe would hold.
  ...(['impersonator'] as const),
  // Covered by `rollingRestart` and `offline`.
  ...(['stop', 'sleep'] as const),
];

/** In the order of `faults`, since seeds choose by it. */
export const recipeFaults = {
  standstill,
  stutter,
  crash,
  offline,
  silence,
  ...without(faults, leftOut),
} as const satisfies Record<string, Fault>;

export type RecipeFaultName = keyof typeof recipeFaults;
