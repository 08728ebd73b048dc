/** Session ids, session passwords, and the ids of the digest scheme. */
import { describe, expect, test } from 'vitest';
import {
  digestId,
  initialSessionId,
  isDigestAlgorithm,
  sessionHigh,
  sessionLow,
  sessionPassword,
  sessionPasswordMatches,
} from '../src/index.ts';
import { seeded } from './fixtures.ts';

/** The rule in arithmetic without limits. */
function passwordByRule(id: bigint): Buffer {
  const mask = (1n << 48n) - 1n;
  let state = (id ^ 0xb3415c00n ^ 0x5deece66dn) & mask;
  const password = Buffer.alloc(16);
  for (let at = 0; at < 16; at += 4) {
    state = (state * 0x5deece66dn + 0xbn) & mask;
    password.writeUInt32LE(Number(state >> 16n), at);
  }
  return password;
}

describe('the password of a session', () => {
  test('C2-8: is the one that a real server assigned', () => {
    // Recorded; captures.test.ts has the others.
    expect(sessionPassword(0x0100000c, 0xebc40000 | 0).toString('hex')).toBe('fe9a14d0b363c30e0c11c99fb4529f62');
  });

  test('E23: follows the rule for any id', () => {
    const below = seeded(7);
    const edges = [0n, 1n, -1n, 0x7fffffffffffffffn, -0x8000000000000000n, 0xffffffffn, 0x100000000n, 0xff00000000000000n];
    const ids = [...edges, ...Array.from({ length: 5_000 }, () => (BigInt(below(2 ** 32)) << 32n) | BigInt(below(2 ** 32)))];
    for (const id of ids) {
      const signed = BigInt.asIntN(64, id);
      expect(sessionPassword(sessionHigh(signed), sessionLow(signed))).toEqual(passwordByRule(signed));
    }
  });

  test('is accepted for its session, and any other password is rejected', () => {
    const password = sessionPassword(1, 2);
    expect(sessionPasswordMatches(1, 2, Buffer.from(password))).toBe(true);
    expect(sessionPasswordMatches(1, 3, password)).toBe(false);
    expect(sessionPasswordMatches(2, 2, password)).toBe(false);
    for (let at = 0; at < 16; at++) {
      const wrong = Buffer.from(password);
      wrong[at]! ^= 1;
      expect(sessionPasswordMatches(1, 2, wrong)).toBe(false);
    }
  });

  test.each([[null], [Buffer.alloc(0)], [Buffer.alloc(15)], [Buffer.alloc(16)], [Buffer.alloc(17)]])('cannot be %j', (password) => {
    expect(sessionPasswordMatches(1, 2, password)).toBe(false);
  });

  test('is never valid for id 0', () => {
    expect(sessionPasswordMatches(0, 0, sessionPassword(0, 0))).toBe(false);
  });
});

describe('the first session id', () => {
  test.each([
    [1, 0, 0, 0x0100000000000001n],
    [1, 1, 0, 0x0100000001000001n],
    [1, 1000, 0x41, 0x01000003e8000042n],
    // 32 bits of the clock and 24 bits of the zxid are kept.
    [2, 0xffffffff, 0xfffffe, 0x02ffffffffffffffn],
    [1, 2 ** 32 + 5, 0x3_0100_0003, 0x01daa66d30000004n],
    [0, 0, 0, 1n],
    [0, 0, 0xffffff, 1n],
    [254, 0, 0, -0x01ffffffffffffffn],
    [255, 1, 0, -0x00fffffffeffffffn],
    // The one value that marks containers is skipped.
    [128, 0, 0xffffff, -0x7fffffffffffffffn],
  ])('of server %i at %i ms after zxid %i is %i', (serverId, wallMs, lastZxid, id) => {
    expect(initialSessionId(serverId, wallMs, lastZxid)).toBe(id);
  });

  // A restarted follower may not have the txns of its own sessions yet.
  test('of a start is far from those of another start within the same second, after the same zxid', () => {
    const [first, second] = [1_700_000_001_000, 1_700_000_001_001].map((wallMs) => initialSessionId(5, wallMs, 0x1_0000_0003));
    expect(second! - first!).toBe(2n ** 24n);
  });

  // Each counts from the beginning, and a rolling restart may pass through several of them within a
  // second.
  test('of an epoch differs from those of earlier epochs, though the clock has the same time or was set back', () => {
    const ids = new Set<bigint>();
    for (let epoch = 1; epoch <= 50; epoch++) {
      for (const wallMs of [1_700_000_000_000, 1_700_000_000_000 - epoch * 1000]) {
        for (let session = 0n; session < 20n; session++) ids.add(initialSessionId(1, wallMs, epoch * 2 ** 32) + session);
      }
    }
    expect(ids.size).toBe(50 * 2 * 20);
  });
});

describe('the id of a user', () => {
  test('is the one that a real server stored', () => {
    expect(digestId('alice:secret')).toBe('alice:aYXlLOpEooaV1cRAvUL1fp9Qt7E=');
  });

  test('has the text before the first colon as the user, and hashes all of it', () => {
    expect(digestId('a:b:c').split(':')[0]).toBe('a');
    expect(digestId('a:b:c')).not.toBe(digestId('a:b'));
  });

  test('of a text without a colon has the whole text as the user', () => {
    expect(digestId('alice')).toMatch(/^alice:.{27}=$/);
  });

  test('hashes text as UTF-8', () => {
    // printf é:x | openssl dgst -sha1 -binary | base64
    expect(digestId('é:x')).toBe('é:vJQ1uRvLi+QDvTkAPJk5WaYa798=');
  });

  test.each([
    ['SHA1', 28],
    ['sha1', 28],
    ['SHA-256', 44],
    ['SHA-384', 64],
    ['SHA-512', 88],
    ['SHA-512/256', 44],
    ['SHA3-256', 44],
  ])('can be computed with %s', (algorithm, length) => {
    expect(isDigestAlgorithm(algorithm)).toBe(true);
    expect(digestId('a:b', algorithm)).toHaveLength(2 + length);
  });

  test('with SHA-256 is the one that other programs compute', () => {
    // printf user:password | openssl dgst -sha256 -binary | base64
    expect(digestId('user:password', 'SHA-256')).toBe('user:yRsdas04PETE7CDJcj51jDEYKh9PAjHWPZElmi6hS50=');
  });

  test('cannot be computed with an unknown algorithm', () => {
    expect(isDigestAlgorithm('ROT13')).toBe(false);
    expect(() => digestId('a:b', 'ROT13')).toThrow('no digest algorithm "ROT13": use one of SHA1');
  });
});
