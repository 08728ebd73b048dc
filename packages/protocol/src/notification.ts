/**
 * What servers tell each other in an election, one message after the other on the election port: where the sender stands, whom it
 * votes for, and what configuration it goes by.
 */
import type { Zxid } from './numbers.ts';

/**
 * A server's number in its ensemble (`myid`), a whole number within the exact range of JavaScript's. An observer without a number of its
 * own is given one below 0 by whoever it dials.
 */
export type Sid = number;

/** Where a server stands. LOOKING: it takes part in an election. */
export type ServerState = 'looking' | 'following' | 'leading' | 'observing';

/** -2^63: the leader, zxid and peerEpoch that a server proposes which does not vote. It is exact as a number. */
export const noVote = -(2 ** 63);

export interface Notification {
  /** Of the sender. */
  readonly state: ServerState;
  /** Whom it votes for, and the last zxid and the currentEpoch of that server as it knows them. */
  readonly leader: Sid;
  readonly zxid: Zxid;
  readonly peerEpoch: number;
  /** The sender's round: its logical clock. */
  readonly electionEpoch: number;
  /** 2 since 3.5; 0 and 1 are those of older servers, which lack what follows. */
  readonly version: number;
  /** Text of the sender's current configuration; undefined when the message has none. */
  readonly config: string | undefined;
}
