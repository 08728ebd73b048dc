/** What is under way, in requests and in the memory they hold: the measure by which new requests are kept waiting. */
import { OpCode } from '@tskeeper/protocol';
import { unitsPerChange } from './budget.ts';
import { aclEntriesOf, changesOf, type ForwardedRequest, type Proposal, type WriteOrigin } from './proposal.ts';
import type { ParkedFrame, Waiting, WaitingSync } from './session-order.ts';

/**
 * What one part of a multi holds besides its bytes in the log until it is applied: the change, and what it makes of the znode and its
 * parent.
 */
const bytesPerChange = 1024;
/** What an entry of an ACL holds besides its bytes in the log until its txn is applied, as objects and texts. */
const bytesPerAclEntry = 160;

/** What is under way for the connections of one address: by this it is judged whether the address has more than its share. */
export class AddressLoad {
  readonly name: string;
  cnxnCount = 0;
  /** Requests taken in or held back, and not yet answered. */
  requests = 0;
  /** Bytes of their frames. */
  bytes = 0;
  /** Bytes of identities that are on their way to the leader with them. */
  identityBytes = 0;

  constructor(name: string) {
    this.name = name;
  }
}

export class Load {
  /** Requests taken in and not yet answered. */
  requests = 0;
  /** Requests that are held back until there is room for them. */
  heldBack = 0;
  /** What requests under way hold in memory: proposals that are not applied yet, frames that wait, and what is passed on to the leader. */
  bytes = 0;
  /** Units that it takes to apply what is proposed and not yet applied: a write that is proposed now waits for it. */
  unitsProposed = 0;
  /** Bytes of multis that are on their way to the leader or back: what this learner passes on now is sent behind them. */
  multiBytesPassedOn = 0;

  /** Addresses that have requests under way. */
  #addresses = 0;

  /** Whether an address has less under way than an equal share of what all may have. */
  isBelowShare({ requests, bytes }: AddressLoad, requestsMax: number, bytesMax: number): boolean {
    return this.#addresses > 1 && requests * this.#addresses < requestsMax && bytes * this.#addresses < bytesMax;
  }

  parked(frame: ParkedFrame, address: AddressLoad): void {
    this.requests++;
    this.bytes += frame.bytes.length;
    this.#begun(address, frame.bytes.length);
  }

  unparked(frame: ParkedFrame, address: AddressLoad): void {
    this.requests--;
    this.bytes -= frame.bytes.length;
    this.#done(address, frame.bytes.length);
  }

  /** A frame that there is no room for yet. It does not count among the requests, which are what it waits for. */
  holdBack(frame: ParkedFrame, address: AddressLoad): void {
    this.heldBack++;
    this.bytes += frame.bytes.length;
    this.#begun(address, frame.bytes.length);
  }

  letGo(frame: ParkedFrame, address: AddressLoad): void {
    this.heldBack--;
    this.bytes -= frame.bytes.length;
    this.#done(address, frame.bytes.length);
  }

  /** A write that stands in the line of its connection. */
  inLine(write: WriteOrigin, address: AddressLoad): void {
    this.requests++;
    this.bytes += write.heldBytes;
    this.multiBytesPassedOn += multiBytesOf(write);
    address.identityBytes += identityBytesOf(write);
    this.#begun(address, write.frameBytes);
  }

  answered(write: WriteOrigin, address: AddressLoad): void {
    this.requests--;
    this.bytes -= write.heldBytes;
    this.multiBytesPassedOn -= multiBytesOf(write);
    address.identityBytes -= identityBytesOf(write);
    this.#done(address, write.frameBytes);
  }

  /** A sync that stands in the line, its frame left out. */
  syncInLine(sync: WaitingSync, address: AddressLoad): void {
    this.bytes += sync.heldBytes;
    address.identityBytes += sync.heldBytes;
  }

  syncDone(sync: WaitingSync, address: AddressLoad): void {
    this.bytes -= sync.heldBytes;
    address.identityBytes -= sync.heldBytes;
  }

  #begun(address: AddressLoad, bytes: number): void {
    if (address.requests++ === 0) this.#addresses++;
    address.bytes += bytes;
  }

  #done(address: AddressLoad, bytes: number): void {
    if (--address.requests === 0) this.#addresses--;
    address.bytes -= bytes;
  }

  /** A learner's request that cannot be judged yet. */
  held(request: ForwardedRequest): void {
    this.bytes += request.record.length + request.identities.bytes;
  }

  released(request: ForwardedRequest): void {
    this.bytes -= request.record.length + request.identities.bytes;
  }

  /** What stood in the line of a connection no longer does. A proposal is applied all the same, and holds its memory until then. */
  forget(waiting: readonly Waiting[], address: AddressLoad): void {
    for (const one of waiting) {
      if (one.kind === 'frame') {
        this.unparked(one, address);
      } else if (one.kind === 'sync') {
        this.syncDone(one, address);
        this.unparked(one.frame, address);
      } else {
        this.answered(one, address);
      }
    }
  }

  proposed(proposal: Proposal): void {
    this.bytes += heldBy(proposal);
    this.unitsProposed += unitsOf(proposal);
  }

  applied(proposal: Proposal): void {
    this.bytes -= heldBy(proposal);
    this.unitsProposed -= unitsOf(proposal);
  }
}

/** What a write holds besides its frame, where it is passed on. */
function identityBytesOf({ heldBytes, frameBytes }: WriteOrigin): number {
  return Math.max(0, heldBytes - frameBytes);
}

/** Of a write that is passed on. */
function multiBytesOf({ opCode, heldBytes, frameBytes }: WriteOrigin): number {
  return opCode === OpCode.multi && heldBytes > 0 ? frameBytes : 0;
}

function heldBy({ bytes, txn }: Proposal): number {
  return bytes + changesOf(txn) * bytesPerChange + aclEntriesOf(txn) * bytesPerAclEntry;
}

function unitsOf({ txn }: Proposal): number {
  return changesOf(txn) * unitsPerChange;
}
