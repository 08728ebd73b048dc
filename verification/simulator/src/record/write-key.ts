/**
 * A name for a write that its request on the wire, its txn and its caller share: a unique value.
 */

const uniqueForm = /^value \d+ /;

/**
 * Returns the first unique value in a request or in the operations of a multi; undefined if there
 * is none.
 */
export function writeKey(record: unknown): string | undefined {
  const { data, ops } = (record ?? {}) as { readonly data?: Uint8Array | null; readonly ops?: readonly unknown[] };
  if (data !== undefined && data !== null) {
    const [key] = uniqueForm.exec(Buffer.from(data).toString('latin1', 0, 24)) ?? [];
    return key?.trim();
  }
  for (const part of ops ?? []) {
    const key = writeKey(part);
    if (key !== undefined) return key;
  }
  return undefined;
}
