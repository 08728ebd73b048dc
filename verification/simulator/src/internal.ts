export { exploreCommand } from './explorer/command.ts';
export { enumerateCrashStates } from './crash-states/command.ts';
export { runCase } from './crash-states/enumeration.ts';
export { type FolderHistory, readFolder } from './crash-states/folder-history.ts';
export type { JoinRecording } from './crash-states/join-world.ts';
export { checkFolder, checkFirstVote } from './crash-states/folder-check.ts';
export { encodeChoice, decodeChoice, parseRun, runText } from './explorer/choice.ts';
export { main } from './command/main.ts';
export { Pool, type PoolOptions } from './command/pool.ts';
export { emptyReport, type SeedReport } from './command/seed-report.ts';
export { runMutants, mutantsSummary } from './command/run-mutants.ts';
export { type InvariantName, Invariants, invariants, type NamedTxn, type ServerView, Violation } from './explorer/invariants.ts';
export {
  type SearchStart,
  hashOf,
  choicesToServe,
  choicesToSession,
  replayRun,
  search,
  type SearchOptions,
  shrinkRun,
} from './explorer/search.ts';
export { runToQuiescence } from './explorer/quiescence.ts';
export { searchPresets, runPreset } from './explorer/search-presets.ts';
export { buildInitialState, ensembleOfInitialState, initialStateNames } from './explorer/initial-states.ts';
export { MarkCounts, marks } from './explorer/marks.ts';
export { type Scope, scopeDefaults } from './explorer/scope.ts';
export { SmallWorld } from './explorer/small-world.ts';
export { transpile } from './mutants/transpile.ts';
export { loadMutant } from './mutants/loader.ts';
export { applyMutant } from './mutants/apply-mutant.ts';
export { SourceSymbols, packageSymbols } from './mutants/source-symbols.ts';
export { mutants } from './mutants/mutants.ts';
export { LibraryClient, type LibraryClientOptions } from './clients/library-client.ts';
export { type WorkloadOptions, Workload } from './clients/workload.ts';
export { families, type FamilyName, familyNames } from './recipes/families.ts';
export { type RecipeOutcome, runRecipeSeed } from './recipes/recipe-seed.ts';
export { CnxnTap } from './record/cnxn-tap.ts';
export { traceLines } from './record/trace-text.ts';
export { newProcessRecord, newRecording } from './record/recording.ts';
export { snapshotState } from './run/snapshot-states.ts';
