/**
 * Summaries by namespace: count, sum, minimum and maximum of each. Every read and every change of a
 * znode updates one, so they are rows of numbers, indexed by the number that the core has given the
 * namespace.
 */
import { namespaceIdEnd, type NamespaceId } from '@tskeeper/core';
import { average } from '../ports/java-text.ts';
import type { SummaryValues } from './summary.ts';

const rowNumbers = 4;

export class NamespaceSummaries {
  /** Count, sum, minimum, maximum; the last two have no meaning while the count is 0. */
  readonly #rows = new Float64Array(namespaceIdEnd * rowNumbers);
  /** 1 for a namespace that has had a value, even before the last reset. */
  readonly #known = new Uint8Array(namespaceIdEnd);

  add(id: NamespaceId, value: number): void {
    const rows = this.#rows;
    const row = id * rowNumbers;
    rows[row + 1]! += value;
    if (rows[row]!++ === 0) {
      rows[row + 2] = rows[row + 3] = value;
      this.#known[id] = 1;
    } else if (value < rows[row + 2]!) rows[row + 2] = value;
    else if (value > rows[row + 3]!) rows[row + 3] = value;
  }

  /** Every namespace that has had a value, by its number. */
  *entries(): Generator<readonly [NamespaceId, SummaryValues], void, undefined> {
    for (const [id, isKnown] of this.#known.entries()) {
      if (isKnown === 0) continue;
      const row = id * rowNumbers;
      const [count, sum, min, max] = this.#rows.subarray(row, row + rowNumbers) as unknown as [number, number, number, number];
      yield [id, { avg: average(sum, count), min, max, count, sum }];
    }
  }

  /** All namespaces stay known, without values. */
  reset(): void {
    this.#rows.fill(0);
  }

  /** The number now belongs to another namespace. */
  forget(id: NamespaceId): void {
    this.#rows.fill(0, id * rowNumbers, (id + 1) * rowNumbers);
    this.#known[id] = 0;
  }
}
