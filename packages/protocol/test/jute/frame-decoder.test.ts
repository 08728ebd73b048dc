import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FrameDecoder, ProtocolError, Reader, readRequestHeader } from '../../src/index.ts';
import { bodyOf, captureNames, captures } from '../fixtures.ts';

function frameOf(body: Uint8Array): Buffer {
  const head = Buffer.alloc(4);
  head.writeInt32BE(body.length);
  return Buffer.concat([head, body]);
}

/** Collects the frames of a cutter; returns false whenever `accepts` does. */
class Consumer {
  readonly bodies: string[] = [];
  readonly cutter: FrameDecoder;
  accepts = (): boolean => true;

  constructor(lengthMax = 0xfffff) {
    this.cutter = new FrameDecoder(lengthMax);
  }

  readonly onFrame = (reader: Reader): boolean => {
    this.bodies.push(reader.bytes.toString('hex', reader.offset, reader.limit));
    return this.accepts();
  };

  feed(bytes: Buffer, start = 0, end: number = bytes.length): boolean {
    return this.cutter.feed(bytes, start, end, this.onFrame);
  }

  resume(): boolean {
    return this.cutter.resume(this.onFrame);
  }
}

describe('cutting', () => {
  test.each(captureNames)('every frame of %s is delivered complete when it arrives one byte at a time', (name) => {
    const recorded = captures(name);
    const consumer = new Consumer();
    for (const { hex } of recorded) {
      const bytes = Buffer.from(hex, 'hex');
      for (let at = 0; at < bytes.length; at++) {
        // A new buffer for each byte, overwritten afterwards: nothing may still point into it.
        const piece = Buffer.from([bytes[at]!]);
        expect(consumer.feed(piece)).toBe(true);
        piece.fill(0xee);
      }
      expect(consumer.cutter.retainedBytes).toBe(0);
    }
    expect(consumer.bodies).toEqual(recorded.map((frame) => bodyOf(frame.hex).toString('hex')));
  });

  test('any frames in any pieces are delivered as they were sent, and nothing is held at the end', () => {
    const bodies = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 8 });
    const cuts = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(bodies, cuts, fc.integer({ min: 1, max: 5 }), (sent, sizes, refuseEvery) => {
        const stream = Buffer.concat(sent.map(frameOf));
        const consumer = new Consumer();
        let seen = 0;
        consumer.accepts = () => ++seen % refuseEvery !== 0;
        let arrived = 0;
        for (let i = 0; arrived < stream.length; i++) {
          const piece = Buffer.from(stream.subarray(arrived, arrived + sizes[i % sizes.length]!));
          arrived += piece.length;
          consumer.feed(piece);
          piece.fill(0xee);
          // Like a port: sometimes at once, sometimes after more input.
          if (i % 2 === 0) while (consumer.cutter.isPaused) consumer.resume();
        }
        while (consumer.cutter.isPaused) consumer.resume();
        expect(consumer.bodies).toEqual(sent.map((body) => Buffer.from(body).toString('hex')));
        expect(consumer.cutter.retainedBytes).toBe(0);
      }),
    );
  });

  test('a frame that is complete in the input is delivered in place', () => {
    const chunk = Buffer.concat([frameOf(Buffer.from([1])), frameOf(Buffer.from([2, 3]))]);
    const places: [boolean, number, number][] = [];
    new FrameDecoder(100).feed(chunk, 0, chunk.length, (reader) => {
      places.push([reader.bytes === chunk, reader.offset, reader.limit]);
      return true;
    });
    expect(places).toEqual([
      [true, 4, 5],
      [true, 9, 11],
    ]);
  });

  test('only a frame that began earlier is assembled; later frames are delivered in place', () => {
    const first = frameOf(Buffer.alloc(50, 1));
    const chunk = Buffer.concat([first.subarray(20), frameOf(Buffer.from([2]))]);
    const cutter = new FrameDecoder(100);
    cutter.feed(first, 0, 20, () => true);
    const inPlace: boolean[] = [];
    cutter.feed(chunk, 0, chunk.length, (reader) => {
      inPlace.push(reader.bytes === chunk);
      return true;
    });
    expect(inPlace).toEqual([false, true]);
    expect(cutter.retainedBytes).toBe(0);
  });

  test('bytes outside the given range are not read', () => {
    const bytes = Buffer.concat([Buffer.alloc(3, 0xff), frameOf(Buffer.from([7])), Buffer.alloc(5, 0xff)]);
    const consumer = new Consumer();
    consumer.feed(bytes, 3, 8);
    expect(consumer.bodies).toEqual(['07']);
    expect(consumer.cutter.retainedBytes).toBe(0);
  });

  test('a frame of no bytes is delivered', () => {
    const consumer = new Consumer();
    consumer.feed(Buffer.alloc(8));
    expect(consumer.bodies).toEqual(['', '']);
  });

  test('many cutters may share a reader', () => {
    const reader = new Reader();
    const cutters = [new FrameDecoder(100, reader), new FrameDecoder(100, reader)];
    const xids: number[] = [];
    for (const [index, cutter] of cutters.entries()) {
      const request = frameOf(Buffer.from([0, 0, 0, index, 0, 0, 0, 11]));
      cutter.feed(request, 0, request.length, (frame) => {
        xids.push(readRequestHeader(frame).xid);
        return frame === reader;
      });
    }
    expect(xids).toEqual([0, 1]);
  });
});

describe('lengths', () => {
  const headOf = (length: number): Buffer => {
    const head = Buffer.alloc(4);
    head.writeInt32BE(length);
    return head;
  };

  test.each([0x7fffffff, 101, -1, -0x80000000])('%i is refused, in one piece or several, if 100 is the maximum', (length) => {
    const head = headOf(length);
    expect(() => new Consumer(100).feed(head)).toThrow(ProtocolError);
    const consumer = new Consumer(100);
    consumer.feed(head, 0, 3);
    expect(() => consumer.feed(head, 3)).toThrow(ProtocolError);
  });

  test('the maximum is accepted, and reported as soon as it is known', () => {
    const consumer = new Consumer(100);
    consumer.feed(headOf(100), 0, 3);
    expect(consumer.cutter.announcedLength).toBe(0);
    consumer.feed(headOf(100), 3);
    expect(consumer.cutter.announcedLength).toBe(100);
    consumer.feed(Buffer.alloc(100));
    expect(consumer.bodies).toHaveLength(1);
  });

  test('an invalid length is detected at its last byte, after complete frames that are still delivered', () => {
    const consumer = new Consumer(100);
    const bytes = Buffer.concat([frameOf(Buffer.from([1])), Buffer.from('7fffffff', 'hex')]);
    expect(() => consumer.feed(bytes)).toThrow('expected a frame of 0 to 100 bytes, not 2147483647 at byte 5');
    expect(consumer.bodies).toEqual(['01']);
  });

  test('memory grows with the bytes received, not with the announced length', () => {
    const consumer = new Consumer();
    const length = 0xfffff;
    consumer.feed(headOf(length));
    expect(consumer.cutter.announcedLength).toBe(length);
    expect(consumer.cutter.retainedBytes).toBeLessThanOrEqual(128);
    const piece = Buffer.alloc(1000, 5);
    let arrived = 4;
    while (arrived + piece.length < length) {
      consumer.feed(piece);
      arrived += piece.length;
      expect(consumer.cutter.retainedBytes).toBeLessThanOrEqual(Math.max(128, 2 * arrived));
    }
    consumer.feed(piece, 0, length + 4 - arrived);
    expect(consumer.bodies).toHaveLength(1);
    expect(consumer.cutter.retainedBytes).toBe(0);
    expect(consumer.cutter.announcedLength).toBe(0);
  });
});

describe('a consumer that returns false', () => {
  const frames = [1, 2, 3, 4].map((n) => frameOf(Buffer.from([n])));

  test('gets nothing until it resumes, and then the rest in order', () => {
    const consumer = new Consumer();
    consumer.accepts = () => consumer.bodies.length !== 1;
    expect(consumer.feed(Buffer.concat(frames))).toBe(false);
    expect(consumer.bodies).toEqual(['01']);
    expect(consumer.cutter.isPaused).toBe(true);
    expect(consumer.cutter.retainedBytes).toBeGreaterThanOrEqual(15);
    expect(consumer.resume()).toBe(true);
    expect(consumer.bodies).toEqual(['01', '02', '03', '04']);
    expect(consumer.cutter.retainedBytes).toBe(0);
  });

  test('may return false again, each time after one more frame', () => {
    const consumer = new Consumer();
    consumer.accepts = () => false;
    consumer.feed(Buffer.concat(frames));
    for (const n of [2, 3, 4]) {
      expect(consumer.resume()).toBe(false);
      expect(consumer.bodies).toHaveLength(n);
    }
    expect(consumer.resume()).toBe(true);
  });

  test('loses no input meanwhile, complete or partial', () => {
    const consumer = new Consumer();
    consumer.accepts = () => false;
    consumer.feed(frames[0]!);
    consumer.feed(frames[1]!);
    consumer.feed(frames[2]!, 0, 3);
    consumer.accepts = () => true;
    expect(consumer.bodies).toEqual(['01']);
    expect(consumer.resume()).toBe(true);
    expect(consumer.bodies).toEqual(['01', '02']);
    consumer.feed(frames[2]!, 3);
    expect(consumer.bodies).toEqual(['01', '02', '03']);
  });

  test('releases the memory of all frames in the end', () => {
    const consumer = new Consumer();
    consumer.accepts = () => false;
    consumer.feed(Buffer.concat([...frames, frameOf(Buffer.alloc(10_000))]));
    consumer.feed(frames[0]!, 0, 3);
    expect(consumer.cutter.retainedBytes).toBeGreaterThan(10_000);
    consumer.accepts = () => true;
    consumer.resume();
    expect(consumer.cutter.retainedBytes).toBeLessThanOrEqual(128);
    consumer.feed(frames[0]!, 3);
    expect(consumer.bodies.at(-1)).toBe('01');
  });

  test('may close the cutter while it takes a frame, and gets nothing more', () => {
    const consumer = new Consumer();
    consumer.accepts = () => {
      consumer.cutter.close();
      return true;
    };
    expect(consumer.feed(Buffer.concat(frames))).toBe(false);
    expect(consumer.feed(frames[0]!)).toBe(false);
    expect(consumer.resume()).toBe(false);
    expect(consumer.bodies).toEqual(['01']);
    expect(consumer.cutter.retainedBytes).toBe(0);
  });

  test('may close the cutter while it resumes, or while it takes a frame that arrived in pieces', () => {
    const resumed = new Consumer();
    resumed.accepts = () => false;
    resumed.feed(Buffer.concat(frames));
    const inPieces = new Consumer();
    inPieces.feed(frames[0]!, 0, 3);
    for (const consumer of [resumed, inPieces]) {
      consumer.accepts = () => {
        consumer.cutter.close();
        return true;
      };
    }
    expect(resumed.resume()).toBe(false);
    expect(resumed.bodies).toEqual(['01', '02']);
    expect(resumed.cutter.retainedBytes).toBe(0);
    const rest = Buffer.concat([frames[0]!.subarray(3), ...frames]);
    expect(inPieces.feed(rest)).toBe(false);
    expect(inPieces.bodies).toEqual(['01']);
    expect(inPieces.cutter.retainedBytes).toBe(0);
  });
});
