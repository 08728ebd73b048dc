/**
 * The rule for session passwords, implemented a second time for the comparison, against a handshake
 * recorded from ZooKeeper.
 */
import { expect, test } from 'vitest';

import { sessionPasswd } from '@tskeeper/harness';

test('a session recorded from ZooKeeper 3.9.5 has the password that the rule gives', () => {
  expect(sessionPasswd(0x100000cebc40000n).toString('hex')).toBe('fe9a14d0b363c30e0c11c99fb4529f62');
});

test('a rejected session has a password of sixteen zeros', () => {
  expect(sessionPasswd(0n)).toEqual(Buffer.alloc(16));
});
