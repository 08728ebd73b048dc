import type { Checker } from './checker.ts';

export const sweeps: Checker = {
  property: '',
  promise: 'The server deletes a container only when it has had children and has none, and a TTL znode only when its time is up.',
  check: (_recording, replay) =>
    replay.sweeps.filter(({ isDue }) => !isDue).map(({ path, zxid }) => `${path} was swept at ${zxid} before it was due`),
};
