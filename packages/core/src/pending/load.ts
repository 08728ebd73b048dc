/**
 * Counts outstanding requests and the memory they hold; new requests are delayed by these numbers.
 */
import { OpCode } from '@tskeeper/protocol';
import { unitsPerChange } from '../step-budget.ts';
import { aclEntryCountOf, changeCountOf, type ForwardedRequest, type Proposal, type WriteOrigin } from './proposal.ts';
import type { ParkedFrame, PendingRequest, PendingSync } from './pending-request.ts';

/**
 * Memory of one part of a multi until it is applied, besides its bytes in the log: the change, and
 * the pending state of the znode and its parent.
 */
const bytesPerChange = 1024;
/**
 * Memory of an entry of an ACL until its txn is applied, besides its bytes in the log, as objects
 * and strings.
 */
const bytesPerAclEntry = 160;

/** The load of all connections of one address. It decides whether the address exceeds its share. */
export class AddressLoad {
  readonly name: string;
  cnxnCount = 0;
  /** Requests admitted or held, and not yet answered. */
  requests = 0;
  /** Bytes of their frames. */
  bytes = 0;
  /** Bytes of identities forwarded to the leader with them. */
  identityBytes = 0;

  constructor(name: string) {
    this.name = name;
  }
}

export class Load {
  /** Requests admitted and not yet answered. */
  requests = 0;
  /** Requests held until there is room for them. */
  awaitingAdmission = 0;
  /**
   * Memory of outstanding requests: proposals not yet applied, waiting frames, and requests
   * forwarded to the leader.
   */
  bytes = 0;
  /** Units needed to apply all proposals: a write proposed now waits for them. */
  unitsProposed = 0;
  /**
   * Bytes of multis forwarded to the leader and not yet answered: a request that this learner
   * forwards now is sent after them.
   */
  multiBytesForwarded = 0;

  /** Addresses with outstanding requests. */
  #addresses = 0;

  /** Whether an address uses less than an equal share of the limits. */
  isBelowShare({ requests, bytes }: AddressLoad, requestsMax: number, bytesMax: number): boolean {
    return this.#addresses > 1 && requests * this.#addresses < requestsMax && bytes * this.#addresses < bytesMax;
  }

  parked(frame: ParkedFrame, address: AddressLoad): void {
    this.requests++;
    this.bytes += frame.bytes.length;
    this.#requestStarted(address, frame.bytes.length);
  }

  unparked(frame: ParkedFrame, address: AddressLoad): void {
    this.requests--;
    this.bytes -= frame.bytes.length;
    this.#requestEnded(address, frame.bytes.length);
  }

  /**
   * A frame that cannot be admitted yet. It does not count among the requests, since it waits for
   * them.
   */
  admissionQueued(frame: ParkedFrame, address: AddressLoad): void {
    this.awaitingAdmission++;
    this.bytes += frame.bytes.length;
    this.#requestStarted(address, frame.bytes.length);
  }

  admissionTaken(frame: ParkedFrame, address: AddressLoad): void {
    this.awaitingAdmission--;
    this.bytes -= frame.bytes.length;
    this.#requestEnded(address, frame.bytes.length);
  }

  /** A write in the queue of its connection. */
  writeQueued(write: WriteOrigin, address: AddressLoad): void {
    this.requests++;
    this.bytes += write.heldBytes;
    this.multiBytesForwarded += multiBytesOf(write);
    address.identityBytes += identityBytesOf(write);
    this.#requestStarted(address, write.frameBytes);
  }

  writeDone(write: WriteOrigin, address: AddressLoad): void {
    this.requests--;
    this.bytes -= write.heldBytes;
    this.multiBytesForwarded -= multiBytesOf(write);
    address.identityBytes -= identityBytesOf(write);
    this.#requestEnded(address, write.frameBytes);
  }

  /** A sync in the queue of its connection, without its frame. */
  syncQueued(sync: PendingSync, address: AddressLoad): void {
    this.bytes += sync.heldBytes;
    address.identityBytes += sync.heldBytes;
  }

  syncDone(sync: PendingSync, address: AddressLoad): void {
    this.bytes -= sync.heldBytes;
    address.identityBytes -= sync.heldBytes;
  }

  #requestStarted(address: AddressLoad, bytes: number): void {
    if (address.requests++ === 0) this.#addresses++;
    address.bytes += bytes;
  }

  #requestEnded(address: AddressLoad, bytes: number): void {
    if (--address.requests === 0) this.#addresses--;
    address.bytes -= bytes;
  }

  /** A learner's request that cannot be validated yet. */
  forwardQueued(request: ForwardedRequest): void {
    this.bytes += request.record.length + request.identities.bytes;
  }

  forwardTaken(request: ForwardedRequest): void {
    this.bytes -= request.record.length + request.identities.bytes;
  }

  /**
   * Forgets the queue of a closed connection. A proposal is still applied, and holds its memory
   * until then.
   */
  pendingDropped(requests: readonly PendingRequest[], address: AddressLoad): void {
    for (const one of requests) {
      if (one.kind === 'frame') {
        this.unparked(one, address);
      } else if (one.kind === 'sync') {
        this.syncDone(one, address);
        this.unparked(one.frame, address);
      } else {
        this.writeDone(one, address);
      }
    }
  }

  proposed(proposal: Proposal): void {
    this.bytes += proposalBytes(proposal);
    this.unitsProposed += proposalUnits(proposal);
  }

  applied(proposal: Proposal): void {
    this.bytes -= proposalBytes(proposal);
    this.unitsProposed -= proposalUnits(proposal);
  }
}

/** Memory of a forwarded write besides its frame. */
function identityBytesOf({ heldBytes, frameBytes }: WriteOrigin): number {
  return Math.max(0, heldBytes - frameBytes);
}

/** 0 unless the write was forwarded. */
function multiBytesOf({ opCode, heldBytes, frameBytes }: WriteOrigin): number {
  return opCode === OpCode.multi && heldBytes > 0 ? frameBytes : 0;
}

function proposalBytes({ bytes, txn }: Proposal): number {
  return bytes + changeCountOf(txn) * bytesPerChange + aclEntryCountOf(txn) * bytesPerAclEntry;
}

function proposalUnits({ txn }: Proposal): number {
  return changeCountOf(txn) * unitsPerChange;
}
