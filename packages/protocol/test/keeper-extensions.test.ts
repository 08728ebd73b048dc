/** Bytes written by hand from the records of ClickHouse Keeper: `ZooKeeperCommon.cpp`. */
import { describe, expect, test } from 'vitest';
import {
  type Codec,
  keeperFeatureFlags,
  OpCode,
  operationOf,
  operations,
  type OperationName,
  Reader,
  readMultiReply,
  readMultiRequest,
  writeMultiReply,
  writeMultiRequest,
} from '../src/index.ts';
import { written } from './fixtures.ts';

const hex = (text: string): string => text.replaceAll(' ', '');
/** czxid, mzxid, ctime, mtime; the versions; ephemeralOwner; length and number; pzxid. */
const statHex =
  '0000000000000001 ffffffffffffffff 0000000000000003 ffffffffffffffff 00000005 ffffffff 00000007 ffffffffffffffff 00000009 ffffffff 000000000000000b';
const statValue = {
  czxid: 1,
  mzxid: -1,
  ctime: 3,
  mtime: -1,
  version: 5,
  cversion: -1,
  aversion: 7,
  ephemeralOwner: -1n,
  dataLength: 9,
  numChildren: -1,
  pzxid: 11,
};
const slashA = '00000002 2f61';

const requests: readonly (readonly [OperationName, number, unknown, string])[] = [
  ['filteredList', 500, { path: '/a', watch: true, filter: 2 }, `${slashA} 01 02`],
  ['checkNotExists', 501, { path: '/a', version: -1 }, `${slashA} ffffffff`],
  [
    'createIfNotExists',
    502,
    { path: '/a', data: Buffer.from('x'), acl: [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }], flags: 1 },
    `${slashA} 00000001 78 00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 00000001`,
  ],
  ['removeRecursive', 503, { path: '/a', limit: 100 }, `${slashA} 00000064`],
  // The limit is unsigned: clients send the largest one for "no limit".
  ['removeRecursive', 503, { path: '/a', limit: 0xffffffff }, `${slashA} ffffffff`],
  ['checkStat', 504, { path: '/a', version: 3, stat: statValue }, `${slashA} 00000003 ${statHex}`],
  ['tryRemove', 505, { path: '/a', version: 2 }, `${slashA} 00000002`],
  ['filteredListWithStatsAndData', 506, { path: '/a', watch: false, filter: 1, withStat: true, withData: false }, `${slashA} 00 01 01 00`],
  ['listRecursive', 507, { path: '/a', limit: 7 }, `${slashA} 00000007`],
];

const replies: readonly (readonly [OperationName, unknown, string])[] = [
  ['createIfNotExists', { path: '/a' }, slashA],
  [
    'filteredListWithStatsAndData',
    { children: ['a'], stat: statValue, stats: [statValue], data: [null] },
    `00000001 00000001 61 ${statHex} 00000001 ${statHex} 00000001 ffffffff`,
  ],
  [
    'filteredListWithStatsAndData',
    { children: ['a'], stat: statValue, stats: [], data: [] },
    `00000001 00000001 61 ${statHex} 00000000 00000000`,
  ],
  ['listRecursive', { children: ['/a/b'] }, '00000001 00000004 2f612f62'],
];

function expectBytes(codec: Codec<unknown>, value: unknown, bytes: string): void {
  const reader = new Reader(Buffer.from(hex(bytes), 'hex'));
  expect(codec.read(reader)).toStrictEqual(value);
  expect(reader.remaining).toBe(0);
  expect(written((writer) => codec.write(writer, value)).toString('hex')).toBe(hex(bytes));
}

describe('the operations of ClickHouse Keeper on the wire', () => {
  test.each(requests)('a request of %s has opcode %i', (name, opCode, value, bytes) => {
    expect(operations[name].opCode).toBe(opCode);
    expect(operationOf(opCode)?.name).toBe(name);
    expectBytes(operations[name].request, value, bytes);
  });

  test.each(replies)('a reply to %s', (name, value, bytes) => {
    expectBytes(operations[name].reply, value, bytes);
  });

  test('the parts of a multi, and their results', () => {
    const ops = [
      { kind: 'checkNotExists', path: '/a', version: -1 },
      { kind: 'tryRemove', path: '/a', version: 2 },
      { kind: 'removeRecursive', path: '/a', limit: 100 },
      { kind: 'checkStat', path: '/a', version: 3, stat: statValue },
    ];
    const part = (type: string, record: string) => `${type} 00 ffffffff ${slashA} ${record}`;
    const end = 'ffffffff 01 ffffffff';
    const bytes = [
      part('000001f5', 'ffffffff'),
      part('000001f9', '00000002'),
      part('000001f7', '00000064'),
      part('000001f8', `00000003 ${statHex}`),
      end,
    ].join('');
    expectBytes({ read: readMultiRequest, write: writeMultiRequest }, { ops }, bytes);
    const results = [{ kind: 'createIfNotExists', path: '/a' }, { kind: 'checkNotExists' }, { kind: 'removeRecursive' }];
    const resultBytes = `000001f6 00 00000000 ${slashA} 000001f5 00 00000000 000001f7 00 00000000 ${end}`;
    expectBytes({ read: readMultiReply, write: writeMultiReply }, { results }, resultBytes);
  });

  test('the flags: bit 7 of a byte is its first flag', () => {
    // 0: filteredList, 10: listWithStatsAndData.
    expect(keeperFeatureFlags(false).toString('hex')).toBe('8020');
    // 2: checkNotExists, 3: createIfNotExists, 4: removeRecursive, 6: checkStat, 9: tryRemove.
    expect(keeperFeatureFlags(true).toString('hex')).toBe('ba60');
  });

  test('no client operation has the opcode of forwarded multis', () => {
    expect(operationOf(OpCode.keeperMulti)).toBeUndefined();
  });
});
