/**
 * The memory of a forwarded request with its identities: at the learner until it is answered, at
 * the leader until it is validated.
 */
import { OpCode, operations, PacketType, Reader, Writer } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { Identities } from '../../src/auth/identities.ts';
import { ForwardedIdentities } from '../../src/auth/forwarded-identities.ts';
import { noCnxn, type WriteOrigin } from '../../src/pending/proposal.ts';
import { LoneServer } from '../support/lone-server.ts';
import { packet } from '../zab/packets.ts';

const client = 1;
const other = 2;

class Host extends LoneServer {
  write(cnxn: number, xid: number): void {
    this.ask(cnxn, xid, OpCode.setData, (writer) => operations.setData.request.write(writer, setRoot));
  }
  /** Delivers txns of the leader from `first` on, one for each of `cxids`. */
  commitAll(first: number, type: Parameters<LoneServer['commit']>[1], cxids: readonly number[], session = this.sessionOf(client)): void {
    for (const [at, cxid] of cxids.entries()) {
      this.commit(first + at, type, session, cxid);
      this.core.appended(first + at, this.now);
    }
  }
}

const setRoot = { path: '/', data: Buffer.alloc(1), version: -1 };

describe('on a learner', () => {
  /**
   * A follower with a client that has an identity of 10,000 bytes, where 25,000 bytes may be
   * outstanding.
   */
  function follower(): Host {
    const host = new Host('follower', { inFlightBytesMax: 25_000 });
    host.connect(client);
    host.commitAll(1, OpCode.createSession, [0]);
    const auth = Buffer.from(`${'x'.repeat(10_000)}:secret`);
    host.ask(client, -4, OpCode.auth, (writer) => operations.auth.request.write(writer, { type: 0, scheme: 'digest', auth }));
    return host;
  }

  it('forwarded writes count against the limits, with their identities, until they are answered', () => {
    const host = follower();
    host.write(client, 1);
    host.write(client, 2);
    expect(host.core.wantsInput(client)).toBe(true);
    host.write(client, 3);
    expect(host.core.wantsInput(client)).toBe(false);
    host.commitAll(2, OpCode.error, [1]);
    expect(host.core.wantsInput(client)).toBe(true);
    host.commitAll(3, OpCode.error, [2, 3]);
    host.write(client, 4);
    host.write(client, 5);
    expect(host.core.wantsInput(client)).toBe(true);
  });

  it('an address has at most half a megabyte of identities outstanding; its connections with few identities are still read', () => {
    const host = new Host('follower');
    host.connect(client);
    host.commitAll(1, OpCode.createSession, [0]);
    const auth = Buffer.from(`${'x'.repeat(60_000)}:secret`);
    host.ask(client, -4, OpCode.auth, (writer) => operations.auth.request.write(writer, { type: 0, scheme: 'digest', auth }));
    host.connect(other);
    for (let xid = 1; xid <= 8; xid++) host.write(client, xid);
    expect(host.core.wantsInput(client)).toBe(true);
    host.write(client, 9);
    expect(host.core.wantsInput(client)).toBe(false);
    host.commitAll(2, OpCode.createSession, [0], host.sessionOf(other));
    host.write(other, 1);
    expect(host.core.wantsInput(other)).toBe(true);
    host.commitAll(3, OpCode.error, [1]);
    expect(host.core.wantsInput(client)).toBe(true);
  });

  it('requests waiting to be forwarded count as well, even of disconnected clients: no connection with outstanding requests is read', () => {
    const host = follower();
    host.write(client, 1);
    expect(host.core.wantsInput(client)).toBe(true);
    host.link.queuedBytes = 25_001;
    expect(host.core.wantsInput(client)).toBe(false);
    host.link.queuedBytes = 25_000;
    expect(host.core.wantsInput(client)).toBe(true);
  });

  it('a long write is refused while eight times the limit waits, whatever it changes; a short one is forwarded', () => {
    const host = follower();
    const outstanding = () => host.core.inspect.outstandingRequests();
    host.link.queuedBytes = 200_001;
    host.ask(client, 1, OpCode.setData, (writer) =>
      operations.setData.request.write(writer, { path: '/', data: Buffer.alloc(5000), version: -1 }),
    );
    expect(outstanding()).toBe(0);
    host.write(client, 2);
    expect(outstanding()).toBe(1);
  });

  it('syncs count against the limits too, and those of a closed connection no longer count', () => {
    const host = follower();
    for (const xid of [1, 2]) host.ask(client, xid, OpCode.sync, (writer) => writer.ustring('/'));
    expect(host.core.wantsInput(client)).toBe(true);
    host.ask(client, 3, OpCode.sync, (writer) => writer.ustring('/'));
    expect(host.core.wantsInput(client)).toBe(false);
    host.write(client, 4);
    host.core.disconnected(client, host.now);
    host.connect(other);
    // The new session waits, and counts as an outstanding request.
    expect(host.core.inspect.outstandingRequests()).toBe(1);
    host.core.disconnected(other, host.now);
    const again = follower();
    again.write(client, 1);
    again.write(client, 2);
    again.core.disconnected(client, again.now);
    again.connect(client);
    again.commitAll(9, OpCode.createSession, [0]);
    again.write(client, 1);
    expect(again.core.wantsInput(client)).toBe(true);
  });
});

describe('on a leader', () => {
  const origin = (): WriteOrigin => ({
    kind: 'write',
    cnxn: noCnxn,
    owner: 12,
    sessionHigh: 0,
    sessionLow: 7,
    cxid: 1,
    opCode: OpCode.setData,
    identities: Identities.of([{ scheme: 'digest', id: 'x'.repeat(60_000) }]),
    heldBytes: 0,
    frameBytes: 0,
    isUpgradeRefused: false,
    keeperParts: undefined,
    arrivedMs: 0,
  });
  const record = (): Reader => {
    const writer = new Writer();
    operations.setData.request.write(writer, setRoot);
    return new Reader(Buffer.from(writer.written()));
  };

  it('a forwarded request has no identities after it has been validated', () => {
    const host = new Host('leader');
    const forwarded = origin();
    host.order.submitWrite(forwarded, record(), host.now);
    expect(forwarded.identities.count).toBe(0);
  });

  it('held requests count with their identities', () => {
    const host = new Host('leader', { inFlightBytesMax: 100_000, requestThrottleLimit: 1 });
    host.connect(client);
    host.core.appended(1, host.now);
    host.write(client, 1);
    expect(host.core.wantsInput(client)).toBe(true);
    for (const cxid of [1, 2]) {
      host.core.forwarded({ ...origin(), cxid, record: Buffer.from(record().bytes) }, host.now);
    }
    expect(host.core.wantsInput(client)).toBe(false);
    // There is room again, and they are validated.
    host.core.appended(2, host.now);
    host.core.wake({ ...host.now, elapsedMs: host.now.elapsedMs + 1000 });
    host.write(client, 2);
    expect(host.core.wantsInput(client)).toBe(true);
  });

  it('equal identities of consecutive requests share one list', () => {
    const passedOn = new ForwardedIdentities();
    const request = (...ids: readonly string[]) =>
      packet(
        PacketType.REQUEST,
        -1,
        Buffer.from('record'),
        ids.map((id) => ({ scheme: 'digest', id })),
      );
    const first = passedOn.of(request('a', 'b'));
    expect(first.toList()).toEqual(['a', 'b'].map((id) => ({ scheme: 'digest', id })));
    expect(passedOn.of(request('a', 'b'))).toBe(first);
    expect(passedOn.of(request('a', 'c')).toList()).toEqual(['a', 'c'].map((id) => ({ scheme: 'digest', id })));
    expect(passedOn.of(request('a')).toList()).toEqual([{ scheme: 'digest', id: 'a' }]);
    expect(passedOn.of(packet(PacketType.REQUEST, -1, Buffer.from('record'))).count).toBe(0);
  });
});
