/**
 * Distributes the file descriptors. A log that cannot be opened ends the server, so its files come
 * first, then the other servers of the ensemble, and clients share the rest. Unknown servers at the
 * ports between servers have few places: without a limit they could take all.
 */
import type { Logger } from '../logger.ts';
import type { HostFacts } from '../world.ts';

/** Descriptors reserved where there are plenty: reliability before the last two hundred clients. */
const reservedDescriptors = 200;
/**
 * As many as a roll of the log, a snapshot, a purge and a look at the folders open at the same
 * time, with a margin.
 */
const concurrentOpensMax = 16;
/**
 * Another server has a connection for votes and a stream, each twice while a new one replaces the
 * old.
 */
const descriptorsPerPeer = 4;
/** Ports between servers: those for votes, and those for learners while this server leads. */
const portsMax = 4;
/**
 * Election port: connections without an introduction, and servers outside the configuration. Quorum
 * port: the former.
 */
const unknownPeerLists = 3;
/** Never more unknown servers than this at once, however many descriptors there are. */
const unknownPeersMaxDefault = 256;

export interface DescriptorNeeds {
  /** As configured, 0 for no limit. */
  readonly maxCnxns: number;
  /** As configured: limit of connections per address, 0 for no limit. */
  readonly maxClientCnxns: number;
  /** Number of other servers of the ensemble; 0 for a standalone server. */
  readonly peers: number;
}

export interface DescriptorPlan {
  /** Limit of client connections; 0: no limit. */
  readonly cnxnsMax: number;
  /** Whether descriptors set that limit, not the configuration. */
  readonly isLimitedByDescriptors: boolean;
  /** Limit of connections of one kind from unknown servers to a port between servers. */
  readonly unknownPeersMax: number;
  /**
   * The system's limit, and the number that the configuration needs; undefined where the limit
   * suffices or is not known.
   */
  readonly shortage:
    | { readonly limit: number; readonly needed: number; readonly ownDescriptors: number; readonly peerDescriptors: number }
    | undefined;
}

/**
 * Where the system does not report its limit of open files, the configuration is used unchanged.
 */
export function planDescriptors({ maxCnxns, maxClientCnxns, peers }: DescriptorNeeds, host: HostFacts): DescriptorPlan {
  const limit = host.maxFileDescriptors();
  if (limit === undefined)
    return { cnxnsMax: maxCnxns, isLimitedByDescriptors: false, unknownPeersMax: unknownPeersMaxDefault, shortage: undefined };
  const ownDescriptors = (host.openFileDescriptors() ?? 0) + concurrentOpensMax;
  const unknownPeersMax = Math.min(unknownPeersMaxDefault, Math.max(1, Math.floor(limit / 16)));
  const peerDescriptors = peers === 0 ? 0 : peers * descriptorsPerPeer + portsMax + unknownPeersMax * unknownPeerLists;
  const kept = peerDescriptors + Math.max(ownDescriptors, Math.min(reservedDescriptors, Math.floor(limit / 4)));
  const cnxnsMax = Math.max(1, limit - kept);
  const needed = ownDescriptors + peerDescriptors + Math.max(1, maxClientCnxns, maxCnxns);
  const shortage = needed > limit ? { limit, needed, ownDescriptors, peerDescriptors } : undefined;
  if (maxCnxns > 0 && maxCnxns <= cnxnsMax) return { cnxnsMax: maxCnxns, isLimitedByDescriptors: false, unknownPeersMax, shortage };
  return { cnxnsMax, isLimitedByDescriptors: true, unknownPeersMax, shortage };
}

/** What the operator should raise. */
export const descriptorRemedy = 'the limit of open files (ulimit -n, LimitNOFILE)';

/** Logs at the start what the limit of open files does not allow. */
export function warnOfShortage({ cnxnsMax, isLimitedByDescriptors, shortage }: DescriptorPlan, maxCnxns: number, logger: Logger): void {
  if (shortage !== undefined) {
    const { limit, needed, ownDescriptors, peerDescriptors } = shortage;
    const peers = peerDescriptors === 0 ? '' : `, ${peerDescriptors} for connections with other servers`;
    logger.warn(
      `the limit of open files is ${limit}, but the configuration needs ${needed}: ${ownDescriptors} for this server's own files${peers} and the rest for clients, ` +
        `of which at most ${cnxnsMax} are accepted. Raise ${descriptorRemedy} to at least ${needed}.`,
      { event: 'files.limit-low', limit, count: needed },
    );
  } else if (isLimitedByDescriptors && maxCnxns > 0) {
    logger.warn(`maxCnxns is ${maxCnxns}, but the limit of open files allows only ${cnxnsMax}. Raise ${descriptorRemedy} to allow more.`, {
      event: 'cnxn.limit-lowered',
      limit: maxCnxns,
      count: cnxnsMax,
    });
  }
}
