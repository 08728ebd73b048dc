import type { Millis } from '@tskeeper/protocol';

/**
 * The two times of a turn, read once by whoever drives the core. Sessions expire by `elapsedMs`, which never jumps; `wallMs` is only
 * ever written into ctime and mtime and compared with them (container and TTL sweeps).
 */
export interface Now {
  /** Monotonic, from an arbitrary start. */
  readonly elapsedMs: Millis;
  /** Since 1970, as the operating system believes. */
  readonly wallMs: Millis;
}
