/**
 * The paths of znodes: absolute, canonical, made of names between slashes.
 *
 * Paths of requests are checked as bytes, by a table and one loop, since any client may send any
 * bytes and every create is checked here.
 */

/** The kind of a code unit below 256. */
const plain = 0;
const slash = 1;
const refused = 2;

const kindOf = new Uint8Array(256).fill(plain);
kindOf.fill(refused, 0x00, 0x20);
kindOf.fill(refused, 0x7f, 0xa0);
kindOf[0x2f] = slash;

const slashCode = 0x2f;
const dotCode = 0x2e;

/**
 * Code units above the table that are not allowed in a path: surrogates with the private use area,
 * and the specials.
 */
function isRefusedAboveTable(code: number): boolean {
  return (code >= 0xd800 && code <= 0xf8ff) || code >= 0xfff0;
}

function describe(code: number): string {
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/**
 * What is wrong with a path, in words that can follow it in a sentence, or undefined if it is
 * valid. The rules are those of ZooKeeper's PathUtils.validatePath.
 */
export function pathError(path: string | null | undefined): string | undefined {
  if (path === null || path === undefined) return 'must not be null';
  if (path.length === 0) return 'must not be empty';
  if (path.charCodeAt(0) !== slashCode) return 'must start with "/"';
  if (path.length === 1) return undefined;
  if (path.charCodeAt(path.length - 1) === slashCode) return 'must not end with "/"';
  let nameStart = 1;
  for (let at = 1; at <= path.length; at++) {
    // The end of the path ends its last name.
    const code = at === path.length ? slashCode : path.charCodeAt(at);
    if (code === slashCode) {
      const length = at - nameStart;
      if (length === 0) return `must not have an empty name, as at ${at}`;
      if (path.charCodeAt(nameStart) === dotCode) {
        if (length === 1) return `must not be relative, as "." at ${nameStart} makes it`;
        if (length === 2 && path.charCodeAt(nameStart + 1) === dotCode) return `must not be relative, as ".." at ${nameStart} makes it`;
      }
      nameStart = at + 1;
    } else if (code < 256 ? kindOf[code] === refused : isRefusedAboveTable(code)) {
      return `must not have ${describe(code)}, as at ${at}`;
    }
  }
  return undefined;
}

/** Whether the UTF-8 text in [start, end) is a valid path. ASCII is not decoded. */
export function isValidPath(bytes: Buffer, start: number, end: number): boolean {
  if (start >= end || bytes[start] !== slashCode) return false;
  if (end - start === 1) return true;
  let nameStart = start + 1;
  for (let at = nameStart; at < end; at++) {
    const code = bytes[at]!;
    if (code >= 0x80) return pathError(bytes.toString('utf8', start, end)) === undefined;
    const kind = kindOf[code];
    if (kind === plain) continue;
    if (kind === refused || !isName(bytes, nameStart, at)) return false;
    nameStart = at + 1;
  }
  return isName(bytes, nameStart, end);
}

/** Neither empty nor "." nor "..". */
function isName(bytes: Buffer, start: number, end: number): boolean {
  const length = end - start;
  if (length === 0) return false;
  if (length > 2 || bytes[start] !== dotCode) return true;
  return length === 2 && bytes[start + 1] !== dotCode;
}

/** `/a` for `/a/b`, `/` for `/a`. The root is its own parent. */
export function parentPath(path: string): string {
  const at = path.lastIndexOf('/');
  return at <= 0 ? '/' : path.slice(0, at);
}

/** `b` for `/a/b`, empty for the root. */
export function nodeName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/**
 * The number at the end of a sequential znode's path: ten digits, padded with zeros. ZooKeeper
 * continues after 2147483647 like a signed int, and `-2147483648` has eleven characters. A server
 * with tskeeper.wideSequences continues with 2147483648; above 9999999999 there are more digits.
 */
export function sequenceSuffix(number: number): string {
  return number < 0 ? `-${String(-number).padStart(9, '0')}` : String(number).padStart(10, '0');
}

/**
 * The znodes that servers create themselves. Below `sequences` is the number that the sequential
 * children of a znode have reached, for znodes with more creates than 32 bits count; it exists only
 * where it is needed.
 */
export const systemPath = {
  zookeeper: '/zookeeper',
  quota: '/zookeeper/quota',
  config: '/zookeeper/config',
  sequences: '/zookeeper/sequences',
} as const;

/** The znode that records the number of the children of `path`. */
export function sequenceRecordPath(path: string): string {
  return `${systemPath.sequences}/${encodeURIComponent(path)}`;
}

/** Names in the quota tree: the limits of a path, and its usage. */
export const quotaNodeName = { limits: 'zookeeper_limits', stats: 'zookeeper_stats' } as const;

/** Whether a path is reserved and can never be deleted. */
export function isReservedPath(path: string): boolean {
  return path === '/' || path === systemPath.zookeeper || path === systemPath.quota || path === systemPath.config;
}
