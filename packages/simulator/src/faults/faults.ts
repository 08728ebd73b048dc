/**
 * All faults, by name. A seed chooses among them; a scenario strikes with one when its steps say
 * so.
 */
import {
  babble,
  backAgain,
  clearOut,
  flood,
  halfFrame,
  heldUp,
  hoard,
  impatience,
  impostor,
  lateSync,
  leftBehind,
  loiter,
  manyNames,
  move,
  restartedClient,
  sleep,
  thereAndBack,
  twins,
} from './client-faults.ts';
import { wallClock } from './clock-faults.ts';
import { diskError, diskFull, slowDisk, wipe } from './disk-faults.ts';
import type { Fault } from './fault.ts';
import { shortOfMemory } from './memory-faults.ts';
import { badWire, cut, linkCut } from './network-faults.ts';
import { deafName, fallenBehind, flapping, leaderIsland, oneWayCut, partition, peerReset, slowLink } from './partition-faults.ts';
import { impersonator, stranger } from './peer-faults.ts';
import {
  absence,
  kill,
  killAll,
  killLeader,
  lonelyLeader,
  longPause,
  newLeader,
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
  shortOfMemory,
  cut,
  badWire,
  linkCut,
  move,
  sleep,
  halfFrame,
  babble,
  flood,
  clearOut,
  impostor,
  manyNames,
  hoard,
  loiter,
  wallClock,
  killLeader,
  lonelyLeader,
  newLeader,
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
  heldUp,
  fallenBehind,
  restartedClient,
  twins,
  impatience,
  stranger,
  impersonator,
} as const satisfies Record<string, Fault>;

export type FaultName = keyof typeof faults;
