/**
 * The cost of checking a long ACL: the same as for a short one, whatever its content, and however
 * often clients ask.
 */
import {
  type Acl,
  ErrorCode,
  type MultiOp,
  OpCode,
  openAcl,
  operations,
  sessionHigh,
  sessionLow,
  writeMultiRequest,
} from '@tskeeper/protocol';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AuthProvider } from '../../src/auth/auth-provider.ts';
import { digestProvider } from '../../src/auth/digest-provider.ts';
import { Identities } from '../../src/auth/identities.ts';
import { ipProvider } from '../../src/auth/ip-provider.ts';
import { Stepper } from '../support/stepper.ts';
import { countWork } from '../support/work.ts';

afterAll(countWork());

const entries = 5000;
const first = 0x0100_0000_0000_0001n;
const client = 1;

/** How often a provider was called, and how often the identities of a connection were read. */
let asked = 0;

function counted<T extends object>(of: T): T {
  return new Proxy(of, {
    get(target, name): unknown {
      const value: unknown = Reflect.get(target, name);
      if (typeof value === 'object' && value !== null) return counted(value);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        asked++;
        return Reflect.apply(value, target, args);
      };
    },
  });
}

const providers: readonly AuthProvider[] = [counted(ipProvider), counted(digestProvider('SHA1', undefined))];

beforeEach(() => {
  const { has } = Object.getOwnPropertyDescriptors(Identities.prototype);
  vi.spyOn(Identities.prototype, 'has').mockImplementation(function (this: Identities, ...args) {
    asked++;
    return has.value!.apply(this, args);
  });
});
afterEach(() => vi.restoreAllMocks());

const ofAddresses = Array.from({ length: entries }, (_, i): Acl => {
  return { perms: 31, id: { scheme: 'ip', id: `10.${i >> 8}.${i & 255}.0/24` } };
});
const ofUsers = Array.from({ length: entries }, (_, i): Acl => ({ perms: 31, id: { scheme: 'digest', id: `user${i}:hash` } }));

/** A server with the znode /x under this ACL, and `clients` clients. */
function guarded(acl: readonly Acl[], clients = 1, authProviders = providers): Stepper {
  const stepper = new Stepper(
    ({ tree, sessions }) => {
      for (let i = 0n; i < clients; i++) sessions.open(sessionHigh(first + i), sessionLow(first + i), 10_000);
      expect(tree.create('/x', null, tree.acls.intern(acl), 0, 0, -1, 1, 1, true)).toBe(ErrorCode.Ok);
    },
    { authProviders },
  );
  for (let i = 0; i < clients; i++) stepper.attach(client + i, first + BigInt(i));
  stepper.reset();
  return stepper;
}

function authenticate(stepper: Stepper, count: number): void {
  for (let i = 0; i < count; i++) {
    const auth = Buffer.from(`me${i}:secret`);
    stepper.ask(client, -4, OpCode.auth, (writer) => operations.auth.request.write(writer, { type: 0, scheme: 'digest', auth }));
  }
  stepper.reset();
}

function read(stepper: Stepper, times: number): number[] {
  for (let xid = 1; xid <= times; xid++) {
    stepper.ask(client, xid, OpCode.getData, (writer) => operations.getData.request.write(writer, { path: '/x', watch: false }));
  }
  return stepper.received.map(({ header }) => header.err);
}

/** Each entry may be visited a few times, but not again for each request. */
const askedMax = 4 * entries;

/** Has no keys, so each of its entries must be compared with each identity. */
const plain: AuthProvider = {
  scheme: 'plain',
  provesIdentity: true,
  authenticate: () => ({ kind: 'done', identities: Array.from({ length: 20 }, (_, i) => ({ scheme: 'plain', id: `me${i}` })) }),
  isValidId: () => true,
  matches: (identity, aclId) => identity === aclId,
  userName: (identity) => identity,
};

describe('scanning an ACL of a scheme without keys', () => {
  const acl = Array.from({ length: entries }, (_, i): Acl => ({ perms: 31, id: { scheme: 'plain', id: `user${i}` } }));
  const all: Acl = { perms: 2, id: { scheme: 'world', id: 'anyone' } };
  const show = (stepper: Stepper, cnxn: number): void => {
    const auth = Buffer.alloc(0);
    stepper.ask(cnxn, -4, OpCode.auth, (writer) => operations.auth.request.write(writer, { type: 0, scheme: 'plain', auth }));
  };

  it('counts as work: watchers are notified in steps', () => {
    const watchers = 40;
    const stepper = guarded([...acl, all], watchers, [plain]);
    for (let i = 0; i < watchers; i++) {
      show(stepper, client + i);
      stepper.ask(client + i, 1, OpCode.addWatch, (writer) => operations.addWatch.request.write(writer, { path: '/x', mode: 0 }));
    }
    stepper.reset();
    const request = { path: '/x', data: null, version: -1 };
    stepper.ask(client, 2, OpCode.setData, (writer) => operations.setData.request.write(writer, request));
    stepper.finish();
    expect(stepper.calls).toBeGreaterThan(watchers / 4);
  });

  it('counts as work: a multi is validated in steps', () => {
    const parts = 100;
    const stepper = guarded(openAcl, 1, [plain]);
    show(stepper, client);
    for (let i = 0; i < parts; i++) {
      const create = { path: `/n${i}`, data: null, acl: [...acl.slice(i), all], flags: 0 };
      stepper.ask(client, i, OpCode.create, (writer) => operations.create.request.write(writer, create));
    }
    stepper.finish();
    stepper.reset();
    const ops = Array.from({ length: parts }, (_, i): MultiOp => ({
      kind: 'setData',
      path: `/n${i}`,
      data: Buffer.alloc(200),
      version: -1,
    }));
    stepper.ask(client, 1, OpCode.multi, (writer) => writeMultiRequest(writer, { ops }));
    stepper.finish();
    expect(stepper.received.map(({ header }) => header.err)).toEqual([ErrorCode.Ok]);
    expect(stepper.calls).toBeGreaterThan(parts / 2);
  });
});

describe('a long ACL', () => {
  it('of addresses is not scanned by each read', () => {
    const stepper = guarded(ofAddresses);
    asked = 0;
    expect(new Set(read(stepper, 100))).toEqual(new Set([ErrorCode.NoAuth]));
    expect(asked).toBeLessThan(askedMax);
  });

  it('of users is not scanned by each read of a client with many identities', () => {
    const stepper = guarded(ofUsers);
    authenticate(stepper, 300);
    asked = 0;
    expect(new Set(read(stepper, 100))).toEqual(new Set([ErrorCode.NoAuth]));
    // Each read looks up each identity.
    expect(asked).toBeLessThan(askedMax + 100 * 302);
  });

  it('is not scanned by each write, even while the change that sets it waits for the log', () => {
    const stepper = guarded(openAcl);
    asked = 0;
    stepper.ask(client, 1, OpCode.setACL, (writer) =>
      operations.setACL.request.write(writer, { path: '/x', acl: ofAddresses, version: -1 }),
    );
    for (let xid = 2; xid <= 100; xid++) {
      const request = { path: '/x', data: null, version: -1 };
      stepper.ask(client, xid, OpCode.setData, (writer) => operations.setData.request.write(writer, request));
    }
    stepper.finish();
    expect(stepper.received.map(({ header }) => header.err)).toEqual([ErrorCode.Ok, ...Array.from({ length: 99 }, () => ErrorCode.NoAuth)]);
    expect(asked).toBeLessThan(askedMax);
  });

  it('is not scanned for each watcher of each change', () => {
    const watchers = 50;
    const stepper = guarded([...ofAddresses, { perms: 2, id: { scheme: 'world', id: 'anyone' } }], watchers);
    for (let i = 0; i < watchers; i++) {
      stepper.ask(client + i, 1, OpCode.addWatch, (writer) => operations.addWatch.request.write(writer, { path: '/x', mode: 0 }));
    }
    stepper.reset();
    asked = 0;
    for (let xid = 2; xid <= 6; xid++) {
      const request = { path: '/x', data: null, version: -1 };
      stepper.ask(client, xid, OpCode.setData, (writer) => operations.setData.request.write(writer, request));
      stepper.finish();
    }
    // Five replies, and no events: no client may read the znode.
    expect(stepper.received.map(({ header }) => header.err)).toEqual(Array.from({ length: 5 }, () => ErrorCode.Ok));
    expect(asked).toBeLessThan(askedMax);
  });
});
