import type { Zxid } from '@tskeeper/protocol';
import type { ChannelId } from './quorum-links.ts';

/** A learner to be synchronised, as its leader sees it. */
export interface SyncTarget {
  readonly channel: ChannelId;
  readonly isVoter: boolean;
  /** Whether the configuration contains it, as a voter or as an observer. */
  readonly isMember: boolean;
  /** The last txn in its log. */
  readonly lastZxid: Zxid;
  /**
   * From here on the learner receives everything committed or proposed, after `historySent`, which
   * must follow in the same turn. Returns the last committed txn: the learner must be sent all txns
   * up to it.
   */
  startReplicating(): Zxid;
  historySent(): void;
}
