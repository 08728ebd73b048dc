/**
 * What an operator should do about a damaged data folder. A server that stands alone has nothing but its files and a backup. A server of an
 * ensemble must not be cut short by hand: what it has acknowledged may be committed, and its peers have it. It starts without data and
 * fetches everything from its leader.
 */

/** The remedy for a server of an ensemble. `logFolder` is left out where it is not known. */
export function refetchRemedy(snapshotFolder: string, logFolder?: string): string {
  let folders = snapshotFolder;
  if (logFolder === undefined) folders = `${snapshotFolder}, and version-2 of dataLogDir if that is set,`;
  else if (logFolder !== snapshotFolder) folders = `${snapshotFolder} and ${logFolder}`;
  return (
    `move ${folders} aside, keep ${snapshotFolder.slice(0, snapshotFolder.lastIndexOf('/'))}/myid, and start this server again: it fetches everything from its leader, ` +
    `provided that a quorum of the other servers runs with its data intact`
  );
}
