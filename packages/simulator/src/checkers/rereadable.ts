import { formatZxid } from '@tskeeper/protocol';
import type { Checker } from './checker.ts';

export const rereadable: Checker = {
  property: 'P34',
  promise: 'No server writes what it could not read back, nor another with the same limits: no txn in a log is longer than they allow.',
  check: ({ log, limits }) =>
    log
      .filter(({ bytes }) => bytes > limits.txnBytesMax)
      .map(({ bytes, logged }) => `${formatZxid(logged.header.zxid)} takes ${bytes} bytes in the log, and ${limits.txnBytesMax} are read`),
};
