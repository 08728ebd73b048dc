import type { Checker } from './checker.ts';

export const watchAcl: Checker = {
  property: 'P19',
  promise: 'Nobody is told of a znode that it may not read.',
  check: (_recording, { events }) =>
    events.filter(({ mayRead }) => !mayRead).map(({ cnxn, path, zxid }) => `${cnxn.client} at ${cnxn.key} was told of ${path} at ${zxid}`),
};
