/**
 * Messages on an election port, recorded and generated.
 */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  FrameDecoder,
  type InitialMessage,
  InitialMessageDecoder,
  InitialMessageVersion,
  type Notification,
  notificationBytesMax,
  notificationBytesMin,
  noVote,
  parseQuorumConfig,
  ProtocolError,
  Reader,
  readInitialMessage,
  readNotification,
  type Sid,
  writeInitialMessage,
  writeNotification,
} from '../src/index.ts';
import { int32, long, text } from './arbitraries.ts';
import { bodyOf, frameHex, plain, written } from './fixtures.ts';
import { recordedStreams } from './quorum-fixtures.ts';

const streams = recordedStreams('election');

/**
 * Decodes a stream as its acceptor, or as the dialling server, in pieces of at most `size` bytes.
 */
function hear(bytes: Buffer, fromInitiator: boolean, size: number): { initial: InitialMessage | undefined; notifications: Notification[] } {
  const collector = new InitialMessageDecoder();
  const cutter = new FrameDecoder(notificationBytesMax, new Reader(), notificationBytesMin);
  const notifications: Notification[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    // A copy, overwritten afterwards: nothing may still point into it.
    const piece = Buffer.from(bytes.subarray(at, at + size));
    const from = fromInitiator ? collector.feed(piece, 0, piece.length) : 0;
    cutter.feed(piece, from, piece.length, (reader) => {
      notifications.push(readNotification(reader));
      return true;
    });
    piece.fill(0xee);
  }
  expect(cutter.retainedBytes + collector.retainedBytes).toBe(0);
  return { initial: collector.message, notifications };
}

describe('recorded elections', () => {
  test('contain many messages of both kinds', () => {
    const messages = streams.flatMap((stream) => stream.messages);
    expect(messages.filter(({ initial }) => initial !== undefined)).toHaveLength(15);
    expect(messages.filter(({ notification }) => notification !== undefined).length).toBeGreaterThan(35);
  });

  test.each([1, 7, 100_000])('decode to the recorded values, in pieces of %i bytes', (size) => {
    for (const { title, bytes, messages, fromInitiator } of streams) {
      const { initial, notifications } = hear(bytes, fromInitiator, size);
      const greeting = messages.find((message) => message.initial !== undefined)?.initial;
      expect(initial?.sid, title).toBe(greeting?.sid);
      expect(initial?.protocolVersion, title).toBe(greeting?.protocolVersion);
      expect(initial?.addresses.map(({ host, port }) => `${host}:${port}`).join('|'), title).toBe(greeting?.address);
      const states = ['looking', 'following', 'leading', 'observing'];
      const recorded = messages.flatMap(({ notification }) => {
        if (notification === undefined) return [];
        const { configLength: _length, ...fields } = notification as typeof notification & { configLength: number };
        return [{ ...fields, state: states[notification.state] }];
      });
      expect(notifications.map(plain), title).toEqual(recorded.map(plain));
    }
  });

  test('encode to the same bytes', () => {
    for (const { title, messages } of streams) {
      for (const { hex, initial } of messages) {
        if (initial !== undefined) {
          const message = readInitialMessage(new Reader(Buffer.from(hex, 'hex')));
          expect(written((writer) => writeInitialMessage(writer, message)).toString('hex'), title).toBe(hex);
        } else {
          const notification = readNotification(new Reader(bodyOf(hex)));
          expect(
            frameHex((writer) => writeNotification(writer, notification)),
            title,
          ).toBe(hex);
        }
      }
    }
  });

  test('contain readable configurations, with the version in the last line', () => {
    for (const { messages } of streams) {
      for (const { notification } of messages) {
        if (notification === undefined) continue;
        const { version, servers } = parseQuorumConfig(notification.config);
        expect(notification.config.endsWith(`version=${version.toString(16)}`)).toBe(true);
        expect(servers.size).toBeGreaterThan(1);
      }
    }
  });

  test('contain votes for no server, as observers send them', () => {
    const votes = streams.flatMap(({ messages }) => messages.flatMap(({ hex, notification }) => (notification ? [hex] : [])));
    const none = votes.map((hex) => readNotification(new Reader(bodyOf(hex)))).filter(({ leader }) => leader === noVote);
    expect(none.length).toBeGreaterThan(0);
    expect(none.every(({ zxid, peerEpoch }) => zxid === noVote && peerEpoch === noVote)).toBe(true);
  });
});

describe('a notification', () => {
  const sample: Notification = {
    state: 'looking',
    leader: 3,
    zxid: 0x5_00000007,
    electionEpoch: 9,
    peerEpoch: 6,
    version: 2,
    config: 'server.1=h:1:2:participant\nversion=0',
  };
  const bytes = written((writer) => writeNotification(writer, sample));

  test('of 28 bytes has its epoch in the zxid', () => {
    expect(readNotification(new Reader(bytes, 0, 28))).toEqual({ ...sample, peerEpoch: 5, version: 0, config: undefined });
  });

  test('of 40 bytes counts as version 0, whatever its last int says', () => {
    for (const version of [0, 1]) {
      const old = written((writer) => writeNotification(writer, { ...sample, version, config: undefined }));
      expect(old).toHaveLength(40);
      expect(readNotification(new Reader(old))).toEqual({ ...sample, version: 0, config: undefined });
    }
  });

  test('of version 1 may be longer, and has no config', () => {
    const longer = Buffer.concat([written((writer) => writeNotification(writer, { ...sample, version: 1 })), Buffer.alloc(4)]);
    expect(readNotification(new Reader(longer))).toEqual({ ...sample, version: 1, config: undefined });
  });

  test('of a later version is decoded as far as it is known', () => {
    const later = Buffer.concat([written((writer) => writeNotification(writer, { ...sample, version: 3 })), Buffer.from('more')]);
    expect(readNotification(new Reader(later))).toEqual({ ...sample, version: 3 });
  });

  test('cut short is refused, except where an older version ends', () => {
    const readable: number[] = [];
    for (let length = 0; length <= bytes.length; length++) {
      try {
        readNotification(new Reader(bytes, 0, length));
        readable.push(length);
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError);
      }
    }
    expect(readable).toEqual([28, 40, bytes.length]);
  });

  test.each([
    ['an unknown state', 0, 4],
    ['a negative state', 0, -1],
    ['a config of a negative length', 40, -1],
    ['a config longer than the message', 40, 0x7fffffff],
    ['a zxid beyond the exact range', 12, 0x200000],
  ])('with %s is refused', (_what, at, value) => {
    const lying = Buffer.from(bytes);
    lying.writeInt32BE(value, at);
    expect(() => readNotification(new Reader(lying))).toThrow(ProtocolError);
  });

  test('of any content is decoded as it was encoded', () => {
    const vote = fc.oneof(long, fc.constant(noVote));
    const notification = fc.record({
      state: fc.constantFrom('looking' as const, 'following' as const, 'leading' as const, 'observing' as const),
      leader: vote,
      zxid: vote,
      electionEpoch: long,
      peerEpoch: vote,
      version: fc.integer({ min: 2, max: 0x7fffffff }),
      config: text,
    });
    fc.assert(
      fc.property(notification, (value) => {
        expect(readNotification(new Reader(written((writer) => writeNotification(writer, value))))).toEqual(value);
      }),
    );
  });

  test('is rejected unless its frame has 1 to 524288 bytes', () => {
    const cutter = (): FrameDecoder => new FrameDecoder(notificationBytesMax, new Reader(), notificationBytesMin);
    for (const length of [0, -1, 524_289]) {
      const head = Buffer.alloc(4);
      head.writeInt32BE(length);
      expect(() => cutter().feed(head, 0, 4, () => true)).toThrow(`expected a frame of 1 to 524288 bytes, not ${length}`);
    }
    const longest = Buffer.alloc(524_292);
    longest.writeInt32BE(524_288);
    let seen = 0;
    cutter().feed(longest, 0, longest.length, (reader) => (seen = reader.remaining) > 0);
    expect(seen).toBe(524_288);
  });
});

describe('an initial message', () => {
  const greeting = (sid: Sid | undefined, protocolVersion: number | undefined, ...addresses: [string, number][]): InitialMessage => ({
    sid,
    protocolVersion,
    addresses: addresses.map(([host, port]) => ({ host, port })),
  });
  const { oneAddress, addresses } = InitialMessageVersion;

  test.each<[string, InitialMessage, string]>([
    ['of one address', greeting(1, oneAddress, ['a', 3888]), 'ffffffffffff0000000000000000000100000006613a33383838'],
    [
      'of several, one of them IPv6',
      greeting(2, addresses, ['10.0.0.1', 3888], ['::1', 1]),
      `ffffffffffff0001000000000000000200000015${Buffer.from('10.0.0.1:3888|[::1]:1').toString('hex')}`,
    ],
    ['of a server of 3.4', greeting(7, undefined), '0000000000000007'],
    ['of an observer without a number', greeting(undefined, oneAddress, ['a', 1]), 'ffffffffffff00007fffffffffffffff00000003613a31'],
    ['of such an observer of 3.4', greeting(undefined, undefined), '7fffffffffffffff'],
  ])('%s is decoded and encoded', (_what, message, hex) => {
    expect(written((writer) => writeInitialMessage(writer, message)).toString('hex')).toBe(hex);
    expect(readInitialMessage(new Reader(Buffer.from(hex, 'hex')))).toEqual(message);
  });

  test('ends at the right byte, also byte by byte, and later bytes are not consumed', () => {
    const bytes = written((writer) => writeInitialMessage(writer, greeting(5, addresses, ['h', 1], ['i', 2])));
    const stream = Buffer.concat([bytes, Buffer.from('behind')]);
    const collector = new InitialMessageDecoder();
    for (let at = 0; at < bytes.length; at++) {
      expect(collector.message).toBeUndefined();
      expect(collector.feed(stream, at, at + 1)).toBe(at + 1);
    }
    expect(collector.message?.sid).toBe(5);
    expect(collector.feed(stream, bytes.length, stream.length)).toBe(bytes.length);
    expect(new InitialMessageDecoder().feed(stream, 0, stream.length)).toBe(bytes.length);
  });

  test.each(['0.0.0.0', '::', '0:0:0:0:0:0:0:0', '0', '::0.0.0.0'])('drops the address %s', (host) => {
    const bytes = written((writer) => writeInitialMessage(writer, greeting(5, addresses, [host, 1], ['h', 2])));
    expect(readInitialMessage(new Reader(bytes)).addresses).toEqual([{ host: 'h', port: 2 }]);
  });

  test.each(['a', 'a:', ':1', 'a:b', 'a:1:2', 'a:65536', '[::1:1', '[::1]1', 'a:-1', 'a:1|b', 'a:1||b:2'])(
    'with the address "%s" is refused',
    (address) => {
      const bytes = written((writer) => {
        writer.int64(oneAddress);
        writer.int64(1);
        writer.ustring(address);
      });
      expect(() => readInitialMessage(new Reader(bytes))).toThrow(ProtocolError);
      expect(() => new InitialMessageDecoder().feed(bytes, 0, bytes.length)).toThrow(ProtocolError);
    },
  );

  test.each([0, -1, 2049, 0x7fffffff])('that announces %i bytes of addresses is refused at once', (length) => {
    const head = written((writer) => {
      writer.int64(oneAddress);
      writer.int64(1);
      writer.int32(length);
    });
    const collector = new InitialMessageDecoder();
    expect(() => collector.feed(head, 0, head.length)).toThrow(`expected 1 to 2048 bytes of addresses, not ${length}`);
    expect(collector.retainedBytes).toBeLessThanOrEqual(128);
  });

  test('of an unknown version, or with a sid that is not a number, is refused', () => {
    for (const hex of [
      'ffffffffffff000200000000000000010000000161',
      'ffffffffffffffff',
      'ffffffffffff00007ffffffffffffffe00000003613a31',
    ]) {
      const bytes = Buffer.from(hex, 'hex');
      expect(() => readInitialMessage(new Reader(bytes))).toThrow(ProtocolError);
    }
  });

  test('cut short is refused by the decoder, and awaited by the collector', () => {
    const bytes = written((writer) => writeInitialMessage(writer, greeting(1, oneAddress, ['host', 3888])));
    for (let length = 0; length < bytes.length; length++) {
      expect(() => readInitialMessage(new Reader(bytes, 0, length))).toThrow(ProtocolError);
      const collector = new InitialMessageDecoder();
      expect(collector.feed(bytes, 0, length)).toBe(length);
      expect(collector.message).toBeUndefined();
    }
  });

  test('of any bytes is decoded, or causes a ProtocolError', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(oneAddress, addresses, 1),
        long,
        int32,
        fc.uint8Array({ maxLength: 40 }),
        (version, sid, length, rest) => {
          const bytes = written((writer) => {
            writer.int64(version);
            writer.int64(sid);
            writer.int32(length);
            writer.raw(rest);
          });
          try {
            new InitialMessageDecoder().feed(bytes, 0, bytes.length);
          } catch (error) {
            expect(error).toBeInstanceOf(ProtocolError);
          }
        },
      ),
    );
  });
});
