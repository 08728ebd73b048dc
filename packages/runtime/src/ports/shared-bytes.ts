/** Bytes that wait in the outputs of several channels and are held once, and how many of them there are. */
export class SharedBytes {
  readonly #holders = new Map<Buffer, number>();
  /** Each counted once, however many hold it. */
  bytes = 0;

  hold(bytes: Buffer): void {
    const holders = this.#holders.get(bytes) ?? 0;
    if (holders === 0) this.bytes += bytes.length;
    this.#holders.set(bytes, holders + 1);
  }

  release(bytes: Buffer): void {
    const holders = this.#holders.get(bytes);
    if (holders === undefined) throw new Error('bytes are released that nobody holds');
    if (holders > 1) {
      this.#holders.set(bytes, holders - 1);
      return;
    }
    this.#holders.delete(bytes);
    this.bytes -= bytes.length;
  }
}
