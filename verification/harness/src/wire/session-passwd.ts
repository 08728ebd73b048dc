/**
 * The password that ZooKeeper derives from a session id: four words of Java's linear congruential
 * generator, seeded with the id xor a constant, each written low byte first. Independent of the
 * server's own implementation, so that either can show an error of the other.
 */
import { noPasswd } from './requests.ts';

const multiplier = 0x5deece66dn;
const mask = (1n << 48n) - 1n;

export function sessionPasswd(sessionId: bigint): Buffer {
  if (sessionId === 0n) return noPasswd;
  const passwd = Buffer.alloc(16);
  let state = (BigInt.asUintN(64, sessionId ^ 0xb3415c00n) ^ multiplier) & mask;
  for (let word = 0; word < 4; word++) {
    state = (state * multiplier + 0xbn) & mask;
    passwd.writeUInt32LE(Number((state >> 16n) & 0xffffffffn), word * 4);
  }
  return passwd;
}
