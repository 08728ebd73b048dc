/**
 * What an operator should do about a damaged data folder. A standalone server has only its files
 * and a backup, and so has the only voter of an ensemble: no other server needs to have what it has
 * acknowledged. Where another server votes, a server must not be cut short by hand: what it has
 * acknowledged may be committed, and a quorum has it. It starts without data and fetches everything
 * from its leader.
 */

/** The folders of snapshots and logs; `logs` is omitted where it is not known. */
export interface DamagedFolders {
  readonly snapshots: string;
  readonly logs?: string;
}

/**
 * The end of a sentence about damage: how to fetch the data anew where that is possible
 * (`canRefetch`), and `standaloneRemedy` where it is not.
 */
export function remedyFor(canRefetch: boolean, folders: DamagedFolders, standaloneRemedy: string): string {
  return canRefetch ? refetchRemedy(folders) : standaloneRemedy;
}

/**
 * The same for epochs. An only voter has promised its epochs to no other server, so the last txn
 * determines them.
 */
export function epochRemedyFor(canRefetch: boolean, snapshots: string): string {
  return remedyFor(
    canRefetch,
    { snapshots },
    `delete ${snapshots}/acceptedEpoch and ${snapshots}/currentEpoch, and start this server again: as no other server votes, it takes both from its last txn`,
  );
}

function refetchRemedy({ snapshots, logs }: DamagedFolders): string {
  let folders = snapshots;
  if (logs === undefined) folders = `${snapshots}, and version-2 of dataLogDir if that is set,`;
  else if (logs !== snapshots) folders = `${snapshots} and ${logs}`;
  return (
    `move ${folders} aside, keep ${snapshots.slice(0, snapshots.lastIndexOf('/'))}/myid, and start this server again: it fetches everything from its leader, ` +
    `provided that a quorum of the other servers runs with its data intact`
  );
}
