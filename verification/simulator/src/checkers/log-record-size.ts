import { formatZxid } from '@tskeeper/protocol';
import type { Checker } from './checker.ts';

export const logRecordSize: Checker = {
  property: 'P34',
  promise: 'No server writes a txn that it, or a server with the same limits, could not read back.',
  check: ({ log, limits }) =>
    log
      .filter(({ bytes }) => bytes > limits.txnBytesMax)
      .map(
        ({ bytes, logged }) =>
          `${formatZxid(logged.header.zxid)} takes ${bytes} bytes in the log; a server reads at most ${limits.txnBytesMax}`,
      ),
};
