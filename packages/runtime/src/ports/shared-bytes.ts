/** Bytes that wait in the outputs of several channels and are held once, and their number. */
export class SharedBytes {
  readonly #holders = new Map<Buffer, number>();
  /** Each counted once, however many channels hold it. */
  bytes = 0;

  hold(bytes: Buffer): void {
    const holders = this.#holders.get(bytes) ?? 0;
    if (holders === 0) this.bytes += bytes.length;
    this.#holders.set(bytes, holders + 1);
  }

  release(bytes: Buffer): void {
    const holders = this.#holders.get(bytes);
    if (holders === undefined) throw new Error('bytes released that are not held');
    if (holders > 1) {
      this.#holders.set(bytes, holders - 1);
      return;
    }
    this.#holders.delete(bytes);
    this.bytes -= bytes.length;
  }
}
