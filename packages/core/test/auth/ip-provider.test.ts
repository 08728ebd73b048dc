import { expect, it } from 'vitest';
import { ipProvider } from '../../src/auth/ip-provider.ts';

it.each([
  ['10.1.2.3', '10.1.2.3', true],
  ['10.1.2.3', '10.1.2.4', false],
  ['10.1.2.3', '10.0.0.0/8', true],
  ['11.1.2.3', '10.0.0.0/8', false],
  ['10.1.2.3', '10.1.2.0/30', true],
  ['10.1.2.4', '10.1.2.0/30', false],
  ['10.1.2.3', '0.0.0.0/0', true],
  ['::1', '::1', true],
  ['0:0:0:0:0:0:0:1', '::1', true],
  ['fd00::1:2', 'fd00::/8', true],
  ['fe80::1', 'fd00::/8', false],
  ['fd00::1', '10.0.0.0/0', false],
  ['10.1.2.3', '::/0', false],
])('A35: in the scheme ip, matching the address %s with the entry %s gives %s', (address, entry, matches) => {
  expect(ipProvider.matches(address, entry)).toBe(matches);
});

it.each(['', '10.0.0', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/-1', '256.0.0.1', 'fd00::/129', 'localhost'])(
  'A35: the scheme ip refuses the entry "%s"',
  (entry) => {
    expect(ipProvider.isValidId(entry)).toBe(false);
  },
);
