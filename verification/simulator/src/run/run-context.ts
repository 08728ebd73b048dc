/** What the parts of a run share: its world, its time, its random delays and its marks. */
import type { Millis } from '@tskeeper/protocol';
import type { ServerHost } from '../world/server-host.ts';
import type { TimerOwner } from '../world/virtual-clock.ts';
import type { VirtualWorld } from '../world/virtual-world.ts';

export interface RunContext {
  readonly world: VirtualWorld;
  readonly nowMs: Millis;
  /** No more faults may strike. */
  readonly isHealed: boolean;
  /** Transfer rates of links and disks until the healing. */
  readonly rates: { readonly linkBytesPerMs: number; readonly diskBytesPerMs: number };
  /** A random time below `max`. */
  drawMs(max: Millis): Millis;
  hitMark(mark: string): void;
  schedule(ms: Millis, what: string, owner: TimerOwner | undefined, run: () => void): void;
  anyServer(): ServerHost;
}
