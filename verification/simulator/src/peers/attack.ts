/** The context of an attack on an ensemble, and what the kinds of attacks share. */
import type { Millis, Sid, Zxid } from '@tskeeper/protocol';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Run } from '../run/run.ts';
import type { ServerHost } from '../world/server-host.ts';
import { electionPort, quorumPort } from '../world/peer-ports.ts';
import { type CnxnHandler, HostilePeer } from './hostile-peer.ts';
import { type Long, longOf, longOfSession, pick } from './hostile-packets.ts';

export interface Attack {
  readonly run: Run;
  readonly random: SeededRandom;
  /** The machine that it comes from, another for each attack. */
  readonly peer: HostilePeer;
  /** The server under attack, the leader if there is one, and its last zxid. */
  readonly target: ServerHost;
  readonly targetZxid: Zxid;
  /** Called when the attack has got as far as it should. */
  readonly reachedGoal: () => void;
}

/** One kind of attack. It does nothing if what it needs is missing. */
export type AttackKind = (attack: Attack) => void;

/** Ids that no server of a run has: lower than all of theirs, and higher. */
const unknownSidsBelow: readonly Sid[] = [0];
const unknownSidsAbove: readonly Sid[] = [77, 254, 2 ** 32, Number.MAX_SAFE_INTEGER];

export function unknownHighSid({ random }: Attack): Sid {
  return pick(random, unknownSidsAbove);
}

export function unknownSid({ random }: Attack): Sid {
  return pick(random, [...unknownSidsBelow, ...unknownSidsAbove]);
}

/** The id of a configured server other than the target, up or down. */
export function otherServerSid({ run, target, random }: Attack): Sid | undefined {
  const others = run.world.servers.filter((server) => server !== target);
  return others.length === 0 ? undefined : pick(random, others).sid;
}

/**
 * The id of a server that is killed and down for a while: one that is up and answers keeps its id.
 */
export function takeDownOtherServer({ run, target, random }: Attack, ms: Millis): Sid | undefined {
  const others = run.world.servers.filter((server) => server !== target);
  if (others.length === 0) return undefined;
  const server = pick(random, others);
  if (server.process !== undefined) server.kill();
  run.restartAfter(server, ms);
  return server.sid;
}

export function dialElection(attack: Attack, conversation: CnxnHandler): void {
  dial(attack, electionPort, conversation);
}

export function dialQuorum(attack: Attack, conversation: CnxnHandler): void {
  dial(attack, quorumPort, conversation);
}

function dial({ peer, target }: Attack, port: number, conversation: CnxnHandler): void {
  const { address } = target;
  if (address !== undefined) peer.dial({ address, port }, conversation);
}

/** A session of a client, if there is one, or one that no client has. */
export function anySession({ run, random }: Attack): Long {
  const known = [...new Set(run.world.recording.cnxns.flatMap(({ session }) => session ?? 0n))];
  if (known.length > 0 && random.below(4) > 0) return longOfSession(pick(random, known));
  return pick(random, [[0, 0], [0, 1], [-1, -1], [0x7fffffff, -1], [-0x80000000, 0], longOf(random.uint32())]);
}

/** A session that no client has. */
export function unknownSession({ random }: Attack): Long {
  return pick(random, [
    [0, 0],
    [0, 1 + random.below(1000)],
    [-1, -1],
    [-0x80000000, 0],
  ]);
}
