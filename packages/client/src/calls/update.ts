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
import { KeeperError, Refusal } from '../keeper-error.ts';
import { type CreateSettings, type Data, toBytes } from '../operations/create.ts';
import type { Stat } from '../stat.ts';
import type { CallOptions } from '../session/operation.ts';
import type { Bounds, CallSession } from './bounds.ts';
import { nextVersion, readOrNull, sameBytes } from './idempotent.ts';
import { failureOf, isUnanswered, pauseMsMax, persistently, reworded } from './retries.ts';
import { untilTheEnd } from './retry-policy.ts';
import type { DataAndStat, Znodes } from './znodes.ts';

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
  znodes: Znodes,
  path: string,
  updater: Updater,
  { create, idempotent, retry }: UpdateSettings,
  bounds: Bounds,
): Promise<DataAndStat | undefined> {
  const read = async (): Promise<DataAndStat | null> => {
    try {
      return await znodes.getData(path, { ...bounds.left, retry });
    } catch (error) {
      if (create !== undefined && KeeperError.is(error, 'NoNode')) return null;
      throw error;
    }
  };
  for (let conflicts = 0; ; conflicts++) {
    // After its first conflict a client tries again at once; then the pauses grow with the
    // conflicts.
    if (conflicts > 1) await bounds.pause(uniform(session.random, pauseMsMax(untilTheEnd, conflicts - 1)));
    const before = await read();
    const wanted = await updater(before?.data ?? null, before?.stat);
    if (wanted === undefined) return before ?? undefined;
    const bytes = toBytes(wanted);
    try {
      if (before === null) {
        const { stat } = await znodes.create(path, bytes, { ...create, ...bounds.left, retry });
        return { data: bytes, stat };
      }
      if (before.stat.version === -1) throw versionRunOver();
      return { data: bytes, stat: await znodes.setData(path, bytes, { version: before.stat.version, ...bounds.left, retry }) };
    } catch (error) {
      if (KeeperError.is(error, 'BadVersion', 'NodeExists')) continue;
      if (create !== undefined && before !== null && KeeperError.is(error, 'NoNode')) continue;
      if (!isUnanswered(error) || bounds.leftMs === 0) throw error;
      const found = await whatBecame(session, znodes, path, before, bytes, idempotent, bounds, error);
      if (found !== undefined) return found;
    }
  }
}

/**
 * The znode if the write counts as applied; undefined if it was certainly not applied. Throws if
 * that cannot be known.
 */
async function whatBecame(
  session: CallSession,
  znodes: Znodes,
  path: string,
  before: DataAndStat | null,
  wanted: Uint8Array | null,
  idempotent: boolean,
  bounds: Bounds,
  unanswered: unknown,
): Promise<DataAndStat | undefined> {
  const open = (reason: string) => {
    const failure = failureOf(unanswered)!;
    return reworded(failure, 'unknown', failure.reason === undefined ? reason : `${failure.reason}; ${reason}`);
  };
  let now: DataAndStat | null;
  try {
    now = await persistently(session, bounds, (limits) => readOrNull(znodes, path, limits, true));
  } catch (error) {
    const failure = failureOf(error);
    if (failure === undefined) throw error;
    const reason = 'it is not known whether the write was applied';
    throw reworded(failure, 'unknown', failure.reason === undefined ? reason : `${failure.reason}; ${reason}`);
  }
  if (now === null) throw open('the znode does not exist now');
  if (before === null) {
    if (idempotent && sameBytes(now.data, wanted)) return now;
    throw open('the znode exists now, created by this call or by another client');
  }
  if (now.stat.czxid !== before.stat.czxid) throw open('the znode has been deleted and created again since');
  if (now.stat.version === before.stat.version) return undefined;
  const isNext = now.stat.version === nextVersion(before.stat.version);
  if (!sameBytes(now.data, wanted)) {
    if (isNext) return undefined;
    throw open('the znode has been changed more than once since');
  }
  if (idempotent) return now;
  throw open('the znode has the data of this call now, written by this call or by another client that wrote the same');
}

function versionRunOver(): Refusal {
  return new Refusal(
    ErrorCode.BadVersion,
    'notSent',
    'its version has overflowed to -1, which means any version, so no conditional write is possible; write it once without a version',
  );
}
