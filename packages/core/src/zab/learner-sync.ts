import type { Zxid } from '@tskeeper/protocol';
import type { ChannelId } from './quorum-links.ts';

/** A learner that is to be brought up to date, as its leader sees it. */
export interface LearnerSync {
  readonly channel: ChannelId;
  readonly isVoter: boolean;
  /** Whether the configuration names it, as a voter or as an observer. */
  readonly isMember: boolean;
  /** The last txn in its log. */
  readonly lastZxid: Zxid;
  /**
   * From here on the learner hears of everything that is committed or proposed, after `done`, which follows in the same turn. Returns the last
   * txn that was committed before: the learner is to be sent everything up to there.
   */
  begin(): Zxid;
  done(): void;
}
