/** Releases of ZooKeeper, with which servers are compared. */

/** A release of ZooKeeper: `[3, 9, 2]`. */
export type Release = readonly [major: number, minor: number, patch: number];

/** Whether a release is `wanted` or a later one. */
export function isAtLeast(release: Release, wanted: Release): boolean {
  const at = [0, 1, 2].find((part) => release[part] !== wanted[part]);
  return at === undefined || release[at]! > wanted[at]!;
}

/** `3.9.5` for `[3, 9, 5]`. */
export function formatRelease(release: Release): string {
  return release.join('.');
}

/** Parses `3.9.5`, or `3.9` for its first release; undefined if the text is not a release. */
export function parseRelease(text: string): Release | undefined {
  const [, major, minor, patch] = /^(\d+)\.(\d+)(?:\.(\d+))?/.exec(text) ?? [];
  return major === undefined ? undefined : [Number(major), Number(minor), Number(patch ?? 0)];
}
