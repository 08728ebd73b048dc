/** What an attack on an ensemble has at hand, and what the kinds of attacks share. */
import type { Millis, Sid, Zxid } from '@tskeeper/protocol';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Stage } from '../story/stage.ts';
import type { ServerHost } from '../world/server-host.ts';
import { electionPort, quorumPort } from '../world/peer-ports.ts';
import { type Conversation, HostilePeer } from './hostile-peer.ts';
import { type Long, longOf, longOfSession, pick } from './hostile-packets.ts';

export interface Attack {
  readonly stage: Stage;
  readonly random: SeededRandom;
  /** The machine that it comes from: another for each attack. */
  readonly peer: HostilePeer;
  /** The server that it goes to, which leads if one does; and where that stands. */
  readonly target: ServerHost;
  readonly near: Zxid;
  /** It has come as far as it was to come. */
  readonly done: () => void;
}

/** One kind of attack. What it needs and does not find it leaves. */
export type Kind = (attack: Attack) => void;

/** Numbers that no server of a story has: below all of theirs, and above. */
const strangersBelow: readonly Sid[] = [0];
const strangersAbove: readonly Sid[] = [77, 254, 2 ** 32, Number.MAX_SAFE_INTEGER];

export function aboveAll({ random }: Attack): Sid {
  return pick(random, strangersAbove);
}

export function nobody({ random }: Attack): Sid {
  return pick(random, [...strangersBelow, ...strangersAbove]);
}

/** The number of a configured server other than the target, which lives or is down. */
export function anotherServer({ stage, target, random }: Attack): Sid | undefined {
  const others = stage.world.servers.filter((server) => server !== target);
  return others.length === 0 ? undefined : pick(random, others).sid;
}

/** The number of one that is down for a while, by whatever there is to bring it down: a server that lives and answers keeps its number. */
export function absentServer({ stage, target, random }: Attack, ms: Millis): Sid | undefined {
  const others = stage.world.servers.filter((server) => server !== target);
  if (others.length === 0) return undefined;
  const server = pick(random, others);
  if (server.process !== undefined) server.kill();
  stage.superviseAfter(server, ms);
  return server.sid;
}

export function dialElection(attack: Attack, conversation: Conversation): void {
  dial(attack, electionPort, conversation);
}

export function dialQuorum(attack: Attack, conversation: Conversation): void {
  dial(attack, quorumPort, conversation);
}

function dial({ peer, target }: Attack, port: number, conversation: Conversation): void {
  const { address } = target;
  if (address !== undefined) peer.dial({ address, port }, conversation);
}

/** A session of somebody's, if there is one; or one that nobody has. */
export function anySession({ stage, random }: Attack): Long {
  const known = [...new Set(stage.world.recording.cnxns.flatMap(({ session }) => session ?? 0n))];
  if (known.length > 0 && random.below(4) > 0) return longOfSession(pick(random, known));
  return pick(random, [[0, 0], [0, 1], [-1, -1], [0x7fffffff, -1], [-0x80000000, 0], longOf(random.uint32())]);
}

/** No session of anybody's. */
export function noSession({ random }: Attack): Long {
  return pick(random, [
    [0, 0],
    [0, 1 + random.below(1000)],
    [-1, -1],
    [-0x80000000, 0],
  ]);
}
