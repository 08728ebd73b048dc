import type { Millis } from '@tskeeper/protocol';

/**
 * The two times of a turn, read once by the caller of the core. Sessions expire by `elapsedMs`,
 * which never jumps; `wallMs` is only written into ctime and mtime and compared with them
 * (container and TTL sweeps).
 */
export interface Now {
  /** Monotonic, from an arbitrary start. */
  readonly elapsedMs: Millis;
  /** Since 1970, by the operating system's clock. */
  readonly wallMs: Millis;
}
