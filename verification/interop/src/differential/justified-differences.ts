/**
 * The intended differences between our server and Apache's, each with its reason. differences.md
 * explains them at length, and a test compares the two lists. A difference without a rule here
 * fails the run.
 */
import type { Difference } from './compare.ts';

export interface Justification {
  readonly id: string;
  readonly reason: string;
  readonly explains: (difference: Difference) => boolean;
}

/**
 * What a UTF-8 decoder makes of a text in which ZooKeeper has encoded characters outside the BMP.
 */
function asDecoded(text: string): string {
  return text.replaceAll(/[\u{10000}-\u{10ffff}]/gu, '\ufffd'.repeat(6));
}

export const justifiedDifferences: readonly Justification[] = [
  {
    id: 'delete-container-from-client',
    reason:
      'ZooKeeper lets any client delete a node by deleteContainer, bypassing ACLs and session checks. We answer as for an unknown opcode (-6, then the end of the connection): the request is meant for the server itself.',
    explains: ({ quirk, field, a, b }) =>
      quirk === 'delete-container' &&
      (field === 'zxid' ||
        (field === 'err' && b === '-6') ||
        (field === 'message' && a === 'reply to ping, err 0' && (b === 'closed' || b === '(none)'))),
  },
  {
    id: 'undecodable-takes-fresh-zxid',
    reason:
      'For an undecodable write ZooKeeper logs an error txn with the zxid of the txn before it. We use a new zxid, so that zxids in a log always grow.',
    explains: ({ quirk, field }) => quirk === 'undecodable' && field === 'zxid',
  },
  {
    id: 'null-acl-id-is-invalid-acl',
    reason:
      'An ACL entry whose id is null causes an exception in ZooKeeper, answered as -5. We answer -114, as for any other invalid entry.',
    explains: ({ quirk, field, a, b }) => quirk === 'null-acl-id' && field === 'err' && a === '-5' && b === '-114',
  },
  {
    id: 'watch-on-null-path-is-refused',
    reason:
      'ZooKeeper keeps a watch on a null path, which can never fire, and finds none to remove. We answer -5, as for any other null path.',
    explains: ({ quirk, op, field, b }) =>
      quirk === 'null-path' && (op === 'addWatch' || op === 'removeWatches') && ((field === 'err' && b === '-5') || field === 'recordErr'),
  },
  {
    id: 'empty-path-counts-like-the-root',
    reason:
      'ZooKeeper stores the root under two keys, and counts one of them in a request for all children of the empty path. We count the znodes.',
    explains: ({ op, field, text, a, b }) =>
      op === 'getAllChildrenNumber' && field.endsWith('totalNumber') && text.includes('""') && Number(a) === Number(b) + 1,
  },
  {
    id: 'restored-watch-needs-read',
    reason:
      'In ZooKeeper, setWatches reports missed changes even of znodes that the client may not read. We report only those that it may read, as when a watch fires.',
    explains: ({ op, field, text, a }) =>
      op === 'event' && field === 'missing' && text.startsWith('before setWatches') && a.includes('"zxid":-1'),
  },
  {
    id: 'text-outside-the-bmp-is-utf-8',
    reason:
      'ZooKeeper encodes a character outside the BMP as two three-byte sequences, which no UTF-8 decoder accepts. We return the bytes that were sent.',
    explains: ({ field, op, a, b }) =>
      (field === 'path' && a !== b && a === asDecoded(b)) ||
      // If the servers sent different numbers of events, our form of one counts as unexpected. Only
      // setWatches sends such events, so theirs is justified as missing.
      (op === 'event' && field === 'unexpected' && b !== asDecoded(b)),
  },
  {
    id: 'older-connection-lingers',
    reason: 'When a session gets a new connection, ZooKeeper may leave the older one open for longer than 20 seconds. We end it at once.',
    explains: ({ field, a, b }) => field === 'message' && a === 'silence' && b === 'closed',
  },
];

/**
 * The differences of Apache ZooKeeper 3.8.0 from 3.9.5, used to prove that the comparison detects
 * differences.
 */
export const knownVersionDifferences: readonly { readonly id: string; readonly shows: (difference: Difference) => boolean }[] = [
  { id: 'events carry their zxid since 3.9.0', shows: ({ op, field, b }) => op === 'event' && field === 'zxid' && b === '-1' },
  {
    id: 'watcher types 4 and 5 are refused by 3.8',
    shows: ({ op, text, field, b }) =>
      (op === 'checkWatches' || op === 'removeWatches') && /type=[45]/.test(text) && field === 'err' && b === '-5',
  },
  { id: 'create2 in a multi is answered as create by 3.8.0', shows: ({ op, field }) => op === 'multi' && field === 'results[].type' },
];
