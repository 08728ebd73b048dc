/** What the connections must receive, in order. */
import type { Message } from './operation-types.ts';

/** A message that a connection must receive. */
export interface ModelOutput {
  readonly cnxn: number;
  readonly message: Message;
  /**
   * The server may send these events of one zxid in any order: they come from a set of ephemerals.
   */
  readonly anyOrder?: boolean;
}

export class Outbox {
  #outputs: ModelOutput[] = [];
  #anyOrder = false;

  /** The messages that `work` sends. */
  collect(work: () => void): ModelOutput[] {
    this.#outputs = [];
    work();
    return this.#outputs;
  }

  send(cnxn: number, message: Message): void {
    this.#outputs.push(this.#anyOrder ? { cnxn, message, anyOrder: true } : { cnxn, message });
  }

  /** What `work` sends may be sent in any order. */
  inAnyOrder(work: () => void): void {
    this.#anyOrder = true;
    work();
    this.#anyOrder = false;
  }

  get length(): number {
    return this.#outputs.length;
  }

  /** Withdraws all messages after the first `length`. */
  truncate(length: number): void {
    this.#outputs.length = length;
  }
}
