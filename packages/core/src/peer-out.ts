import type { Sid } from '@tskeeper/protocol';
import type { ElectionOut } from './election/fast-leader-election.ts';
import type { Out } from './out.ts';
import type { SynchroniserOut } from './zab/learner-sync.ts';
import type { LearnerOut } from './zab/learner.ts';

/** The outputs of a server of an ensemble, in order. It never calls back. */
export interface PeerOut extends Omit<Out, 'append'>, LearnerOut, Pick<ElectionOut, 'notify'>, SynchroniserOut {
  /** How many bytes of the log on disk are cheaper to send to a learner than a snapshot; undefined when it is not to be read. See `logBytesMax`. */
  logBytesMax(): number | undefined;
  /** Connects to the learner port of another server. It completes as `dialled`, or as `dialFailed`. One dial at a time. */
  dialLeader(sid: Sid): void;
  /** Cancels the dial that is under way, if there is one; it does not complete. */
  dialNobody(): void;
  /** Closes the connection for votes with that server, if there is one, and makes a new one, which completes as `reachable` or `unreachable`. */
  reconnect(sid: Sid): void;
  /** Reads at once what the oracle says, which completes as `oracleSaid`. It is read now and then besides. Without an oracle there is no need. */
  askOracle?(): void;
}
