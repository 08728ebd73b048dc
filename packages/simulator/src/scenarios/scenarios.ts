/** All scenarios, by the names the command knows them by. */
import type { Scenario } from './scenario.ts';
import {
  authHeldBack,
  authLeftBehind,
  clockSetBack,
  closingServer,
  movedSession,
  passingZnode,
  pausedServer,
  watchesOverPowerLoss,
  watchSetBehindRemoval,
} from './session-scenarios.ts';
import { failedSync, killedWhilePurging, powerLossInMidSync } from './storage-scenarios.ts';

export const scenarios: Readonly<Record<string, Scenario>> = {
  'clock-set-back': clockSetBack,
  'auth-held-back': authHeldBack,
  'auth-left-behind': authLeftBehind,
  'moved-session': movedSession,
  'paused-server': pausedServer,
  'closing-server': closingServer,
  'passing-znode': passingZnode,
  'watches-over-power-loss': watchesOverPowerLoss,
  'watch-set-behind-removal': watchSetBehindRemoval,
  'power-loss-in-mid-sync': powerLossInMidSync,
  'failed-sync': failedSync,
  'killed-while-purging': killedWhilePurging,
};
