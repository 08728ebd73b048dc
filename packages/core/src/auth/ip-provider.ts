/**
 * The scheme `ip`: every connection has its peer's address as an identity; an ACL entry is an
 * address or a prefix such as `10.0.0.0/8` or `fd00::/8`.
 */
import type { AuthProvider } from './auth-provider.ts';
import { parseAddress, parseDigits } from './ip-address.ts';

export const ipProvider: AuthProvider = {
  scheme: 'ip',
  provesIdentity: false,
  // The address is an identity already, whatever the client sends.
  authenticate: () => ({ kind: 'done', identities: [] }),
  isValidId: (id) => parsePrefix(id) !== undefined,
  matches(identity, aclId) {
    if (identity === aclId) return true;
    const address = parseAddress(identity);
    const prefix = parsePrefix(aclId);
    return address !== undefined && prefix !== undefined && startsWith(address, prefix);
  },
  keys: {
    aclKey(aclId) {
      const prefix = parsePrefix(aclId);
      return prefix === undefined ? undefined : prefixKey(prefix.bytes, prefix.bits);
    },
    identityKeys(identity) {
      const address = parseAddress(identity);
      return address === undefined ? [] : Array.from({ length: address.length * 8 + 1 }, (_, bits) => prefixKey(address, bits));
    },
  },
  userName: (identity) => identity,
};

/** Equal for all prefixes of `bits` bits with the same leading bits. */
function prefixKey(bytes: Uint8Array, bits: number): string {
  const wholeBytes = bits >>> 3;
  const end = (bits + 7) >>> 3;
  const key = new Uint8Array(end + 2);
  key[0] = bytes.length;
  key[1] = bits;
  for (let i = 0; i < end; i++) key[i + 2] = i < wholeBytes ? bytes[i]! : bytes[i]! & (0xff << (8 - (bits & 7)));
  return String.fromCharCode(...key);
}

interface Prefix {
  readonly bytes: Uint8Array;
  readonly bits: number;
}

/** Parses an address or `address/bits`; undefined if `text` is neither. */
function parsePrefix(text: string): Prefix | undefined {
  const slash = text.indexOf('/');
  const bytes = parseAddress(slash === -1 ? text : text.slice(0, slash));
  if (bytes === undefined) return undefined;
  const bitsMax = bytes.length * 8;
  if (slash === -1) return { bytes, bits: bitsMax };
  const bits = parseDigits(text.slice(slash + 1), 10, 3);
  return bits !== undefined && bits <= bitsMax ? { bytes, bits } : undefined;
}

function startsWith(address: Uint8Array, prefix: Prefix): boolean {
  if (address.length !== prefix.bytes.length) return false;
  const wholeBytes = prefix.bits >>> 3;
  for (let i = 0; i < wholeBytes; i++) if (address[i] !== prefix.bytes[i]) return false;
  const restBits = prefix.bits & 7;
  if (restBits === 0) return true;
  const mask = (0xff << (8 - restBits)) & 0xff;
  return (address[wholeBytes]! & mask) === (prefix.bytes[wholeBytes]! & mask);
}
