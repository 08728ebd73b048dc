/** What judges a crash state, shown folders that break each of its rules. */
import { makeZxid, type Notification, type Zxid } from '@tskeeper/protocol';
import { describe, expect, test } from 'vitest';
import { complaintOf, complaintOfVote, type FolderHistory, type Joining } from '../../src/internal.ts';

/** A txn has the digest that its zxid says, unless it is told another. */
function folder(zxids: readonly Zxid[], [acceptedEpoch, currentEpoch]: readonly [number, number], of = 'leader'): FolderHistory {
  const digests = new Map(zxids.map((zxid) => [zxid, `${of} ${zxid}`]));
  const epochs = { acceptedEpoch, currentEpoch };
  return { digests, lastZxid: zxids.at(-1)!, ...epochs, written: epochs };
}

const [a, b, c, d] = [makeZxid(1, 1), makeZxid(1, 2), makeZxid(2, 1), makeZxid(2, 2)];
const tail = makeZxid(1, 3);
const leader = folder([a, b, c, d], [2, 2]);
const before: FolderHistory = {
  ...folder([a], [1, 1]),
  digests: new Map([
    [a, `leader ${a}`],
    [tail, 'own'],
  ]),
  lastZxid: tail,
};
const joining: Joining = { points: [], opening: 'TRUNC', epoch: 2, before, leader };
const promises = { accepted: 0, epoch: 0, acked: 0 };
const own = (epochs: readonly [number, number]): FolderHistory => ({ ...before, acceptedEpoch: epochs[0], currentEpoch: epochs[1] });

describe('a crash state', () => {
  test.each([
    { what: 'that has not begun', found: own([1, 1]), said: promises },
    { what: 'that has accepted an epoch', found: own([2, 1]), said: { ...promises, accepted: 2 } },
    { what: 'whose tail is cut', found: folder([a], [2, 1]), said: { ...promises, accepted: 2 } },
    { what: 'that has a part of what was sent', found: folder([a, b], [2, 1]), said: { ...promises, accepted: 2 } },
    { what: 'that is in', found: folder([a, b, c], [2, 2]), said: { accepted: 2, epoch: 2, acked: c } },
    { what: 'that has more than it was asked for', found: folder([a, b, c, d], [2, 2]), said: { accepted: 2, epoch: 2, acked: c } },
    {
      what: 'that is a snapshot of the beginning of an epoch',
      found: { ...folder([], [2, 2]), digests: new Map([[makeZxid(2, 0), `leader ${b}`]]), lastZxid: makeZxid(2, 0) },
      said: { ...promises, accepted: 2 },
    },
  ])('$what is as it should be', ({ found, said }) => {
    expect(complaintOf(found, said, joining)).toBeUndefined();
  });

  test.each([
    { what: 'acceptedEpoch is 1, and currentEpoch 2', found: folder([a, b], [1, 2]), said: promises },
    { what: 'it had accepted epoch 2, and acceptedEpoch is 1', found: own([1, 1]), said: { ...promises, accepted: 2 } },
    { what: 'it was part of epoch 2, and currentEpoch is 1', found: folder([a, b, c], [2, 1]), said: { ...promises, epoch: 2 } },
    { what: 'acceptedEpoch has gone back from 1 to 0', found: folder([a], [0, 0]), said: promises },
    { what: 'currentEpoch has gone back from 1 to 0', found: folder([a], [1, 0]), said: promises },
    {
      what: 'it ends with 0x0, and had 0x100000001 before, which its leader has too',
      found: { ...folder([], [1, 1]), lastZxid: 0 },
      said: promises,
    },
    {
      what: 'it had acknowledged 0x200000002, and ends with 0x200000001',
      found: folder([a, b, c], [2, 2]),
      said: { ...promises, acked: d },
    },
    {
      what: 'currentEpoch is 2, which began with 0x100000002; it ends with 0x100000001',
      found: folder([a], [2, 2]),
      said: promises,
    },
    { what: 'its state at 0x100000002 is neither', found: folder([a, b], [2, 1], 'nobody'), said: promises },
    { what: 'it had acknowledged epoch 2, and ends with 0x100000003', found: own([2, 2]), said: { ...promises, epoch: 2 } },
    { what: 'it had acknowledged 0x200000001, and ends with 0x100000003 of its own', found: own([2, 1]), said: { ...promises, acked: c } },
    { what: 'currentEpoch is 2, and it ends with 0x100000003, which is no part of that', found: own([2, 2]), said: promises },
  ])('is complained of: $what', ({ what, found, said }) => {
    expect(complaintOf(found, said, joining)).toContain(what);
  });
});

describe('the first vote', () => {
  const vote: Notification = { state: 'looking', leader: 3, zxid: b, electionEpoch: 1, peerEpoch: 1, version: 2, config: '' };
  const found = folder([a, b], [2, 1]);

  test('is for oneself, with what the folder holds', () => {
    expect(complaintOfVote(vote, 3, found)).toBeUndefined();
  });

  test.each([
    { changed: { leader: 1 }, what: 'its first vote is for 1' },
    { changed: { zxid: c }, what: 'it votes with 0x200000001, and its log ends with 0x100000002' },
    { changed: { peerEpoch: 2 }, what: 'it votes with epoch 2, and its currentEpoch is 1' },
  ])('is complained of: $what', ({ changed, what }) => {
    expect(complaintOfVote({ ...vote, ...changed }, 3, found)).toBe(what);
  });

  test('is complained of when there is none', () => {
    expect(complaintOfVote(undefined, 3, found)).toBe('it has not voted');
  });
});
