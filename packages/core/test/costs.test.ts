/**
 * Everything that a client can make long is counted as work, so that a turn ends: each row here
 * would otherwise be free.
 */
import {
  type Acl,
  ErrorCode,
  type MultiOp,
  OpCode,
  openAcl,
  sessionHigh,
  sessionLow,
  writeAclList,
  writeCreateRequest,
  writeMultiRequest,
  type Writer,
} from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { expectIs } from '../../../test/expect-is.ts';
import type { AuthProvider, AuthTicket, CoreOptions } from '../src/index.ts';
import type { Replica } from '../src/request/replica.ts';
import { Stepper } from './support/stepper.ts';

const session = 0x0100_0000_0000_0001n;
const [client, watcher] = [1, 2];

function put(replica: Replica, path: string, acl: readonly Acl[] = openAcl, owner = 0n): void {
  const { tree } = replica;
  const zxid = ++replica.lastZxid;
  expectIs(tree.create(path, null, tree.acls.intern(acl), sessionHigh(owner), sessionLow(owner), -1, zxid, 1, true), ErrorCode.Ok);
}

function serving(fill: (replica: Replica) => void, options: Partial<CoreOptions> = {}): Stepper {
  const stepper = new Stepper((replica) => {
    replica.sessions.open(sessionHigh(session), sessionLow(session), 10_000);
    fill(replica);
  }, options);
  stepper.attach(client, session);
  return stepper;
}

const path = (text: string) => (writer: Writer) => writer.ustring(text);
const watched = (text: string) => (writer: Writer) => {
  writer.ustring(text);
  writer.boolean(true);
};

const showIdentity = (name: string) => (writer: Writer) => {
  writer.int32(0);
  writer.ustring('digest');
  writer.buffer(Buffer.from(`${name}:pw`));
};

/** Entries that are shown to clients other than the owner without the hashes of passwords. */
const digests: Acl[] = Array.from({ length: 1000 }, (_, at) => ({ perms: 1, id: { scheme: 'digest', id: `user${at}:${'x'.repeat(28)}` } }));

/** The work of one call: of the request itself, not of what follows. */
function costOf(stepper: Stepper, opCode: number, body: (writer: Writer) => void): number {
  const before = stepper.core.workUnits;
  stepper.ask(client, 7, opCode, body);
  return stepper.core.workUnits - before;
}

describe('work units', () => {
  it.each<[what: string, unitsMin: number, opCode: number, body: (writer: Writer) => void]>([
    ['names of children', 4000, OpCode.getChildren, watched('/parent')],
    ['descendants', 2000, OpCode.getAllChildrenNumber, path('/parent')],
    ['ephemerals', 400 * 16, OpCode.getEphemerals, path('/')],
    [
      'parts of a multiRead',
      400 * 12,
      OpCode.multiRead,
      (to) =>
        writeMultiRequest(to, { ops: Array.from({ length: 400 }, (): MultiOp => ({ kind: 'getData', path: '/parent', watch: false })) }),
    ],
    ['checked entries of an ACL', 4000, OpCode.getACL, path('/secret')],
    [
      'paths of a setWatches',
      800 * 16,
      OpCode.setWatches,
      (to) => {
        to.int64(0);
        for (let list = 0; list < 2; list++)
          to.vector(
            Array.from({ length: 400 }, (_, at) => `/w${at}`),
            (w, text) => w.ustring(text),
          );
        to.vector([], () => undefined);
      },
    ],
    ['hashed credentials', 8000, OpCode.auth, showIdentity('x'.repeat(512 * 1024))],
    [
      'parts of a multi',
      300 * 30,
      OpCode.multi,
      (to) => writeMultiRequest(to, { ops: Array.from({ length: 300 }, (): MultiOp => ({ kind: 'check', path: '/parent', version: -1 })) }),
    ],
    [
      'entries of the ACL of a setACL',
      4000,
      OpCode.setACL,
      (to) => {
        to.ustring('/parent');
        writeAclList(to, digests);
        to.int32(-1);
      },
    ],
    [
      'entries of the ACL of a new znode',
      2000,
      OpCode.create,
      (to) => writeCreateRequest(to, { path: '/new', data: null, acl: digests, flags: 0 }),
    ],
  ])('count %s', (_what, unitsMin, opCode, body) => {
    const stepper = serving((replica) => {
      put(replica, '/parent');
      put(replica, '/secret', [{ perms: 1, id: { scheme: 'world', id: 'anyone' } }, ...digests]);
      for (let at = 0; at < 2000; at++) put(replica, `/parent/n${at}`);
      put(replica, '/mine');
      for (let at = 0; at < 400; at++) put(replica, `/mine/n${at}`, openAcl, session);
    });
    expect(costOf(stepper, opCode, body)).toBeGreaterThanOrEqual(unitsMin);
  });

  it('count each identity in a whoAmI', () => {
    const stepper = serving(() => undefined);
    for (let at = 0; at < 500; at++) stepper.ask(client, -4, OpCode.auth, showIdentity(`u${at}`));
    expect(costOf(stepper, OpCode.whoAmI, () => undefined)).toBeGreaterThanOrEqual(1000);
  });

  it('count the bytes of events: a long path is not sent to thousands of watchers in one step', () => {
    const long = `/${'x'.repeat(200_000)}`;
    const stepper = serving((replica) => put(replica, long));
    for (let at = 0; at < 100; at++) {
      stepper.connect(watcher + at);
      stepper.ask(watcher + at, 1, OpCode.getData, watched(long));
    }
    stepper.reset();
    stepper.ask(client, 1, OpCode.setData, (to) => {
      to.ustring(long);
      to.buffer(null);
      to.int32(-1);
    });
    stepper.finish();
    expect(stepper.received).toHaveLength(101);
    expect(stepper.longestBytes).toBeLessThan(6_000_000);
  });

  it('limit the number of requests answered in one step after an authentication', async () => {
    const tickets: AuthTicket[] = [];
    const later: AuthProvider = {
      scheme: 'later',
      provesIdentity: true,
      authenticate(_credentials, _context, ticket) {
        tickets.push(ticket);
        return { kind: 'later' };
      },
      isValidId: () => true,
      matches: () => false,
      userName: (id) => id,
    };
    const stepper = serving(
      (replica) => {
        put(replica, '/parent');
        for (let at = 0; at < 4000; at++) put(replica, `/parent/n${at}`);
      },
      { authProviders: [later] },
    );
    stepper.ask(client, -4, OpCode.auth, (to) => {
      to.int32(0);
      to.ustring('later');
      to.buffer(Buffer.alloc(0));
    });
    for (let xid = 1; xid <= 40; xid++) stepper.ask(client, xid, OpCode.getChildren, watched('/parent'));
    stepper.reset();
    stepper.call(() => stepper.core.authenticated(tickets[0]!, { kind: 'done', identities: [] }, stepper.now));
    expect(stepper.received.length).toBeLessThan(10);
    stepper.finish();
    expect(stepper.received.map(({ header }) => header.xid)).toEqual([-4, ...Array.from({ length: 40 }, (_, at) => at + 1)]);
  });
});
