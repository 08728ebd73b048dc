/**
 * The password of a session: sixteen bytes derived from the id alone by the generator of java.util.Random, so that every
 * server can compute them.
 */
export function sessionPassword(session: bigint): string {
  const mask = (1n << 48n) - 1n;
  let state = (BigInt.asUintN(64, session ^ 0xb3415c00n) ^ 0x5deece66dn) & mask;
  let password = '';
  for (let i = 0; i < 4; i++) {
    state = (state * 0x5deece66dn + 0xbn) & mask;
    const word = Number(state >> 16n) >>> 0;
    for (let shift = 0; shift < 32; shift += 8) password += String.fromCharCode((word >>> shift) & 0xff);
  }
  return password;
}
