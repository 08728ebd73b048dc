import { formatZxid } from '@tskeeper/protocol';
import type { Checker } from './checker.ts';

export const digests: Checker = {
  property: 'P29',
  promise: 'The digest in a txn is that of the tree after the txn, so that servers can be compared.',
  check: (_recording, replay) =>
    replay.digests
      .filter(({ logged, expected }) => logged !== expected)
      .map(({ zxid, logged, expected }) => `txn ${formatZxid(zxid)} has digest ${logged}, but the tree has ${expected}`),
};
