/** Addresses as ACLs of the scheme `ip` compare them: the first bits count. */

/** The bytes of an address, or undefined if it is invalid. */
function addressBytes(text: string): number[] | undefined {
  if (text.includes(':')) {
    const halves = text.split('::');
    const groups = halves.map((half) => (half === '' && halves.length === 2 ? [] : half.split(':')));
    const present = groups.flat();
    if (halves.length > 2 || !present.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return undefined;
    if (halves.length === 1 ? present.length !== 8 : present.length >= 8) return undefined;
    const zeros = Array.from({ length: 8 - present.length }, () => '0');
    const all = halves.length === 1 ? present : [...groups[0]!, ...zeros, ...groups[1]!];
    return all.flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff]);
  }
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  const bytes = parts.map((part) => (/^[+-]?\d+$/.test(part) ? Number(part) : -1));
  return bytes.every((byte) => byte >= 0 && byte <= 255) ? bytes : undefined;
}

interface AddressRange {
  readonly bits: string;
  readonly prefix: number;
}

/** `addr` or `addr/bits`, as address bits and the number of bits that count. */
export function addressRange(text: string): AddressRange | undefined {
  const slash = text.indexOf('/');
  const bytes = addressBytes(slash < 0 ? text : text.slice(0, slash));
  if (bytes === undefined) return undefined;
  const bits = bytes.map((byte) => byte.toString(2).padStart(8, '0')).join('');
  if (slash < 0) return { bits, prefix: bits.length };
  const suffix = text.slice(slash + 1);
  const prefix = /^[+-]?\d+$/.test(suffix) ? Number(suffix) : -1;
  return prefix >= 0 && prefix <= bits.length ? { bits, prefix } : undefined;
}
