/**
 * The password of a session: 16 bytes derived from its id, so that every server of an ensemble can
 * check it and none has to store it. The rule is that of ZooKeeper's SessionTrackerImpl and cannot
 * differ from it while servers in Java are members.
 *
 * It is a password in name only: any program that knows the id can compute it.
 */
import { timingSafeEqual } from 'node:crypto';

export const sessionPasswordBytes = 16;

/** ZooKeeper's constant, the same in every server. */
const secret = 0xb3415c00;

// The generator of java.util.Random: a 48-bit number, stored here as two halves of 24 bits, whose
// products are exact in a double.
const multiplierHigh = 0x5de;
const multiplierLow = 0xece66d;
const increment = 0xb;
const mask24 = 0xffffff;
const twoTo24 = 0x1000000;

/** The password of the session whose id has these halves. */
export function sessionPassword(idHigh: number, idLow: number): Buffer {
  const password = Buffer.alloc(sessionPasswordBytes);
  // The seed is the low 48 bits of the id, combined with the secret and, as java.util.Random does
  // with any seed, with the multiplier.
  const seedLow = (idLow ^ secret) >>> 0;
  let low = (seedLow & mask24) ^ multiplierLow;
  let high = (((idHigh & 0xffff) << 8) | (seedLow >>> 24)) ^ multiplierHigh;
  for (let at = 0; at < sessionPasswordBytes; at += 4) {
    const product = low * multiplierLow + increment;
    high = (high * multiplierLow + low * multiplierHigh + Math.floor(product / twoTo24)) % twoTo24;
    low = product % twoTo24;
    // The upper 32 of the 48 bits.
    password.writeInt32LE((high << 8) | (low >>> 16), at);
  }
  return password;
}

/**
 * Whether a client knows the password of the session. Takes the same time for every wrong one. Id 0
 * has no valid password.
 */
export function sessionPasswordMatches(idHigh: number, idLow: number, password: Uint8Array | null): boolean {
  if ((idHigh === 0 && idLow === 0) || password === null || password.length !== sessionPasswordBytes) return false;
  return timingSafeEqual(password, sessionPassword(idHigh, idLow));
}
