/**
 * Checks the events that connections received for their watches, one property each. The model's
 * watch tables decide, along the stream of each connection.
 */
import type { Discrepancy } from '../replay/replay-result.ts';
import type { Checker } from './checker.ts';

function watchChecker(property: string, promise: string, ...kinds: readonly Discrepancy['kind'][]): Checker {
  return {
    property,
    promise,
    check: (_recording, { discrepancies }) => discrepancies.filter(({ kind }) => kinds.includes(kind)).map(({ text }) => text),
  };
}

export const watchBeforeData = watchChecker(
  'P14',
  'A connection receives the event of a change before any reply that could show the change.',
  'late',
);
export const oneShotWatches = watchChecker(
  'P15',
  'A one-shot watch fires once, for the first change after it was set, and no other event arrives.',
  'twice',
  'unexpected',
);
export const watchEventOrder = watchChecker('P16', 'Events are in the order of the changes, each with the zxid of its txn.', 'order');
export const persistentWatches = watchChecker(
  'P17',
  'A persistent watch delivers one event for each change, in order, without gaps. A recursive watch delivers no NodeChildrenChanged.',
  'persistent',
);
export const watchesOverReconnect = watchChecker(
  'P18',
  'A client that restores its watches receives at once an event for each change it missed.',
  'restored',
);
