/**
 * What connections were told of their watches, each promise for itself. All of it is decided by the model's own watch tables, along the
 * stream of each connection.
 */
import type { Discrepancy } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

function checkerOf(property: string, promise: string, ...kinds: readonly Discrepancy['kind'][]): Checker {
  return {
    property,
    promise,
    check: (_recording, { discrepancies }) => discrepancies.filter(({ kind }) => kinds.includes(kind)).map(({ text }) => text),
  };
}

export const watchBeforeData = checkerOf('P14', 'An event comes before any reply that could show the change.', 'late');
export const watchOnce = checkerOf(
  'P15',
  'A one-shot watch fires once, for the first change behind it, and nothing else is told.',
  'twice',
  'unexpected',
);
export const watchOrder = checkerOf('P16', 'Events come in the order of the changes, each under the zxid of its own.', 'order');
export const persistentWatches = checkerOf(
  'P17',
  'A persistent watch tells every change, in order, none missing; a recursive one never speaks of children.',
  'persistent',
);
export const watchesOverReconnect = checkerOf('P18', 'Whoever asks for its watches again is told at once what it has missed.', 'restored');
