/** The comparison of the differential run detects every difference, and nothing else. */
import { OpCode, Writer } from '@tskeeper/protocol';
import { describe, expect, test } from 'vitest';

import { Comparison } from '../src/differential/compare.ts';
import { justifiedDifferences } from '../src/differential/justified-differences.ts';
import type { Entry } from '../src/differential/side.ts';
import type { Op, Quirk } from '../src/differential/step.ts';
import { record } from '@tskeeper/harness';

function bodyOf(write: (writer: Writer) => void): Buffer {
  const writer = new Writer();
  write(writer);
  return Buffer.from(writer.written());
}

function opOf(type: number, text: string, quirk?: Quirk): Op {
  return { type, text, fields: () => record.nothing(), ...(quirk === undefined ? {} : { quirk }) };
}

function reply(op: Op, zxid: number, err: number, write: (writer: Writer) => void = () => {}): Entry {
  return { op, message: { kind: 'reply', xid: 1, zxid, err, body: bodyOf(write) } };
}

function event(zxid: number, type: number, path: string): Entry {
  const body = bodyOf((w) => {
    w.int32(type);
    w.int32(3);
    w.ustring(path);
  });
  return { op: undefined, message: { kind: 'event', zxid, err: 0, body } };
}

const closed: Entry = { op: undefined, message: { kind: 'closed' } };
const getData = opOf(OpCode.getData, 'getData /a');
const getChildren = opOf(OpCode.getChildren, 'getChildren /');
const create = opOf(OpCode.create, 'create /a');
const ping = opOf(OpCode.ping, 'ping');
const closeSession = opOf(OpCode.closeSession, 'closeSession');

interface StatFields {
  zxid?: number;
  time?: number;
  mtime?: number;
  version?: number;
  owner?: bigint;
}
function stat(w: Writer, { zxid = 1, time = 5, mtime = time, version = 0, owner = 0n }: StatFields): void {
  for (const value of [zxid, zxid, time, mtime]) w.int64(value);
  for (const value of [version, 0, 0]) w.int32(value);
  w.bigint64(owner);
  w.int32(0);
  w.int32(0);
  w.int64(zxid);
}
const data = (text: string, fields: StatFields) => (w: Writer) => {
  w.buffer(Buffer.from(text));
  stat(w, fields);
};
const names = (list: string[]) => (w: Writer) => w.vector(list, (v, name) => v.ustring(name));

function compare(a: Entry[], b: Entry[], sessions: [bigint, bigint] = [1n, 2n]): Comparison {
  const comparison = new Comparison(new Map([[sessions[0], 'session 1']]), new Map([[sessions[1], 'session 1']]));
  comparison.compareRound(0, [a], [b], 0);
  return comparison;
}

function fieldsOf(comparison: Comparison): string[] {
  return comparison.differences.map(({ op, field }) => `${op} ${field}`);
}

describe('the comparison of two servers ignores', () => {
  test.each([
    ['times', reply(getData, 1, 0, data('x', { time: 5 })), reply(getData, 1, 0, data('x', { time: 900 }))],
    ['session ids', reply(getData, 1, 0, data('x', { owner: 1n })), reply(getData, 1, 0, data('x', { owner: 2n }))],
    ['the order of children', reply(getChildren, 1, 0, names(['a', 'b'])), reply(getChildren, 1, 0, names(['b', 'a']))],
  ])('%s', (_, a, b) => {
    expect(fieldsOf(compare([a], [b]))).toEqual([]);
  });

  test('the order of the events of one closeSession', () => {
    const a = [event(7, 2, '/x'), event(7, 2, '/y'), reply(closeSession, 7, 0)];
    const b = [event(7, 2, '/y'), event(7, 2, '/x'), reply(closeSession, 7, 0)];
    expect(fieldsOf(compare(a, b))).toEqual([]);
  });
});

describe('the comparison of two servers detects', () => {
  test.each([
    ['an error code', [reply(getData, 1, -101)], [reply(getData, 1, -102)], ['getData err']],
    ['data', [reply(getData, 1, 0, data('x', {}))], [reply(getData, 1, 0, data('y', {}))], ['getData data']],
    ['a version', [reply(getData, 1, 0, data('x', {}))], [reply(getData, 1, 0, data('x', { version: 1 }))], ['getData stat.version']],
    [
      'a zxid in a stat',
      [reply(getData, 9, 0, data('x', {}))],
      [reply(getData, 9, 0, data('x', { zxid: 2 }))],
      ['getData stat.czxid', 'getData stat.mzxid', 'getData stat.pzxid'],
    ],
    ['mtime before ctime', [reply(getData, 1, 0, data('x', {}))], [reply(getData, 1, 0, data('x', { mtime: 1 }))], ['getData stat.times']],
    [
      'the owner of an ephemeral',
      [reply(getData, 1, 0, data('x', { owner: 1n }))],
      [reply(getData, 1, 0, data('x', { owner: 77n }))],
      ['getData stat.ephemeralOwner'],
    ],
    ['a child', [reply(getChildren, 1, 0, names(['a']))], [reply(getChildren, 1, 0, names(['a', 'b']))], ['getChildren children']],
    ['bytes after a record', [reply(ping, 1, 0)], [reply(ping, 1, 0, (w) => w.int8(1))], ['ping rest']],
    ['a zxid that only one server used', [reply(create, 5, -110)], [reply(create, 4, -110)], ['create zxid']],
    ['a missing reply', [reply(ping, 1, 0)], [], ['ping message']],
    ['a close instead of a reply', [reply(ping, 1, 0)], [closed], ['ping message']],
    ['a missing event', [event(3, 1, '/a'), reply(ping, 3, 0)], [reply(ping, 3, 0)], ['event missing']],
    [
      'a repeated event',
      [event(3, 1, '/a'), reply(ping, 3, 0)],
      [event(3, 1, '/a'), event(3, 1, '/a'), reply(ping, 3, 0)],
      ['event unexpected'],
    ],
    [
      'an event after the reply that it has to precede',
      [event(3, 1, '/a'), reply(ping, 3, 0)],
      [reply(ping, 3, 0), event(3, 1, '/a')],
      ['event missing', 'event unexpected'],
    ],
    [
      'two events in the other order',
      [event(3, 1, '/a'), event(4, 1, '/b'), reply(ping, 4, 0)],
      [event(4, 1, '/b'), event(3, 1, '/a'), reply(ping, 4, 0)],
      ['event zxid', 'event path', 'event zxid', 'event path'],
    ],
  ])('%s', (_, a, b, fields) => {
    expect(fieldsOf(compare(a, b))).toEqual(fields);
  });
});

test('after a zxid that only one server used, later zxids are compared by their increments', () => {
  const undecodable = opOf(OpCode.create, 'create, cut', 'undecodable');
  const comparison = compare(
    [reply(create, 5, 0), reply(undecodable, 5, -5), reply(ping, 5, 0)],
    [reply(create, 5, 0), reply(undecodable, 6, -5), reply(ping, 6, 0)],
  );
  expect(fieldsOf(comparison)).toEqual(['create zxid']);
  comparison.compareRound(
    1,
    [[reply(create, 6, 0), reply(getData, 6, 0, data('x', { zxid: 6 })), reply(getData, 6, 0, data('x', { zxid: 5 }))]],
    [[reply(create, 7, 0), reply(getData, 7, 0, data('x', { zxid: 7 })), reply(getData, 7, 0, data('x', { zxid: 5 }))]],
    0,
  );
  expect(comparison.differences).toHaveLength(1);
  expect(comparison.toSecondZxid(6)).toBe(7);
  expect(comparison.toSecondZxid(4)).toBe(4);
});

describe('justified differences', () => {
  const judge = (a: Entry[], b: Entry[]) =>
    compare(a, b).differences.map((difference) => justifiedDifferences.find((rule) => rule.explains(difference))?.id);

  test('a connection that stays open while the other one closes is not justified', () => {
    const unknown = opOf(500, 'opcode 500', 'unknown-opcode');
    expect(judge([reply(unknown, -1, -6), closed], [reply(unknown, -1, -6), reply(ping, 4, 0)])).toEqual([undefined]);
    expect(judge([reply(getData, 1, -101), closed], [reply(getData, 1, -101), reply(ping, 1, 0)])).toEqual([undefined]);
  });

  test('an older connection that the first server leaves open is justified, and one of the second is not', () => {
    const silence: Entry = { op: undefined, message: { kind: 'silence' } };
    expect(judge([silence, reply(ping, 1, 0)], [closed, reply(ping, 1, 0)])).toEqual(['older-connection-lingers']);
    expect(judge([closed, reply(ping, 1, 0)], [silence, reply(ping, 1, 0)])).toEqual([undefined]);
  });

  test('a rejected deleteContainer is justified, and an accepted one is not', () => {
    const deleteContainer = opOf(OpCode.deleteContainer, 'deleteContainer /x', 'delete-container');
    expect(judge([reply(deleteContainer, 5, -101)], [reply(deleteContainer, 4, -6)])).toEqual([
      'delete-container-from-client',
      'delete-container-from-client',
    ]);
    expect(judge([reply(deleteContainer, 4, -6), reply(ping, 4, 0)], [reply(deleteContainer, 4, -6), closed])).toEqual([
      'delete-container-from-client',
    ]);
    expect(judge([reply(deleteContainer, 5, -101)], [reply(deleteContainer, 5, 0)])).toEqual([undefined]);

    // A second client sends the next request, as the first one's connection is closed: the extra
    // zxid of the first server is already known.
    const comparison = new Comparison(new Map(), new Map());
    comparison.compareRound(
      0,
      [[reply(ping, 5, 0)], [reply(deleteContainer, 5, -101), reply(ping, 5, 0)]],
      [[reply(ping, 4, 0)], [reply(deleteContainer, -1, -6), closed]],
      1,
    );
    comparison.compareRound(1, [[reply(create, 6, 0)], []], [[reply(create, 5, 0)], []], 0);
    expect(comparison.differences.map((each) => justifiedDifferences.find((rule) => rule.explains(each))?.id)).toEqual(
      comparison.differences.map(() => 'delete-container-from-client'),
    );
    expect(comparison.differences.every(({ client }) => client === 1)).toBe(true);
  });

  test('a character outside the BMP returned unchanged is justified, and no other change of a path is', () => {
    const sync = opOf(OpCode.sync, 'sync');
    const echo = (text: string) => reply(sync, 1, 0, (w) => w.ustring(text));
    expect(judge([echo(`/${'\ufffd'.repeat(6)}`)], [echo('/\u{1f600}')])).toEqual(['text-outside-the-bmp-is-utf-8']);
    expect(judge([echo('/a')], [echo('/\u{1f600}')])).toEqual([undefined]);

    // If the servers sent different numbers of events, the two forms of one path count as one
    // missing and one unexpected event.
    const setWatches = opOf(OpCode.setWatches, 'setWatches');
    const received = [event(-1, 2, '/unreadable'), event(-1, 2, `/${'\ufffd'.repeat(6)}`), reply(setWatches, 1, 0)];
    expect(judge(received, [event(-1, 2, '/\u{1f600}'), reply(setWatches, 1, 0)])).toEqual([
      'restored-watch-needs-read',
      'restored-watch-needs-read',
      'text-outside-the-bmp-is-utf-8',
    ]);
    expect(judge(received, [event(-1, 2, '/other'), reply(setWatches, 1, 0)]).at(-1)).toBe(undefined);
  });
});
