/**
 * One connection of a client, below the core: its stage, its waiting input and its waiting output.
 *
 * There may be tens of thousands, most of them idle, so an idle one is a few numbers and holds no
 * buffer: complete input is passed on without a copy, and a writer is lent only while there is
 * output.
 */
import type { CnxnContext } from '@tskeeper/core';
import { type FrameDecoder, type Millis, Writer } from '@tskeeper/protocol';
import type { StreamId } from '../../network.ts';
import type { ClientAddress } from './client-address.ts';
import { FairShare } from '@tskeeper/core/internal';

/** Smaller outputs are not worth copying. */
const shrunkFromBytes = 1024 * 1024;

export type CnxnStage =
  /** Fewer than four bytes so far. */
  | 'preamble'
  /** It sends frames; the ConnectRequest is not complete. */
  | 'handshake'
  /** The core knows it. */
  | 'open'
  /** A four letter word is being answered. */
  | 'word'
  /** Output is sent, input is discarded; the core has forgotten the connection or never knew it. */
  | 'closing';

export class ClientCnxn {
  readonly stream: StreamId;
  readonly context: CnxnContext;
  readonly address: ClientAddress<ClientCnxn>;
  readonly decoder: FrameDecoder;
  readonly acceptedMs: Millis;
  stage: CnxnStage = 'preamble';

  /** First bytes, until the preamble has recognised them. */
  firstBytes: Buffer | undefined;
  firstByteCount = 0;
  /** Frames and words received, while the core does not count them. */
  packetsReceived = 0;
  receivedMs: Millis;

  /** Frames wait in the cutter, because the core or the turn could not accept more. */
  isStalled = false;
  /** Its turn among the connections of its address. */
  readonly share = new FairShare();
  /** The client has sent its end, after frames that wait. */
  hasPeerEnded = false;
  /** `isFull` has returned true: the core waits for `drained`. */
  backpressureSignalled = false;
  /** The network was asked to stop reading. */
  isPaused = false;
  /** It is read for a moment nevertheless, until bytes arrive or the round ends. */
  isProbed = false;
  probedMs: Millis = 0;
  /** Input bytes as counted in the port's total. */
  countedInputBytes = 0;

  /** Output of this turn, or output that waits after `sending`. */
  writer: Writer | undefined;
  /** Output given to the network, up to `sendAt`. */
  sending: Writer | undefined;
  sendAt = 0;
  /** The network holds the slice that ends at `sliceEnd` and has not released it. */
  writePending = false;
  sliceEnd = 0;
  /** The network kept a slice of `sending`: its memory is no longer ours. */
  bufferDonated = false;
  /** Listed for the next flush. */
  isDirty = false;
  /** Output bytes as counted in the port's total. */
  countedOutputBytes = 0;
  /** When the network last accepted something, or when that was last checked. */
  progressMs: Millis = 0;

  closingMs: Millis = 0;
  /** The network was asked to end the stream. */
  endSent = false;
  /** The stream is closed, or the network was asked to reset it. */
  isDropped = false;
  discardedBytes = 0;

  /** Frames passed to the core. */
  framesFed = 0;
  /**
   * Large requests that the core has not answered yet, oldest first: the number of the frame, and
   * its length.
   */
  largeRequests: { readonly frame: number; readonly bytes: number }[] | undefined;

  constructor(stream: StreamId, context: CnxnContext, address: ClientAddress<ClientCnxn>, cutter: FrameDecoder, acceptedMs: Millis) {
    this.stream = stream;
    this.context = context;
    this.address = address;
    this.decoder = cutter;
    this.acceptedMs = acceptedMs;
    this.receivedMs = acceptedMs;
  }

  /** Its client, as log lines show it. */
  get name(): string {
    const { remoteAddress, remotePort } = this.context;
    return remoteAddress.includes(':') ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`;
  }

  /** Output that has not reached the operating system. */
  get waitingBytes(): number {
    return (this.sending === undefined ? 0 : this.sending.offset - this.sendAt) + (this.writer?.offset ?? 0);
  }

  /** Input and output held for it, as counted at the end of the last turn. */
  get heldBytes(): number {
    return this.countedInputBytes + this.countedOutputBytes;
  }

  /**
   * Moves the rest of a large output into memory of its own size when half of it has been sent, so
   * that a client cannot keep much memory in use with a small rest. Only while the network holds no
   * slice of it.
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
