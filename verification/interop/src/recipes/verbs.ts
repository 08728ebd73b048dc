/** The verbs of a handle of our peer. */

export type Verbs = Readonly<Record<string, (...args: string[]) => Promise<string>>>;

/** Above any delay of a busy machine; only a failure takes this long. */
export const callOptions = { timeoutMs: 20_000 };

export function textOf(data: Uint8Array | null): string {
  return new TextDecoder().decode(data ?? undefined);
}
