/**
 * Who gets how many file descriptors. A log that cannot be opened ends the server, so its files come first, then the other servers of the
 * ensemble, and clients share the rest. Strangers at the ports between servers have few places: without a bound they could take all.
 */
import type { Logger } from '../logger.ts';
import type { HostFacts } from '../world.ts';

/** Descriptors kept back where there are plenty: reliability before the last two hundred clients. */
const keptBack = 200;
/** What a roll of the log, a snapshot, a purge and a look at the folders open at the same time, with room to spare. */
const opensAtOnce = 16;
/** Another server has a link for votes and a stream, each twice while a new one takes its place. */
const perPeer = 4;
/** Ports between servers: those for votes, and those for learners while this server leads. */
const portsMax = 4;
/** Election port: connections without an introduction, and servers outside the configuration. Quorum port: the first of these. */
const strangerLists = 3;
/** More strangers than this are never let in at once, however many descriptors there are. */
const strangersMax = 256;

export interface DescriptorNeeds {
  /** As configured, 0 for no limit. */
  readonly maxCnxns: number;
  /** As configured: how many one address may have, 0 for no limit. */
  readonly maxClientCnxns: number;
  /** How many other servers the ensemble has; 0 for a server that stands alone. */
  readonly peers: number;
}

export interface DescriptorPlan {
  /** How many connections clients may have; 0: no limit. */
  readonly cnxns: number;
  /** Descriptors decide that, not the configuration. */
  readonly byDescriptors: boolean;
  /** How many connections of one kind a port between servers lets in from strangers. */
  readonly strangers: number;
  /** The system's limit, and how many what is configured takes; undefined where the limit is enough or not known. */
  readonly shortage: { readonly limit: number; readonly needed: number; readonly own: number; readonly ofPeers: number } | undefined;
}

/** Where the system does not tell its limit of open files, what is configured stays as it is. */
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

/** What an operator is told to change. */
export const descriptorRemedy = 'the limit of open files (ulimit -n, LimitNOFILE)';

/** Says at start what the limit of open files does not allow. */
export function warnOfShortage({ cnxns, byDescriptors, shortage }: DescriptorPlan, maxCnxns: number, logger: Logger): void {
  if (shortage !== undefined) {
    const { limit, needed, own, ofPeers } = shortage;
    const peers = ofPeers === 0 ? '' : `, ${ofPeers} for connections with other servers`;
    logger.warn(
      `open files are limited to ${limit}, and what is configured takes ${needed}: ${own} for this server's own files${peers} and the rest for clients, ` +
        `of which no more than ${cnxns} are let in. Raise ${descriptorRemedy} to ${needed} at least.`,
      { event: 'files.limit-low', limit, count: needed },
    );
  } else if (byDescriptors && maxCnxns > 0) {
    logger.warn(
      `maxCnxns is ${maxCnxns}, but open files are limited so that there may be ${cnxns}. Raise ${descriptorRemedy} if there may be more.`,
      { event: 'cnxn.limit-lowered', limit: maxCnxns, count: cnxns },
    );
  }
}
