/** What an exploration has to come by, or it has not seen what it is for. Each is counted where a step leads to a state that is new. */
export const marks = {
  'DIFF from memory': 'a learner is sent what it lacks out of memory',
  'DIFF from the log': 'a learner is sent what it lacks out of the log on disk',
  TRUNC: 'a learner is told to cut its log',
  'cannot be cut': 'a learner that is told to cut its log cannot, since a snapshot stands for more',
  'txns behind TRUNC': 'a learner that is told to cut its log is sent txns behind it',
  SNAP: 'a learner is sent a snapshot',
  'looks again while syncing': 'a learner loses its leader between DIFF, TRUNC or SNAP and the ACK of NEWLEADER',
  'looks again while cutting': 'a learner loses its leader while its log is being cut',
  'leader ends before UPTODATE': 'a leader crashes when NEWLEADER has left and UPTODATE has not',
  'learner ends before its ACK': 'a learner crashes when NEWLEADER has come and is not acknowledged',
  'one epoch, two leaders': 'an epoch is proposed that another server has proposed before',
  'accepted before': 'a learner is told an epoch that it has accepted before, and does not count',
  'makes way for a later epoch': 'a leader ends since a voter comes that has accepted a later epoch',
  'ahead of its leader': "a learner that has more than its leader comes to it before the epoch is a quorum's",
  'early for its leader': 'a learner is refused by a server that does not know yet that it leads',
  'settles early': 'an election ends without the settling wait, since all who can be reached agree',
  'settles early without one': 'the same, where one was not waited for, since it refuses connections',
  'waits for one that does not answer': 'the settling wait is over, and one that nothing is heard of was waited for',
  'commits in two epochs': 'txns are committed in more than one epoch',
  INFORM: 'an observer is told of a commit',
  'an ACK without weight': 'a follower of weight 0 acknowledges a proposal',
  'a group alone': 'all servers of one group have a txn, and it is not committed, since the other group has not',
  'a session goes on elsewhere': 'the client that stays comes back, to this server or another',
  'a read behind a sync': 'a read is answered behind a sync, and something had been acknowledged before',
  'a read without a sync': 'a read is answered without one',
} as const;

export type MarkName = keyof typeof marks;

export const markNames = Object.keys(marks) as MarkName[];

/** How often each was hit. */
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
