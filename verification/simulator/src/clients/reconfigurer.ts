/**
 * An operator who changes the membership of an ensemble at random moments: servers join, leave,
 * vote or cease to, move to other ports and names, and get groups and weights. It looks at the
 * configuration of the leader, and at times asks for something that must be refused.
 */
import type { Sid } from '@tskeeper/protocol';
import type { SeededRandom } from '@tskeeper/runtime';
import { configVersionOf } from '../record/config-text.ts';
import type { Request } from '../record/recording.ts';
import type { ServerHost } from '../world/server-host.ts';
import type { VirtualWorld } from '../world/virtual-world.ts';
import { otherServerPort, serverPort } from './client-world.ts';
import { lineOf, type Member, membersIn, type SecondAddress } from './member-line.ts';
import { RawClient, type RawClientOptions } from './raw-client.ts';

/** The password that makes a client super, and so lets it change the membership. */
export const superCredentials = 'super:reconfig';

interface ReconfigRecord {
  readonly joiningServers: string | null;
  readonly leavingServers: string | null;
  readonly newMembers: string | null;
  readonly curConfigId: number;
}

export interface ReconfigurerOptions extends Pick<RawClientOptions, 'name' | 'address' | 'timeoutMs'> {
  /** Whether it gives servers other ports and addresses for their clients. */
  readonly movesClientPorts: boolean;
  /** The second address of each server; undefined if a server may have only one. */
  readonly deadAddress: 'first' | 'second' | undefined;
  /** The server that an oracle favours; undefined if there is no oracle. */
  readonly oracleSid: Sid | undefined;
}

const anyVersion = -1;
/** What changes of one server, besides role, ports and name. */
const clientKinds = ['client port', 'client host'];
const addressKinds = ['addresses'];
const secondAddresses: readonly SecondAddress[] = ['none', 'dead first', 'dead last', 'live'];

export class Reconfigurer {
  readonly client: RawClient;
  readonly #world: VirtualWorld;
  readonly #random: SeededRandom;
  readonly #votersMin: number;
  readonly #options: ReconfigurerOptions;

  constructor(world: VirtualWorld, random: SeededRandom, options: ReconfigurerOptions) {
    this.#world = world;
    this.#options = options;
    this.#random = random;
    this.#votersMin = world.recording.limits.votersMin ?? 1;
    const { name, address, timeoutMs } = options;
    this.client = new RawClient(world, random, { name, address, timeoutMs, credentials: superCredentials, restoresWatches: true });
  }

  /** Asks for something, and returns the request; undefined if the client is not connected. */
  ask(): Request | undefined {
    if (this.#random.below(4) === 0) this.client.send('getData', { path: '/zookeeper/config', watch: true });
    return this.askThrough(this.client);
  }

  /** The same through another client. */
  askThrough(client: RawClient): Request | undefined {
    const members = this.#members();
    return members === undefined ? undefined : client.send('reconfig', this.#draw(members));
  }

  /**
   * Asks for a configuration of this many voters, or fewer, that must be accepted if all servers
   * serve. An observer acknowledges nothing before it has a vote, so most of the voters are servers
   * that lead or follow.
   */
  askForVoters(count: number): Request | undefined {
    const all = this.#world.servers.map(({ sid }) => this.#memberOf(sid, 'participant'));
    const following = new Set(this.#world.servers.filter(({ role }) => role === 'leader' || role === 'follower').map(({ sid }) => sid));
    const votersMax = Math.max(Math.min(count, 2 * following.size - 1), this.#votersMin);
    const most = this.#sample(
      all.filter(({ sid }) => following.has(sid)),
      Math.floor(votersMax / 2) + 1,
    );
    const others = all.filter((member) => !most.includes(member));
    const voters = [...most, ...this.#sample(others, votersMax - most.length)].toSorted((one, other) => one.sid - other.sid);
    return this.client.send('reconfig', {
      joiningServers: null,
      leavingServers: null,
      newMembers: voters.map(lineOf).join(','),
      curConfigId: anyVersion,
    });
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#random.below(from.length)]!;
  }

  #sample<T>(from: readonly T[], count: number): T[] {
    const left = [...from];
    while (left.length > count) left.splice(this.#random.below(left.length), 1);
    return left;
  }

  #text(): string | undefined {
    const { servers } = this.#world;
    const of = (server: ServerHost | undefined) => server?.configText;
    return of(servers.find(({ role }) => role === 'leader')) ?? of(servers.find(({ configText }) => configText !== undefined));
  }

  #members(): Member[] | undefined {
    const text = this.#text();
    return text === undefined ? undefined : membersIn(text);
  }

  /** As the operator wrote it at first. */
  #memberOf(sid: Sid, role: Member['role']): Member {
    const { deadAddress } = this.#options;
    const second = deadAddress === undefined ? 'none' : deadAddress === 'first' ? 'dead first' : 'dead last';
    return { sid, role, isMoved: false, isRenamed: false, second, clientPort: serverPort, isClientHostNamed: false };
  }

  #draw(members: readonly Member[]): ReconfigRecord {
    const text = this.#text()!;
    const isGrouped = /^(?:group|weight)\./m.test(text);
    const curConfigId = this.#pick([
      anyVersion,
      anyVersion,
      anyVersion,
      configVersionOf(text),
      configVersionOf(text),
      configVersionOf(text) - 1,
    ]);
    const base: ReconfigRecord = { joiningServers: null, leavingServers: null, newMembers: null, curConfigId };
    const whole = (lines: readonly string[]) => ({ ...base, newMembers: lines.join(',') });
    const all = this.#world.servers.map(({ sid }) => sid);
    const outside = all.filter((sid) => !members.some((member) => member.sid === sid));
    if (this.#options.oracleSid !== undefined && this.#random.below(2) === 0) return whole(this.#aroundTwo(members).map(lineOf));
    const newcomer = (sid: Sid): Member => this.#memberOf(sid, this.#random.below(4) === 0 ? 'observer' : 'participant');
    switch (this.#random.below(isGrouped ? 5 : 12)) {
      case 0:
        return whole(this.#subset(all.map((sid) => members.find((member) => member.sid === sid) ?? newcomer(sid))).map(lineOf));
      case 1:
        return whole(this.#grouped(members.map((member) => ({ ...member, role: 'participant' }))));
      case 2:
        return whole([...members, ...outside.map(newcomer)].map(lineOf));
      case 3: {
        // Without the leader, or with the leader as an observer.
        const leader = this.#world.servers.find(({ role }) => role === 'leader')?.sid;
        const rest = members.filter(({ sid }) => sid !== leader);
        const demoted = members.filter(({ sid }) => sid === leader).map((member): Member => ({ ...member, role: 'observer' }));
        return whole((this.#random.below(2) === 0 ? rest : [...rest, ...demoted]).map(lineOf));
      }
      case 4:
        return this.#invalid(base, members);
      case 5:
      case 6:
        return outside.length === 0 ? this.#leave(base, members) : { ...base, joiningServers: lineOf(newcomer(this.#pick(outside))) };
      case 7:
        return this.#leave(base, members);
      case 8:
        return outside.length === 0
          ? this.#leave(base, members)
          : { ...this.#leave(base, members), joiningServers: lineOf(newcomer(this.#pick(outside))) };
      default:
        return { ...base, joiningServers: lineOf(this.#changed(this.#pick(members))) };
    }
  }

  /**
   * Two voters, if there are others, and mostly with the one that the oracle favours; or a third one
   * beside two. The others observe or are left out.
   */
  #aroundTwo(members: readonly Member[]): Member[] {
    const { oracleSid } = this.#options;
    const all = this.#world.servers.map(({ sid }) => members.find((member) => member.sid === sid) ?? this.#memberOf(sid, 'observer'));
    const favourite = all.filter(({ sid }) => sid === oracleSid && this.#random.below(4) > 0);
    const others = all.filter((member) => !favourite.includes(member));
    const voters = members.filter(({ role }) => role === 'participant').length;
    const count = voters === 2 ? this.#pick([2, 3, 3]) : 2;
    const chosen = [...favourite, ...this.#sample(others, count - favourite.length)];
    const rest = all.filter((member) => !chosen.includes(member) && this.#random.below(2) === 0);
    return [
      ...chosen.map((member): Member => ({ ...member, role: 'participant' })),
      ...rest.map((member): Member => ({ ...member, role: 'observer' })),
    ].toSorted((one, other) => one.sid - other.sid);
  }

  #leave(base: ReconfigRecord, members: readonly Member[]): ReconfigRecord {
    return { ...base, leavingServers: String(this.#pick(members).sid) };
  }

  /** The same server in another role, at other ports, or under another name. */
  #changed(member: Member): Member {
    const { movesClientPorts, deadAddress } = this.#options;
    const kinds = ['role', 'ports', 'name', ...(movesClientPorts ? clientKinds : []), ...(deadAddress === undefined ? [] : addressKinds)];
    switch (this.#pick(kinds)) {
      case 'role':
        return { ...member, role: member.role === 'observer' ? 'participant' : 'observer' };
      case 'ports':
        return { ...member, isMoved: !member.isMoved };
      case 'client port':
        return { ...member, clientPort: member.clientPort === serverPort ? otherServerPort : serverPort };
      case 'client host':
        return { ...member, isClientHostNamed: !member.isClientHostNamed };
      case 'addresses':
        return { ...member, second: this.#pick(secondAddresses.filter((second) => second !== member.second)) };
      default:
        return { ...member, isRenamed: !member.isRenamed };
    }
  }

  #subset(members: readonly Member[]): Member[] {
    const left = members.filter(() => this.#random.below(3) > 0);
    return left.length === 0 ? [...members] : left;
  }

  /** Two groups at most, with a weight for each voter. */
  #grouped(members: readonly Member[]): string[] {
    const groups: Sid[][] = [[], []];
    const count = members.length < 4 ? 1 : 2;
    for (const [at, { sid }] of members.entries()) groups[at % count]!.push(sid);
    const weights = members.map(({ sid }, at) => `weight.${sid}=${at < count ? 1 + this.#random.below(2) : this.#random.below(3)}`);
    const lines = groups.flatMap((sids, at) => (sids.length === 0 ? [] : [`group.${at + 1}=${sids.join(':')}`]));
    return [...members.map(lineOf), ...lines, ...weights];
  }

  #invalid(base: ReconfigRecord, members: readonly Member[]): ReconfigRecord {
    const first = members[0]!;
    const line = lineOf(first);
    switch (this.#random.below(this.#options.deadAddress === undefined ? 6 : 5)) {
      case 0:
        return { ...base, newMembers: `${line},tickTime=1` };
      case 1:
        return { ...base, newMembers: `${line},${line}` };
      case 2:
        return { ...base, newMembers: members.map((member) => lineOf({ ...member, role: 'observer' })).join(',') };
      case 3:
        // Without a port for clients.
        return { ...base, joiningServers: line.slice(0, line.indexOf(';')) };
      case 5:
        // Two addresses, where a server may have only one.
        return { ...base, joiningServers: lineOf({ ...first, second: 'live' }) };
      default:
        // A new server at the addresses of another.
        return { ...base, joiningServers: line.replace(/^server\.\d+/, 'server.99') };
    }
  }
}
