/** How an attempt to move the lead can end. The sentences for operators are in the runtime. */

/** Why a leader is not replaced by the server that an operator has named. */
export type TransferRefusal =
  /** The server asked does not lead, or does not serve yet. */
  | 'not leading'
  | 'leads already'
  /** The target has no vote, or a vote of weight 0. */
  | 'not a voter'
  /** The target is not connected, or not synchronised; or no follower is. */
  | 'not in step'
  /** A follower would not know whom to follow: it runs ZooKeeper, or an earlier version. */
  | 'follower without support'
  | 'reconfiguration pending'
  | 'transfer under way';

/** What became of a transfer, for operators. */
export type TransferEnd =
  /** The target leads next. */
  | 'handed over'
  /** The target has not acknowledged everything within half of syncLimit. */
  | 'target too slow'
  /** The target has disconnected. */
  | 'target lost';
