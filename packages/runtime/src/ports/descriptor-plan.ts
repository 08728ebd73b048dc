/**
 * Distributes the file descriptors. A log that cannot be opened ends the server, so its files come
 * first, then the other servers of the ensemble, and clients share the rest. Unknown servers at the
 * ports between servers have few places: without a limit they could take all.
 */
import type { Logger } from '../logger.ts';
import type { HostFacts } from '../world.ts';

/** Descriptors reserved where there are plenty: reliability before the last two hundred clients. */
const keptBack = 200;
/**
 * As many as a roll of the log, a snapshot, a purge and a look at the folders open at the same
 * time, with a margin.
 */
const opensAtOnce = 16;
/**
 * Another server has a connection for votes and a stream, each twice while a new one replaces the
 * old.
 */
const perPeer = 4;
/** Ports between servers: those for votes, and those for learners while this server leads. */
const portsMax = 4;
/**
 * Election port: connections without an introduction, and servers outside the configuration. Quorum
 * port: the former.
 */
const strangerLists = 3;
/** Never more unknown servers than this at once, however many descriptors there are. */
const strangersMax = 256;

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
  readonly cnxns: number;
  /** Whether descriptors set that limit, not the configuration. */
  readonly byDescriptors: boolean;
  /** Limit of connections of one kind from unknown servers to a port between servers. */
  readonly strangers: number;
  /**
   * The system's limit, and the number that the configuration needs; undefined where the limit
   * suffices or is not known.
   */
  readonly shortage: { readonly limit: number; readonly needed: number; readonly own: number; readonly ofPeers: number } | undefined;
}

/**
 * Where the system does not report its limit of open files, the configuration is used unchanged.
 */
export function descriptorPlan({ maxCnxns, maxClientCnxns, peers }: DescriptorNeeds, host: HostFacts): DescriptorPlan {
  const limit = host.maxFileDescriptors();
  if (limit === undefined) return { cnxns: maxCnxns, byDescriptors: false, strangers: strangersMax, shortage: undefined };
  const own = (host.openFileDescriptors() ?? 0) + opensAtOnce;
  const strangers = Math.min(strangersMax, Math.max(1, Math.floor(limit / 16)));
  const ofPeers = peers === 0 ? 0 : peers * perPeer + portsMax + strangers * strangerLists;
  const kept = ofPeers + Math.max(own, Math.min(keptBack, Math.floor(limit / 4)));
  const cnxns = Math.max(1, limit - kept);
  const needed = own + ofPeers + Math.max(1, maxClientCnxns, maxCnxns);
  const shortage = needed > limit ? { limit, needed, own, ofPeers } : undefined;
  if (maxCnxns > 0 && maxCnxns <= cnxns) return { cnxns: maxCnxns, byDescriptors: false, strangers, shortage };
  return { cnxns, byDescriptors: true, strangers, shortage };
}

/** What the operator should raise. */
export const descriptorRemedy = 'the limit of open files (ulimit -n, LimitNOFILE)';

/** Logs at the start what the limit of open files does not allow. */
export function warnOfShortage({ cnxns, byDescriptors, shortage }: DescriptorPlan, maxCnxns: number, logger: Logger): void {
  if (shortage !== undefined) {
    const { limit, needed, own, ofPeers } = shortage;
    const peers = ofPeers === 0 ? '' : `, ${ofPeers} for connections with other servers`;
    logger.warn(
      `the limit of open files is ${limit}, but the configuration needs ${needed}: ${own} for this server's own files${peers} and the rest for clients, ` +
        `of which at most ${cnxns} are accepted. Raise ${descriptorRemedy} to at least ${needed}.`,
      { event: 'files.limit-low', limit, count: needed },
    );
  } else if (byDescriptors && maxCnxns > 0) {
    logger.warn(`maxCnxns is ${maxCnxns}, but the limit of open files allows only ${cnxns}. Raise ${descriptorRemedy} to allow more.`, {
      event: 'cnxn.limit-lowered',
      limit: maxCnxns,
      count: cnxns,
    });
  }
}
