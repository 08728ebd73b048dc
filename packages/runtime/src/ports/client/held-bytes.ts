/**
 * Counts the input and output held for clients, in all and per address.
 *
 * Each connection carries what was counted for it, so a count is a difference that cannot drift:
 * a connection that is gone has been counted down to 0.
 */
import type { ClientCnxn } from './client-cnxn.ts';
import type { LoadShedder } from './load-shedder.ts';

export class HeldBytes {
  readonly #loadShedder: LoadShedder;
  #input = 0;
  #output = 0;

  constructor(loadShedder: LoadShedder) {
    this.#loadShedder = loadShedder;
  }

  /** Input that has arrived and was not passed on. */
  get input(): number {
    return this.#input;
  }

  /** Output that has not reached the operating system. */
  get output(): number {
    return this.#output;
  }

  get total(): number {
    return this.#input + this.#output;
  }

  countInput(cnxn: ClientCnxn): void {
    const more = cnxn.decoder.retainedBytes - cnxn.countedInputBytes;
    this.#input += more;
    cnxn.countedInputBytes += more;
    this.#loadShedder.count(cnxn.address, more);
  }

  countOutput(cnxn: ClientCnxn, waiting: number): void {
    const more = waiting - cnxn.countedOutputBytes;
    this.#output += more;
    cnxn.countedOutputBytes = waiting;
    this.#loadShedder.count(cnxn.address, more);
  }
}
