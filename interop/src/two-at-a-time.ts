/**
 * Runs independent work two pieces at a time. Checks of servers mostly wait: for a JVM that starts, for the end of a session. Each piece has servers of
 * its own, and two are what a machine of two cores runs without making servers late. Throws the first error after all work has ended.
 */
export async function twoAtATime<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await run(item);
  };
  // Both are waited for: work that went on would disturb what comes next.
  const outcomes = await Promise.allSettled([worker(), worker()]);
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
