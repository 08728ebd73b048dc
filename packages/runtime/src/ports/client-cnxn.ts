/**
 * One connection of a client, below the core: where it stands, what of its input waits, what of its output waits.
 *
 * There may be tens of thousands, most of them idle, so an idle one is a few numbers and holds no buffer: input that is complete is
 * handed over where it lies, and a writer is lent for as long as there is output.
 */
import type { CnxnContext } from '@tskeeper/core';
import { type FrameCutter, type Millis, Writer } from '@tskeeper/protocol';
import type { StreamId } from '../network.ts';
import type { ClientAddress } from './client-address.ts';
import { Turn } from '@tskeeper/core/internal';

/** Smaller outputs are not worth copying. */
const shrunkFromBytes = 1024 * 1024;

export type CnxnStage =
  /** Not four bytes yet. */
  | 'preamble'
  /** It speaks frames; the ConnectRequest is not complete. */
  | 'handshake'
  /** The core knows it. */
  | 'open'
  /** A four letter word is being answered. */
  | 'word'
  /** Output goes out, input is thrown away; the core has forgotten it or never knew it. */
  | 'closing';

export class ClientCnxn {
  readonly stream: StreamId;
  readonly context: CnxnContext;
  readonly address: ClientAddress<ClientCnxn>;
  readonly cutter: FrameCutter;
  readonly acceptedMs: Millis;
  stage: CnxnStage = 'preamble';

  /** First bytes, until the preamble has judged them. */
  first: Buffer | undefined;
  firstCount = 0;
  /** Frames and words received, for as long as the core does not count them. */
  packetsReceived = 0;
  receivedMs: Millis;

  /** Frames wait in the cutter, because the core or the turn could not take more. */
  stalled = false;
  /** Among the connections of its address. */
  readonly turn = new Turn();
  /** The client has sent its end, behind frames that wait. */
  hasEnded = false;
  /** The core has been told that it is full, and waits to hear that it is not. */
  saidFull = false;
  /** The network has been told to stop reading. */
  paused = false;
  /** It is read for a moment all the same, until it is heard of or the round is over. */
  isProbed = false;
  probedMs: Millis = 0;
  /** Input bytes as they stand in the port's total. */
  retainedCounted = 0;

  /** Output of this turn, or output that waits behind `sending`. */
  writer: Writer | undefined;
  /** Output on its way to the network, up to `sendAt`. */
  sending: Writer | undefined;
  sendAt = 0;
  /** The network holds the slice that ends at `sliceEnd` and has not let go of it. */
  sliceHeld = false;
  sliceEnd = 0;
  /** Some slice of `sending` was kept by the network: its memory is no longer ours. */
  givenUp = false;
  /** Listed for the next flush. */
  dirty = false;
  /** Output bytes as they stand in the port's total. */
  waitingCounted = 0;
  /** When the network last took something, or when we last looked at it. */
  progressMs: Millis = 0;

  closingMs: Millis = 0;
  /** The network has been told that nothing more will come. */
  endSent = false;
  /** The stream is gone, or the network has been told to drop it. */
  dropped = false;
  discardedBytes = 0;

  /** Frames handed to the core. */
  framesFed = 0;
  /** Large requests the core has not answered yet, oldest first: which frame, and how long. */
  largeRequests: { readonly frame: number; readonly bytes: number }[] | undefined;

  constructor(stream: StreamId, context: CnxnContext, address: ClientAddress<ClientCnxn>, cutter: FrameCutter, acceptedMs: Millis) {
    this.stream = stream;
    this.context = context;
    this.address = address;
    this.cutter = cutter;
    this.acceptedMs = acceptedMs;
    this.receivedMs = acceptedMs;
  }

  /** Output that has not reached the operating system. */
  get waitingBytes(): number {
    return (this.sending === undefined ? 0 : this.sending.offset - this.sendAt) + (this.writer?.offset ?? 0);
  }

  /** Input and output held for it, as counted at the end of the last turn. */
  get heldBytes(): number {
    return this.retainedCounted + this.waitingCounted;
  }

  /**
   * Moves what is left of a large output into memory of its own size when half of it has gone, so that a client cannot have much held by
   * leaving little. Only while the network holds no slice of it.
   */
  shrinkOutput(): void {
    const { sending, sendAt } = this;
    if (sending === undefined || sending.bytes.length < shrunkFromBytes || sending.offset - sendAt > sending.bytes.length / 2) return;
    const rest = new Writer(sending.offset - sendAt);
    rest.raw(sending.bytes, sendAt, sending.offset);
    this.sending = rest;
    this.sendAt = 0;
  }

  get takesFrames(): boolean {
    return this.stage === 'handshake' || this.stage === 'open';
  }
}
