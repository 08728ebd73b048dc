/**
 * Writes that mean a state rather than an act: `idempotent: true`. One that was not answered is made again, and when the repetition is
 * refused because things already are as they should be, that is success, whoever has brought it about.
 */
import { KeeperError } from '../keeper-error.ts';
import { type CreateSettings, type Data, toBytes } from '../operations/create.ts';
import type { Stat } from '../stat.ts';
import type { Limits } from './bounds.ts';
import { failureOf, type Retries } from './retries.ts';
import type { Created, DataAndStat, Znodes } from './znodes.ts';

/**
 * `settle` is asked about a refusal that comes behind an attempt without an answer: undefined when it stands. It may read, and what fails
 * in that is one more failed attempt.
 */
async function idempotently<Result>(
  retries: Retries,
  attempt: (limits: Limits) => Promise<Result>,
  settle: (refusal: unknown, limits: Limits) => Promise<{ readonly result: Result } | undefined>,
): Promise<Result> {
  for (;;) {
    try {
      try {
        return await attempt(retries.left);
      } catch (error) {
        if (!retries.hasUnanswered || failureOf(error)?.outcome !== 'refused') throw error;
        const settled = await settle(error, retries.left);
        if (settled === undefined) throw error;
        return settled.result;
      }
    } catch (error) {
      if (!(await retries.again(error, true))) throw retries.summed(error, false);
    }
  }
}

/** NoNode after a delete that was not answered: it is gone. */
export function deleteIdempotently(znodes: Znodes, path: string, version: number | undefined, retries: Retries): Promise<void> {
  return idempotently(
    retries,
    (limits) => znodes.delete(path, { ...limits, version, retry: false }),
    (refusal) => Promise.resolve(KeeperError.is(refusal, 'NoNode') ? { result: undefined } : undefined),
  );
}

/** BadVersion after a setData that was not answered: the next version with these data is taken for it. */
export function setDataIdempotently(
  znodes: Znodes,
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

/** NodeExists after a create that was not answered: a znode that nobody has changed since, with these data and this owner, is taken for it. */
export function createIdempotently(
  znodes: Znodes,
  path: string,
  data: Data | undefined,
  settings: CreateSettings,
  retries: Retries,
  create: (limits: Limits) => Promise<Created>,
): Promise<Created> {
  const isEphemeral = settings.mode === 'ephemeral';
  return idempotently(retries, create, async (refusal, limits) => {
    if (!KeeperError.is(refusal, 'NodeExists')) return undefined;
    const now = await readOrNull(znodes, path, limits);
    const owner = isEphemeral ? znodes.sessionId : 0n;
    const isIt = now !== null && now.stat.version === 0 && now.stat.ephemeralOwner === owner && sameBytes(now.data, toBytes(data));
    return isIt ? { result: { path, stat: now.stat } } : undefined;
  });
}

export async function readOrNull(znodes: Znodes, path: string, limits: Limits, linearizable = false): Promise<DataAndStat | null> {
  try {
    return await znodes.getData(path, { ...limits, linearizable, retry: false });
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return null;
    throw error;
  }
}

/** Versions are 32-bit and run over. */
export function nextVersion(version: number): number {
  return (version + 1) | 0;
}

/** No data and empty data are told apart by servers, so here as well. */
export function sameBytes(one: Uint8Array | null, other: Uint8Array | null): boolean {
  if (one === null || other === null) return one === other;
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}
