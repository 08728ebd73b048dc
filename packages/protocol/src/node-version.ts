/** Which versions of Node the packages run on. Each package's `engines` says it too, but npm only warns. */

/** The lowest one: it loads ES modules by `require`, and has what the packages use. */
const lowest = [20, 19] as const;

/** Why this version, `process.versions.node`, will not do; undefined when it will. */
export function nodeVersionFault(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > lowest[0] || (major === lowest[0] && minor >= lowest[1])) return undefined;
  return `tskeeper needs Node ${lowest.join('.')} or later, and this is Node ${version}: install a later one, as from https://nodejs.org`;
}
