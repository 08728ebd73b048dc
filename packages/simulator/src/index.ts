export type { Checker } from './checkers/checker.ts';
export { check, type CheckerName, checkers, type Finding, findingText } from './checkers/checkers.ts';
export type { Actor, Ask } from './clients/actor.ts';
export { ask, join } from './clients/ask.ts';
export { type ClientClock, type ClientMachine, type ClientWorld, serverPort } from './clients/client-world.ts';
export { RawClient, type RawClientOptions } from './clients/raw-client.ts';
export { type FaultName, faults } from './faults/faults.ts';
export * from './model/operation-types.ts';
export {
  type Admitted,
  digestId,
  formatQuota,
  type Heard,
  isValidPath,
  isWrite,
  type ModelOptions,
  modelDefaults,
  parseQuota,
  ReferenceModel,
  sessionPassword,
} from './model/reference-model.ts';
export type { CnxnRecord, Item, Recording, Request } from './record/recording.ts';
export type { PeerEvent } from './record/peer-event.ts';
export { replay } from './replay/replay.ts';
export { plantTxns } from './story/plant.ts';
export { type Outcome, runSeed } from './story/story.ts';
export { scenarios } from './scenarios/scenarios.ts';
export { VirtualWorld, type WorldOptions } from './world/virtual-world.ts';
export type { ServerHost } from './world/server-host.ts';
export { snappy } from './world/snappy.ts';
