/** What the process of the honest clients and the one that starts it say to each other. */

export interface HonestOptions {
  /** Of the servers: each has an honest client. */
  readonly ports: readonly number[];
  /** Where the sessions are that are abandoned. */
  readonly deadPort: number;
  readonly deadTimeoutMs: number;
}

export interface HonestReport {
  readonly answers: number;
  readonly errors: number;
  /** The first of them. */
  readonly examples: readonly string[];
  readonly p99Ms: number;
  readonly slowestMs: number;
  /** How long the ephemeral of each abandoned session stayed; null when it is still there. */
  readonly deadMs: readonly (number | null)[];
  /** By how much the clients' own timers were late: what the machine, and not the server, adds to the latencies. */
  readonly ownLagP99Ms: number;
}

export type ToHonest = 'begin' | 'report';
export type FromHonest = { readonly ready: true } | { readonly report: HonestReport };
