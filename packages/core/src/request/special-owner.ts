/** The values of ephemeralOwner that are no session: containers and TTL znodes (client-protocol: "ephemeralOwner as stored"). */
import type { Millis } from '@tskeeper/protocol';

export const containerOwner = { high: 0x80000000 | 0, low: 0 } as const;

/** 2^40 - 1 ms, about 34.8 years: what fits behind the marker bytes. */
export const ttlMax: Millis = 0xffffffffff;

/** 0xff in the top byte, type 0x0000, and the TTL in the low 40 bits. */
export function ttlOwner(ttlMs: Millis): { readonly high: number; readonly low: number } {
  return { high: 0xff000000 | Math.floor(ttlMs / 4294967296), low: ttlMs | 0 };
}

export function isContainerOwner(high: number, low: number): boolean {
  return high === containerOwner.high && low === containerOwner.low;
}

/** How TTLs are told from session ids. Without extended types nothing is a TTL, and such an owner is taken for a session. */
export interface OwnerRules {
  readonly extendedTypesEnabled: boolean;
  /** Besides, the layout of ZooKeeper 3.5.3 is understood: the top bit set, and the TTL in the low 60. */
  readonly emulate353TtlNodes: boolean;
}

/** The TTL an owner stands for, or undefined when it stands for something else. */
export function ttlOfOwner(high: number, low: number, rules: OwnerRules): Millis | undefined {
  if (!rules.extendedTypesEnabled || isContainerOwner(high, low)) return undefined;
  // The layout of today comes first: znodes created now have it, whatever is emulated.
  if (high >>> 24 === 0xff) return (high & 0xff) * 4294967296 + (low >>> 0);
  return rules.emulate353TtlNodes && high < 0 ? (high & 0x0fffffff) * 4294967296 + (low >>> 0) : undefined;
}

/** Owned by a session, and gone with it. */
export function isSessionOwner(high: number, low: number, rules: OwnerRules): boolean {
  return (high !== 0 || low !== 0) && !isContainerOwner(high, low) && ttlOfOwner(high, low, rules) === undefined;
}
