/**
 * The versions of Node on which the packages run. Each package's `engines` has the same range, but
 * npm only warns.
 */

/**
 * Returns why this version, `process.versions.node`, is not supported; undefined if it is. `zlib`
 * has no crc32 before 20.15, in 21, 22.0 and 22.1.
 */
export function nodeVersionError(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 2) || (major === 20 && minor >= 19)) return undefined;
  return `tskeeper needs Node 20.19 or later in line 20, or 22.2 or later. This is Node ${version}: install a newer one, for example from https://nodejs.org.`;
}
