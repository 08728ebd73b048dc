/**
 * File descriptors held in reserve, so that logs, snapshots and folders can be opened when clients,
 * or other parts of this process, use all others. A log that cannot be opened ends the server.
 */
import { closeSync, openSync } from 'node:fs';
import { devNull } from 'node:os';

/** As many as a roll of the log and a snapshot open at the same time, and one more for each. */
const reservedCount = 8;

export interface DescriptorSource {
  /** Throws when none is left. */
  open(): number;
  close(descriptor: number): void;
}

const ofSystem: DescriptorSource = { open: () => openSync(devNull, 'r'), close: (descriptor) => closeSync(descriptor) };

export class DescriptorReserve {
  readonly #count: number;
  readonly #source: DescriptorSource;
  readonly #held: number[] = [];
  /** The reserve stays empty until the first `fill`. */
  #isActive = false;

  constructor(count: number = reservedCount, source: DescriptorSource = ofSystem) {
    this.#count = count;
    this.#source = source;
  }

  /** Whether descriptors were given away and not taken back yet. */
  get isShort(): boolean {
    return this.#isActive && this.#held.length < this.#count;
  }

  /** Takes the missing descriptors, as far as there are any. */
  fill(): void {
    this.#isActive = true;
    try {
      while (this.#held.length < this.#count) this.#held.push(this.#source.open());
    } catch {
      // The next close of a file tries again.
    }
  }

  /**
   * Does work that needs a descriptor. When none is left, it closes one of the reserve for it, and
   * another one each time something else takes that descriptor first.
   */
  async use<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        const spare = code === 'EMFILE' || code === 'ENFILE' ? this.#held.pop() : undefined;
        if (spare === undefined) throw error;
        this.#source.close(spare);
      }
    }
  }
}

/** One for the whole process, however many servers run in it. */
export const descriptorReserve: DescriptorReserve = new DescriptorReserve();
