/** What a handle of a peer of ours understands. */

export type Verbs = Readonly<Record<string, (...args: string[]) => Promise<string>>>;

/** Above any delay of a busy machine. Nothing waits this long unless something is wrong. */
export const patience = { timeoutMs: 20_000 };

export function textOf(data: Uint8Array | null): string {
  return new TextDecoder().decode(data ?? undefined);
}
