/**
 * The differences between our server and Apache's that are meant, each with its reason. differences.md says the same at length, and a
 * test keeps the two lists equal. A difference that no rule here explains fails the run.
 */
import type { Difference } from './compare.ts';

export interface Justification {
  readonly id: string;
  readonly reason: string;
  readonly explains: (difference: Difference) => boolean;
}

/** What a UTF-8 decoder makes of a text in which ZooKeeper has written the characters outside the BMP. */
function asDecoded(text: string): string {
  return text.replaceAll(/[\u{10000}-\u{10ffff}]/gu, '\ufffd'.repeat(6));
}

export const justified: readonly Justification[] = [
  {
    id: 'delete-container-from-client',
    reason:
      'ZooKeeper lets any client delete a node by deleteContainer, past ACLs and session checks. We answer as for an opcode that is not an operation (-6, then the end of the connection): the request is meant for the server itself.',
    explains: ({ quirk, field, a, b }) =>
      quirk === 'delete-container' &&
      (field === 'zxid' ||
        (field === 'err' && b === '-6') ||
        (field === 'message' && a === 'reply to ping, err 0' && (b === 'closed' || b === '(none)'))),
  },
  {
    id: 'undecodable-takes-fresh-zxid',
    reason:
      'For a write that it cannot decode ZooKeeper logs an error txn under the zxid of the txn before it. We take a fresh zxid, so that zxids in a log always grow.',
    explains: ({ quirk, field }) => quirk === 'undecodable' && field === 'zxid',
  },
  {
    id: 'null-acl-id-is-invalid-acl',
    reason:
      'An ACL entry whose id is null makes ZooKeeper fail with an exception, answered as -5. We answer -114, as for any other entry that is no identity.',
    explains: ({ quirk, field, a, b }) => quirk === 'null-acl-id' && field === 'err' && a === '-5' && b === '-114',
  },
  {
    id: 'watch-on-null-path-is-refused',
    reason:
      'ZooKeeper keeps a watch on a null path, which nothing can ever fire, and finds none to remove. We answer -5, as for any other null path.',
    explains: ({ quirk, op, field, b }) =>
      quirk === 'null-path' && (op === 'addWatch' || op === 'removeWatches') && ((field === 'err' && b === '-5') || field === 'recordErr'),
  },
  {
    id: 'empty-path-counts-like-the-root',
    reason:
      'ZooKeeper keeps the root under two keys, and counts one of them when it is asked for all children of the empty path. We count the znodes.',
    explains: ({ op, field, text, a, b }) =>
      op === 'getAllChildrenNumber' && field.endsWith('totalNumber') && text.includes('""') && Number(a) === Number(b) + 1,
  },
  {
    id: 'restored-watch-needs-read',
    reason:
      'What a client missed is told by setWatches in ZooKeeper whether it may read the znode or not. We tell it what it may read, as where a watch fires.',
    explains: ({ op, field, text, a }) =>
      op === 'event' && field === 'missing' && text.startsWith('before setWatches') && a.includes('"zxid":-1'),
  },
  {
    id: 'text-outside-the-bmp-is-utf-8',
    reason:
      'ZooKeeper writes a character outside the BMP as two three-byte sequences, which no UTF-8 decoder accepts. We give back what was sent.',
    explains: ({ field, op, a, b }) =>
      (field === 'path' && a !== b && a === asDecoded(b)) ||
      // Where the servers have told different numbers of events, our form of one counts as unexpected. Only setWatches tells such events, so that theirs is justified as missing.
      (op === 'event' && field === 'unexpected' && b !== asDecoded(b)),
  },
];

/** The differences that Apache ZooKeeper 3.8.0 shows against 3.9.5, used to prove that the comparison sees what is there. */
export const knownBetweenVersions: readonly { readonly id: string; readonly shows: (difference: Difference) => boolean }[] = [
  { id: 'events carry their zxid since 3.9.0', shows: ({ op, field, b }) => op === 'event' && field === 'zxid' && b === '-1' },
  {
    id: 'watcher types 4 and 5 are refused by 3.8',
    shows: ({ op, text, field, b }) =>
      (op === 'checkWatches' || op === 'removeWatches') && /type=[45]/.test(text) && field === 'err' && b === '-5',
  },
  { id: 'create2 in a multi is answered as create by 3.8.0', shows: ({ op, field }) => op === 'multi' && field === 'results[].type' },
];
