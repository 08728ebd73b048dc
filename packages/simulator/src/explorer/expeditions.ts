/**
 * The searches of `npm run explore -- all`: each expedition begins in another state and has another
 * scope, so that together they hit every mark in marks.ts. A state counts once per expedition,
 * since no state belongs to two scopes.
 */
import { type GroundName, groundNamed, openingToCut, openingWithoutThird } from './grounds.ts';
import { MarkCounts } from './marks.ts';
import { type Scope, scopeDefaults } from './scope.ts';
import { type Beginning, type Found, openingToRead, openingToServe, search, type SearchOptions, type SearchOrder } from './search.ts';

export interface Expedition {
  readonly name: string;
  readonly scope: Scope;
  readonly ground: GroundName;
  /**
   * The state in which it begins, if not with all servers just started: all serve; all but the
   * third serve; the third truncates its tail for the others; or a client has written.
   */
  readonly opening?: keyof typeof openings;
  readonly order: SearchOrder;
  readonly calmEvery: number;
  /** Its share of the states, in percent. */
  readonly share: number;
}

const openings = {
  serving: openingToServe,
  'a client has written': openingToRead,
  'without the third': openingWithoutThird,
  cutting: openingToCut,
};

/** A client creates a session, writes, moves to another server and reads. */
const reads: Scope = { ...scopeDefaults, txns: 3, asks: 6, crashes: 1, wakes: 4 };
const forgetful: Scope = { ...scopeDefaults, committedLog: 1 };
/** After a learner is sent txns from the log, some are left that only memory holds. */
const remembersTwo: Scope = { ...scopeDefaults, committedLog: 2, cuts: 0 };

export const expeditions: readonly Expedition[] = [
  { name: 'from empty disks', scope: scopeDefaults, ground: 'empty', order: 'chains', calmEvery: 40, share: 8 },
  // Half of two servers is not a quorum; among three servers that cannot be distinguished from a
  // majority. With their only link cut they could never become quiet.
  { name: 'of two servers', scope: { ...scopeDefaults, servers: 2, cuts: 0 }, ground: 'empty', order: 'chains', calmEvery: 40, share: 3 },
  {
    name: 'from an ensemble that serves',
    scope: scopeDefaults,
    ground: 'empty',
    opening: 'serving',
    order: 'chains',
    calmEvery: 40,
    share: 6,
  },
  {
    name: 'with leaders that read their logs',
    scope: remembersTwo,
    ground: 'left behind',
    order: 'chains',
    calmEvery: 40,
    share: 6,
  },
  {
    name: 'with leaders that send snapshots',
    scope: { ...forgetful, readsLog: false, cuts: 0 },
    ground: 'left behind',
    order: 'chains',
    calmEvery: 40,
    share: 6,
  },
  { name: 'with a tail that nobody else has', scope: scopeDefaults, ground: 'tail', order: 'chains', calmEvery: 40, share: 4 },
  {
    name: 'while a tail is being cut off',
    scope: { ...scopeDefaults, wakes: 6 },
    ground: 'tail',
    opening: 'cutting',
    order: 'chains',
    calmEvery: 40,
    share: 3,
  },
  {
    name: 'with tails of two epochs',
    scope: { ...scopeDefaults, crashes: 3 },
    ground: 'two tails',
    order: 'chains',
    calmEvery: 40,
    share: 6,
  },
  { name: 'from a join that was broken off', scope: scopeDefaults, ground: 'interrupted', order: 'chains', calmEvery: 40, share: 5 },
  { name: 'with an epoch that one has accepted', scope: scopeDefaults, ground: 'epoch accepted', order: 'chains', calmEvery: 40, share: 2 },
  {
    name: 'with a later epoch that one has accepted',
    // With more faults another epoch begins before it shows that a server stays outside.
    scope: { ...scopeDefaults, crashes: 1, cuts: 0 },
    ground: 'later epoch',
    opening: 'without the third',
    order: 'chains',
    calmEvery: 4,
    share: 3,
  },
  { name: 'with a snapshot of what nobody has', scope: scopeDefaults, ground: 'snapshot ahead', order: 'chains', calmEvery: 20, share: 5 },
  { name: 'whoever leads', scope: { ...scopeDefaults, elections: 'any' }, ground: 'empty', order: 'chains', calmEvery: 40, share: 5 },
  {
    name: 'whoever leads, with tails',
    scope: { ...scopeDefaults, elections: 'any', cuts: 0 },
    ground: 'two tails',
    order: 'chains',
    calmEvery: 40,
    share: 5,
  },
  {
    name: 'each notification by itself',
    scope: { ...scopeDefaults, elections: 'each', wakes: 6 },
    ground: 'empty',
    order: 'chains',
    calmEvery: 20,
    share: 6,
  },
  {
    name: 'each notification by itself, by chance',
    scope: { ...scopeDefaults, elections: 'each', wakes: 8, crashes: 3, txns: 3 },
    ground: 'tail',
    order: 'walks',
    calmEvery: 4,
    share: 6,
  },
  // In these ensembles of three servers two form a quorum, always the same two.
  {
    name: 'with an observer',
    scope: { ...scopeDefaults, ensemble: 'observer' },
    ground: 'empty',
    opening: 'serving',
    order: 'chains',
    calmEvery: 40,
    share: 4,
  },
  {
    name: 'with a server of weight 0',
    scope: { ...scopeDefaults, ensemble: 'weightless' },
    ground: 'empty',
    order: 'chains',
    calmEvery: 40,
    share: 4,
  },
  { name: 'with two groups', scope: { ...scopeDefaults, ensemble: 'groups' }, ground: 'empty', order: 'chains', calmEvery: 40, share: 4 },
  {
    name: 'with a client that reads',
    scope: { ...reads, cuts: 1 },
    ground: 'empty',
    opening: 'a client has written',
    order: 'chains',
    calmEvery: 40,
    share: 6,
  },
  {
    name: 'with a client that reads, by chance',
    scope: { ...reads, crashes: 1, cuts: 1, asks: 8 },
    ground: 'empty',
    opening: 'a client has written',
    order: 'walks',
    calmEvery: 10,
    share: 3,
  },
];

export interface ExpeditionResult {
  readonly expedition: Expedition;
  readonly found: Found;
  /** CPU time, since the machine may run other things. */
  readonly seconds: number;
}

export function beginningOf({ scope, ground }: Expedition): Beginning {
  return { scope, ground: groundNamed(ground) };
}

/** Runs an expedition for its share of the states. */
export function runExpedition(expedition: Expedition, states: number, seed: number): ExpeditionResult {
  const begun = process.cpuUsage();
  const beginning = beginningOf(expedition);
  const own = Math.ceil((states * expedition.share) / 100);
  const options: SearchOptions = {
    ...beginning,
    opening: expedition.opening === undefined ? [] : openings[expedition.opening](beginning),
    order: expedition.order,
    seed,
    depthMax: 400,
    calmEvery: expedition.calmEvery,
    isEnough: (progress) => progress.states >= own,
  };
  const found = search(options);
  const { user, system } = process.cpuUsage(begun);
  return { expedition, found, seconds: (user + system) / 1e6 };
}

/** The marks that all expeditions together have hit. */
export function totalMarks(results: readonly ExpeditionResult[]): MarkCounts {
  const total = new MarkCounts();
  for (const { found } of results) total.addAll(found.marks);
  return total;
}
