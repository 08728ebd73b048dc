/**
 * Runs independent work two pieces at a time. Checks of servers mostly wait: for a JVM that starts,
 * for the end of a session. Each piece has its own servers, and two cores run two pieces without
 * delaying the servers. Throws the first error after all work has ended.
 */
export async function twoAtATime<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await run(item);
  };
  // Wait for both: work that continues would disturb what comes next.
  const outcomes = await Promise.allSettled([worker(), worker()]);
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
