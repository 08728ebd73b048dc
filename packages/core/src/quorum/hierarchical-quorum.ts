/**
 * Quorums of groups (`group.G=sid:sid:...`, `weight.S=n` in zoo.cfg): more than half of the groups,
 * and in each of these more than half of the group's weight. With a group per data centre, the loss
 * of a whole one leaves quorums smaller than a majority of all servers.
 */
import type { Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import { sortedUniqueSids, type QuorumVerifier, type SidSet } from './quorum-verifier.ts';

export interface HierarchicalQuorumOptions {
  readonly voters: Iterable<Sid>;
  /** The sids of each group, by group number. */
  readonly groups: ReadonlyMap<number, readonly Sid[]>;
  /** Integers from 0. Default for a voter: 1. */
  readonly weights?: ReadonlyMap<Sid, number>;
}

interface Group {
  /** The group's voters with a weight above 0, and their weights in the same order. */
  readonly sids: readonly Sid[];
  readonly weights: readonly number[];
  readonly total: number;
}

export class HierarchicalQuorum implements QuorumVerifier {
  readonly voters: readonly Sid[];
  readonly #weights = new Map<Sid, number>();
  /** Groups of weight 0 are left out: they neither agree nor disagree. */
  readonly #groups: readonly Group[];

  /**
   * Throws an `Error` that names the server if a voter is in no group, a server is in two, or a
   * weight is invalid.
   */
  constructor({ voters, groups, weights = new Map() }: HierarchicalQuorumOptions) {
    this.voters = sortedUniqueSids(voters);
    for (const [sid, weight] of weights) {
      if (!Number.isSafeInteger(weight) || weight < 0)
        throw new Error(`weight.${sid} is ${weight}, but a weight must be an integer from 0`);
    }
    const groupOf = new Map<Sid, number>();
    for (const [group, sids] of groups) {
      for (const sid of sids) {
        const other = groupOf.get(sid);
        if (other !== undefined) throw new Error(`server ${sid} is in group.${other} and in group.${group}; list it in exactly one`);
        groupOf.set(sid, group);
      }
    }
    for (const sid of this.voters) {
      if (!groupOf.has(sid)) throw new Error(`server ${sid} is a voter but in no group; list it in exactly one`);
      this.#weights.set(sid, weights.get(sid) ?? 1);
    }
    this.#groups = [...groups]
      .sort(([a], [b]) => a - b)
      .map(([, sids]) => this.#group(sids, weights))
      .filter(({ total }) => total > 0);
  }

  isVoter(sid: Sid): boolean {
    return this.#weights.has(sid);
  }

  get active(): this {
    return this;
  }

  weight(sid: Sid): number {
    return this.#weights.get(sid) ?? 0;
  }

  containsQuorum(sids: SidSet): boolean {
    let agreeing = 0;
    for (let index = 0; index < this.#groups.length; index++) {
      const group = this.#groups[index]!;
      let present = 0;
      for (let at = 0; at < group.sids.length; at++) if (sids.has(group.sids[at]!)) present += group.weights[at]!;
      if (present * 2 > group.total) agreeing++;
    }
    return agreeing * 2 > this.#groups.length;
  }

  get mayLackMajority(): boolean {
    return false;
  }

  fingerprint(to: Fingerprint): void {
    to.text('hierarchical');
    for (const { sids, weights, total } of this.#groups) {
      to.number(total);
      for (const [index, sid] of sids.entries()) {
        to.number(sid);
        to.number(weights[index]!);
      }
    }
  }

  /**
   * An observer with a weight and a group raises the weight that is half of the group, though it
   * can never help to reach it: ZooKeeper counts so, and all servers of an ensemble must agree on
   * the quorums.
   */
  #group(sids: readonly Sid[], weights: ReadonlyMap<Sid, number>): Group {
    const voting = sortedUniqueSids(sids).filter((sid) => this.weight(sid) > 0);
    const total = sids.reduce((sum, sid) => sum + (this.isVoter(sid) ? this.weight(sid) : (weights.get(sid) ?? 0)), 0);
    return { sids: voting, weights: voting.map((sid) => this.weight(sid)), total };
  }
}
