/**
 * A queue with constant cost at both ends, whatever its length.
 */
export class Fifo<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Inserts an item before all others. */
  unshift(item: T): void {
    if (this.#head === 0) {
      // Room for as many again, so that the next ones cost nothing.
      this.#head = Math.max(16, this.length);
      this.#items = [...Array.from({ length: this.#head }, () => undefined), ...this.#items];
    }
    this.#items[--this.#head] = item;
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  /** In order. The queue must not change meanwhile. */
  *values(): Generator<T, void, undefined> {
    for (let at = this.#head; at < this.#items.length; at++) yield this.#items[at]!;
  }

  some(test: (item: T) => boolean): boolean {
    return this.#items.some((item, at) => at >= this.#head && test(item!));
  }

  shift(): T | undefined {
    const item = this.#items[this.#head];
    if (this.length === 0) return undefined;
    // The array must not keep a removed item alive.
    this.#items[this.#head++] = undefined;
    if (this.#head === this.#items.length) {
      this.#items.length = 0;
      this.#head = 0;
    } else if (this.#head >= 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Removes and returns all items. */
  takeAll(): T[] {
    const items = this.#items.slice(this.#head) as T[];
    this.clear();
    return items;
  }

  clear(): void {
    this.#items.length = 0;
    this.#head = 0;
  }
}
