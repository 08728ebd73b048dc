/**
 * What a quorum is in the ensemble of a recording: a majority of the voters; with groups, more than
 * half of the weight in more than half of the groups; with an oracle and two voters, also the one
 * voter that it may let continue alone. Derived from the configuration alone, without code that is shared with
 * the servers.
 */
import type { Sid } from '@tskeeper/protocol';

/** A server of an ensemble. */
export interface EnsembleServer {
  readonly sid: Sid;
  readonly isVoter: boolean;
  /** If quorums are counted by groups: the group of a voter, and its weight there. */
  readonly group?: number | undefined;
  readonly weight?: number | undefined;
  /** An observer that learns from a follower, and from no leader. */
  readonly observesFollowers?: boolean | undefined;
  /** Where this server is one of two voters, an oracle may let it continue without the other. */
  readonly mayGoAlone?: boolean | undefined;
}

/** Whether these servers are a quorum of the ensemble; unknown names are ignored. */
export function isQuorum(ensemble: ReadonlyMap<string, EnsembleServer>, names: Iterable<string>): boolean {
  const present = new Set(names);
  const voters = [...ensemble].filter(([, { isVoter }]) => isVoter);
  if (voters.length === 2 && voters.some(([name, { mayGoAlone }]) => mayGoAlone === true && present.has(name))) return true;
  if (voters.every(([, { group }]) => group === undefined)) {
    return voters.filter(([name]) => present.has(name)).length * 2 > voters.length;
  }
  const groups = new Map<number, { total: number; present: number }>();
  for (const [name, { group = 0, weight = 1 }] of voters) {
    const sum = groups.get(group) ?? { total: 0, present: 0 };
    sum.total += weight;
    if (present.has(name)) sum.present += weight;
    groups.set(group, sum);
  }
  // A group without weight neither agrees nor disagrees.
  const counted = [...groups.values()].filter(({ total }) => total > 0);
  return counted.filter((sum) => sum.present * 2 > sum.total).length * 2 > counted.length;
}

/** The same servers under an oracle that allows none of them to continue alone. */
export function withoutFavourite(ensemble: ReadonlyMap<string, EnsembleServer>): ReadonlyMap<string, EnsembleServer> {
  return new Map([...ensemble].map(([name, server]) => [name, { ...server, mayGoAlone: false }]));
}
