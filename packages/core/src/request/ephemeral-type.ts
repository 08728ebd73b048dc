/**
 * The values of ephemeralOwner that are not sessions: containers and TTL znodes (client-protocol:
 * "ephemeralOwner as stored").
 */
import type { Millis } from '@tskeeper/protocol';

export const containerOwner = { high: 0x80000000 | 0, low: 0 } as const;

/** 2^40 - 1 ms, about 34.8 years: the bits after the marker bytes. */
export const ttlMax: Millis = 0xffffffffff;

/** 0xff in the top byte, type 0x0000, and the TTL in the low 40 bits. */
export function ttlOwner(ttlMs: Millis): { readonly high: number; readonly low: number } {
  return { high: 0xff000000 | Math.floor(ttlMs / 4294967296), low: ttlMs | 0 };
}

export function isContainerOwner(high: number, low: number): boolean {
  return high === containerOwner.high && low === containerOwner.low;
}

/**
 * How TTLs are distinguished from session ids. Without extended types nothing is a TTL, and such an
 * owner is taken for a session.
 */
export interface OwnerRules {
  readonly extendedTypesEnabled: boolean;
  /**
   * The layout of ZooKeeper 3.5.3 is accepted as well: the top bit set, and the TTL in the low 60.
   */
  readonly emulate353TtlNodes: boolean;
}

/** The TTL that an owner encodes, or undefined if it encodes none. */
export function ttlOfOwner(high: number, low: number, rules: OwnerRules): Millis | undefined {
  if (!rules.extendedTypesEnabled || isContainerOwner(high, low)) return undefined;
  // The current layout comes first: new znodes have it, whether or not the old one is emulated.
  if (high >>> 24 === 0xff) return (high & 0xff) * 4294967296 + (low >>> 0);
  return rules.emulate353TtlNodes && high < 0 ? (high & 0x0fffffff) * 4294967296 + (low >>> 0) : undefined;
}

/** Whether a session owns the znode, which is deleted with it. */
export function isSessionOwner(high: number, low: number, rules: OwnerRules): boolean {
  return (high !== 0 || low !== 0) && !isContainerOwner(high, low) && ttlOfOwner(high, low, rules) === undefined;
}
