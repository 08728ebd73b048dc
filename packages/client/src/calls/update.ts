/**
 * Read, think, write: if nobody has written in between. A write that loses is thought through again with what has won.
 *
 * When no answer to the write comes, the znode tells what can be told. The version after the one that was read is made by exactly one
 * write, so with other data in it ours was not carried out, and with the version still as it was neither. With our data in it, it was ours or one
 * that wrote the same: two clients that both count from 5 to 6 leave the same behind as one. That is not decided here by a guess.
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
 * The data to be written, for those that are there: `null` and `undefined` when there is no znode. `undefined`, also as the result: leave it.
 * Called again whenever somebody else was faster, so it should have no effect of its own.
 */
export type Updater = (data: Uint8Array | null, stat: Stat | undefined) => Data | undefined | Promise<Data | undefined>;

export interface UpdateSettings {
  /** With which settings to make the znode if it is absent; undefined: fail with NoNode. */
  readonly create: CreateSettings | undefined;
  /** Whether finding the data that were to be written counts as having written them. */
  readonly idempotent: boolean;
  readonly retry: CallOptions['retry'];
}

/** The znode as it is by then; undefined when it is absent and was left so. */
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
    // The first to lose tries again at once; the longer a crowd fights for one znode, the further apart they go.
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

/** The znode, if the write may be called done; undefined if it was certainly not. Throws when that cannot be known. */
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
    const reason = 'whether the write was carried out is not known';
    throw reworded(failure, 'unknown', failure.reason === undefined ? reason : `${failure.reason}; ${reason}`);
  }
  if (now === null) throw open('the znode is not there now');
  if (before === null) {
    if (idempotent && sameBytes(now.data, wanted)) return now;
    throw open('the znode is there now, by this call or by another');
  }
  if (now.stat.czxid !== before.stat.czxid) throw open('the znode was deleted and made anew since');
  if (now.stat.version === before.stat.version) return undefined;
  const isNext = now.stat.version === nextVersion(before.stat.version);
  if (!sameBytes(now.data, wanted)) {
    if (isNext) return undefined;
    throw open('the znode was changed more than once since');
  }
  if (idempotent) return now;
  throw open('the znode has the data of this call now, by it or by another that wrote the same');
}

function versionRunOver(): Refusal {
  return new Refusal(
    ErrorCode.BadVersion,
    'notSent',
    'its version has run over to -1, which stands for any, so no write can be made to depend on it; write it once without a version',
  );
}
