/** One thing behind another. */

/** Resolves when both are settled, however. With nothing: what results held what came before them, a chain of them would hold all that ever was. */
export async function bothSettled(one: Promise<unknown>, other: Promise<unknown>): Promise<void> {
  await Promise.allSettled([one, other]);
}
