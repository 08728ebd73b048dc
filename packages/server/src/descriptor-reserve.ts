/**
 * File descriptors that are kept open for nothing, so that logs, snapshots and folders can be opened when clients, or other parts of this
 * process, have taken all others. A log that cannot be opened ends the server.
 */
import { closeSync, openSync } from 'node:fs';
import { devNull } from 'node:os';

/** What a roll of the log and a snapshot open at the same time, and one more for each. */
const reservedCount = 8;

export interface DescriptorSource {
  /** Throws where there is none left. */
  take(): number;
  giveBack(descriptor: number): void;
}

const ofSystem: DescriptorSource = { take: () => openSync(devNull, 'r'), giveBack: (descriptor) => closeSync(descriptor) };

export class DescriptorReserve {
  readonly #count: number;
  readonly #source: DescriptorSource;
  readonly #held: number[] = [];
  /** Nothing is kept before somebody who needs it says so. */
  #isWanted = false;

  constructor(count: number = reservedCount, source: DescriptorSource = ofSystem) {
    this.#count = count;
    this.#source = source;
  }

  /** Whether some were given away that have not come back. */
  get isShort(): boolean {
    return this.#isWanted && this.#held.length < this.#count;
  }

  /** Takes what is missing, as far as there is any. */
  fill(): void {
    this.#isWanted = true;
    try {
      while (this.#held.length < this.#count) this.#held.push(this.#source.take());
    } catch {
      // Tried again when one of ours is closed.
    }
  }

  /** Does work that needs a descriptor. Where there is none, one of the reserve is given up for it, and another as long as somebody else is faster. */
  async use<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        const spare = code === 'EMFILE' || code === 'ENFILE' ? this.#held.pop() : undefined;
        if (spare === undefined) throw error;
        this.#source.giveBack(spare);
      }
    }
  }
}

/** One for the whole process, however many servers run in it. */
export const descriptorReserve: DescriptorReserve = new DescriptorReserve();
