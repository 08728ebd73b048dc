import type { Inspector, Now } from '@tskeeper/core';
import type { ServerFacts } from '../ports/server-facts.ts';

/** A number as mntr prints it: `29`, or `0.0` where ZooKeeper has a double. */
export interface MetricValue {
  readonly value: number;
  readonly isDouble: boolean;
}

/** The numbers of requests that srvr shows, since the start or the last srst. */
export interface Traffic {
  readonly latency: { readonly min: number; readonly avg: number; readonly max: number };
  readonly packetsReceived: number;
  readonly packetsSent: number;
}

/**
 * Bytes of the proposals of a leader, since it began to lead or since the last srst; -1 before the
 * first.
 */
export interface ProposalSizes {
  readonly last: number;
  readonly min: number;
  readonly max: number;
}

/** The sources of gauges, which are read on request. */
export interface MetricSources {
  readonly inspect: Inspector;
  readonly facts: ServerFacts;
  readonly cnxnCount: number;
  readonly now: Now;
}

/** The part of the metrics that four letter words use. */
export interface Metrics {
  traffic(): Traffic;
  proposalSizes(): ProposalSizes;
  /** Every key with its value, without ZooKeeper's prefix `zk_`. */
  entries(sources: MetricSources): Iterable<readonly [key: string, value: MetricValue]>;
  /** srst: resets all counters. */
  reset(): void;
}
