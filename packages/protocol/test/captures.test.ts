import { describe, expect, test } from 'vitest';
import {
  type Operation,
  operationOf,
  readConnectRequest,
  readConnectResponse,
  Reader,
  readReplyBody,
  readReplyHeader,
  readRequestHeader,
  readWatcherEvent,
  sessionHigh,
  sessionLow,
  sessionPassword,
  sessionPasswordMatches,
  writeConnectRequest,
  writeConnectResponse,
  writeReplyHeader,
  writeRequestHeader,
  writeWatcherEvent,
  Xid,
} from '../src/index.ts';
import { bodyOf, captureNames, captures, frameHex, plain, recordOf, saslFrames } from './fixtures.ts';

interface Taken {
  readonly header: unknown;
  readonly record: unknown;
  /** The frame, encoded again from the decoded value. */
  readonly again: string;
}

interface Frame {
  readonly dir: 'C>S' | 'S>C';
  readonly hex: string;
  readonly handshake: boolean;
}

/**
 * Decodes one frame as its receiver would, and encodes it again; the unanswered requests determine
 * the type of a reply.
 */
class Conversation {
  readonly #pending = new Map<number, Operation>();

  take(frame: Frame): Taken & { readonly left: number } {
    const reader = new Reader(bodyOf(frame.hex));
    const taken = this.#decode(frame, reader);
    return { ...taken, left: reader.remaining };
  }

  #decode(frame: Frame, reader: Reader): Taken {
    if (frame.handshake) return frame.dir === 'C>S' ? this.#connect(reader) : this.#connected(reader);
    return frame.dir === 'C>S' ? this.#request(reader) : this.#reply(reader);
  }

  #connect(reader: Reader): Taken {
    this.#pending.clear();
    const record = readConnectRequest(reader);
    return { header: undefined, record, again: frameHex((writer) => writeConnectRequest(writer, record)) };
  }

  #connected(reader: Reader): Taken {
    const record = readConnectResponse(reader);
    return { header: undefined, record, again: frameHex((writer) => writeConnectResponse(writer, record)) };
  }

  #request(reader: Reader): Taken {
    const header = readRequestHeader(reader);
    const operation = operationOf(header.type);
    if (operation !== undefined) this.#pending.set(header.xid, operation);
    const record = operation?.request.read(reader);
    const again = frameHex((writer) => {
      writeRequestHeader(writer, header);
      operation?.request.write(writer, record);
    });
    return { header, record, again };
  }

  #reply(reader: Reader): Taken {
    const header = readReplyHeader(reader);
    if (header.xid === Xid.notification) {
      const event = readWatcherEvent(reader);
      const again = frameHex((writer) => {
        writeReplyHeader(writer, header);
        writeWatcherEvent(writer, event);
      });
      return { header, record: event, again };
    }
    const operation = this.#pending.get(header.xid);
    const record = operation === undefined ? undefined : readReplyBody(reader, operation, header.err);
    const again = frameHex((writer) => {
      writeReplyHeader(writer, header);
      if (record !== undefined) operation!.reply.write(writer, record);
    });
    return { header, record, again };
  }
}

describe.each(captureNames)('a session with Apache ZooKeeper, %s', (name) => {
  const frames = captures(name);

  test('is recorded completely', () => {
    expect(frames.length).toBeGreaterThan(130);
    expect(new Set(frames.map((frame) => frame.step)).size).toBeGreaterThan(60);
  });

  test('decodes, frame by frame, to the recorded values, and encodes to the same bytes', () => {
    const conversation = new Conversation();
    for (const { dir, hex, decoded, step } of frames) {
      const handshake = 'ConnectRequest' in decoded || 'ConnectResponse' in decoded;
      const { header, record, again, left } = conversation.take({ dir, hex, handshake });
      expect(plain(header), step).toEqual(plain(decoded['RequestHeader'] ?? decoded['ReplyHeader']));
      expect(plain(record), step).toEqual(plain(recordOf(decoded)));
      expect(again, step).toBe(hex);
      expect(left, step).toBe(0);
    }
  });

  test('has session passwords that are derived from the session ids', () => {
    const answers = frames
      .filter((frame) => 'ConnectResponse' in frame.decoded)
      .map((frame) => readConnectResponse(new Reader(bodyOf(frame.hex))))
      .filter((answer) => answer.sessionId !== 0n);
    expect(answers.length).toBeGreaterThan(2);
    for (const { sessionId, passwd } of answers) {
      expect(sessionPassword(sessionHigh(sessionId), sessionLow(sessionId))).toEqual(passwd);
      expect(sessionPasswordMatches(sessionHigh(sessionId), sessionLow(sessionId), passwd)).toBe(true);
    }
  });

  test('decodes differently or not at all if a single bit is flipped', () => {
    // The canary of the comparison above: a flipped bit must show, in the record or by an error.
    const { hex, decoded } = frames.find((frame) => frame.step === 'exists' && frame.dir === 'S>C')!;
    const bytes = bodyOf(hex);
    bytes[20]! ^= 1;
    const reader = new Reader(bytes);
    readReplyHeader(reader);
    expect(plain(operationOf(3)!.reply.read(reader))).not.toEqual(plain(recordOf(decoded)));
  });
});

test('a recorded SASL exchange, accepted and refused, decodes to its tokens and encodes to the same bytes', () => {
  const exchanges = saslFrames();
  expect(exchanges).toHaveLength(2);
  for (const frames of exchanges) {
    const conversation = new Conversation();
    for (const { dir, hex, what, token } of frames) {
      const { header, record, again, left } = conversation.take({ dir, hex, handshake: what === 'handshake' });
      expect(again, what).toBe(hex);
      expect(left, what).toBe(0);
      const words = Object.fromEntries([...what.matchAll(/(\w+)=(-?\d+)/g)].map(([, key, value]) => [key, Number(value)]));
      expect(header ?? {}, what).toMatchObject(words);
      if (token === undefined) continue;
      expect(record, what).toEqual({ token: token === null ? null : Buffer.from(token) });
    }
  }
});
