/** The ids of the digest scheme: a user, and a hash of user and password. */
import { createHash } from 'node:crypto';

/** By Java's names, which are what zoo.cfg has, to Node's. */
const algorithms: ReadonlyMap<string, string> = new Map([
  ['SHA1', 'sha1'],
  ['SHA-1', 'sha1'],
  ['SHA-224', 'sha224'],
  ['SHA-256', 'sha256'],
  ['SHA-384', 'sha384'],
  ['SHA-512', 'sha512'],
  ['SHA-512/224', 'sha512-224'],
  ['SHA-512/256', 'sha512-256'],
  ['SHA3-224', 'sha3-224'],
  ['SHA3-256', 'sha3-256'],
  ['SHA3-384', 'sha3-384'],
  ['SHA3-512', 'sha3-512'],
]);

/** Unless the servers are told otherwise. */
export const digestAlgorithmDefault = 'SHA1';

/** Whether `digestId` knows the algorithm, by the name it has in zoo.cfg. */
export function isDigestAlgorithm(name: string): boolean {
  return algorithms.has(name.toUpperCase());
}

/**
 * `user:hash` for `user:password`: what stands in an ACL for someone who authenticates with these. The user is what comes before the
 * first colon; the hash is over the whole text. `algorithm` is one that `isDigestAlgorithm` knows.
 */
export function digestId(userAndPassword: string, algorithm: string = digestAlgorithmDefault): string {
  const hashName = algorithms.get(algorithm.toUpperCase());
  if (hashName === undefined) throw new RangeError(`no digest algorithm "${algorithm}": use one of ${[...algorithms.keys()].join(', ')}`);
  const colon = userAndPassword.indexOf(':');
  const user = colon === -1 ? userAndPassword : userAndPassword.slice(0, colon);
  return `${user}:${createHash(hashName).update(userAndPassword, 'utf8').digest('base64')}`;
}
