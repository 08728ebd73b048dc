/**
 * One connection of a client to a server, from the attempt to its end. A transport may report input
 * after the session has given up the connection: `isDropped` ends that.
 */
import type { ResolvedAddress, Transport, TransportCnxn, TransportSink } from '../transport.ts';

export interface CnxnAttemptSink {
  cnxnOpened(): void;
  received(bytes: Buffer): void;
  cnxnClosed(error: string | undefined): void;
}

export class CnxnAttempt implements TransportSink {
  readonly #sink: CnxnAttemptSink;
  cnxn: TransportCnxn | undefined;
  /** All further input is ignored. */
  isDropped = false;

  constructor(sink: CnxnAttemptSink) {
    this.#sink = sink;
  }

  connect(transport: Transport, address: ResolvedAddress): void {
    try {
      this.cnxn = transport.connect(address, this);
    } catch (error) {
      // The machine must not be called back during one of its own calls.
      void Promise.resolve().then(() => this.closed(systemErrorTextOf(error)));
    }
  }

  // --- Input from the transport

  connected(): void {
    if (!this.isDropped) this.#sink.cnxnOpened();
  }

  received(bytes: Buffer): void {
    if (!this.isDropped) this.#sink.received(bytes);
  }

  closed(error: string | undefined): void {
    if (this.isDropped) return;
    this.isDropped = true;
    this.#sink.cnxnClosed(error);
  }
}

/** The system's error code, if there is one. */
export function systemErrorTextOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return (error as NodeJS.ErrnoException).code ?? error.message;
}
