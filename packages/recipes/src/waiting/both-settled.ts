/** Waits for two promises. */

/**
 * Resolves when both are settled. It resolves without a value: in a chain of such promises each
 * result would keep the one before it alive, and so all earlier ones.
 */
export async function bothSettled(one: Promise<unknown>, other: Promise<unknown>): Promise<void> {
  await Promise.allSettled([one, other]);
}
