/** The bounds of a small world. */
import type { EnsembleName } from './small-ensemble.ts';

export interface Scope {
  readonly servers: number;
  /** Voters and their weights. */
  readonly ensemble: EnsembleName;
  /** Number of txns that clients request. */
  readonly txns: number;
  /** Number of requests for another configuration, if the ensemble has some. */
  readonly reconfigs: number;
  /** How often an operator asks the leader to give the lead to another server. */
  readonly transfers: number;
  readonly crashes: number;
  /** Number of pairs whose link is cut, one after the other or at once. */
  readonly cuts: number;
  /** How often time passes for a server. */
  readonly wakes: number;
  /**
   * How often the persistent client connects to a server or sends a request; 0 for none. Its writes
   * count as txns.
   */
  readonly clientSteps: number;
  /**
   * `together`: the members of a quorum exchange notifications until they agree, in one step.
   * `each`: each notification is a choice, and so is each report that a server refuses connections.
   * `any`: a server that looks for a leader may at any time come to lead, or to follow any other,
   * as if an election had gone wrong in every possible way; that takes three servers.
   */
  readonly elections: 'together' | 'each' | 'any';
  /** With `any`: how often. */
  readonly forcedElections: number;
  /**
   * commitLogCount: number of txns that a server keeps in memory for learners. If it is small, log
   * txns and snapshots are sent.
   */
  readonly committedLog: number;
  /** Whether a leader reads its log for a learner. */
  readonly syncsFromLog: boolean;
}

export const scopeDefaults: Scope = {
  servers: 3,
  ensemble: 'equal',
  txns: 2,
  reconfigs: 0,
  transfers: 0,
  crashes: 2,
  cuts: 1,
  wakes: 3,
  clientSteps: 0,
  elections: 'together',
  forcedElections: 8,
  committedLog: 500,
  syncsFromLog: true,
};
