import { makeZxid } from '@tskeeper/protocol';
import { CommittedLog, committedLogDefaults } from '@tskeeper/core/internal';
import { expect, it } from 'vitest';
import { isContiguous } from '../../src/storage/log-order.ts';

it.each([
  [makeZxid(1, 1), makeZxid(1, 2), true],
  [makeZxid(1, 1), makeZxid(1, 3), false],
  [makeZxid(1, 9), makeZxid(2, 1), true],
  // The error txn that ZooKeeper writes for a request it cannot read, at the beginning of an epoch.
  [makeZxid(1, 9), makeZxid(7, 0), true],
  [makeZxid(7, 0), makeZxid(7, 1), true],
  [makeZxid(1, 9), makeZxid(2, 2), false],
  [makeZxid(2, 1), makeZxid(1, 2), false],
])('a log and the committed txns in memory agree on whether %d may be followed by %d: %s', (last, next, expected) => {
  expect(isContiguous(last, next, [])).toBe(expected);
  const committed = new CommittedLog(committedLogDefaults);
  committed.append(last, Buffer.alloc(1));
  const append = () => committed.append(next, Buffer.alloc(1));
  if (expected) expect(append()).toBe(true);
  else expect(append).toThrow('was committed after');
});

it('two txns are not contiguous when a zxid between them is known to have existed', () => {
  expect(isContiguous(makeZxid(1, 9), makeZxid(2, 1), [makeZxid(1, 10)])).toBe(false);
  expect(isContiguous(makeZxid(1, 9), makeZxid(2, 1), [makeZxid(1, 9), makeZxid(2, 1)])).toBe(true);
});
