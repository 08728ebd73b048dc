/** Messages between the process of the honest clients and the one that starts it. */

export interface HonestOptions {
  /** Ports of the servers: each has an honest client. */
  readonly ports: readonly number[];
  /** The server of the abandoned sessions. */
  readonly abandonedPort: number;
  readonly abandonedTimeoutMs: number;
}

export interface HonestReport {
  readonly answers: number;
  readonly errors: number;
  /** The first errors. */
  readonly examples: readonly string[];
  readonly p99Ms: number;
  readonly slowestMs: number;
  /** How long the ephemeral znode of each abandoned session existed; null if it still exists. */
  readonly abandonedSessionMs: readonly (number | null)[];
  /** How late the clients' own timers were: the machine's share of the latencies. */
  readonly ownLagP99Ms: number;
}

export type HonestCommand = 'begin' | 'report';
export type HonestMessage = { readonly ready: true } | { readonly report: HonestReport };
