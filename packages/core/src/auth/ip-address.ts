/**
 * Parses numeric addresses into bytes, for matching prefixes. Other text gives undefined.
 */

/** 4 bytes for IPv4, 16 for IPv6. A zone, as in `fe80::1%eth0`, is ignored. */
export function parseAddress(text: string): Uint8Array | undefined {
  return text.includes(':') ? parseIPv6(text) : parseIPv4(text);
}

/** Builds no list of parts: an ACL may have tens of thousands of addresses. */
function parseIPv4(text: string): Uint8Array | undefined {
  const bytes = new Uint8Array(4);
  let part = 0;
  let digits = 0;
  let value = 0;
  for (let i = 0; i <= text.length; i++) {
    const digit = i === text.length ? dot : text.charCodeAt(i) - zero;
    if (digit >= 0 && digit <= 9) {
      value = value * 10 + digit;
      if (++digits > 3) return undefined;
    } else if (digit === dot && digits > 0 && value <= 255 && part < 4) {
      bytes[part++] = value;
      digits = 0;
      value = 0;
    } else {
      return undefined;
    }
  }
  return part === 4 ? bytes : undefined;
}

const zero = 0x30;
/** The code of a dot, minus that of '0'. */
const dot = 0x2e - zero;

function parseIPv6(text: string): Uint8Array | undefined {
  const zone = text.indexOf('%');
  const halves = (zone === -1 ? text : text.slice(0, zone)).split('::');
  if (halves.length > 2) return undefined;
  const left = parseGroups(halves[0]!);
  const right = halves.length === 2 ? parseGroups(halves[1]!) : [];
  if (left === undefined || right === undefined) return undefined;
  const given = left.length + right.length;
  // `::` replaces at least one group of zeros; without it all eight groups are required.
  if (halves.length === 2 ? given > 7 : given !== 8) return undefined;
  const groups = [...left, ...Array.from({ length: 8 - given }, () => 0), ...right];
  const bytes = new Uint8Array(16);
  groups.forEach((group, i) => {
    bytes[i * 2] = group >>> 8;
    bytes[i * 2 + 1] = group & 0xff;
  });
  return bytes;
}

function parseGroups(text: string): number[] | undefined {
  if (text === '') return [];
  const groups: number[] = [];
  const parts = text.split(':');
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i]!;
    // The last four bytes may be written as IPv4.
    if (i === parts.length - 1 && part.includes('.')) {
      const v4 = parseIPv4(part);
      if (v4 === undefined) return undefined;
      groups.push((v4[0]! << 8) | v4[1]!, (v4[2]! << 8) | v4[3]!);
      continue;
    }
    const value = parseDigits(part, 16, 4);
    if (value === undefined) return undefined;
    groups.push(value);
  }
  return groups;
}

/** Accepts one to `digitsMax` digits of the given base, nothing else. */
export function parseDigits(text: string, base: 10 | 16, digitsMax: number): number | undefined {
  if (text.length === 0 || text.length > digitsMax) return undefined;
  for (const character of text) {
    const isDigit = (character >= '0' && character <= '9') || (base === 16 && /[a-fA-F]/.test(character));
    if (!isDigit) return undefined;
  }
  return Number.parseInt(text, base);
}
