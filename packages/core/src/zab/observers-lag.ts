/**
 * How far the signs of life that a follower has of its observers' clients lag.
 *
 * A leader expires a session once each learner has reported the signs of life that it had before
 * the session was due: a learner does so in its answer to a PING. A follower that accepts observers
 * cannot wait for theirs before it answers, since a quorum of answers confirms the leader. So it
 * answers at once, and its authinfo says how old the oldest of its observers' reports is: one
 * identity with the scheme `lag` and a number of milliseconds as text. Its leader counts that much
 * less as reported. ZooKeeper's leaders do not read the authinfo of a PING, and their sessions may
 * expire although an observer has received something from their clients.
 */
import type { Id, Millis, PacketView } from '@tskeeper/protocol';
import type { ZabOptions } from './zab-options.ts';

const scheme = 'lag';

/** The authinfo of a follower's answer; null if it has no observers. */
export function observersLag(lagMs: Millis | undefined): readonly Id[] | null {
  return lagMs === undefined ? null : [{ scheme, id: String(Math.ceil(lagMs)) }];
}

/**
 * Milliseconds; 0 without observers. At most syncLimit: a follower drops observers that are silent
 * for longer, and no learner may put off the expiry of sessions forever.
 */
export function observersLagOf(packet: PacketView, { syncLimitTicks, tickTimeMs }: ZabOptions): Millis {
  const id = packet.authinfo()?.find((each) => each.scheme === scheme)?.id;
  const lagMs = Number(id ?? 0);
  return lagMs >= 0 ? Math.min(lagMs, syncLimitTicks * tickTimeMs) : 0;
}
