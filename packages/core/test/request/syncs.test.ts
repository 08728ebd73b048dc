/**
 * A sync is answered when everything committed by then has been applied here, and not before, even
 * if that takes many steps.
 */
import { OpCode, operations } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import type { PendingSync } from '../../src/pending/pending-request.ts';
import type { LeaderForwarder } from '../../src/request/leader-forwarder.ts';
import { LoneServer } from '../support/lone-server.ts';

const client = 1;
const writer = 2;

/** A server of which one step applies one txn. */
class Host extends LoneServer {
  constructor(role: 'leader' | 'follower') {
    super(role, { stepUnits: 4 });
    for (const cnxn of [client, writer]) this.connect(cnxn);
  }

  sync(xid: number): void {
    this.ask(client, xid, OpCode.sync, (to) => to.ustring('/'));
  }

  /** Performs all remaining work. */
  settle(): void {
    while (this.core.deadline() === 0) this.core.wake(this.now);
  }
}

describe('a sync is answered after all committed txns have been applied', () => {
  it('on a learner that has not applied them when its leader answers', () => {
    const host = new Host('follower');
    const forwarding = host.order as LeaderForwarder;
    for (const cnxn of [client, writer]) host.commit(cnxn, OpCode.createSession, host.sessionOf(cnxn));
    host.core.appended(2, host.now);
    host.settle();
    host.answers(client);
    host.sync(1);
    for (let zxid = 3; zxid <= 7; zxid++) host.commit(zxid, OpCode.error, 9n);
    host.core.appended(7, host.now);
    expect(host.core.inspect.lastZxid()).toBeLessThan(7);
    host.core.synced(forwarding.takeSync() as PendingSync, host.now);
    host.settle();
    expect(host.answers(client)).toEqual({ 1: 7 });
  });

  it('on a leader that has not applied them when a quorum has answered', () => {
    const host = new Host('leader');
    host.core.appended(2, host.now);
    host.settle();
    host.answers(client);
    for (let xid = 1; xid <= 5; xid++) {
      host.ask(writer, xid, OpCode.setData, (to) => operations.setData.request.write(to, { path: '/', data: null, version: -1 }));
    }
    host.settle();
    host.core.appended(7, host.now);
    host.sync(1);
    expect(host.core.inspect.lastZxid()).toBeLessThan(7);
    host.core.synced(host.syncs[0]!, host.now);
    host.settle();
    expect(host.answers(client)).toEqual({ 1: 7 });
  });
});
