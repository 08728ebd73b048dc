/** A learner that is to be brought up to date, as its leader sees it. */
import type { Zxid } from '@tskeeper/protocol';
import type { ChannelId } from './zab-out.ts';

export interface LearnerSync {
  readonly channel: ChannelId;
  /** The last txn in its log. */
  readonly lastZxid: Zxid;
  /** It is to be sent everything committed up to here. What comes behind it follows when `done` has been called. */
  readonly upTo: Zxid;
  done(): void;
  /** It cannot be brought up to date over this stream: `reason` is for the operator. */
  failed(reason: string): void;
}
