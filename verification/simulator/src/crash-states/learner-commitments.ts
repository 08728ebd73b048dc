/**
 * What a server sent to others while it joined, parsed from its outgoing bytes: promises that its
 * disk has to keep. At the election port it also records the first vote.
 */
import { counterOf, epochOf, type Notification, PacketType, type PacketView, type Zxid } from '@tskeeper/protocol';
import { type Feed, packetFeed, voteFeed } from '../record/peer-claims.ts';
import { electionPort, quorumPort } from '../world/peer-ports.ts';

/** What the server has promised so far. Each field is 0 before, and only grows. */
export interface Commitments {
  /** The accepted epoch: ACKEPOCH was sent. */
  readonly accepted: number;
  /** The epoch that the server belongs to: the ACK of NEWLEADER was sent. */
  readonly epoch: number;
  /**
   * Every txn up to here is in the log: its ACK was sent, or that of the NEWLEADER that covers it.
   */
  readonly acked: Zxid;
}

export const noCommitments: Commitments = { accepted: 0, epoch: 0, acked: 0 };

export class LearnerCommitments {
  current: Commitments;
  /** The first vote that the server sent. */
  firstVote: Notification | undefined;
  /** Called for each new promise. */
  onChange: (() => void) | undefined;
  readonly #epoch: number;
  readonly #historyEnd: Zxid;
  readonly #cnxns = new Map<number, Feed>();

  /**
   * @param epoch the leader's epoch, which ACKEPOCH accepts without naming it.
   * @param historyEnd the end of the history when the server began to join: NEWLEADER covers at
   * least this.
   */
  constructor(epoch: number, historyEnd: Zxid, promises: Commitments) {
    this.#epoch = epoch;
    this.#historyEnd = historyEnd;
    this.current = promises;
  }

  /** See `ServerHost.onSent`. */
  sent(cnxn: number, port: number, bytes: Buffer): void {
    if (port !== quorumPort && port !== electionPort) return;
    let feed = this.#cnxns.get(cnxn);
    if (feed === undefined) {
      feed = port === quorumPort ? packetFeed((packet) => this.#packet(packet)) : voteFeed((vote) => void (this.firstVote ??= vote));
      this.#cnxns.set(cnxn, feed);
    }
    feed(Buffer.from(bytes));
  }

  #packet({ type, zxid }: PacketView): void {
    const { accepted, epoch, acked } = this.current;
    if (type === PacketType.ACKEPOCH) this.current = { accepted: Math.max(accepted, this.#epoch), epoch, acked };
    else if (type !== PacketType.ACK) return;
    // The ACK of NEWLEADER, and of UPTODATE.
    else if (counterOf(zxid) === 0)
      this.current = { accepted, epoch: Math.max(epoch, epochOf(zxid)), acked: Math.max(acked, this.#historyEnd) };
    else this.current = { accepted, epoch, acked: Math.max(acked, zxid) };
    this.onChange?.();
  }
}
