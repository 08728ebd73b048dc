/** A local session is resumed while the txn of a write of its earlier connection is being applied. */
import { ErrorCode, OpCode, operations, sessionHigh, type SessionId, sessionLow, type Txn } from '@tskeeper/protocol';
import { expect, it } from 'vitest';
import type { LeaderForwarder } from '../../src/request/leader-forwarder.ts';
import { LoneServer } from '../support/lone-server.ts';

const data = Buffer.alloc(1);
const partCount = 50;
const parts = <T>(part: T): T[] => Array.from({ length: partCount }, () => part);

class Follower extends LoneServer {
  /** Does what takes further steps. */
  finish(): void {
    while (this.core.deadline() === 0) this.core.wake(this.now);
  }

  /** The leader has committed a write of a session. */
  commitWrite(zxid: number, session: SessionId, cxid: number, type: number, txn: Txn): void {
    const header = { clientHigh: sessionHigh(session), clientLow: sessionLow(session), cxid, zxid, time: 1, type };
    (this.order as LeaderForwarder).commit({ zxid, header, txn, digest: undefined, bytes: 40, mayBeLocal: true });
    this.core.appended(zxid, this.now);
  }
}

it('P20: that write is not taken for one that the session sends later', () => {
  const server = new Follower('follower', { localSessions: 'enabled', stepUnits: 100 });
  server.connect(1);
  const session = server.sessionOf(1);
  const ops = parts({ kind: 'setData', path: '/', data, version: -1 } as const);
  server.ask(1, 1, OpCode.multi, (to) => operations.multi.request.write(to, { ops }));
  const txns = parts({ type: OpCode.setData, txn: { kind: 'setData', path: '/', data, version: 1 } } as const);
  server.commitWrite(1, session, 1, OpCode.multi, { kind: 'multi', txns });
  expect(server.core.isBusy).toBe(true);
  server.core.disconnected(1, server.now);
  server.connect(2, session);
  server.finish();
  server.reply(2).clear();
  server.ask(2, 2, OpCode.delete, (to) => operations.delete.request.write(to, { path: '/none', version: -1 }));
  server.commitWrite(2, session, 2, OpCode.error, { kind: 'error', err: ErrorCode.NoNode });
  expect(server.answers(2)).toEqual({ 2: 2 });
});
