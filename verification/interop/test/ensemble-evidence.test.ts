/** What the part `ensemble` reads from the servers' answers and logs. */
import { makeZxid, OpCode, Writer } from '@tskeeper/protocol';
import { expect, test } from 'vitest';
import { normalizeLogged } from '../src/ensemble/agreement.ts';
import { modeFromLeaderLog, modeFromLearnerLog } from '../src/ensemble/sync-mode.ts';
import { until } from '@tskeeper/harness';

const leader = [
  '01:44:03.018 INFO  [LearnerHandler-/127.0.0.1:1] o.a.z.s.q.LearnerHandler Synchronizing with Learner sid: 1 maxCommittedLog=0x0 peerLastZxid=0x0',
  '01:44:03.019 INFO  [LearnerHandler-/127.0.0.1:2] o.a.z.s.q.LearnerHandler Synchronizing with Learner sid: 2 maxCommittedLog=0x0 peerLastZxid=0x0',
  '01:44:03.020 INFO  [LearnerHandler-/127.0.0.1:1] o.a.z.s.q.LearnerHandler Sending DIFF zxid=0x0 for peer sid: 1',
  '01:44:03.021 INFO  [LearnerHandler-/127.0.0.1:2] o.a.z.s.q.LearnerHandler Sending snapshot last zxid of peer is 0x0, zxid of leader is 0x100000000',
  '01:44:09.018 INFO  [LearnerHandler-/127.0.0.1:3] o.a.z.s.q.LearnerHandler Synchronizing with Learner sid: 1 maxCommittedLog=0x0 peerLastZxid=0x5',
  '01:44:09.020 INFO  [LearnerHandler-/127.0.0.1:3] o.a.z.s.q.LearnerHandler Sending TRUNC zxid=0x3  for peer sid: 1',
];

test('the log of a leader of ZooKeeper shows how it synchronized each learner the last time', () => {
  expect([1, 2, 3].map((sid) => modeFromLeaderLog(leader, sid))).toEqual(['TRUNC', 'SNAP', undefined]);
  expect(modeFromLeaderLog(leader.slice(0, 4), 1)).toBe('DIFF');
});

test('the log of a learner of ZooKeeper shows how it was synchronized the last time', () => {
  const lines = [
    'o.a.z.s.q.Learner Getting a snapshot from leader 0x100000000',
    'o.a.z.s.q.Learner Truncating log to get in sync with the leader 0x3',
  ];
  expect(modeFromLearnerLog(lines)).toBe('TRUNC');
  expect(modeFromLearnerLog(lines.slice(0, 1))).toBe('SNAP');
  expect(modeFromLearnerLog(['o.a.z.s.q.Learner Getting a diff from the leader 0x1'])).toBe('DIFF');
  expect(modeFromLearnerLog([])).toBeUndefined();
});

/** A multi whose parts have these types, each with the same record. */
function multi(types: readonly number[]): Buffer {
  const writer = new Writer(64);
  writer.int64(7);
  writer.int32(1);
  writer.int64(makeZxid(1, 1));
  writer.int64(0);
  writer.int32(OpCode.multi);
  writer.int32(types.length);
  for (const type of types) {
    writer.int32(type);
    writer.buffer(Buffer.from('abc'));
  }
  return Buffer.from(writer.written());
}

test('a failed multi is equal in two logs, whichever has errors for its first parts; a successful one is not', () => {
  const written = multi([OpCode.check, OpCode.error]);
  const applied = multi([OpCode.error, OpCode.error]);
  expect(normalizeLogged(written).equals(normalizeLogged(applied))).toBe(true);
  expect(normalizeLogged(multi([OpCode.check, OpCode.setData])).equals(normalizeLogged(multi([OpCode.check, OpCode.delete])))).toBe(false);
  expect(written.readInt32BE(36)).toBe(OpCode.check);
});

test('an expected event that does not happen is named, with the last observation', async () => {
  const waiting = until(
    'the server leads',
    () => Promise.reject(new Error('connection refused')),
    0,
    () => Promise.resolve('its last words'),
  );
  await expect(waiting).rejects.toThrow('timed out after 0 ms waiting for: the server leads: connection refused\nits last words');
});
