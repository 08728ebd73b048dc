/**
 * Why a server has stopped leading or learning. Programs compare these names; the sentence that
 * goes with one is for the operator.
 */
export type RoleEndReason =
  /** A leader. */
  | 'quorum lost'
  | 'no quorum in time'
  | 'voters elsewhere'
  | 'disloyal voter'
  | 'later epoch accepted'
  | 'last epoch reached'
  | 'counter exhausted'
  | 'quorum port unreachable'
  | 'paused'
  | 'resigned'
  /** A learner. */
  | 'leader silent'
  | 'leader not receiving'
  | 'leader disconnected'
  | 'leader resigned'
  | 'leader removed'
  | 'role changed'
  | 'other configuration'
  | 'leader of an older epoch'
  | 'log not truncatable'
  | 'snapshot too old'
  | 'protocol error'
  /** Both. */
  | 'stopped';
