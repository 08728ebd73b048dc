import type { Checker } from './checker.ts';

export const silentAfterFailure: Checker = {
  property: 'F10',
  promise: 'A server that reported a fatal error sends nothing more.',
  check: ({ processes }) =>
    processes
      .filter(({ sentAfterFailure }) => sentAfterFailure > 0)
      .map(({ server, failedMs, failure, sentAfterFailure }) => `${server} sent ${sentAfterFailure} bytes after ${failure} at ${failedMs}`),
};
