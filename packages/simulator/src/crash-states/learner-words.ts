/**
 * What a server has said to others while it joined, read off the bytes that have left it: promises that its disk has to keep. Where it dials the
 * election port it is also heard what it votes for at first.
 */
import { counterOf, epochOf, type Notification, PacketType, type PacketView, type Zxid } from '@tskeeper/protocol';
import { type Feed, packetFeed, voteFeed } from '../record/peer-words.ts';
import { electionPort, quorumPort } from '../world/peer-ports.ts';

/** What it is held to from some moment on. Each of them is 0 before, and only grows. */
export interface Promises {
  /** The epoch that it has accepted: ACKEPOCH has left. */
  readonly accepted: number;
  /** The epoch that it is part of: the ACK of NEWLEADER has left. */
  readonly epoch: number;
  /** Every txn up to here is in its log: the ACK of it has left, or that of the NEWLEADER that stood for it. */
  readonly acked: Zxid;
}

export const noPromises: Promises = { accepted: 0, epoch: 0, acked: 0 };

export class LearnerWords {
  promises: Promises;
  /** Of whom it said first that it votes for. */
  firstVote: Notification | undefined;
  /** Told whenever there is a new promise. */
  promised: (() => void) | undefined;
  readonly #epoch: number;
  readonly #historyEnd: Zxid;
  readonly #cnxns = new Map<number, Feed>();

  /**
   * @param epoch the one that is being led: what ACKEPOCH accepts is not said in it.
   * @param historyEnd where the history ended when it came: NEWLEADER stands for at least this.
   */
  constructor(epoch: number, historyEnd: Zxid, promises: Promises) {
    this.#epoch = epoch;
    this.#historyEnd = historyEnd;
    this.promises = promises;
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
    const { accepted, epoch, acked } = this.promises;
    if (type === PacketType.ACKEPOCH) this.promises = { accepted: Math.max(accepted, this.#epoch), epoch, acked };
    else if (type !== PacketType.ACK) return;
    // Of NEWLEADER, and of UPTODATE.
    else if (counterOf(zxid) === 0)
      this.promises = { accepted, epoch: Math.max(epoch, epochOf(zxid)), acked: Math.max(acked, this.#historyEnd) };
    else this.promises = { accepted, epoch, acked: Math.max(acked, zxid) };
    this.promised?.();
  }
}
