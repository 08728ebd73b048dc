/**
 * All faults, by name. A seed chooses among them; a scenario strikes with one when its steps say
 * so.
 */
import {
  garbageFrame,
  reconnectWithPendingRequests,
  massDelete,
  flood,
  halfFrame,
  syncAtObserver,
  syncAtSlowDisk,
  memoryHog,
  abortedDials,
  impostor,
  syncAtLaggingServer,
  moveAheadOfRequests,
  halfOpenClient,
  manyIdentities,
  overlappingCnxns,
  resumeSessionFromDump,
  clientOffline,
  moveThereAndBack,
  sharedSession,
} from './client-faults.ts';
import { wallClock } from './clock-faults.ts';
import { diskError, diskFull, slowDisk, wipe } from './disk-faults.ts';
import type { Fault } from './fault.ts';
import { memoryPressure } from './memory-faults.ts';
import { slowPipe, brokenCnxn, clientLinkCut } from './network-faults.ts';
import {
  unresolvableName,
  laggingLearner,
  flappingLinks,
  leaderPartitioned,
  oneWayCut,
  partition,
  brokenPeerCnxn,
  observerAhead,
  slowLink,
} from './partition-faults.ts';
import { expireSession, shedConnections, transferLead } from './operator-faults.ts';
import { impersonator, unknownPeer } from './peer-faults.ts';
import {
  longDowntime,
  kill,
  killAll,
  killLeader,
  isolateAndKillLeader,
  longPause,
  failNewLeader,
  pause,
  powerLoss,
  powerLossAll,
  rollingRestart,
  gracefulRestart,
} from './process-faults.ts';
import { quorumLost } from './quorum-faults.ts';
import { epochRot, logRot, lostLog, snapshotRot } from './rot-faults.ts';

export const faults = {
  kill,
  powerLoss,
  gracefulRestart,
  pause,
  longPause,
  diskError,
  diskFull,
  slowDisk,
  memoryPressure,
  brokenCnxn,
  slowPipe,
  clientLinkCut,
  overlappingCnxns,
  clientOffline,
  halfFrame,
  garbageFrame,
  flood,
  massDelete,
  impostor,
  manyIdentities,
  memoryHog,
  halfOpenClient,
  wallClock,
  killLeader,
  isolateAndKillLeader,
  failNewLeader,
  longDowntime,
  killAll,
  powerLossAll,
  quorumLost,
  rollingRestart,
  partition,
  oneWayCut,
  leaderPartitioned,
  slowLink,
  flappingLinks,
  brokenPeerCnxn,
  unresolvableName,
  wipe,
  logRot,
  snapshotRot,
  epochRot,
  lostLog,
  moveThereAndBack,
  moveAheadOfRequests,
  reconnectWithPendingRequests,
  syncAtLaggingServer,
  syncAtObserver,
  syncAtSlowDisk,
  laggingLearner,
  observerAhead,
  resumeSessionFromDump,
  sharedSession,
  abortedDials,
  unknownPeer,
  impersonator,
  transferLead,
  shedConnections,
  expireSession,
} as const satisfies Record<string, Fault>;

export type FaultName = keyof typeof faults;
