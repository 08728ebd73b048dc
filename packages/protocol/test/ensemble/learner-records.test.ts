/**
 * The data of packets that the recordings do not contain: old forms, limits, false values.
 */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  incarnationOf,
  learnerProtocolVersion,
  PacketType,
  ProtocolError,
  Reader,
  readLearnerRequest,
  readLearnerInfo,
  readTouchedSessions,
  writeLearnerRequest,
  writeLearnerInfo,
  writeTouchedSession,
} from '../../src/index.ts';
import { int32 } from '../arbitraries.ts';
import { written } from '../fixtures.ts';
import { readPacketData, recordedStreams } from '../quorum-fixtures.ts';

describe('LearnerInfo', () => {
  const whole = written((writer) => writeLearnerInfo(writer, { serverId: 3, configVersion: 0x1_00000005 }));

  test.each([
    [20, { serverId: 3, protocolVersion: learnerProtocolVersion, configVersion: 0x1_00000005, incarnation: 0 }],
    [12, { serverId: 3, protocolVersion: learnerProtocolVersion, configVersion: undefined, incarnation: 0 }],
    [8, { serverId: 3, protocolVersion: 1, configVersion: undefined, incarnation: 0 }],
  ])('of %i bytes is decoded without the fields it lacks', (length, info) => {
    expect(readLearnerInfo(new Reader(whole, 0, length))).toEqual(info);
  });

  test('may be missing completely, in the packets of the oldest learners', () => {
    expect(readLearnerInfo(new Reader(), false)).toEqual({
      serverId: undefined,
      protocolVersion: 1,
      configVersion: undefined,
      incarnation: 0,
    });
  });

  test('distinguishes processes of learners that send an incarnation, and is decoded without it by those that do not', () => {
    const incarnation = incarnationOf(-1, -2);
    const bytes = written((writer) => writeLearnerInfo(writer, { serverId: 3, configVersion: 5, incarnation }));
    expect(readLearnerInfo(new Reader(bytes))).toMatchObject({ serverId: 3, configVersion: 5, incarnation });
    expect(bytes.subarray(0, 20)).toEqual(written((writer) => writeLearnerInfo(writer, { serverId: 3, configVersion: 5 })));
    expect(readLearnerInfo(new Reader(Buffer.concat([bytes.subarray(0, 20), Buffer.alloc(8, 0xff)]))).incarnation).toBe(2 ** 53 - 1);
  });

  test('carries the priority of learners that know HANDOVER, and of no others', () => {
    const info = { serverId: 3, configVersion: 5, incarnation: 77 };
    for (const leaderPriority of [0, 1, -7, 1000]) {
      const bytes = written((writer) => writeLearnerInfo(writer, { ...info, leaderPriority }));
      expect(readLearnerInfo(new Reader(bytes))).toMatchObject({ ...info, leaderPriority });
    }
    const without = written((writer) => writeLearnerInfo(writer, info));
    expect(readLearnerInfo(new Reader(without)).leaderPriority).toBeUndefined();
    expect(written((writer) => writeLearnerInfo(writer, { serverId: 3, configVersion: 5, leaderPriority: 4 }))).toEqual(
      written((writer) => writeLearnerInfo(writer, { serverId: 3, configVersion: 5 })),
    );
  });

  test('does not consume the bytes after it', () => {
    const reader = new Reader(Buffer.concat([whole, Buffer.from('more')]));
    readLearnerInfo(reader);
    expect(reader.remainingBytes().toString()).toBe('more');
  });

  test('without a complete sid is refused', () => {
    for (let length = 0; length < 8; length++) expect(() => readLearnerInfo(new Reader(whole, 0, length))).toThrow(ProtocolError);
  });
});

describe('touched sessions', () => {
  test('of any ids are decoded as they were encoded', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(int32, int32, int32)), (sessions) => {
        const bytes = written((writer) => sessions.forEach((session) => writeTouchedSession(writer, ...session)));
        const seen: unknown[] = [];
        readTouchedSessions(new Reader(bytes), (...session) => seen.push(session));
        expect(seen).toEqual(sessions);
      }),
    );
  });

  test('are refused completely when the last is cut short', () => {
    const bytes = Buffer.alloc(24);
    for (let length = 0; length <= 24; length++) {
      const touched: number[] = [];
      const read = (): void => readTouchedSessions(new Reader(bytes, 0, length), (high) => touched.push(high));
      if (length % 12 === 0) read();
      else expect(read).toThrow(ProtocolError);
      expect(touched).toHaveLength(length % 12 === 0 ? length / 12 : 0);
    }
  });
});

test('the payload of a forwarded request is a view, and may be empty', () => {
  const request = { sessionHigh: -1, sessionLow: 2, cxid: 3, type: -11, payload: Buffer.alloc(0) };
  const bytes = written((writer) => writeLearnerRequest(writer, request));
  expect(readLearnerRequest(new Reader(bytes))).toEqual(request);
  const longer = Buffer.concat([bytes, Buffer.from([7])]);
  const { payload } = readLearnerRequest(new Reader(longer));
  longer[longer.length - 1] = 8;
  expect(payload).toEqual(Buffer.from([8]));
});

test('recorded data cut short is refused, except where an older server would end', () => {
  /**
   * Lengths at which the data of a packet may end, besides its own; hostile.test.ts has more for
   * txns.
   */
  const shorter: Record<number, (length: number) => boolean> = {
    [PacketType.FOLLOWERINFO]: (length) => length >= 8,
    [PacketType.OBSERVERINFO]: (length) => length >= 8,
    [PacketType.REQUEST]: (length) => length >= 16,
    [PacketType.PING]: (length) => length % 12 === 0,
  };
  const kinds: number[] = [PacketType.FOLLOWERINFO, PacketType.OBSERVERINFO, PacketType.LEADERINFO, PacketType.ACKEPOCH];
  kinds.push(PacketType.REQUEST, PacketType.REVALIDATE, PacketType.PING, PacketType.COMMITANDACTIVATE);
  const cut = new Set<number>();
  for (const { messages, fromInitiator } of recordedStreams('learner')) {
    for (const { hex, type } of messages) {
      if (type === undefined || !kinds.includes(type)) continue;
      const bytes = Buffer.from(hex, 'hex');
      const dataLength = bytes.readInt32BE(12);
      for (let length = 0; length < dataLength; length++) {
        cut.add(type);
        const read = (): unknown => readPacketData(type, fromInitiator, new Reader(bytes, 16, 16 + length), true);
        if (shorter[type]?.(length) === true) expect(read).not.toThrow();
        else expect(read, `${hex} at ${length}`).toThrow(ProtocolError);
      }
    }
  }
  expect([...cut].sort((a, b) => a - b)).toEqual([...kinds].sort((a, b) => a - b));
});
