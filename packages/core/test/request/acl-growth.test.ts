/**
 * Expansion of `auth` in requested ACLs: one entry for each identity of the connection, however
 * many and however long they are.
 */
import { type Acl, ErrorCode, type MultiOp, OpCode, operations, readMultiReply, Writer, writeMultiRequest } from '@tskeeper/protocol';
import { afterAll, describe, expect, it } from 'vitest';
import { Stepper } from '../support/stepper.ts';
import { countWork } from '../support/work.ts';

afterAll(countWork());

const client = 1;
const creatorAcl: readonly Acl[] = [{ perms: 31, id: { scheme: 'auth', id: '' } }];
const authEntry = (perms: number): Acl => ({ perms, id: { scheme: 'auth', id: '' } });

/** A client with `count` identities of about `idBytes` each. */
function known(count: number, idBytes: number): Stepper {
  const stepper = new Stepper(() => {});
  stepper.connect(client);
  for (let i = 0; i < count; i++) {
    const auth = Buffer.from(`${String(i).padEnd(idBytes - 29, 'x')}:secret`);
    stepper.ask(client, -4, OpCode.auth, (writer) => operations.auth.request.write(writer, { type: 0, scheme: 'digest', auth }));
  }
  stepper.reset();
  return stepper;
}

function create(path: string, acl: readonly Acl[] = creatorAcl): MultiOp {
  return { kind: 'create', path, data: null, acl, flags: 0 };
}

function multi(stepper: Stepper, ops: readonly MultiOp[]): void {
  stepper.ask(client, 1, OpCode.multi, (writer) => writeMultiRequest(writer, { ops }));
  stepper.finish();
}

function answer(stepper: Stepper): number {
  return stepper.received.at(-1)!.header.err;
}

/** Additional memory: objects, and the buffer for log entries, which never shrinks. */
function memoryGrowth(of: () => void): number {
  const before = process.memoryUsage();
  of();
  const after = process.memoryUsage();
  return after.heapUsed - before.heapUsed + after.arrayBuffers - before.arrayBuffers;
}

const growthMax = 64 * 1024 ** 2;

describe('an ACL that expands by the identities of its client', () => {
  it('fails a multi that no log entry could hold, before all of it has been built', () => {
    const stepper = known(900, 40);
    const ops = Array.from({ length: 6000 }, (_, i) => create(`/n${i}`));
    // Each part would be 900 entries: 5.4 million.
    const growth = memoryGrowth(() => multi(stepper, ops));
    expect(answer(stepper)).toBe(ErrorCode.MarshallingError);
    expect(stepper.logged.at(-1)!.txn).toEqual({ kind: 'error', err: ErrorCode.MarshallingError });
    expect(growth).toBeLessThan(growthMax);
    // Nothing of it remains: the next request sees the tree as before.
    multi(stepper, [create('/n0')]);
    expect(answer(stepper)).toBe(ErrorCode.Ok);
  });

  it('is refused as too long before it is encoded, whatever the length of each identity', () => {
    const stepper = known(2, 30_000);
    // 20,000 entries of 30 KB each for every identity: more than a gigabyte.
    const acl = Array.from({ length: 20_000 }, (_, i) => authEntry(i + 1));
    const request = { path: '/long', data: null, acl, flags: 0 };
    const growth = memoryGrowth(() => {
      stepper.ask(client, 1, OpCode.create, (writer: Writer) => operations.create.request.write(writer, request));
      stepper.finish();
    });
    expect(growth).toBeLessThan(growthMax);
    expect(answer(stepper)).toBe(ErrorCode.MarshallingError);
  });

  it('does not hide other errors of a request', () => {
    const stepper = known(2, 30_000);
    const acl = Array.from({ length: 200 }, (_, i) => authEntry(i + 1));
    const request = { path: '/none/long', data: null, acl, flags: 0 };
    stepper.ask(client, 1, OpCode.create, (writer: Writer) => operations.create.request.write(writer, request));
    stepper.finish();
    expect(answer(stepper)).toBe(ErrorCode.NoNode);
  });

  it('is validated in steps by its expanded size', () => {
    const stepper = known(900, 40);
    const ops = Array.from({ length: 30 }, (_, i) => create(`/n${i}`));
    // Long enough to be validated in steps; thirty parts would fit into one step if they were
    // counted as thirty.
    ops.push({ kind: 'create', path: '/data', data: Buffer.alloc(20_000), acl: creatorAcl, flags: 0 });
    stepper.ask(client, 1, OpCode.multi, (writer) => writeMultiRequest(writer, { ops }));
    let calls = 0;
    while (stepper.core.isBusy) {
      stepper.call(() => stepper.core.wake(stepper.now));
      calls++;
    }
    expect(calls).toBeGreaterThan(4);
    stepper.finish();
    expect(readMultiReply(stepper.received.at(-1)!.body).results.map(({ kind }) => kind)).toEqual(ops.map(() => 'create'));
  });
});
