/**
 * The configuration that a client's reconfig asks for: a whole new one, or changes of the present
 * one. The checks and their order are those of ZooKeeper's PrepRequestProcessor.
 *
 * A server that is to leave and is not there is ignored, as in ZooKeeper: to repeat a request is not
 * an error. A request that names a server twice is refused, where ZooKeeper takes the last.
 */
import {
  ErrorCode,
  formatHostPort,
  isHierarchical,
  isParticipant,
  isQuorumConfigKey,
  isWildcardHost,
  parseQuorumConfig,
  parseQuorumServer,
  type QuorumConfig,
  QuorumConfigError,
  type QuorumServer,
  type ReconfigRequest,
  type Sid,
} from '@tskeeper/protocol';

export interface NextConfigRules {
  readonly version: number;
  /** How many voters the next configuration must have. */
  readonly votersMin: number;
  /** Whether a server may have several addresses (`multiAddress.enabled`). */
  readonly multiAddressEnabled: boolean;
}

/** The next configuration, or the error code that refuses the request. */
export function nextConfig(current: QuorumConfig, request: ReconfigRequest, rules: NextConfigRules): QuorumConfig | ErrorCode {
  let next: QuorumConfig;
  try {
    next = request.newMembers === null ? changed(current, request) : wholeConfig(request.newMembers);
  } catch (error) {
    if (error instanceof QuorumConfigError) return ErrorCode.BadArguments;
    throw error;
  }
  const servers = [...next.servers.values()];
  if (servers.filter(isParticipant).length < rules.votersMin) return ErrorCode.BadArguments;
  if (!rules.multiAddressEnabled && servers.some(({ addresses }) => addresses.length > 1)) return ErrorCode.BadArguments;
  return { ...next, version: rules.version };
}

/** Lines are separated by commas or line ends. Only servers, groups and weights are allowed. */
function wholeConfig(text: string): QuorumConfig {
  const lines = text.replaceAll(',', '\n');
  const keys = new Set<string>();
  for (const line of lines.split('\n')) {
    const key = /^\s*([^\s=:#!]+)/.exec(line)?.[1];
    if (key === undefined) continue;
    if (!isQuorumConfigKey(key))
      throw new QuorumConfigError(key, `${key} is not a key of a configuration: it has server, group and weight lines.`);
    if (keys.has(key)) throw new QuorumConfigError(key, `${key} is there twice.`);
    keys.add(key);
  }
  return parseQuorumConfig(lines);
}

function changed(current: QuorumConfig, { joiningServers, leavingServers }: ReconfigRequest): QuorumConfig {
  if (isHierarchical(current)) {
    throw new QuorumConfigError('group', 'with groups or weights, a reconfig must give the whole configuration.');
  }
  const servers = new Map(current.servers);
  const joined = new Set<Sid>();
  for (const sid of partsOf(leavingServers)) servers.delete(sidOf(sid));
  for (const joiner of partsOf(joiningServers)) {
    const [key, value, ...more] = joiner.split('=').map((part) => part.trim());
    if (key === undefined || value === undefined || more.length > 0) {
      throw new QuorumConfigError(joiner, `${joiner} must be server.N=host:quorumPort:electionPort;clientPort.`);
    }
    const sid = sidOf(key.slice(key.lastIndexOf('.') + 1));
    if (joined.has(sid)) throw new QuorumConfigError(key, `server ${sid} joins twice.`);
    joined.add(sid);
    const server = parseQuorumServer(sid, value);
    if (server.clientAddress === undefined) throw new QuorumConfigError(key, `${joiner} must name a client port.`);
    for (const other of servers.values()) if (other.sid !== sid) checkAddresses(server, other);
    servers.set(sid, server);
  }
  return { ...current, servers };
}

function partsOf(list: string | null): string[] {
  return (list ?? '')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function sidOf(text: string): Sid {
  const sid = /^[+-]?\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(sid)) throw new QuorumConfigError(text, `"${text}" must be the number of a server.`);
  return sid;
}

/** Two servers cannot have one address. Wildcards and loopback addresses are of any machine. */
function checkAddresses(server: QuorumServer, other: QuorumServer): void {
  const taken = new Set(addressesOf(other));
  for (const address of addressesOf(server)) {
    if (taken.has(address)) throw new QuorumConfigError(`server.${server.sid}`, `server.${other.sid} has the address ${address} already.`);
  }
}

function addressesOf({ addresses, clientAddress }: QuorumServer): string[] {
  const all = addresses.flatMap(({ host, quorumPort, electionPort }) => [
    { host, port: quorumPort },
    { host, port: electionPort },
  ]);
  if (clientAddress !== undefined) all.push(clientAddress);
  return all.filter(({ host }) => !isWildcardHost(host) && !isLoopbackHost(host)).map(formatHostPort);
}

function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);
}
