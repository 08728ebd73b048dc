/**
 * Formatting functions for programs. Unlike the functions that servers and the session use, they
 * validate their arguments.
 */
import {
  digestId as digestIdOf,
  formatSessionId as sessionIdText,
  formatZxid as zxidText,
  type SessionId,
  type Zxid,
} from '@tskeeper/protocol';
import { checkValue, type ValueType, valueTypes } from './arguments.ts';

const bigintType: ValueType = { expected: 'a bigint', accepts: (given) => typeof given === 'bigint' };
const zxidType: ValueType = {
  expected: 'a bigint or a number',
  accepts: (given) => typeof given === 'bigint' || typeof given === 'number',
};
const algorithmType: ValueType = { ...valueTypes.string, expected: 'a string, as in "SHA-256"' };
const digestIdForm = 'digestId: the text "user:password"';

/**
 * `user:hash` for `user:password`: the id in an ACL for a client that authenticates with these. The
 * user ends at the first colon; the hash is over the whole text. `algorithm` is the servers'
 * `DigestAuthenticationProvider.digestAlg`; default: SHA1. Throws a TypeError if the text is not
 * `user:password`, and a RangeError for an algorithm that servers do not support. (ZooKeeper's
 * `generateDigest`.)
 */
export function digestId(userAndPassword: string, algorithm: string = 'SHA1'): string {
  checkValue(userAndPassword, valueTypes.string, digestIdForm);
  // Do not quote the text, as it may be only the password. A server would take it for a user name.
  if (!userAndPassword.includes(':')) throw new TypeError(`${digestIdForm} must contain ":"`);
  checkValue(algorithm, algorithmType, 'digestId: the algorithm');
  return digestIdOf(userAndPassword, algorithm);
}

/**
 * Formats a zxid as ZooKeeper prints it: `0x10000002a`. -1 prints as `0xffffffffffffffff`. Throws a
 * TypeError if it is not a number.
 */
export function formatZxid(zxid: Zxid | bigint): string {
  checkValue(zxid, zxidType, 'formatZxid: the zxid');
  return zxidText(zxid);
}

/**
 * Formats a session id as ZooKeeper prints it: `0x100000ceb4c0000`, unsigned and without padding.
 * Throws a TypeError if it is not a bigint.
 */
export function formatSessionId(id: SessionId): string {
  checkValue(id, bigintType, 'formatSessionId: the id');
  return sessionIdText(id);
}
