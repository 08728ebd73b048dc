/** The ids of the digest scheme: a user, and a hash of user and password. */
import { createHash } from 'node:crypto';

/** Java's names, used in zoo.cfg, mapped to Node's. */
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

/** The default of the servers. */
export const digestAlgorithmDefault = 'SHA1';

/** Whether `digestId` supports the algorithm, by its name in zoo.cfg. */
export function isDigestAlgorithm(name: string): boolean {
  return algorithms.has(name.toUpperCase());
}

/**
 * Returns `user:hash` for `user:password`: the id in an ACL for a client that authenticates with
 * these. The user is the text before the first colon; the hash covers the whole text. `algorithm`
 * is one for which `isDigestAlgorithm` is true; throws a `RangeError` otherwise.
 */
export function digestId(userAndPassword: string, algorithm: string = digestAlgorithmDefault): string {
  const hashName = algorithms.get(algorithm.toUpperCase());
  if (hashName === undefined) throw new RangeError(`no digest algorithm "${algorithm}": use one of ${[...algorithms.keys()].join(', ')}`);
  const colon = userAndPassword.indexOf(':');
  const user = colon === -1 ? userAndPassword : userAndPassword.slice(0, colon);
  return `${user}:${createHash(hashName).update(userAndPassword, 'utf8').digest('base64')}`;
}
