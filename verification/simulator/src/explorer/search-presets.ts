/**
 * The searches of `npm run explore -- all`: each preset begins in another state and has another
 * scope, so that together they hit every mark in marks.ts. A state counts once per preset,
 * since no state belongs to two scopes.
 */
import { type InitialStateName, buildInitialState, choicesToTruncation, choicesToServeWithoutThird } from './initial-states.ts';
import { MarkCounts } from './marks.ts';
import { type Scope, scopeDefaults } from './scope.ts';
import {
  type SearchStart,
  type SearchResult,
  choicesToClientWrite,
  choicesToReconfig,
  choicesToServe,
  choicesToSession,
  search,
  type SearchOptions,
  type SearchOrder,
} from './search.ts';

export interface SearchPreset {
  readonly name: string;
  readonly scope: Scope;
  readonly initialState: InitialStateName;
  /**
   * The state in which it begins, if not with all servers just started: all serve; all but the
   * third serve; the third truncates its tail for the others; a client has written, or has a session; or the leader
   * was asked for another configuration.
   */
  readonly prefix?: keyof typeof prefixes;
  readonly order: SearchOrder;
  readonly quiesceEvery: number;
  /** Its share of the states, in percent. */
  readonly statesPercent: number;
}

const prefixes = {
  serving: choicesToServe,
  'client has a session': choicesToSession,
  'configuration asked for': choicesToReconfig,
  'client has written': choicesToClientWrite,
  'two servers elected': choicesToServeWithoutThird,
  truncating: choicesToTruncation,
};

/** A client creates a session, writes, moves to another server and reads. */
const readingScope: Scope = { ...scopeDefaults, txns: 3, clientSteps: 6, crashes: 1, wakes: 4 };
const oneTxnInMemory: Scope = { ...scopeDefaults, committedLog: 1 };
/** The configuration changes, and may change back. */
const reconfigScope: Scope = { ...scopeDefaults, reconfigs: 2, txns: 1 };
/** After a learner is sent txns from the log, some are left that only memory holds. */
const twoTxnsInMemory: Scope = { ...scopeDefaults, committedLog: 2, cuts: 0 };

export const searchPresets: readonly SearchPreset[] = [
  { name: 'empty disks', scope: scopeDefaults, initialState: 'empty', order: 'chains', quiesceEvery: 40, statesPercent: 6 },
  // Half of two servers is not a quorum; among three servers that cannot be distinguished from a
  // majority. With their only link cut they could never become quiet.
  {
    name: 'two servers',
    scope: { ...scopeDefaults, servers: 2, cuts: 0 },
    initialState: 'empty',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 3,
  },
  {
    name: 'serving ensemble',
    scope: scopeDefaults,
    initialState: 'empty',
    prefix: 'serving',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 4,
  },
  {
    name: 'DIFF from the log',
    scope: twoTxnsInMemory,
    initialState: 'lagging server',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 4,
  },
  {
    name: 'SNAP only',
    scope: { ...oneTxnInMemory, syncsFromLog: false, cuts: 0 },
    initialState: 'lagging server',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 4,
  },
  {
    name: 'uncommitted tail',
    scope: scopeDefaults,
    initialState: 'uncommitted tail',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 4,
  },
  {
    name: 'crash during TRUNC',
    scope: { ...scopeDefaults, wakes: 6 },
    initialState: 'uncommitted tail',
    prefix: 'truncating',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 3,
  },
  {
    name: 'two uncommitted tails',
    scope: { ...scopeDefaults, crashes: 3 },
    initialState: 'two uncommitted tails',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 4,
  },
  {
    name: 'interrupted join',
    scope: scopeDefaults,
    initialState: 'interrupted join',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 4,
  },
  {
    name: 'accepted epoch',
    scope: scopeDefaults,
    initialState: 'accepted epoch',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 2,
  },
  {
    name: 'later accepted epoch',
    // With more faults another epoch begins before it shows that a server stays outside.
    scope: { ...scopeDefaults, crashes: 1, cuts: 0 },
    initialState: 'later accepted epoch',
    prefix: 'two servers elected',
    order: 'chains',
    quiesceEvery: 4,
    statesPercent: 3,
  },
  {
    name: 'uncommitted snapshot',
    scope: scopeDefaults,
    initialState: 'uncommitted snapshot',
    order: 'chains',
    quiesceEvery: 20,
    statesPercent: 4,
  },
  {
    name: 'any leader',
    scope: { ...scopeDefaults, elections: 'any' },
    initialState: 'empty',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 4,
  },
  {
    name: 'any leader, two uncommitted tails',
    scope: { ...scopeDefaults, elections: 'any', cuts: 0 },
    initialState: 'two uncommitted tails',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 4,
  },
  {
    name: 'single notifications',
    scope: { ...scopeDefaults, elections: 'each', wakes: 6 },
    initialState: 'empty',
    order: 'chains',
    quiesceEvery: 20,
    statesPercent: 4,
  },
  {
    name: 'single notifications, random walks',
    scope: { ...scopeDefaults, elections: 'each', wakes: 8, crashes: 3, txns: 3 },
    initialState: 'uncommitted tail',
    order: 'walks',
    quiesceEvery: 4,
    statesPercent: 4,
  },
  {
    name: 'the lead is given away',
    scope: { ...scopeDefaults, transfers: 2 },
    initialState: 'empty',
    prefix: 'serving',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 3,
  },
  // In these ensembles of three servers two form a quorum, always the same two.
  {
    name: 'observer',
    scope: { ...scopeDefaults, ensemble: 'observer' },
    initialState: 'empty',
    prefix: 'serving',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 4,
  },
  {
    name: 'server of weight 0',
    scope: { ...scopeDefaults, ensemble: 'weightless' },
    initialState: 'empty',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 3,
  },
  {
    name: 'two groups',
    scope: { ...scopeDefaults, ensemble: 'groups' },
    initialState: 'empty',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 3,
  },
  {
    name: 'reading client',
    scope: { ...readingScope, cuts: 1 },
    initialState: 'empty',
    prefix: 'client has written',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 5,
  },
  {
    name: 'reading client, random walks',
    scope: { ...readingScope, crashes: 1, cuts: 1, clientSteps: 8 },
    initialState: 'empty',
    prefix: 'client has written',
    order: 'walks',
    quiesceEvery: 10,
    statesPercent: 3,
  },
  {
    name: 'three servers become four and three again',
    scope: { ...reconfigScope, servers: 4, ensemble: 'growing' },
    initialState: 'empty',
    prefix: 'configuration asked for',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 4,
  },
  {
    name: 'another server takes the place of the leader',
    scope: { ...reconfigScope, servers: 4, ensemble: 'replacing' },
    initialState: 'empty',
    prefix: 'client has a session',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 3,
  },
  {
    name: 'two servers become three and two again',
    scope: { ...reconfigScope, ensemble: 'joining' },
    initialState: 'empty',
    prefix: 'client has a session',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 2,
  },
  {
    name: 'three servers become two and three again',
    scope: { ...reconfigScope, ensemble: 'leaving' },
    initialState: 'empty',
    prefix: 'client has a session',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 2,
  },
  {
    name: 'a voter becomes an observer and a voter again',
    scope: { ...reconfigScope, ensemble: 'demoted' },
    initialState: 'empty',
    prefix: 'client has a session',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 2,
  },
  {
    name: 'pending configuration',
    scope: { ...reconfigScope, reconfigs: 1, servers: 4, ensemble: 'growing' },
    initialState: 'pending configuration',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 3,
  },
  {
    name: 'missed reconfiguration',
    scope: { ...reconfigScope, reconfigs: 1, servers: 4, ensemble: 'growing' },
    initialState: 'missed reconfiguration',
    order: 'chains',
    quiesceEvery: 40,
    statesPercent: 2,
  },
];

export interface PresetResult {
  readonly preset: SearchPreset;
  readonly found: SearchResult;
  /** CPU time, since the machine may run other things. */
  readonly seconds: number;
}

export function searchStartOf({ scope, initialState }: SearchPreset): SearchStart {
  return { scope, initialState: buildInitialState(initialState) };
}

/** Runs a preset for its share of the states. */
export function runPreset(preset: SearchPreset, states: number, seed: number): PresetResult {
  const begun = process.cpuUsage();
  const start = searchStartOf(preset);
  const own = Math.ceil((states * preset.statesPercent) / 100);
  const options: SearchOptions = {
    ...start,
    prefix: preset.prefix === undefined ? [] : prefixes[preset.prefix](start),
    order: preset.order,
    seed,
    depthMax: 400,
    quiesceEvery: preset.quiesceEvery,
    shouldStop: (progress) => progress.states >= own,
  };
  const found = search(options);
  const { user, system } = process.cpuUsage(begun);
  return { preset, found, seconds: (user + system) / 1e6 };
}

/** The marks that all presets together have hit. */
export function totalMarks(results: readonly PresetResult[]): MarkCounts {
  const total = new MarkCounts();
  for (const { found } of results) total.addAll(found.marks);
  return total;
}
