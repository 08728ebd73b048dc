/**
 * Marks that an exploration has to hit to prove what it claims. Each is counted when a step leads
 * to a new state.
 */
export const marks = {
  'DIFF from memory': 'a learner is sent the txns that it lacks from memory',
  'DIFF from the log': 'a learner is sent the txns that it lacks from the log on disk',
  TRUNC: 'a learner receives TRUNC',
  'TRUNC impossible': 'a learner cannot truncate its log, since a snapshot covers more',
  'txns after TRUNC': 'a learner receives txns after a TRUNC',
  SNAP: 'a learner is sent a snapshot',
  'leader lost while syncing': 'a learner loses its leader between DIFF, TRUNC or SNAP and the ACK of NEWLEADER',
  'leader lost while truncating': 'a learner loses its leader while it truncates its log',
  'leader crashes before UPTODATE': 'a leader crashes after it sent NEWLEADER and before UPTODATE',
  'learner crashes before its ACK': 'a learner crashes after it received NEWLEADER and before it acknowledged that',
  'epoch proposed twice': 'an epoch is proposed that another server has proposed before',
  'epoch accepted before': 'a learner receives an epoch that it has accepted before, and does not count',
  'leader yields to a later epoch': 'a leader ends because a voter joins that has accepted a later epoch',
  'learner ahead of its leader': 'a learner that has more than its leader joins before a quorum has the epoch',
  'refused by a leader not yet leading': 'a learner is refused by a server that does not know yet that it leads',
  'election finalized early': 'an election ends without the finalize wait, since all reachable servers agree',
  'election finalized early without an unreachable server': 'the same, without waiting for a server that refuses connections',
  'finalize wait for a silent server': 'the finalize wait ends after waiting for a silent server',
  'commits in two epochs': 'txns are committed in more than one epoch',
  INFORM: 'an observer is sent an INFORM',
  'ACK of weight 0': 'a follower of weight 0 acknowledges a proposal',
  'one group is not a quorum': 'all servers of one group have a txn that is not committed, since the other group does not have it',
  'session reconnects': 'the persistent client reconnects to a server',
  'read after sync': 'a read after a sync has a reply, and a write had been acknowledged before',
  'read without sync': 'a read without a sync has a reply',
  'configuration changed': 'a reconfiguration is committed',
  'configuration changed and changed back': 'two reconfigurations are committed',
  'reconfiguration through a follower': 'a reconfiguration that a follower has forwarded has its reply',
  'reconfiguration refused': 'a reconfiguration is refused, as another is under way, or its voters are not in step',
  'pending configuration completed by a later leader': 'a reconfiguration is committed that an earlier leader has proposed',
  'pending configuration taken back': 'a server gives up a configuration that a TRUNC or a SNAP has taken from its log',
  'pending configuration at a start': 'a server starts with a configuration that may become active next in its file',
  'old configuration at a start': 'a server starts with files of an earlier configuration than that in force',
  'server outside the configuration starts': 'a server starts whose files do not name it, with a line that its operator has written',
  'configuration learned in an election': 'a server that looks for a leader activates what others have announced',
  'joiner synchronised': 'a server outside the configuration in force is synchronised',
  'leader removed': 'a leader ends because the configuration in force has no place for it',
  'role changed': 'a learner ends because it has become an observer or a voter',
  'lead handed over': 'a leader resigns, and has named a follower that has everything as the next one',
  'transfer given up': 'a leader keeps the lead, since the server that was to have it is lost or too slow',
  'transfer refused': 'a leader keeps the lead, since the other server is not in step, or a transfer is under way',
  'leads without an election': 'a server leads because the last leader has named it',
  'follows without an election': 'a server follows another because the last leader has named that',
} as const;

export type MarkName = keyof typeof marks;

export const markNames = Object.keys(marks) as MarkName[];

/** How often each mark was hit. */
export class MarkCounts {
  readonly #counts = new Map<MarkName, number>(markNames.map((name) => [name, 0]));

  add(names: Iterable<MarkName>): void {
    for (const name of names) this.#counts.set(name, this.#counts.get(name)! + 1);
  }

  addAll(other: MarkCounts): void {
    for (const [name, count] of other.#counts) this.#counts.set(name, this.#counts.get(name)! + count);
  }

  count(name: MarkName): number {
    return this.#counts.get(name)!;
  }

  get missing(): MarkName[] {
    return markNames.filter((name) => this.#counts.get(name) === 0);
  }

  get text(): string {
    return markNames.map((name) => `${name} ${this.#counts.get(name)}`).join(', ');
  }
}
