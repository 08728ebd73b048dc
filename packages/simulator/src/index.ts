export type { Checker } from './checkers/checker.ts';
export { check, type CheckerName, checkers, type Finding, findingText } from './checkers/checkers.ts';
export type { Actor, ClientRequest } from './clients/actor.ts';
export { sendRequest, connectRawClient } from './clients/send-request.ts';
export { type ClientClock, type ClientMachine, type ClientWorld, serverPort } from './clients/client-world.ts';
export { RawClient, type RawClientOptions } from './clients/raw-client.ts';
export { type FaultName, faults } from './faults/faults.ts';
export * from './model/operation-types.ts';
export {
  type Admitted,
  digestId,
  formatQuota,
  type ModelOutput,
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
export { writeSeedTxns } from './run/seed-state.ts';
export { type Outcome, runSeed } from './run/seed-run.ts';
export { scenarios } from './scenarios/scenarios.ts';
export { VirtualWorld, type WorldOptions } from './world/virtual-world.ts';
export type { ServerHost } from './world/server-host.ts';
export { snappy } from './world/snappy.ts';
