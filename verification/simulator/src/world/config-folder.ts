/**
 * The folder with the configuration of a virtual server: zoo.cfg, which the operator has written and
 * a reconfiguration rewrites, and the dynamic files beside it. A start reads them as the server
 * package does; here a line is a key, `=` and a value.
 */
import { formatQuorumConfig, parseQuorumConfig, type QuorumConfig, type Sid } from '@tskeeper/protocol';
import type { ConfigFileOptions, EnsembleOptions, VirtualDisk } from '@tskeeper/runtime';

const configFolder = '/conf';
const zooCfg = `${configFolder}/zoo.cfg`;
const nextConfigPath = `${zooCfg}.dynamic.next`;

const dynamicLine = /^(?:server\.|group|weight|version|dynamicConfigFile|peerType)/;
const clientAddressLine = /^clientPort(?:Address)?=/;

/** As `editedConfig` of the server package. */
function edited(text: string, dynamicConfigFile: string, dropsClientAddress: boolean): string {
  const kept = text
    .split('\n')
    .filter((line) => line !== '' && !dynamicLine.test(line) && !(dropsClientAddress && clientAddressLine.test(line)));
  return [...kept, `dynamicConfigFile=${dynamicConfigFile}`, ''].join('\n');
}

/** A line that no reconfiguration may change. */
export const operatorConfigText = 'tickTime=200\n';

/** Writes zoo.cfg as an operator does, if there is none. */
export function writeOperatorConfig(disk: VirtualDisk, config: QuorumConfig): void {
  if (disk.files().includes(zooCfg)) return;
  disk.putFile(zooCfg, Buffer.from(`${operatorConfigText}clientPort=2181\n${formatQuorumConfig(config)}\n`, 'latin1'));
}

/** How a server on this disk changes zoo.cfg. */
export function configFileOptions(disk: VirtualDisk): ConfigFileOptions {
  return { path: zooCfg, namesServers: storedConfigs(disk).dynamicFile === undefined, edit: edited };
}

/** The operator has the folder of the first start again, and nothing else. */
export function loseConfigFolder(disk: VirtualDisk): void {
  for (const path of disk.files()) if (path.startsWith(`${configFolder}/`)) disk.eraseFile(path);
}

export interface StoredConfigs {
  readonly active: QuorumConfig;
  /** The one in the file `next`, if it is later. */
  readonly next: QuorumConfig | undefined;
  readonly dynamicFile: string | undefined;
  /** zoo.cfg. */
  readonly text: string;
}

/** What a start on this disk would use. Throws an `Error` where a server would refuse to start. */
export function storedConfigs(disk: VirtualDisk): StoredConfigs {
  const text = disk.contents(zooCfg).toString('latin1');
  const dynamicFile = /^dynamicConfigFile=(.*)$/m.exec(text)?.[1];
  if (dynamicFile === undefined) return { active: parseQuorumConfig(text), next: undefined, dynamicFile, text };
  if (!disk.files().includes(dynamicFile)) throw new Error(`${zooCfg} names ${dynamicFile}, which does not exist`);
  const version = Number.parseInt(/\.([0-9a-f]+)$/.exec(dynamicFile)![1]!, 16);
  const active = { ...parseQuorumConfig(disk.contents(dynamicFile).toString('latin1')), version };
  const next = disk.files().includes(nextConfigPath) ? parseQuorumConfig(disk.contents(nextConfigPath).toString('latin1')) : undefined;
  return { active, next: next !== undefined && next.version > version ? next : undefined, dynamicFile, text };
}

/** Whether a process ended after it had written a dynamic file, and before zoo.cfg named it. */
export function hasUnnamedDynamicFile(disk: VirtualDisk): boolean {
  const { version } = storedConfigs(disk).active;
  return disk.files().some((path) => Number.parseInt(/^\/conf\/zoo\.cfg\.dynamic\.([0-9a-f]+)$/.exec(path)?.[1] ?? '0', 16) > version);
}

/**
 * No server starts with files that do not name it, not even in a pending change. The operator of one that was removed writes its
 * line beside the servers that it knew last, as for a server that is to join; where there are groups
 * or weights, in the first group and with weight 1. An oracle could let it lead alone if it were one
 * of two voters, so the operator makes it an observer then.
 */
function addOwnLine({ zab, quorum }: EnsembleOptions, hasOracle: boolean, disk: VirtualDisk): void {
  const { active, next } = storedConfigs(disk);
  const { sid } = zab;
  if (active.servers.has(sid) || next?.servers.has(sid) === true) return;
  loseConfigFolder(disk);
  const own = quorum.servers.get(sid)!;
  const voters = [...active.servers.values()].filter(({ role }) => role === 'participant').length;
  const role = hasOracle && voters === 1 ? 'observer' : 'participant';
  const servers = new Map([...active.servers, [sid, { ...own, role } as const]]);
  writeOperatorConfig(disk, { version: 0, servers, ...withMember(active, sid) });
}

/** Groups and weights, if there are any, with this server. */
function withMember({ groups, weights }: Pick<QuorumConfig, 'groups' | 'weights'>, sid: Sid): Pick<QuorumConfig, 'groups' | 'weights'> {
  if (groups.size === 0 && weights.size === 0) return { groups, weights };
  const [first = 1] = groups.keys();
  return {
    groups: groups.size === 0 ? groups : new Map([...groups, [first, [...groups.get(first)!, sid]]]),
    weights: new Map([...weights, [sid, 1]]),
  };
}

/** The options of the next start: the configuration is that of the files. */
export function withStoredConfig(options: EnsembleOptions, hasOracle: boolean, disk: VirtualDisk): EnsembleOptions {
  writeOperatorConfig(disk, options.quorum);
  addOwnLine(options, hasOracle, disk);
  const { active, next } = storedConfigs(disk);
  return { ...options, quorum: active, lastSeen: next, configFile: configFileOptions(disk) };
}
