/** The settings that all servers of a small world share, and their clock and randomness. */
import { coreDefaults, type CoreOptions } from '@tskeeper/core';

export const tickTimeMs = 100;
export const initLimitTicks = 10;
/** Longer than any wait except for the end of a session. */
export const longPauseMs = 2 * initLimitTicks * tickTimeMs;
/** Sessions outlive every run. */
export const sessionTimeoutMs = 1_000_000_000;
export const initialWallMs = 1_700_000_000_000;
/** Session ids are derived from seconds; each write must get its own. */
export const wallPerWriteMs = 1000;
export const packetBytesMax = 10_000_000;

export const fixedRandom = { uint32: () => 7 };
export const core: CoreOptions = {
  ...coreDefaults,
  // Rounds the expiry of sessions, and nothing else. With whole ticks it would matter where in a tick
  // the clock is, and states would differ by that.
  tickTimeMs: 1,
  minSessionTimeoutMs: sessionTimeoutMs,
  maxSessionTimeoutMs: sessionTimeoutMs,
  containerCheckIntervalMs: 0,
};
export const clientContext = { remoteAddress: '127.0.0.1', remotePort: 1, localPort: 2181, secure: false, peerCertificate: undefined };
