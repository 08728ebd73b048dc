/**
 * The comparison of dumps in the exchange of data folders detects each way in which two servers can
 * differ.
 */
import { expect, test } from 'vitest';

import { differencesBetween, type Dump } from '../src/exchange/dump.ts';

const base: Dump = {
  znodes: new Map([
    ['/', 'root'],
    ['/a', 'one'],
  ]),
  zxid: '0x5',
  sessions: new Set(['1', '2']),
  digests: new Map([['80', '123']]),
  digestMismatches: '0',
};

test('equal dumps have no difference', () => {
  expect(differencesBetween(base, { ...base, znodes: new Map(base.znodes) })).toEqual([]);
});

test.each<[string, Partial<Dump>]>([
  ['a missing znode', { znodes: new Map([['/', 'root']]) }],
  ['a new znode', { znodes: new Map([...base.znodes, ['/b', 'two']]) }],
  ['a changed znode', { znodes: new Map([...base.znodes, ['/a', 'two']]) }],
  ['another zxid', { zxid: '0x6' }],
  ['a missing session', { sessions: new Set(['1']) }],
  ['a new session', { sessions: new Set(['1', '2', '3']) }],
  ['another digest at the same zxid', { digests: new Map([['80', '124']]) }],
])('%s is reported', (_, change) => {
  expect(differencesBetween(base, { ...base, ...change })).toHaveLength(1);
});
