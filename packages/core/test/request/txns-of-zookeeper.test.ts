/**
 * A leader of ZooKeeper does not say which server a txn came through, so a learner finds the request by
 * session and xid alone.
 */
import { OpCode, operations } from '@tskeeper/protocol';
import { expect, it } from 'vitest';
import { LoneServer } from '../support/lone-server.ts';

const client = 1;

it('a txn of a session answers the oldest write that waits here only if their xids are equal', () => {
  const host = new LoneServer('follower');
  host.connect(client);
  const session = host.sessionOf(client);
  host.commit(1, OpCode.createSession, session);
  host.core.appended(1, host.now);
  host.answers(client);
  const write = (xid: number) =>
    host.ask(client, xid, OpCode.setData, (to) => operations.setData.request.write(to, { path: '/', data: null, version: -1 }));
  write(7);
  write(8);
  // Another process has sent it through another server, or the leader has ended the session.
  host.commit(2, OpCode.error, session, 3);
  host.core.appended(2, host.now);
  expect(host.answers(client)).toEqual({});
  host.commit(3, OpCode.error, session, 7);
  host.commit(4, OpCode.error, session, 8);
  host.core.appended(4, host.now);
  expect(host.answers(client)).toEqual({ 7: 3, 8: 4 });
});
