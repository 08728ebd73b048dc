/**
 * The servers of a small world, their votes and weights, and the configurations to which they may be
 * changed. A quorum is defined twice: by the configuration that the servers use, and by hand for the
 * invariants, so that a wrong verifier cannot confirm itself.
 */
import { formatQuorumConfig, parseQuorumConfig, type QuorumConfig, type Sid } from '@tskeeper/protocol';
import { type QuorumVerifier, verifierOf } from '@tskeeper/core/internal';
import { membersText } from './txn-names.ts';

/**
 * `equal`: all vote with equal weight. Of three servers: `observer`: the third observes;
 * `weightless`: the third follows with weight 0; `groups`: two groups, one of the first with weight
 * 2 and the second, the other of the third.
 *
 * In the others the configuration may change, there and back: `joining`: of three servers the third
 * is not a member, and joins; `leaving`: the third of three is removed; `demoted`: it becomes an
 * observer; `growing`: a fourth server joins three; `replacing`: a fourth takes the place of the
 * third.
 */
export type EnsembleName = 'equal' | 'observer' | 'weightless' | 'groups' | ChangingEnsembleName;
type ChangingEnsembleName = 'joining' | 'leaving' | 'demoted' | 'growing' | 'replacing';

/** How many servers take part, and the members of each configuration; the first is the initial one. */
const changing: Readonly<Record<ChangingEnsembleName, { readonly servers: number; readonly configs: readonly string[] }>> = {
  joining: { servers: 3, configs: ['1 2', '1 2 3'] },
  leaving: { servers: 3, configs: ['1 2 3', '1 2'] },
  demoted: { servers: 3, configs: ['1 2 3', '1 2 3o'] },
  growing: { servers: 4, configs: ['1 2 3', '1 2 3 4'] },
  replacing: { servers: 4, configs: ['1 2 3', '1 2 4'] },
};

export const ensembleNames: readonly EnsembleName[] = [
  'equal',
  'observer',
  'weightless',
  'groups',
  'joining',
  'leaving',
  'demoted',
  'growing',
  'replacing',
];

export interface SmallEnsemble {
  /** The initial configuration. */
  readonly members: QuorumConfig;
  /** Its quorums, as the servers count them. */
  readonly verifier: QuorumVerifier;
  /** Every quorum of it contains one of these. */
  readonly minimalQuorums: readonly (readonly Sid[])[];
  /** The configurations that a client may ask for; none if the members stay what they are. */
  readonly configs: readonly QuorumConfig[];
  /** Servers that can never lead in the initial configuration. */
  readonly neverLead: readonly Sid[];
}

const variantServers = 3;

/** By the voters of a configuration of equal weights: every quorum contains one of these. */
const quorumsByVoters: Readonly<Record<string, readonly (readonly Sid[])[]>> = {
  '1': [[1]],
  '1 2': [[1, 2]],
  '1 2 3': [
    [1, 2],
    [1, 3],
    [2, 3],
  ],
  '1 2 4': [
    [1, 2],
    [1, 4],
    [2, 4],
  ],
  '1 2 3 4': [
    [1, 2, 3],
    [1, 2, 4],
    [1, 3, 4],
    [2, 3, 4],
  ],
};

/** With as many servers as it needs, by default three. */
export function ensembleOf(name: EnsembleName): SmallEnsemble {
  return smallEnsemble(name, serversOf(name));
}

function serversOf(name: EnsembleName): number {
  return name in changing ? changing[name as ChangingEnsembleName].servers : variantServers;
}

export function smallEnsemble(name: EnsembleName, servers: number): SmallEnsemble {
  if (name === 'equal') return equalVoters(servers);
  const needed = serversOf(name);
  if (servers !== needed) throw new Error(`the ensemble "${name}" needs ${needed} servers`);
  return name in changing ? changingEnsemble(name as ChangingEnsembleName) : variants[name as keyof typeof variants]();
}

/**
 * Whether these servers contain a quorum of the configuration with these members, by default of the
 * initial one.
 */
export function isQuorum({ members, minimalQuorums }: SmallEnsemble, sids: readonly Sid[], of = membersText(members)): boolean {
  const quorums = of === membersText(members) ? minimalQuorums : quorumsByVoters[votersText(of)];
  if (quorums === undefined) throw new Error(`no quorums are known for the members ${of}`);
  return quorums.some((quorum) => quorum.every((sid) => sids.includes(sid)));
}

function votersText(members: string): string {
  return members
    .split(' ')
    .filter((each) => !each.endsWith('o'))
    .join(' ');
}

/** The servers of a configuration, and those of them that vote. */
export function sidsOfMembers(members: string): Sid[] {
  return members.split(' ').map((each) => Number.parseInt(each, 10));
}

export function sidsOfVoters(members: string): Sid[] {
  return sidsOfMembers(votersText(members));
}

/**
 * What the operator writes into the first files of a server: the initial configuration, and the
 * server itself if that does not name it.
 */
export function initialFile({ members }: SmallEnsemble, sid: Sid): QuorumConfig {
  if (members.servers.has(sid)) return members;
  const own = parseQuorumConfig(`server.${sid}=${serverText(sid)}`).servers.get(sid)!;
  return { ...members, version: 0, servers: new Map([...members.servers, [sid, own]]) };
}

/** As a client asks for it. */
export function requestedMembers(config: QuorumConfig): string {
  return formatQuorumConfig(config)
    .split('\n')
    .filter((line) => !line.startsWith('version='))
    .join(',');
}

function serverText(sid: Sid, role = ''): string {
  return `h${sid}:2888:3888${role}`;
}

function equalVoters(servers: number): SmallEnsemble {
  const sids = Array.from({ length: servers }, (_, at) => at + 1);
  return { ...countedBy(sids), minimalQuorums: quorumsByVoters[sids.join(' ')]!, configs: [], neverLead: [] };
}

function changingEnsemble(name: ChangingEnsembleName): SmallEnsemble {
  const configs = changing[name].configs.map((members) =>
    parseQuorumConfig(
      members
        .split(' ')
        .map(
          (each) => `server.${Number.parseInt(each, 10)}=${serverText(Number.parseInt(each, 10), each.endsWith('o') ? ':observer' : '')}`,
        )
        .join('\n'),
    ),
  );
  const [members] = configs;
  return {
    members: members!,
    verifier: verifierOf(members!),
    minimalQuorums: quorumsByVoters[votersText(membersText(members!))]!,
    configs,
    neverLead: [],
  };
}

function countedBy(voters: readonly Sid[], more: readonly string[] = []): Pick<SmallEnsemble, 'members' | 'verifier'> {
  const members = parseQuorumConfig([...voters.map((sid) => `server.${sid}=${serverText(sid)}`), ...more].join('\n'));
  return { members, verifier: verifierOf(members) };
}

const variants: Readonly<Record<Exclude<EnsembleName, 'equal' | ChangingEnsembleName>, () => SmallEnsemble>> = {
  observer: () => ({
    ...countedBy([1, 2], [`server.3=${serverText(3, ':observer')}`]),
    minimalQuorums: [[1, 2]],
    configs: [],
    neverLead: [3],
  }),
  weightless: () => ({
    ...countedBy([1, 2, 3], ['group.1=1:2:3', 'weight.3=0']),
    minimalQuorums: [[1, 2]],
    configs: [],
    neverLead: [3],
  }),
  groups: () => ({
    ...countedBy([1, 2, 3], ['group.1=1:2', 'group.2=3', 'weight.1=2']),
    minimalQuorums: [[1, 3]],
    configs: [],
    neverLead: [],
  }),
};
