/**
 * What a server reports about itself, or shows when it is asked: its release, whether it is in an
 * ensemble, which features are on.
 */
import { type Client, formatServer, fourLetterWord, KeeperError, type ServerAddress } from '@tskeeper/client';
import { CreateMode as CreateFlags, ErrorCode, openAcl, OpCode, operations } from '@tskeeper/protocol';
import { RawCnxn } from './raw-cnxn.ts';
import { parseRelease, type Release } from './release.ts';

/** One server of the connect string. */
export interface ServerFacts {
  /** As in the connect string. */
  readonly address: ServerAddress;
  /** As reported by `srvr`; undefined if the server does not answer that word. */
  readonly version: string | undefined;
  /**
   * `standalone`, `leader`, `follower`, `observer` ...; undefined if the server does not report it.
   */
  readonly mode: string | undefined;
}

/** Bounds of the session timeouts that a server grants. */
export interface SessionTimeouts {
  /** The shortest, in ms. */
  readonly min: number;
  /** The longest, in ms. */
  readonly max: number;
}

/** What is known of the servers before the first check. */
export interface Facts {
  /** The reachable servers of the connect string, in its order. */
  readonly servers: readonly ServerFacts[];
  /** `host:port` of the unreachable servers. */
  readonly unreachable: readonly string[];
  /** The release to compare with: the oldest that a server reports, or the caller's. */
  readonly release: Release;
  /** Source of `release`. */
  readonly releaseFrom: 'srvr' | 'caller' | 'default';
  /** The session timeouts that the first server grants, in ms. */
  readonly sessionTimeoutMs: SessionTimeouts;
  /** Whether TTL znodes are enabled (`zookeeper.extendedTypesEnabled`). */
  readonly hasExtendedTypes: boolean;
  /** Whether the servers form one ensemble. */
  readonly isEnsemble: boolean;
  /**
   * What becomes of a new session (`localSessionsEnabled`, `localSessionsUpgradingEnabled`):
   * `disabled`: it can be resumed at another server; `enabled`: it cannot, and is refused an
   * ephemeral znode; `upgradable`: it is not refused one. Always `disabled` without an ensemble.
   */
  readonly localSessions: LocalSessionMode;
}

/** See `Facts.localSessions`. */
export type LocalSessionMode = 'disabled' | 'enabled' | 'upgradable';

/** The release to compare with if the servers do not report theirs. */
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

async function queryServer(address: ServerAddress): Promise<ServerFacts> {
  // Some servers do not answer, or may not; the output shows what is unknown.
  const answer = await fourLetterWord(formatServer(address), 'srvr').catch(() => '');
  return { address, version: /^Zookeeper version: ([^,\n]*)/.exec(answer)?.[1], mode: /^Mode: (.*)$/m.exec(answer)?.[1] };
}

async function queryGrantedTimeout(address: ServerAddress, timeOut: number): Promise<number> {
  const cnxn = await RawCnxn.open(address);
  try {
    const answer = await cnxn.handshake({ timeOut });
    if (answer === undefined) throw new Error(`${formatServer(address)} has closed the connection instead of opening a session`);
    await cnxn.close();
    return answer.response.timeOut;
  } finally {
    cnxn.destroy();
  }
}

async function supportsExtendedTypes(zk: Client, path: string): Promise<boolean> {
  try {
    await zk.create(path, null, { mode: 'persistentWithTtl', ttlMs: 3_600_000 });
  } catch (error) {
    // The checks handle any other rejection.
    return !KeeperError.is(error, 'Unimplemented');
  }
  await zk.delete(path);
  return true;
}

/** Opens a session at one server, asks another for it, and then asks for an ephemeral znode. */
async function queryLocalSessions(one: ServerAddress, another: ServerAddress, path: string): Promise<LocalSessionMode> {
  const cnxns = [await RawCnxn.open(one), await RawCnxn.open(another)];
  try {
    const [own, elsewhere] = cnxns as [RawCnxn, RawCnxn];
    const response = (await own.handshake())?.response;
    if (response === undefined) throw new Error(`${formatServer(one)} has closed the connection instead of opening a session`);
    const session = { id: response.sessionId, password: new Uint8Array(response.passwd!) };
    if ((await elsewhere.handshake({ session }))?.response.timeOut !== 0) {
      await elsewhere.close();
      return 'disabled';
    }
    const record = { path, data: null, acl: [...openAcl], flags: CreateFlags.ephemeral };
    const reply = await own.call(OpCode.create, (writer) => operations.create.request.write(writer, record));
    await own.close();
    return reply?.err === ErrorCode.EphemeralOnLocalSession ? 'enabled' : 'upgradable';
  } finally {
    for (const cnxn of cnxns) cnxn.destroy();
  }
}

/** The oldest release that a server reports. */
function oldestRelease(servers: readonly ServerFacts[]): Release | undefined {
  const releases = servers.map(({ version }) => (version === undefined ? undefined : parseRelease(version)));
  if (releases.includes(undefined)) return undefined;
  const order = (one: Release, other: Release) => one[0] - other[0] || one[1] - other[1] || one[2] - other[2];
  return (releases as Release[]).toSorted(order)[0];
}

/** Asks the servers, with a session on them and a znode to try things below. */
export async function collectFacts(
  zk: Client,
  addresses: readonly ServerAddress[],
  scratchPath: string,
  givenRelease: Release | undefined,
): Promise<Facts> {
  const reachable = await Promise.all(addresses.map(isReachable));
  const servers = await Promise.all(addresses.filter((_, at) => reachable[at]).map(queryServer));
  const reportedRelease = oldestRelease(servers);
  const [first] = servers;
  // A server that does not report its mode is taken for one of the ensemble that it was named
  // with.
  const isEnsemble = servers.length > 1 && servers.every(({ mode }) => mode !== 'standalone');
  if (first === undefined) throw new Error('the servers were reachable a moment ago, and no longer are');
  return {
    servers,
    unreachable: addresses.filter((_, at) => reachable[at] !== true).map(formatServer),
    release: givenRelease ?? reportedRelease ?? releaseDefault,
    releaseFrom: givenRelease !== undefined ? 'caller' : reportedRelease === undefined ? 'default' : 'srvr',
    sessionTimeoutMs: { min: await queryGrantedTimeout(first.address, 1), max: await queryGrantedTimeout(first.address, 0x7fffffff) },
    hasExtendedTypes: await supportsExtendedTypes(zk, `${scratchPath}/ttl`),
    isEnsemble,
    localSessions: isEnsemble ? await queryLocalSessions(first.address, servers[1]!.address, `${scratchPath}/local`) : 'disabled',
  };
}
