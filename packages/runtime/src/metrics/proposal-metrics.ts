/**
 * The metrics of the txns that a server of an ensemble proposes or receives. ZooKeeper counts the
 * same event under another name on a leader and on a learner, so they depend on the role.
 */
import type { Inspector } from '@tskeeper/core';
import type { Millis } from '@tskeeper/protocol';
import type { ProposalSizes } from './metrics.ts';
import { Summary } from './summary.ts';

export interface ProposalLatencies {
  readonly quorumAckLatency: Summary;
  readonly commitPropagationLatency: Summary;
  readonly proposalLatency: Summary;
  readonly ownAckLatency: Summary;
}

export class ProposalMetrics {
  readonly #latencies: ProposalLatencies;
  readonly #size = new Summary();
  #lastSize = -1;
  #made = 0;
  #received = 0;
  #commits = 0;
  #commitsReceived = 0;
  role: ReturnType<Inspector['role']> = 'standalone';

  constructor(latencies: ProposalLatencies) {
    this.#latencies = latencies;
  }

  proposed(bytes: number): void {
    if (this.role !== 'leader') return;
    this.#made++;
    this.#size.add(bytes);
    this.#lastSize = bytes;
  }

  /** `ageMs` is the time since the txn's time on the wall clock; below 0 when it is not known. */
  applied(ageMs: Millis): void {
    if (this.role === 'standalone') return;
    const isLeader = this.role === 'leader';
    if (isLeader) this.#commits++;
    else this.#commitsReceived++;
    if (ageMs >= 0) (isLeader ? this.#latencies.quorumAckLatency : this.#latencies.commitPropagationLatency).add(ageMs);
  }

  received(ageMs: Millis): void {
    if (this.role !== 'follower') return;
    this.#received++;
    if (ageMs >= 0) this.#latencies.proposalLatency.add(ageMs);
  }

  logged(ageMs: Millis): void {
    if (ageMs >= 0) this.#latencies.ownAckLatency.add(ageMs);
  }

  sizes(): ProposalSizes {
    const isThere = this.#size.count > 0;
    const { min, max } = this.#size;
    return { last: this.#lastSize, min: isThere ? min : -1, max: isThere ? max : -1 };
  }

  counters(): Record<string, number> {
    return {
      proposal_count: this.#made,
      commit_count: this.#commits,
      learner_proposal_received_count: this.#received,
      learner_commit_received_count: this.#commitsReceived,
    };
  }

  resetSizes(): void {
    this.#size.reset();
    this.#lastSize = -1;
  }

  reset(): void {
    this.#made = this.#commits = this.#received = this.#commitsReceived = 0;
    this.resetSizes();
  }
}
