/**
 * The reconfigurations that the part asks for: servers are added, removed, swapped, promoted,
 * demoted and moved to other ports; some requests are conditional, some name the whole
 * configuration, and some must be refused.
 */
import { ErrorCode, type Sid } from '@tskeeper/protocol';
import type { EnsemblePeer, EnsemblePorts } from '@tskeeper/harness';
import type { Random } from '../random.ts';
import { isVoter, type Members } from './config-agreement.ts';

export interface ReconfigRequest {
  /** Its kind. */
  readonly name: string;
  readonly what: string;
  readonly joining: string | null;
  readonly leaving: string | null;
  readonly newMembers: string | null;
  readonly version: number;
  /** The members afterwards, if it succeeds. */
  readonly members: Members;
  /** A server that gets other ports. */
  readonly moved?: { readonly sid: Sid; readonly ports: EnsemblePorts };
  readonly error: number;
}

export type ReconfigPeer = Readonly<Pick<EnsemblePeer, 'sid' | 'kind' | 'ports' | 'isUp'>>;

/** What the choice depends on. */
export interface ReconfigState {
  readonly peers: readonly ReconfigPeer[];
  readonly members: Members;
  readonly version: number;
  readonly leader: Sid;
  /** For a server that moves. */
  readonly spare: EnsemblePorts;
  /** A member that is down, or ends meanwhile, and that the request leaves as it is. */
  readonly untouched: Sid | undefined;
  readonly mustSucceed: boolean;
  /** How often each kind has been asked for. */
  readonly useCounts: ReadonlyMap<string, number>;
}

type Role = 'participant' | 'observer';

/** An ensemble of this many voters survives the loss of one. */
const votersMin = 3;
/** Sids of servers that do not exist. */
const firstAbsentSid = 101;

/** Whether servers of both kinds, ours and ZooKeeper's, are among these. */
export function isMixed(peers: readonly Pick<EnsemblePeer, 'kind'>[]): boolean {
  return peers.some(({ kind }) => kind === 'ours') && peers.some(({ kind }) => kind !== 'ours');
}

function lineOf(ports: EnsemblePorts, role: Role): string {
  return `127.0.0.1:${ports.quorum}:${ports.election}:${role};127.0.0.1:${ports.client}`;
}

/** A random one, of a kind that has been asked for least often. */
export function chooseRequest(state: ReconfigState, random: Random): ReconfigRequest {
  const possible = new Choices(state, random).all().map((request) => {
    const isRefused = request.error === ErrorCode.Ok && !isQuorumInStep(request, state);
    return isRefused ? { ...request, error: ErrorCode.NewConfigNoQuorum } : request;
  });
  const allowed = possible.filter((request) => isAllowed(request, state));
  const usesOf = ({ name }: ReconfigRequest): number => state.useCounts.get(name) ?? 0;
  const least = Math.min(...allowed.map(usesOf));
  return random.pick(allowed.filter((request) => usesOf(request) === least));
}

/**
 * Whether the leader accepts the members: a quorum of the new voters must follow it. An observer
 * that becomes a voter does not count, a server outside of the members does.
 */
function isQuorumInStep({ members }: ReconfigRequest, { peers, members: before }: ReconfigState): boolean {
  const voters = [...members].filter(([, line]) => isVoter(line)).map(([sid]) => sid);
  const following = voters.filter((sid) => {
    const line = before.get(sid);
    return peers.some((peer) => peer.sid === sid && peer.isUp) && (line === undefined || isVoter(line));
  });
  return following.length > voters.length / 2;
}

/** The members must stay mixed, so that each kind can be asked. */
function isAllowed({ members, error }: ReconfigRequest, state: ReconfigState): boolean {
  const { untouched, peers, mustSucceed } = state;
  if (error !== ErrorCode.Ok) return !mustSucceed;
  if (untouched !== undefined && members.get(untouched) !== state.members.get(untouched)) return false;
  return isMixed(peers.filter(({ sid }) => members.has(sid)));
}

class Choices {
  readonly #state: ReconfigState;
  readonly #random: Random;
  readonly #voters: readonly Sid[];

  constructor(state: ReconfigState, random: Random) {
    this.#state = state;
    this.#random = random;
    this.#voters = [...state.members].filter(([, line]) => isVoter(line)).map(([sid]) => sid);
  }

  all(): ReconfigRequest[] {
    const { members, peers } = this.#state;
    const random = this.#random;
    const voters = this.#voters;
    const observers = [...members.keys()].filter((sid) => !voters.includes(sid));
    const others = peers.map(({ sid }) => sid).filter((sid) => !members.has(sid));
    const hasSpareVoter = voters.length > votersMin;
    const found: ReconfigRequest[] = [];
    if (others.length > 0) {
      found.push(this.#change('add', [[random.pick(others), 'participant']], []));
      found.push(this.#change('add as observer', [[random.pick(others), 'observer']], []));
      for (let i = 0; i < 2; i++) found.push(this.#change('swap', [[random.pick(others), 'participant']], [this.#leaving()]));
    }
    if (hasSpareVoter) {
      found.push(this.#change('remove', [], [this.#leaving()]));
      found.push(this.#change('demote', [[this.#leaving(), 'observer']], []));
    }
    if (observers.length > 0) {
      found.push(this.#change('promote', [[random.pick(observers), 'participant']], []));
      found.push(this.#change('remove observer', [], [random.pick(observers)]));
    }
    for (const sid of [random.pick([...members.keys()]), this.#leaving()]) {
      found.push(this.#move('move the client port of', sid, { client: this.#state.spare.client }));
      found.push(this.#move('move all ports of', sid, this.#state.spare));
    }
    found.push(...this.#refusals());
    return found;
  }

  /** The leader, or any voter. */
  #leaving(): Sid {
    const { leader } = this.#state;
    return this.#random.below(2) === 0 && this.#voters.includes(leader) ? leader : this.#random.pick(this.#voters);
  }

  #refusals(): ReconfigRequest[] {
    const { version, members } = this.#state;
    const base = { leaving: null, newMembers: null, version: -1, members };
    const absent = this.#voters.map((_, index) => {
      // Nothing listens there: that is the server's own port for clients, of the next one.
      const ports = { quorum: this.#state.spare.quorum, election: this.#state.spare.election, client: this.#state.spare.client + index };
      return `server.${firstAbsentSid + index}=${lineOf(ports, 'participant')}`;
    });
    return [
      {
        ...base,
        name: 'stale version',
        what: 'remove with a stale version',
        joining: null,
        leaving: String(this.#random.pick(this.#voters)),
        version: version - 1,
        error: ErrorCode.BadVersion,
      },
      {
        ...base,
        name: 'absent voters',
        what: 'add as many absent voters as there are',
        joining: absent.join(','),
        error: ErrorCode.NewConfigNoQuorum,
      },
      { ...base, name: 'no address', what: 'add a server without an address', joining: 'server.9=nowhere', error: ErrorCode.BadArguments },
    ];
  }

  #move(name: string, sid: Sid, changed: Partial<EnsemblePorts>): ReconfigRequest {
    const { ports: before } = this.#state.peers.find((peer) => peer.sid === sid)!;
    const ports = { ...before, ...changed };
    const role = isVoter(this.#state.members.get(sid)!) ? 'participant' : 'observer';
    return { ...this.#request(name, new Map([[sid, lineOf(ports, role)]]), []), moved: { sid, ports } };
  }

  #change(name: string, joining: readonly (readonly [Sid, Role])[], leaving: readonly Sid[]): ReconfigRequest {
    const lines = joining.map(([sid, role]): [Sid, string] => [
      sid,
      lineOf(this.#state.peers.find((peer) => peer.sid === sid)!.ports, role),
    ]);
    return this.#request(name, new Map(lines), leaving);
  }

  #request(name: string, joining: Members, leaving: readonly Sid[]): ReconfigRequest {
    const random = this.#random;
    const members = new Map(this.#state.members);
    for (const sid of leaving) members.delete(sid);
    for (const [sid, line] of joining) members.set(sid, line);
    const isWhole = random.below(5) === 0;
    const isConditional = random.below(3) === 0;
    const lines = (from: Members): string[] => [...from].map(([sid, line]) => `server.${sid}=${line}`);
    const parts = [...leaving.map((sid) => `-${sid}`), ...[...joining.keys()].map((sid) => `+${sid}`)];
    return {
      name,
      what: `${name} ${parts.join(' ')}${isWhole ? ' as a list' : ''}${isConditional ? ' if the version is right' : ''}`,
      joining: isWhole || joining.size === 0 ? null : lines(joining).join(','),
      leaving: isWhole || leaving.length === 0 ? null : leaving.join(','),
      newMembers: isWhole ? lines(members).join('\n') : null,
      version: isConditional ? this.#state.version : -1,
      members,
      error: ErrorCode.Ok,
    };
  }
}
