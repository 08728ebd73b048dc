/**
 * The membership of an ensemble: what a reconfig makes of the text in /zookeeper/config, and why one
 * is refused. The order of the checks is ZooKeeper's.
 *
 * Two refusals depend on what the servers did at that moment: whether an earlier change was pending,
 * and whether a quorum of the new servers was in step. The model does not know that; a replay
 * says which of them there was.
 */
import { ErrorCode, Perms } from '@tskeeper/protocol';
import type { AccessRules } from './access-rules.ts';
import type { Admitted } from './admitted-request.ts';
import type { ModelTree } from './model-tree.ts';
import type { Body, Operation } from './operation-types.ts';
import { Refusal } from './refusal.ts';
import type { Watches } from './watches.ts';

type Reconfig = Extract<Operation, { kind: 'reconfig' }>;

interface MemberLines {
  /** By sid: what follows `server.N=`, in full. */
  readonly servers: Map<number, string>;
  readonly groups: Map<number, readonly number[]>;
  readonly weights: Map<number, number>;
}

const configPath = '/zookeeper/config';

export class Membership {
  /** How many voters there must be; undefined for a standalone server, which has no membership. */
  votersMin: number | undefined;
  /** Whether a server may have several addresses. */
  allowsSeveralAddresses = false;
  /** The refusal of the next reconfig that only its servers can explain. */
  refusal: number | undefined;
  readonly #tree: ModelTree;
  readonly #access: AccessRules;
  readonly #watches: Watches;

  constructor(tree: ModelTree, access: AccessRules, watches: Watches) {
    this.#tree = tree;
    this.#access = access;
    this.#watches = watches;
  }

  perform(request: Reconfig, { identities, wallMs }: Admitted): Body {
    if (this.votersMin === undefined) throw new Refusal(ErrorCode.Unimplemented);
    if (this.refusal === ErrorCode.ReconfigInProgress) throw new Refusal(this.refusal);
    const znode = this.#tree.require(configPath);
    const text = znode.data ?? '';
    if (request.curConfigId !== -1 && request.curConfigId !== versionOf(text)) throw new Refusal(ErrorCode.BadVersion);
    const next = request.newMembers === null ? changed(parsed(text.split('\n')), request) : parsed(request.newMembers.split(/[,\n]/));
    this.#requireVoters(next);
    if (this.refusal === ErrorCode.NewConfigNoQuorum) throw new Refusal(this.refusal);
    this.#access.requirePermission(znode.acl, Perms.write, identities);
    const data = textOf(next, this.#tree.zxid);
    const stat = { ...this.#tree.setData(configPath, data, wallMs), version: -1 };
    znode.version = -1;
    this.#watches.dataChanged(configPath, znode.acl);
    return { data, stat };
  }

  #requireVoters({ servers, groups, weights }: MemberLines): void {
    const voters = [...servers].filter(([, line]) => isVoter(line)).map(([sid]) => sid);
    if (voters.length < this.votersMin!) throw new Refusal(ErrorCode.BadArguments);
    if (!this.allowsSeveralAddresses && [...servers.values()].some((line) => line.includes('|'))) throw new Refusal(ErrorCode.BadArguments);
    if (groups.size + weights.size > 0 && !voters.some((sid) => (weights.get(sid) ?? 1) > 0)) throw new Refusal(ErrorCode.BadArguments);
  }
}

function isVoter(line: string): boolean {
  return line.includes(':participant');
}

function versionOf(text: string): number {
  return Number.parseInt(/^version=([0-9a-f]+)$/m.exec(text)?.[1] ?? '0', 16);
}

/** The lines of a whole configuration; one that is malformed or there twice is refused. */
function parsed(lines: readonly string[]): MemberLines {
  const found: MemberLines = { servers: new Map(), groups: new Map(), weights: new Map() };
  const keys = new Set<string>();
  for (const line of lines.map((each) => each.trim())) {
    if (line === '') continue;
    const [key, value = ''] = line.split('=', 2).map((part) => part.trim());
    const [, kind, number] = /^(server|group|weight|version)(?:\.(\d+))?$/.exec(key!) ?? [];
    if (kind === undefined || keys.has(key!)) throw new Refusal(ErrorCode.BadArguments);
    keys.add(key!);
    if (kind === 'server') found.servers.set(Number(number), serverLine(value));
    else if (kind === 'group') found.groups.set(Number(number), value.split(':').map(Number));
    else if (kind === 'weight') found.weights.set(Number(number), Number(value));
  }
  if (found.groups.size + found.weights.size > 0) addWeights(found);
  return found;
}

/** Every voter is in one group, and has the weight 1 unless the configuration says another. */
function addWeights({ servers, groups, weights }: MemberLines): void {
  const grouped = [...groups.values()].flat();
  for (const [sid, line] of servers) {
    if (!isVoter(line)) continue;
    if (grouped.filter((each) => each === sid).length !== 1) throw new Refusal(ErrorCode.BadArguments);
    if (!weights.has(sid)) weights.set(sid, 1);
  }
}

/** `host:2888:3888[|host:2888:3888][:role][;[host:]2181]`, in full, the addresses in the order of their hosts. */
function serverLine(value: string): string {
  const address = String.raw`[^:;|\s]+:\d+:\d+`;
  const form = String.raw`^(${address}(?:\|${address})*)(?::(participant|observer))?(?:;(?:([^:;\s]+):)?(\d+))?$`;
  const match = new RegExp(form).exec(value);
  if (match === null) throw new Refusal(ErrorCode.BadArguments);
  const [, list, role = 'participant', clientHost = '0.0.0.0', clientPort] = match;
  const addresses = list!.split('|').toSorted((a, b) => (hostOf(a) < hostOf(b) ? -1 : 1));
  return `${addresses.join('|')}:${role}${clientPort === undefined ? '' : `;${clientHost}:${clientPort}`}`;
}

function hostOf(address: string): string {
  return address.split(':')[0]!;
}

function changed(current: MemberLines, { joiningServers, leavingServers }: Reconfig): MemberLines {
  if (current.groups.size + current.weights.size > 0) throw new Refusal(ErrorCode.BadArguments);
  const servers = new Map(current.servers);
  const listed = (list: string | null) => (list ?? '').split(',').filter((part) => part.trim() !== '');
  for (const sid of listed(leavingServers)) {
    if (!/^\d+$/.test(sid)) throw new Refusal(ErrorCode.BadArguments);
    servers.delete(Number(sid));
  }
  const joined = new Set<number>();
  for (const joiner of listed(joiningServers)) {
    const [, number, value] = /^server\.(\d+)=(.*)$/.exec(joiner.trim()) ?? [];
    const sid = Number(number);
    if (value === undefined || joined.has(sid)) throw new Refusal(ErrorCode.BadArguments);
    joined.add(sid);
    const line = serverLine(value);
    if (!line.includes(';')) throw new Refusal(ErrorCode.BadArguments);
    for (const [other, taken] of servers) if (other !== sid) requireOtherAddresses(line, taken);
    servers.set(sid, line);
  }
  return { ...current, servers };
}

function requireOtherAddresses(line: string, taken: string): void {
  const addresses = new Set(addressesOf(taken));
  if (addressesOf(line).some((address) => addresses.has(address))) throw new Refusal(ErrorCode.BadArguments);
}

function addressesOf(line: string): string[] {
  const [, list] = /^(.*):(?:participant|observer)/.exec(line)!;
  return list!.split('|').flatMap((address) => {
    const [host, quorumPort, electionPort] = address.split(':');
    return [`${host}:${quorumPort}`, `${host}:${electionPort}`];
  });
}

function textOf({ servers, groups, weights }: MemberLines, version: number): string {
  const inOrder = <T>(map: ReadonlyMap<number, T>) => [...map].sort(([a], [b]) => a - b);
  return [
    ...inOrder(servers).map(([sid, line]) => `server.${sid}=${line}`),
    ...inOrder(groups).map(([group, sids]) => `group.${group}=${sids.toSorted((a, b) => a - b).join(':')}`),
    ...inOrder(weights).map(([sid, weight]) => `weight.${sid}=${weight}`),
    `version=${version.toString(16)}`,
  ].join('\n');
}
