/**
 * Marks that an exploration has to hit to prove what it claims. Each is counted when a step leads
 * to a new state.
 */
export const marks = {
  'DIFF from memory': 'a learner is sent the txns that it lacks from memory',
  'DIFF from the log': 'a learner is sent the txns that it lacks from the log on disk',
  TRUNC: 'a learner is told to truncate its log',
  'cannot be cut': 'a learner cannot truncate its log as told, since a snapshot covers more',
  'txns behind TRUNC': 'a learner that is told to truncate its log is sent txns after the TRUNC',
  SNAP: 'a learner is sent a snapshot',
  'looks again while syncing': 'a learner loses its leader between DIFF, TRUNC or SNAP and the ACK of NEWLEADER',
  'looks again while cutting': 'a learner loses its leader while it truncates its log',
  'leader ends before UPTODATE': 'a leader crashes after it sent NEWLEADER and before UPTODATE',
  'learner ends before its ACK': 'a learner crashes after it received NEWLEADER and before it acknowledged that',
  'one epoch, two leaders': 'an epoch is proposed that another server has proposed before',
  'accepted before': 'a learner receives an epoch that it has accepted before, and does not count',
  'makes way for a later epoch': 'a leader ends because a voter joins that has accepted a later epoch',
  'ahead of its leader': 'a learner that has more than its leader joins before a quorum has the epoch',
  'early for its leader': 'a learner is refused by a server that does not know yet that it leads',
  'settles early': 'an election ends without the settling wait, since all reachable servers agree',
  'settles early without one': 'the same, without waiting for a server that refuses connections',
  'waits for one that does not answer': 'the settling wait ends after waiting for a silent server',
  'commits in two epochs': 'txns are committed in more than one epoch',
  INFORM: 'an observer is sent an INFORM',
  'an ACK without weight': 'a follower of weight 0 acknowledges a proposal',
  'a group alone': 'all servers of one group have a txn that is not committed, since the other group does not have it',
  'a session goes on elsewhere': 'the persistent client reconnects to a server',
  'a read behind a sync': 'a read after a sync has a reply, and a write had been acknowledged before',
  'a read without a sync': 'a read without a sync has a reply',
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
