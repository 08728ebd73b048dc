/**
 * One connection of a client, below the core: where it stands, what of its input waits, what of its output waits.
 *
 * There may be tens of thousands, most of them idle, so an idle one is a few numbers and holds no buffer: input that is complete is
 * handed over where it lies, and a writer is lent for as long as there is output.
 */
import type { CnxnContext } from '@tskeeper/core';
import type { FrameCutter, Millis, Writer } from '@tskeeper/protocol';
import type { StreamId } from '../network.ts';

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

  constructor(stream: StreamId, context: CnxnContext, cutter: FrameCutter, acceptedMs: Millis) {
    this.stream = stream;
    this.context = context;
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

  get takesFrames(): boolean {
    return this.stage === 'handshake' || this.stage === 'open';
  }
}
