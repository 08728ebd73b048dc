/**
 * Reads a znode, calls the updater, and writes the result if no other client has written in
 * between. After a conflict it starts again with the new data.
 *
 * If the write is not answered, the znode itself shows what is known. Exactly one write creates the
 * version after the one that was read. So if that version has other data, or the version is still
 * the same, ours was not applied. If it has our data, they are from our write or from another
 * client that wrote the same: two clients that both count from 5 to 6 leave the same state as one.
 * This code does not guess in that case.
 */
import { ErrorCode } from '@tskeeper/protocol';
import { uniform } from '../clock.ts';
import { KeeperError, RequestFailure } from '../keeper-error.ts';
import { type CreateSettings, type Data, toBytes } from '../operations/create.ts';
import type { Stat } from '../stat.ts';
import type { CallOptions } from './call-options.ts';
import type { CallDeadline, CallSession } from './call-deadline.ts';
import { nextVersion, readOrNull, sameBytes } from './idempotent.ts';
import { failureOf, hasUnknownOutcome, delayMsMax, retryUntilSessionEnds, withOutcome } from './retries.ts';
import { unlimitedRetryPolicy } from './retry-policy.ts';
import type { DataAndStat, ZnodeCalls } from './znode-calls.ts';

/**
 * Returns the data to write, given the current ones: `null` and `undefined` if there is no znode.
 * The result `undefined` leaves the znode unchanged. Called again after each conflict, so it should
 * have no side effects.
 */
export type Updater = (data: Uint8Array | null, stat: Stat | undefined) => Data | undefined | Promise<Data | undefined>;

export interface UpdateSettings {
  /** The settings of the create if the znode does not exist; undefined: fail with NoNode. */
  readonly create: CreateSettings | undefined;
  /**
   * Whether the write succeeds if the znode has the data of this call, whichever client wrote them.
   */
  readonly idempotent: boolean;
  readonly retry: CallOptions['retry'];
}

/** The znode after the call; undefined if it does not exist and the updater left it so. */
export async function update(
  session: CallSession,
  znodes: ZnodeCalls,
  path: string,
  updater: Updater,
  { create, idempotent, retry }: UpdateSettings,
  deadline: CallDeadline,
): Promise<DataAndStat | undefined> {
  const read = async (): Promise<DataAndStat | null> => {
    try {
      return await znodes.getData(path, { ...deadline.requestLimits, retry });
    } catch (error) {
      if (create !== undefined && KeeperError.is(error, 'NoNode')) return null;
      throw error;
    }
  };
  for (let conflicts = 0; ; conflicts++) {
    // After its first conflict a client tries again at once; then the pauses grow with the
    // conflicts.
    if (conflicts > 1) await deadline.pause(uniform(session.random, delayMsMax(unlimitedRetryPolicy, conflicts - 1)));
    const before = await read();
    const wanted = await updater(before?.data ?? null, before?.stat);
    if (wanted === undefined) return before ?? undefined;
    const bytes = toBytes(wanted);
    try {
      if (before === null) {
        const { stat } = await znodes.create(path, bytes, { ...create, ...deadline.requestLimits, retry });
        return { data: bytes, stat };
      }
      if (before.stat.version === -1) throw versionOverflow();
      return { data: bytes, stat: await znodes.setData(path, bytes, { version: before.stat.version, ...deadline.requestLimits, retry }) };
    } catch (error) {
      if (KeeperError.is(error, 'BadVersion', 'NodeExists')) continue;
      if (create !== undefined && before !== null && KeeperError.is(error, 'NoNode')) continue;
      if (!hasUnknownOutcome(error) || deadline.remainingMs === 0) throw error;
      const found = await resolveUnknownWrite(session, znodes, path, before, bytes, idempotent, deadline, error);
      if (found !== undefined) return found;
    }
  }
}

/**
 * The znode if the write counts as applied; undefined if it was certainly not applied. Throws if
 * that cannot be known.
 */
async function resolveUnknownWrite(
  session: CallSession,
  znodes: ZnodeCalls,
  path: string,
  before: DataAndStat | null,
  wanted: Uint8Array | null,
  idempotent: boolean,
  deadline: CallDeadline,
  unanswered: unknown,
): Promise<DataAndStat | undefined> {
  const unresolved = (reason: string) => {
    const failure = failureOf(unanswered)!;
    return withOutcome(failure, 'unknown', failure.reason === undefined ? reason : `${failure.reason}; ${reason}`);
  };
  let now: DataAndStat | null;
  try {
    now = await retryUntilSessionEnds(session, deadline, (limits) => readOrNull(znodes, path, limits, true));
  } catch (error) {
    const failure = failureOf(error);
    if (failure === undefined) throw error;
    const reason = 'it is not known whether the write was applied';
    throw withOutcome(failure, 'unknown', failure.reason === undefined ? reason : `${failure.reason}; ${reason}`);
  }
  if (now === null) throw unresolved('the znode does not exist now');
  if (before === null) {
    if (idempotent && sameBytes(now.data, wanted)) return now;
    throw unresolved('the znode exists now, created by this call or by another client');
  }
  if (now.stat.czxid !== before.stat.czxid) throw unresolved('the znode has been deleted and created again since');
  if (now.stat.version === before.stat.version) return undefined;
  const isNext = now.stat.version === nextVersion(before.stat.version);
  if (!sameBytes(now.data, wanted)) {
    if (isNext) return undefined;
    throw unresolved('the znode has been changed more than once since');
  }
  if (idempotent) return now;
  throw unresolved('the znode has the data of this call now, written by this call or by another client that wrote the same');
}

function versionOverflow(): RequestFailure {
  return new RequestFailure(
    ErrorCode.BadVersion,
    'notSent',
    'its version has overflowed to -1, which means any version, so no conditional write is possible; write it once without a version',
  );
}
