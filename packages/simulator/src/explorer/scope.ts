/** How much of what may happen in a small world. */
import type { EnsembleName } from './small-ensemble.ts';

export interface Scope {
  readonly servers: number;
  /** Who of them votes, and with what weight. */
  readonly ensemble: EnsembleName;
  /** Txns that clients ask for. */
  readonly txns: number;
  readonly crashes: number;
  /** Pairs that are cut, one after the other or at once. */
  readonly cuts: number;
  /** How often time passes for a server. */
  readonly wakes: number;
  /** How often the one client that stays comes to a server, or asks for something; 0 for none. What it writes counts as txns. */
  readonly asks: number;
  /**
   * `together`: the members of a quorum exchange notifications until they agree, in one step. `each`: each notification is a choice, and so is each
   * piece of news that a server refuses connections. `any`: whoever looks for a leader may at any time come to lead, or to follow anyone, as if
   * an election had gone wrong in every way there is; three servers are needed to be misled.
   */
  readonly elections: 'together' | 'each' | 'any';
  /** With `any`: how often. */
  readonly misled: number;
  /** commitLogCount: how many txns a server keeps in memory for learners. With few, logs and snapshots are sent. */
  readonly committedLog: number;
  /** Whether a leader reads its log for a learner. */
  readonly readsLog: boolean;
}

export const scopeDefaults: Scope = {
  servers: 3,
  ensemble: 'equal',
  txns: 2,
  crashes: 2,
  cuts: 1,
  wakes: 3,
  asks: 0,
  elections: 'together',
  misled: 8,
  committedLog: 500,
  readsLog: true,
};
