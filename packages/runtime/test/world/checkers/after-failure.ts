/** A server that has said that it cannot go on says nothing more. */
import type { Recording } from '../recording.ts';

export function afterFailure({ processes }: Recording): string[] {
  return processes
    .filter(({ sentAfterFailure }) => sentAfterFailure > 0)
    .map(({ failedMs, failure, sentAfterFailure }) => `${sentAfterFailure} bytes were sent after ${failure} at ${failedMs}`);
}
