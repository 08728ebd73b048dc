/** The definition of a check. */
import type { CheckContext } from './check-context.ts';
import type { Release } from './release.ts';

/**
 * What a check needs besides a server.
 * - `ensemble`: two servers of one ensemble, both in the connect string.
 * - `slow`: permission to wait until a session with the shortest timeout has expired.
 * - `super`: the credentials of the super user.
 * - `reconfig`: permission to write the configuration of the ensemble again, with the same servers.
 * - `extendedTypes`: `zookeeper.extendedTypesEnabled`, required for TTL znodes.
 * - `localSessions`: `localSessionsEnabled`, on all servers.
 */
export type Need = 'ensemble' | 'slow' | 'super' | 'reconfig' | 'extendedTypes' | 'localSessions';

/** One statement of ZooKeeper's documentation about what a client sees of a server. */
export interface Check {
  /** `subject.what`: stable, so that a check can be selected by name. */
  readonly name: string;
  /** The correct behaviour, as one sentence. */
  readonly title: string;
  /** The ids of the promises in docs/reference/behaviour that the check verifies. */
  readonly behaviourIds: readonly string[];
  /** The place in ZooKeeper's documentation or, if that is silent, in the source of a release. */
  readonly docs: string;
  /** The first release with this behaviour; undefined if 3.5 has it. */
  readonly since?: Release;
  /** What the check needs besides a server; undefined for nothing. */
  readonly needs?: readonly Need[];
}

/** A check with the function that runs it. */
export interface RunnableCheck extends Check {
  /**
   * Resolves if the server is correct; throws a `Mismatch` if it is not, and `NotApplicable` if the
   * server's own answer shows why the check cannot run.
   */
  run(context: CheckContext): Promise<void>;
}

/** Why a check cannot run on this server, in one sentence. */
export class NotApplicable extends Error {
  override readonly name = 'NotApplicable';
}
