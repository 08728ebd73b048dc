import type { Checker } from './checker.ts';

export const watchAcl: Checker = {
  property: 'P19',
  promise: 'No session receives an event of a znode that it may not read.',
  check: (_recording, { events }) =>
    events
      .filter(({ mayRead }) => !mayRead)
      .map(({ cnxn, path, zxid }) => `${cnxn.client} at ${cnxn.key} received an event of ${path} at ${zxid}`),
};
