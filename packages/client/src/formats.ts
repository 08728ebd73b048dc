/** What programs write and print, made of what they have: with a check of that, which the servers and the session do without. */
import {
  digestId as digestIdOf,
  formatSessionId as sessionIdText,
  formatZxid as zxidText,
  type SessionId,
  type Zxid,
} from '@tskeeper/protocol';
import { checkValue, type Kind, kinds } from './arguments.ts';

const bigint: Kind = { wanted: 'a bigint', fits: (given) => typeof given === 'bigint' };
const zxidKind: Kind = { wanted: 'a bigint or a number', fits: (given) => typeof given === 'bigint' || typeof given === 'number' };
const algorithmKind: Kind = { ...kinds.string, wanted: 'a string, as in "SHA-256"' };
const digestIdForm = 'digestId: the text "user:password"';

/**
 * `user:hash` for `user:password`: what stands in an ACL for someone who authenticates with these. The user is what comes before the first colon; the hash is over the
 * whole text. `algorithm` is the `DigestAuthenticationProvider.digestAlg` of the servers; default: SHA1. Throws a TypeError for what is not `user:password`, and a
 * RangeError for an algorithm that servers do not have. (ZooKeeper's `generateDigest`.)
 */
export function digestId(userAndPassword: string, algorithm: string = 'SHA1'): string {
  checkValue(userAndPassword, kinds.string, digestIdForm);
  // Not quoted, as it may be the password alone. A server would take it for the name of a user.
  if (!userAndPassword.includes(':')) throw new TypeError(`${digestIdForm} is a string, not one without ":"`);
  checkValue(algorithm, algorithmKind, 'digestId: the algorithm');
  return digestIdOf(userAndPassword, algorithm);
}

/** As ZooKeeper prints it: `0x10000002a`. -1 prints as `0xffffffffffffffff`. Throws a TypeError for what is not a number. */
export function formatZxid(zxid: Zxid | bigint): string {
  checkValue(zxid, zxidKind, 'formatZxid: the zxid');
  return zxidText(zxid);
}

/** As ZooKeeper prints it: `0x100000ceb4c0000`, unsigned and without padding. Throws a TypeError for what is not a bigint. */
export function formatSessionId(id: SessionId): string {
  checkValue(id, bigint, 'formatSessionId: the id');
  return sessionIdText(id);
}
