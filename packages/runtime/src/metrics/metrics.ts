import type { Inspect, Now } from '@tskeeper/core';
import type { ServerFacts } from '../ports/server-facts.ts';

/** A number as mntr prints it: `29`, or `0.0` where ZooKeeper has a double. */
export interface MetricValue {
  readonly value: number;
  readonly isDouble: boolean;
}

/** What srvr shows of the requests since the start or the last srst. */
export interface Traffic {
  readonly latency: { readonly min: number; readonly avg: number; readonly max: number };
  readonly packetsReceived: number;
  readonly packetsSent: number;
}

/** Bytes of the proposals of a leader, since it leads or since the last srst; -1 before the first. */
export interface ProposalSizes {
  readonly last: number;
  readonly min: number;
  readonly max: number;
}

/** Where gauges are read at the moment they are asked for. */
export interface MetricSources {
  readonly inspect: Inspect;
  readonly facts: ServerFacts;
  readonly cnxnCount: number;
  readonly now: Now;
}

/** What four letter words need of the metrics. */
export interface Metrics {
  traffic(): Traffic;
  proposalSizes(): ProposalSizes;
  /** Every key with its value, without ZooKeeper's prefix `zk_`. */
  entries(sources: MetricSources): Iterable<readonly [key: string, value: MetricValue]>;
  /** srst: all counters start anew. */
  reset(): void;
}
