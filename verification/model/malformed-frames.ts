/** Invalid frames: valid ones with an error, and random bytes. */
import { type Hints, Prng, type Profile, randomOperation } from './operations.ts';
import { encodeConnect, encodeRequest } from '@tskeeper/harness';

const profile: Profile = { javaSafe: false, slots: 1 };
const lengthBytes = 4;
/** Boundary values of lengths and numbers. */
const edgeInts = [-1, -2, 0, 1, 0x7fffffff, -0x80000000, 0xffff, 0xfffff, 0x100000, 64];
const knownOpCodes = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 100, 101, 102, 103, 104, 105, 106, 107, -1, -10, -11,
];

/** Adds a correct length. Tests over sockets send wrong ones. */
function framed(body: Buffer): Buffer {
  const frame = Buffer.alloc(lengthBytes + body.length);
  frame.writeInt32BE(body.length, 0);
  body.copy(frame, lengthBytes);
  return frame;
}

export function randomBytes(random: Prng, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random.below(256)));
}

function flipBits(random: Prng, body: Buffer): Buffer {
  for (let flips = 1 + random.below(4); flips > 0 && body.length > 0; flips--) {
    const at = random.below(body.length);
    body[at] = body[at]! ^ (1 << random.below(8));
  }
  return body;
}

function insertInt(random: Prng, body: Buffer): Buffer {
  if (body.length >= 4) body.writeInt32BE(random.pick(edgeInts), random.below(body.length - 3));
  return body;
}

/** A request of the generator with one change. */
export function mutatedFrame(random: Prng, hints: Hints): Buffer {
  const frame = encodeRequest(random.pick([1, 2, 77, 0, -1, -2, -4, -8, 0x7fffffff]), randomOperation(random, profile, hints));
  const body = Buffer.from(frame.subarray(lengthBytes));
  return random.weighted<() => Buffer>([
    [20, () => framed(flipBits(random, body))],
    [15, () => framed(insertInt(random, body))],
    [10, () => framed(insertInt(random, insertInt(random, flipBits(random, body))))],
    [15, () => framed(body.subarray(0, random.below(body.length + 1)))],
    [8, () => framed(Buffer.concat([body, randomBytes(random, random.below(40))]))],
    [
      12,
      () => {
        body.writeInt32BE(random.chance(90) ? random.pick(knownOpCodes) : random.uint32() | 0, 4);
        return framed(body);
      },
    ],
    [5, () => framed(Buffer.concat([body, body.subarray(8), body.subarray(8)]))],
    [5, () => framed(randomBytes(random, random.below(120)))],
    [5, () => framed(Buffer.concat([body.subarray(0, 8), randomBytes(random, random.below(60))]))],
    [3, () => hostileHandshake(random)],
    [2, () => framed(Buffer.alloc(random.below(12)))],
    [8, () => frame],
  ])();
}

/** A handshake, valid or almost. */
export function hostileHandshake(random: Prng): Buffer {
  const sessionId = random.chance(70) ? 0n : BigInt.asIntN(64, (BigInt(random.uint32()) << 32n) | BigInt(random.uint32()));
  const frame = encodeConnect({
    protocolVersion: random.chance(80) ? 0 : random.uint32() | 0,
    lastZxidSeen: random.chance(80) ? 0 : random.uint32(),
    timeOut: random.pick([10_000, 0, -1, 0x7fffffff, 30_000]),
    sessionId,
    passwd: random.chance(80) ? '\0'.repeat(16) : random.pick([null, '', 'x'.repeat(random.below(200))]),
    ...(random.chance(70) ? { readOnly: random.chance(50) } : {}),
  });
  const body = Buffer.from(frame.subarray(lengthBytes));
  return random.chance(70) ? frame : framed(random.chance(50) ? flipBits(random, body) : body.subarray(0, random.below(body.length)));
}
