/** What a check is. */
import type { Ground } from './ground.ts';
import type { Release } from './release.ts';

/**
 * What a check needs besides a server.
 * - `ensemble`: two servers of one ensemble, both in the connect string.
 * - `patience`: permission to wait until a session of the shortest time-out has expired (`slow`).
 * - `super`: the credentials of the super user.
 * - `reconfig`: permission to have the configuration of the ensemble written anew, with the same members.
 * - `extendedTypes`: `zookeeper.extendedTypesEnabled`, without which there are no TTL znodes.
 */
export type Need = 'ensemble' | 'patience' | 'super' | 'reconfig' | 'extendedTypes';

/** One statement of ZooKeeper's documentation about what a client sees of a server. */
export interface Check {
  /** `subject.what`: never changes, so that it can be asked for by name. */
  readonly name: string;
  /** What is right, as one sentence. */
  readonly title: string;
  /** The ids of the promises in docs/reference/behaviour that it tests. */
  readonly rows: readonly string[];
  /** Where ZooKeeper's documentation, or in its silence the source of a release, says so. */
  readonly docs: string;
  /** The first release that has it; undefined when 3.5 has it. */
  readonly since?: Release;
  /** What it needs besides a server; undefined for nothing. */
  readonly needs?: readonly Need[];
}

/** The same, with how to find out whether it holds. */
export interface RunnableCheck extends Check {
  /** Resolves when the server is right; throws a `Mismatch` when it is not, and `NotApplicable` when the server's own answer shows why it cannot be tried. */
  run(ground: Ground): Promise<void>;
}

/** Why a check cannot be run on this server, in one sentence. */
export class NotApplicable extends Error {
  override readonly name = 'NotApplicable';
}
