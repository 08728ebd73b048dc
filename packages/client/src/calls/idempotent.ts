/**
 * Writes with `idempotent: true`: the caller declares that only the resulting state counts. A write
 * without an answer is repeated. If the repetition is rejected because the state is already as
 * wanted, the write succeeds, whichever client caused that state.
 */
import { KeeperError } from '../keeper-error.ts';
import { type CreateSettings, type Data, toBytes } from '../operations/create.ts';
import type { Stat } from '../stat.ts';
import type { RequestLimits } from '../session/request-limits.ts';
import { failureOf, type Retries } from './retries.ts';
import type { CreatedZnode, DataAndStat, ZnodeCalls } from './znode-calls.ts';

/**
 * `resolveRejection` decides about a rejection that follows an attempt without an answer: undefined
 * if the rejection is final. It may read; a failure of that read counts as one more failed attempt.
 */
async function idempotently<Result>(
  retries: Retries,
  attempt: (limits: RequestLimits) => Promise<Result>,
  resolveRejection: (refusal: unknown, limits: RequestLimits) => Promise<{ readonly result: Result } | undefined>,
): Promise<Result> {
  for (;;) {
    try {
      try {
        return await attempt(retries.requestLimits);
      } catch (error) {
        if (!retries.hasUnanswered || failureOf(error)?.outcome !== 'refused') throw error;
        const settled = await resolveRejection(error, retries.requestLimits);
        if (settled === undefined) throw error;
        return settled.result;
      }
    } catch (error) {
      if (!(await retries.waitToRetry(error, true))) throw retries.finalError(error, false);
    }
  }
}

/** NoNode after a delete without an answer means that the znode is deleted. */
export function deleteIdempotently(znodes: ZnodeCalls, path: string, version: number | undefined, retries: Retries): Promise<void> {
  return idempotently(
    retries,
    (limits) => znodes.delete(path, { ...limits, version, retry: false }),
    (refusal) => Promise.resolve(KeeperError.is(refusal, 'NoNode') ? { result: undefined } : undefined),
  );
}

/**
 * BadVersion after a setData without an answer: succeeds if the znode has these data at the next
 * version.
 */
export function setDataIdempotently(
  znodes: ZnodeCalls,
  path: string,
  data: Data,
  version: number | undefined,
  retries: Retries,
): Promise<Stat> {
  return idempotently(
    retries,
    (limits) => znodes.setData(path, data, { ...limits, version, retry: false }),
    async (refusal, limits) => {
      if (!KeeperError.is(refusal, 'BadVersion') || version === undefined || version === -1) return undefined;
      const now = await readOrNull(znodes, path, limits);
      return now !== null && now.stat.version === nextVersion(version) && sameBytes(now.data, toBytes(data))
        ? { result: now.stat }
        : undefined;
    },
  );
}

/**
 * NodeExists after a create without an answer: succeeds if the znode was not changed since, and has
 * these data and this owner.
 */
export function createIdempotently(
  znodes: ZnodeCalls,
  path: string,
  data: Data | undefined,
  settings: CreateSettings,
  retries: Retries,
  create: (limits: RequestLimits) => Promise<CreatedZnode>,
): Promise<CreatedZnode> {
  const isEphemeral = settings.mode === 'ephemeral';
  return idempotently(retries, create, async (refusal, limits) => {
    if (!KeeperError.is(refusal, 'NodeExists')) return undefined;
    const now = await readOrNull(znodes, path, limits);
    const owner = isEphemeral ? znodes.sessionId : 0n;
    const isIt = now !== null && now.stat.version === 0 && now.stat.ephemeralOwner === owner && sameBytes(now.data, toBytes(data));
    return isIt ? { result: { path, stat: now.stat } } : undefined;
  });
}

export async function readOrNull(
  znodes: ZnodeCalls,
  path: string,
  limits: RequestLimits,
  linearizable = false,
): Promise<DataAndStat | null> {
  try {
    return await znodes.getData(path, { ...limits, linearizable, retry: false });
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return null;
    throw error;
  }
}

/** Versions are 32-bit numbers and overflow. */
export function nextVersion(version: number): number {
  return (version + 1) | 0;
}

/** Servers distinguish no data from empty data, and so does this function. */
export function sameBytes(left: Uint8Array | null, right: Uint8Array | null): boolean {
  if (left === null || right === null) return left === right;
  return left.length === right.length && left.every((byte, at) => byte === right[at]);
}
