/** The check of crash states detects folders that break each of its rules. */
import { makeZxid, type Notification, type Zxid } from '@tskeeper/protocol';
import { describe, expect, test } from 'vitest';
import { checkFolder, checkFirstVote, type FolderHistory, type JoinRecording } from '../../src/internal.ts';

/** The digest of a txn is its zxid, unless the test passes another one. */
function folder(zxids: readonly Zxid[], [acceptedEpoch, currentEpoch]: readonly [number, number], of = 'leader'): FolderHistory {
  const digests = new Map(zxids.map((zxid) => [zxid, `${of} ${zxid}`]));
  const epochs = { acceptedEpoch, currentEpoch };
  return { digests, lastZxid: zxids.at(-1)!, ...epochs, onDisk: epochs };
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
const joining: JoinRecording = { points: [], syncPacket: 'TRUNC', epoch: 2, before, leader };
const promises = { accepted: 0, epoch: 0, acked: 0 };
const own = (epochs: readonly [number, number]): FolderHistory => ({ ...before, acceptedEpoch: epochs[0], currentEpoch: epochs[1] });

describe('a crash state', () => {
  test.each([
    { what: 'before the synchronisation', found: own([1, 1]), said: promises },
    { what: 'with an accepted epoch', found: own([2, 1]), said: { ...promises, accepted: 2 } },
    { what: 'with a truncated log', found: folder([a], [2, 1]), said: { ...promises, accepted: 2 } },
    { what: 'with a part of the txns that were sent', found: folder([a, b], [2, 1]), said: { ...promises, accepted: 2 } },
    { what: 'after it has joined', found: folder([a, b, c], [2, 2]), said: { accepted: 2, epoch: 2, acked: c } },
    { what: 'with more than it acknowledged', found: folder([a, b, c, d], [2, 2]), said: { accepted: 2, epoch: 2, acked: c } },
    {
      what: 'with a snapshot of the beginning of an epoch',
      found: { ...folder([], [2, 2]), digests: new Map([[makeZxid(2, 0), `leader ${b}`]]), lastZxid: makeZxid(2, 0) },
      said: { ...promises, accepted: 2 },
    },
  ])('$what breaks no rule', ({ found, said }) => {
    expect(checkFolder(found, said, joining)).toBeUndefined();
  });

  test.each([
    { what: 'acceptedEpoch 1 is lower than currentEpoch 2', found: folder([a, b], [1, 2]), said: promises },
    { what: 'the server had accepted epoch 2, but acceptedEpoch is 1', found: own([1, 1]), said: { ...promises, accepted: 2 } },
    { what: 'the server was part of epoch 2, but currentEpoch is 1', found: folder([a, b, c], [2, 1]), said: { ...promises, epoch: 2 } },
    { what: 'acceptedEpoch went back from 1 to 0', found: folder([a], [0, 0]), said: promises },
    { what: 'currentEpoch went back from 1 to 0', found: folder([a], [1, 0]), said: promises },
    {
      what: 'the log ends with 0x0, but had 0x100000001 before, which the leader has too',
      found: { ...folder([], [1, 1]), lastZxid: 0 },
      said: promises,
    },
    {
      what: 'the server had acknowledged 0x200000002, but the log ends with 0x200000001',
      found: folder([a, b, c], [2, 2]),
      said: { ...promises, acked: d },
    },
    {
      what: 'currentEpoch is 2, which began with 0x100000002, but the log ends with 0x100000001',
      found: folder([a], [2, 2]),
      said: promises,
    },
    { what: 'the state at 0x100000002 is neither', found: folder([a, b], [2, 1], 'nobody'), said: promises },
    { what: 'the server had acknowledged epoch 2, but the log ends with 0x100000003', found: own([2, 2]), said: { ...promises, epoch: 2 } },
    {
      what: 'the server had acknowledged 0x200000001, but the log ends with its own 0x100000003',
      found: own([2, 1]),
      said: { ...promises, acked: c },
    },
    { what: 'currentEpoch is 2, but the log ends with 0x100000003, which is not part of it', found: own([2, 2]), said: promises },
  ])('is a finding: $what', ({ what, found, said }) => {
    expect(checkFolder(found, said, joining)).toContain(what);
  });
});

describe('the first vote', () => {
  const vote: Notification = { state: 'looking', leader: 3, zxid: b, electionEpoch: 1, peerEpoch: 1, version: 2, config: '' };
  const found = folder([a, b], [2, 1]);

  test('is for the server itself, with the zxid and epoch of its folder', () => {
    expect(checkFirstVote(vote, 3, found)).toBeUndefined();
  });

  test.each([
    { changed: { leader: 1 }, what: "the server's first vote is for 1" },
    { changed: { zxid: c }, what: 'the server votes with 0x200000001, but its log ends with 0x100000002' },
    { changed: { peerEpoch: 2 }, what: 'the server votes with epoch 2, but its currentEpoch is 1' },
  ])('is a finding: $what', ({ changed, what }) => {
    expect(checkFirstVote({ ...vote, ...changed }, 3, found)).toBe(what);
  });

  test('is a finding when it is missing', () => {
    expect(checkFirstVote(undefined, 3, found)).toBe('the server has not voted');
  });
});
