/** What a server says of itself, or shows when it is asked: which release it is, whether it is one of several, what it has switched on. */
import { type Client, formatServer, fourLetterWord, KeeperError, type ServerAddress } from '@tskeeper/client';
import { RawCnxn } from './raw-cnxn.ts';
import { parseRelease, type Release } from './release.ts';

/** One server of the connect string. */
export interface ServerFacts {
  /** As the connect string names it. */
  readonly address: ServerAddress;
  /** As `srvr` says it; undefined when the server does not answer that. */
  readonly version: string | undefined;
  /** `standalone`, `leader`, `follower`, `observer` ...; undefined when it does not say. */
  readonly mode: string | undefined;
}

/** Bounds of what a server grants. */
export interface SessionTimeouts {
  /** The shortest, in ms. */
  readonly min: number;
  /** The longest, in ms. */
  readonly max: number;
}

/** What is known of the servers before the first check. */
export interface Facts {
  /** Those of the connect string that could be reached, in its order. */
  readonly servers: readonly ServerFacts[];
  /** `host:port` of those that could not. */
  readonly unreachable: readonly string[];
  /** By which the servers are judged: the oldest they say they are, or what the caller has said. */
  readonly release: Release;
  /** Where `release` comes from. */
  readonly releaseFrom: 'srvr' | 'caller' | 'default';
  /** The session time-outs that the first server grants, in ms. */
  readonly sessionTimeoutMs: SessionTimeouts;
  /** Whether there are znodes with a TTL (`zookeeper.extendedTypesEnabled`). */
  readonly hasExtendedTypes: boolean;
  /** Whether the servers are several of one ensemble. */
  readonly isEnsemble: boolean;
}

/** The release whose documentation is meant where a server does not say what it is. */
const releaseDefault: Release = [3, 9, 5];

async function isReachable(address: ServerAddress): Promise<boolean> {
  try {
    const cnxn = await RawCnxn.open(address);
    cnxn.destroy();
    return true;
  } catch {
    return false;
  }
}

async function askServer(address: ServerAddress): Promise<ServerFacts> {
  // Some do not answer it, and some are told not to; what was not said is for the reader to see.
  const answer = await fourLetterWord(formatServer(address), 'srvr').catch(() => '');
  return { address, version: /^Zookeeper version: ([^,\n]*)/.exec(answer)?.[1], mode: /^Mode: (.*)$/m.exec(answer)?.[1] };
}

async function grantedTimeout(address: ServerAddress, timeOut: number): Promise<number> {
  const cnxn = await RawCnxn.open(address);
  try {
    const answer = await cnxn.shakeHands({ timeOut });
    if (answer === undefined) throw new Error(`${formatServer(address)} has closed the connection instead of opening a session`);
    await cnxn.close();
    return answer.response.timeOut;
  } finally {
    cnxn.destroy();
  }
}

async function hasExtendedTypes(zk: Client, path: string): Promise<boolean> {
  try {
    await zk.create(path, null, { mode: 'persistentWithTtl', ttlMs: 3_600_000 });
  } catch (error) {
    // Any other refusal is for the checks to judge.
    return !KeeperError.is(error, 'Unimplemented');
  }
  await zk.delete(path);
  return true;
}

/** The oldest that any of them says it is. */
function oldestOf(servers: readonly ServerFacts[]): Release | undefined {
  const releases = servers.map(({ version }) => (version === undefined ? undefined : parseRelease(version)));
  if (releases.includes(undefined)) return undefined;
  const order = (one: Release, other: Release) => one[0] - other[0] || one[1] - other[1] || one[2] - other[2];
  return (releases as Release[]).toSorted(order)[0];
}

/** Asks the servers, with a session on them and a znode to try things below. */
export async function askFacts(
  zk: Client,
  addresses: readonly ServerAddress[],
  scratch: string,
  said: Release | undefined,
): Promise<Facts> {
  const reachable = await Promise.all(addresses.map(isReachable));
  const servers = await Promise.all(addresses.filter((_, at) => reachable[at]).map(askServer));
  const told = oldestOf(servers);
  const [first] = servers;
  if (first === undefined) throw new Error('the servers could be reached a moment ago, and cannot be reached any more');
  return {
    servers,
    unreachable: addresses.filter((_, at) => reachable[at] !== true).map(formatServer),
    release: said ?? told ?? releaseDefault,
    releaseFrom: said !== undefined ? 'caller' : told === undefined ? 'default' : 'srvr',
    sessionTimeoutMs: { min: await grantedTimeout(first.address, 1), max: await grantedTimeout(first.address, 0x7fffffff) },
    hasExtendedTypes: await hasExtendedTypes(zk, `${scratch}/ttl`),
    // A server that does not say is believed to be one of those it was named with.
    isEnsemble: servers.length > 1 && servers.every(({ mode }) => mode !== 'standalone'),
  };
}
