import { formatZxid } from '@tskeeper/protocol';
import type { Checker } from './checker.ts';

export const digests: Checker = {
  property: 'P29',
  promise: 'The digest in a txn is that of the tree as the txn leaves it, so that any two servers can be compared.',
  check: (_recording, replay) =>
    replay.digests
      .filter(({ logged, expected }) => logged !== expected)
      .map(({ zxid, logged, expected }) => `the txn ${formatZxid(zxid)} has digest ${logged}, and the tree has ${expected}`),
};
