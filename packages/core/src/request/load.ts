/** What is under way, in requests and in the memory they hold: the measure by which new requests are kept waiting. */
import { aclEntriesOf, changesOf, type ForwardedRequest, type Proposal, type WriteOrigin } from './proposal.ts';
import type { ParkedFrame, Waiting, WaitingSync } from './session-order.ts';

/**
 * What one part of a multi holds besides its bytes in the log until it is applied: the change, and what it makes of the znode and its
 * parent.
 */
const bytesPerChange = 1024;
/** What an entry of an ACL holds besides its bytes in the log until its txn is applied, as objects and texts. */
const bytesPerAclEntry = 160;

export class Load {
  /** Requests taken in and not yet answered. */
  requests = 0;
  /** What requests under way hold in memory: proposals that are not applied yet, frames that wait, and what is passed on to the leader. */
  bytes = 0;

  parked(frame: ParkedFrame): void {
    this.requests++;
    this.bytes += frame.bytes.length;
  }

  unparked(frame: ParkedFrame): void {
    this.requests--;
    this.bytes -= frame.bytes.length;
  }

  /** A write that stands in the line of its connection. */
  inLine(write: WriteOrigin): void {
    this.requests++;
    this.bytes += write.heldBytes;
  }

  answered(write: WriteOrigin): void {
    this.requests--;
    this.bytes -= write.heldBytes;
  }

  /** A sync that stands in the line, its frame left out. */
  syncInLine(sync: WaitingSync): void {
    this.bytes += sync.heldBytes;
  }

  syncDone(sync: WaitingSync): void {
    this.bytes -= sync.heldBytes;
  }

  /** A learner's request that cannot be judged yet. */
  held(request: ForwardedRequest): void {
    this.bytes += request.record.length + request.identities.bytes;
  }

  released(request: ForwardedRequest): void {
    this.bytes -= request.record.length + request.identities.bytes;
  }

  /** What stood in the line of a connection no longer does. A proposal is applied all the same, and holds its memory until then. */
  forget(waiting: readonly Waiting[]): void {
    this.requests -= waiting.length;
    for (const one of waiting) {
      if (one.kind === 'frame') this.bytes -= one.bytes.length;
      else if (one.kind === 'sync') this.bytes -= one.frame.bytes.length + one.heldBytes;
      else this.bytes -= one.heldBytes;
    }
  }

  proposed(proposal: Proposal): void {
    this.bytes += heldBy(proposal);
  }

  applied(proposal: Proposal): void {
    this.bytes -= heldBy(proposal);
  }
}

function heldBy({ bytes, txn }: Proposal): number {
  return bytes + changesOf(txn) * bytesPerChange + aclEntriesOf(txn) * bytesPerAclEntry;
}
