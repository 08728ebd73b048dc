/** How many connections there may be at most, so that the files of log and snapshots can always be opened. */
import type { HostFacts } from '../world.ts';

/** Descriptors kept back where there are plenty: reliability before the last two hundred clients. */
const keptBack = 200;
/** What a roll of the log, a snapshot, a purge and a look at the folders open at the same time, with room to spare. */
const opensAtOnce = 16;

export interface CnxnLimit {
  /** 0: none. */
  readonly cnxns: number;
  /** Descriptors decide, not the configuration. */
  readonly byDescriptors: boolean;
}

/** `maxCnxns` as configured, 0 for no limit. Where the system does not tell its limit of open files that stays as it is. */
export function cnxnLimit(maxCnxns: number, host: HostFacts): CnxnLimit {
  const limit = host.maxFileDescriptors();
  if (limit === undefined) return { cnxns: maxCnxns, byDescriptors: false };
  const open = host.openFileDescriptors() ?? 0;
  const cnxns = Math.max(1, limit - Math.min(keptBack, Math.max(open + opensAtOnce, Math.floor(limit / 4))));
  return maxCnxns > 0 && maxCnxns <= cnxns ? { cnxns: maxCnxns, byDescriptors: false } : { cnxns, byDescriptors: true };
}
