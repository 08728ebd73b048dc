/** Releases of ZooKeeper, by which servers are judged. */

/** A release of ZooKeeper: `[3, 9, 2]`. */
export type Release = readonly [major: number, minor: number, patch: number];

/** Whether a release is another one, or came behind it. */
export function isAtLeast(release: Release, wanted: Release): boolean {
  const at = [0, 1, 2].find((part) => release[part] !== wanted[part]);
  return at === undefined || release[at]! > wanted[at]!;
}

/** `3.9.5` for `[3, 9, 5]`. */
export function formatRelease(release: Release): string {
  return release.join('.');
}

/** `3.9.5`, or `3.9` for its first; undefined for what is no release. */
export function parseRelease(text: string): Release | undefined {
  const [, major, minor, patch] = /^(\d+)\.(\d+)(?:\.(\d+))?/.exec(text) ?? [];
  return major === undefined ? undefined : [Number(major), Number(minor), Number(patch ?? 0)];
}
