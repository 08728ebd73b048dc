/** All faults, by name. A seed chooses among them; a scenario strikes with one when its story comes to it. */
import {
  babble,
  backAgain,
  flood,
  halfFrame,
  hoard,
  impatience,
  impostor,
  lateSync,
  leftBehind,
  move,
  restartedClient,
  sleep,
  thereAndBack,
  twins,
} from './client-faults.ts';
import { wallClock } from './clock-faults.ts';
import { diskError, diskFull, slowDisk, wipe } from './disk-faults.ts';
import type { Fault } from './fault.ts';
import { badWire, cut, linkCut } from './network-faults.ts';
import { deafName, flapping, leaderIsland, oneWayCut, partition, peerReset, slowLink } from './partition-faults.ts';
import { impersonator, stranger } from './peer-faults.ts';
import {
  absence,
  kill,
  killAll,
  killLeader,
  lonelyLeader,
  longPause,
  pause,
  power,
  powerAll,
  rollingRestart,
  stop,
} from './process-faults.ts';
import { epochRot, logRot, lostLog, snapshotRot } from './rot-faults.ts';

export const faults = {
  kill,
  power,
  stop,
  pause,
  longPause,
  diskError,
  diskFull,
  slowDisk,
  cut,
  badWire,
  linkCut,
  move,
  sleep,
  halfFrame,
  babble,
  flood,
  impostor,
  hoard,
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
  deafName,
  wipe,
  logRot,
  snapshotRot,
  epochRot,
  lostLog,
  thereAndBack,
  leftBehind,
  backAgain,
  lateSync,
  restartedClient,
  twins,
  impatience,
  stranger,
  impersonator,
} as const satisfies Record<string, Fault>;

export type FaultName = keyof typeof faults;
