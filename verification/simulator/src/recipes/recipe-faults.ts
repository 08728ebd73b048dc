/**
 * Faults of the ensembles and the processes in recipe runs: faults of the other runs, and faults of
 * programs.
 */
import type { SeededRandom } from '@tskeeper/runtime';
import type { Fault } from '../faults/fault.ts';
import { faults } from '../faults/faults.ts';
import type { Run } from '../run/run.ts';
import { ProcessSlot } from './process-slot.ts';

/** Any process, but often one that holds something, as it has the most to lose. */
function anySlot(run: Run, random: SeededRandom): ProcessSlot {
  const slots = run.actors.filter((actor) => actor instanceof ProcessSlot);
  const holders = slots.filter(({ process }) => process.holdCount > 0);
  const from = holders.length > 0 && random.below(2) === 0 ? holders : slots;
  return from[random.below(from.length)]!;
}

/** Sometimes longer than a session timeout. */
function drawDurationMs(random: SeededRandom): number {
  switch (random.below(6)) {
    case 0:
      return 6000 + random.below(8000);
    case 1:
      return 1500 + random.below(2500);
    default:
      return random.below(1500);
  }
}

const processFreeze: Fault = {
  id: 'F14',
  description: 'a process of a recipe is paused, possibly for longer than its session timeout, and then continues',
  inject: (run, random) => anySlot(run, random).process.freeze(drawDurationMs(random)),
};

const processStutter: Fault = {
  id: 'F14',
  description: 'a process of a recipe is paused briefly many times, and receives what arrived meanwhile at once',
  inject(run, random) {
    const { process } = anySlot(run, random);
    let times = 5 + random.below(20);
    const next = () => {
      if (times-- === 0 || run.isHealed) return;
      process.freeze(1 + random.below(40));
      run.schedule(random.below(60), 'stutter', undefined, next);
    };
    next();
  },
};

const processCrash: Fault = {
  id: 'F1, F3',
  description: 'a process of a recipe or its machine ends; another starts after a while',
  inject: (run, random) => anySlot(run, random).crash(random.below(2) === 0 ? 'process' : 'machine', random.below(1500)),
};

const processOffline: Fault = {
  id: 'F28',
  description: 'a process of a recipe loses its links to all servers',
  inject: (run, random) => anySlot(run, random).goOffline(drawDurationMs(random)),
};

const pingsOnlyServer: Fault = {
  id: 'F29',
  description: 'a server answers only the pings of a process, until the process leaves it, or for a while if it never does',
  inject(run, random) {
    const { process } = anySlot(run, random);
    const { wire } = process;
    const [kind, ms] = [random.below(2) === 0 ? 'no answers' : 'no requests', random.below(800)] as const;
    process.answerOnlyPings(kind);
    if (process.requestTimeoutMs !== undefined) return;
    run.schedule(ms, 'silence', undefined, () => {
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
const excludedFaults = [
  ...(['diskError', 'diskFull', 'wipe', 'logRot', 'snapshotRot', 'epochRot', 'lostLog'] as const),
  ...(['halfFrame', 'garbageFrame', 'flood', 'impostor'] as const),
  ...(['unresolvableName'] as const),
  // A peer that uses a server's id may write anything, so no rule of a recipe would hold.
  ...(['impersonator'] as const),
  // Covered by `rollingRestart` and `processOffline`.
  ...(['gracefulRestart', 'clientOffline'] as const),
];

/** In the order of `faults`, since seeds choose by it. */
export const recipeFaults = {
  processFreeze,
  processStutter,
  processCrash,
  processOffline,
  pingsOnlyServer,
  ...without(faults, excludedFaults),
} as const satisfies Record<string, Fault>;

export type RecipeFaultName = keyof typeof recipeFaults;
