import {
  CreateMode,
  ErrorCode,
  EventType,
  juteMaxBufferDefault,
  type MultiOp,
  OpCode,
  openAcl,
  readChildrenDataPageReply,
  readChildrenPageReply,
  type Reader,
  readMultiReply,
  readStat,
  readWatcherEvent,
  sessionHigh,
  sessionIdOf,
  sessionLow,
  writeChildrenPageRequest,
  writeCreateRequest,
  writeMultiRequest,
  Writer,
  Xid,
} from '@tskeeper/protocol';
import { afterAll, describe, expect, it } from 'vitest';
import { expectIs } from '../../../test/expect-is.ts';
import { breadth, sample } from '../../../test/breadth.ts';
import type { Replica } from '../src/request/replica.ts';
import { containerOwner } from '../src/request/ephemeral-type.ts';
import { type Received, Stepper } from './support/stepper.ts';
import { countWork } from './support/work.ts';

afterAll(countWork());

const owner = 0x0100_0000_0000_0001n;
const bystander = 0x0100_0000_0000_0002n;
const big = 1;
const other = 2;

function openSessions(replica: Replica): void {
  for (const session of [owner, bystander]) replica.sessions.open(sessionHigh(session), sessionLow(session), 10_000);
}

function put(replica: Replica, path: string, data: Buffer | null = null, session = 0n): void {
  const { tree } = replica;
  const error = tree.create(
    path,
    data,
    tree.acls.intern(openAcl),
    sessionHigh(session),
    sessionLow(session),
    -1,
    ++replica.lastZxid,
    1,
    true,
  );
  expectIs(error, ErrorCode.Ok);
}

function putMany(replica: Replica, parent: string, count: number, session = 0n): void {
  put(replica, parent);
  for (let i = 0; i < count; i++) put(replica, `${parent}/n${i}`, null, session);
}

/** A core over this state, with the owner's connection and another client's. */
function serving(fill: (replica: Replica) => void): Stepper {
  const stepper = new Stepper((replica) => {
    openSessions(replica);
    fill(replica);
  });
  stepper.attach(big, owner);
  stepper.attach(other, bystander);
  stepper.reset();
  return stepper;
}

function at(text: string, watch?: boolean): (writer: Writer) => void {
  return (writer) => {
    writer.ustring(text);
    if (watch !== undefined) writer.boolean(watch);
  };
}

function create(text: string, flags: number = CreateMode.persistent): (writer: Writer) => void {
  return (writer) => writeCreateRequest(writer, { path: text, data: null, acl: openAcl, flags });
}

/** Runs three steps of a job, lets another client send a request between them, and finishes. */
function withBystander(stepper: Stepper): void {
  expect(stepper.core.isBusy).toBe(true);
  stepper.ask(other, 1, OpCode.exists, at('/', false));
  stepper.step();
  stepper.ask(other, 2, OpCode.create, create('/between'));
  stepper.step();
  stepper.ask(other, 3, OpCode.exists, at('/between', false));
  expect(stepper.core.isBusy).toBe(true);
  expect(repliesTo(stepper, other)).toEqual([]);
  stepper.finish();
  expect(repliesTo(stepper, other).map(({ header }) => [header.xid, header.err])).toEqual([
    [1, ErrorCode.Ok],
    [2, ErrorCode.Ok],
    [3, ErrorCode.Ok],
  ]);
}

function repliesTo(stepper: Stepper, cnxn: number): Received[] {
  return stepper.received.filter((one) => one.cnxn === cnxn);
}

/**
 * For one call: twice the work of collecting 8192 names, since a call may end one thing and begin
 * another. No other step takes as much.
 */
const workMax = 160_000;

function expectSteps(stepper: Stepper, callsMin: number): void {
  expect(stepper.calls).toBeGreaterThanOrEqual(callsMin);
  expect(stepper.mostWork).toBeLessThan(workMax);
}

function namesIn(reader: Reader): string[] {
  return reader.vector(4, (from) => from.text('a name'))!;
}

function expectLogInOrder(stepper: Stepper): void {
  const zxids = stepper.logged.map(({ header }) => header.zxid);
  expect(zxids).toEqual(zxids.toSorted((a, b) => a - b));
  expect(new Set(zxids).size).toBe(zxids.length);
}

describe('long reads', () => {
  const count = breadth(60_000, 200_000);
  // Filled once: nothing below changes what is under /many.
  const stepper = serving((replica) => putMany(replica, '/many', count));

  it('list very many children in steps, and answer later requests in order', () => {
    stepper.reset();
    stepper.ask(big, 7, OpCode.getChildren2, at('/many', false));
    withBystander(stepper);
    // 8192 names are collected in one step, 256 KiB are sent.
    expectSteps(stepper, count / 8192 + (count * 11) / (256 * 1024));
    expect(stepper.longestBytes).toBeLessThan(512 * 1024);
    const [reply] = repliesTo(stepper, big);
    expect(reply!.header).toMatchObject({ xid: 7, err: ErrorCode.Ok });
    const names = namesIn(reply!.body);
    expect(names).toEqual(Array.from({ length: count }, (_, i) => `n${i}`));
    expect(readStat(reply!.body).numChildren).toBe(count);
    expect(reply!.body.remaining).toBe(0);
    expect(stepper.received[0]).toBe(reply);
  });

  it('are checked by a test that detects several steps in one call, and too few calls', () => {
    stepper.reset();
    stepper.ask(big, 7, OpCode.getChildren2, at('/many', false));
    stepper.finish();
    const { calls } = stepper;
    expectSteps(stepper, calls);
    stepper.reset();
    stepper.ask(big, 7, OpCode.getChildren2, at('/many', false));
    stepper.call(() => {
      for (let step = 0; step < 3; step++) stepper.core.wake(stepper.now);
    });
    stepper.finish();
    expect(() => expectSteps(stepper, calls)).toThrow(/greater than or equal/);
    expect(() => expectSteps(stepper, 0)).toThrow(/less than/);
  });

  it('count very many descendants in steps', () => {
    stepper.reset();
    stepper.ask(big, 8, OpCode.getAllChildrenNumber, at('/many'));
    stepper.finish();
    expectSteps(stepper, count / 16_384);
    expect(repliesTo(stepper, big)[0]!.body.int32()).toBe(count);
  });

  it('answer a multiRead of a large frame in steps', () => {
    stepper.reset();
    const ops: MultiOp[] = [];
    for (let i = 0; i < 30_000; i++) ops.push({ kind: 'getData', path: i % 3 === 0 ? '/none' : `/many/n${i}`, watch: false });
    ops.push({ kind: 'getChildren', path: '/many', watch: false });
    stepper.ask(big, 9, OpCode.multiRead, (writer) => writeMultiRequest(writer, { ops }));
    stepper.finish();
    expectSteps(stepper, 30_000 / 1024 + count / 8192);
    const { results } = readMultiReply(repliesTo(stepper, big)[0]!.body);
    expect(results.length).toBe(ops.length);
    expect(results.slice(0, 3).map(({ kind }) => kind)).toEqual(['error', 'getData', 'getData']);
    const last = results.at(-1)!;
    expect(last.kind === 'getChildren' && last.children.length).toBe(count);
  });

  it('answer a multiRead that lists many children from a short frame', () => {
    stepper.reset();
    const ops: MultiOp[] = [1, 2].map(() => ({ kind: 'getChildren', path: '/many', watch: false }));
    stepper.ask(big, 10, OpCode.multiRead, (writer) => writeMultiRequest(writer, { ops }));
    stepper.finish();
    expectSteps(stepper, (2 * count) / 8192);
    const { results } = readMultiReply(repliesTo(stepper, big)[0]!.body);
    expect(results.map((result) => result.kind === 'getChildren' && result.children.length)).toEqual([count, count]);
  });

  it('refuse a multiRead whose reply would fill the memory', () => {
    const heavy = serving((replica) => put(replica, '/heavy', Buffer.alloc(500_000)));
    const ops: MultiOp[] = Array.from({ length: 30_000 }, () => ({ kind: 'getData', path: '/heavy', watch: false }));
    heavy.ask(big, 1, OpCode.multiRead, (writer) => writeMultiRequest(writer, { ops }));
    heavy.finish();
    expect(repliesTo(heavy, big).map(({ header }) => header.err)).toEqual([ErrorCode.MarshallingError]);
    expect(heavy.core.isBusy).toBe(false);
  });

  it('write nothing more to a connection that closes in the middle, even if its id is reused', () => {
    stepper.reset();
    stepper.ask(big, 11, OpCode.getChildren, at('/many', false));
    stepper.step();
    stepper.disconnect(big);
    stepper.attach(big, owner);
    stepper.finish();
    expect(repliesTo(stepper, big)).toEqual([]);
    stepper.ask(big, 1, OpCode.exists, at('/many', false));
    expect(repliesTo(stepper, big).map(({ header }) => header.xid)).toEqual([1]);
  });

  it('list very many ephemerals in steps', () => {
    const mine = breadth(20_000, 60_000);
    const owning = serving((replica) => {
      putMany(replica, '/mine', mine, owner);
      put(replica, '/mine2', null, owner);
    });
    owning.ask(big, 1, OpCode.getEphemerals, at('/mine/'));
    owning.finish();
    expectSteps(owning, mine / 1024);
    const names = namesIn(repliesTo(owning, big)[0]!.body);
    expect(names.length).toBe(mine);
    expect(new Set(names)).toEqual(new Set(Array.from({ length: mine }, (_, i) => `/mine/n${i}`)));
  });

  it('answer reads that waited for a write in steps', () => {
    const heavy = serving((replica) => put(replica, '/heavy', Buffer.alloc(500_000)));
    heavy.ask(big, 1, OpCode.create, create('/first'));
    for (let xid = 2; xid < 202; xid++) heavy.ask(big, xid, OpCode.getData, at('/heavy', false));
    heavy.ask(big, 202, OpCode.create, create('/last'));
    heavy.finish();
    expect(heavy.longestBytes).toBeLessThan(8 * 1024 * 1024);
    expect(repliesTo(heavy, big).map(({ header }) => header.xid)).toEqual(Array.from({ length: 202 }, (_, i) => i + 1));
  });
});

describe('long reads that waited for a write', () => {
  function listing(): Stepper {
    const stepper = serving((replica) => putMany(replica, '/many', 30_000));
    stepper.ask(big, 1, OpCode.create, create('/first'));
    return stepper;
  }

  it('let other connections be served between two of them, though a write follows them', () => {
    const stepper = listing();
    for (let xid = 2; xid <= 4; xid++) stepper.ask(big, xid, OpCode.getChildren, at('/many', false));
    stepper.ask(big, 5, OpCode.create, create('/last'));
    let asked = 0;
    const heard = new Set<number>();
    while (stepper.step()) {
      if (stepper.core.isBusy) continue;
      stepper.ask(other, ++asked, OpCode.exists, at('/', false));
      if (repliesTo(stepper, other).length === asked) heard.add(repliesTo(stepper, big).length);
    }
    expect([...heard]).toEqual(expect.arrayContaining([2, 3]));
    expect(repliesTo(stepper, big).map(({ header }) => header.xid)).toEqual([1, 2, 3, 4, 5]);
  });

  it('do not keep writes from being applied, even if further reads arrive all the time', () => {
    const stepper = serving((replica) => putMany(replica, '/many', 30_000));
    let listings = 0;
    stepper.ask(big, ++listings, OpCode.getChildren, at('/many', false));
    stepper.finish();
    stepper.ask(other, 1, OpCode.create, create('/between'));
    while (repliesTo(stepper, other).length === 0 && listings < 20) {
      if (!stepper.core.isBusy) stepper.ask(big, ++listings, OpCode.getChildren, at('/many', false));
      stepper.step();
    }
    expect(listings).toBeLessThan(4);
  });

  it.each([
    ['getChildren', OpCode.getChildren, at('/many', false)],
    ['getChildren2', OpCode.getChildren2, at('/many', false)],
    ['getAllChildrenNumber', OpCode.getAllChildrenNumber, at('/many')],
    [
      'multiRead',
      OpCode.multiRead,
      (writer: Writer) => writeMultiRequest(writer, { ops: [{ kind: 'getChildren', path: '/many', watch: false }] }),
    ],
  ])('hold back later requests of their connection: %s', (_name, opCode, body) => {
    const stepper = listing();
    expect(stepper.core.wantsInput(big)).toBe(true);
    stepper.ask(big, 2, OpCode.exists, at('/many', false));
    expect(stepper.core.wantsInput(big)).toBe(true);
    stepper.ask(big, 3, opCode, body);
    expect(stepper.core.wantsInput(big)).toBe(false);
    expect(stepper.core.wantsInput(other)).toBe(true);
    stepper.finish();
    expect(repliesTo(stepper, big)).toHaveLength(3);
    expect(stepper.core.wantsInput(big)).toBe(true);
  });

  it('count as work of their connection', () => {
    const stepper = listing();
    stepper.finish();
    const before = stepper.core.workUnits;
    stepper.ask(big, 2, OpCode.getChildren, at('/many', false));
    expect(stepper.core.busyCnxn).toBe(big);
    stepper.finish();
    expect(stepper.core.busyCnxn).toBeUndefined();
    expect(stepper.core.workUnits - before).toBeGreaterThan(60_000);
    const short = stepper.core.workUnits;
    stepper.ask(big, 3, OpCode.exists, at('/many', false));
    expect(stepper.core.workUnits - short).toBeLessThan(40);
  });
});

describe('a connection whose output is full', () => {
  it('answers reads without delay if a write follows them: they must not see its effect', () => {
    const stepper = serving((replica) => put(replica, '/heavy', Buffer.alloc(500_000)));
    stepper.fullBytes = 1_000_000;
    stepper.ask(big, 1, OpCode.create, create('/first'));
    for (let xid = 2; xid < 22; xid++) stepper.ask(big, xid, OpCode.getData, at('/heavy', false));
    stepper.finish();
    const held = repliesTo(stepper, big).length;
    expect(held).toBeLessThan(21);
    expect(stepper.core.wantsInput(big)).toBe(false);
    stepper.ask(big, 22, OpCode.create, create('/last'));
    stepper.finish();
    const zxids = repliesTo(stepper, big).map(({ header }) => header.zxid);
    expect(zxids).toHaveLength(22);
    expect(zxids).toEqual(zxids.toSorted((one, two) => one - two));
    expect(stepper.core.inspect.outstandingRequests()).toBe(0);
  });
});

describe('setWatches', () => {
  const paths = Array.from({ length: breadth(40_000, 60_000) }, (_, i) => `/w${i}`);

  function ask(stepper: Stepper, lists: readonly (readonly string[])[], tail: (writer: Writer) => void = () => {}): void {
    stepper.ask(big, Xid.setWatches, OpCode.setWatches2, (writer) => {
      writer.int64(5);
      for (const list of lists) writer.vector(list, (to, name) => to.ustring(name));
      tail(writer);
    });
  }

  it('processes a large frame in steps', () => {
    const stepper = serving((replica) => put(replica, '/w1'));
    ask(stepper, [[], paths, [], paths, []]);
    withBystander(stepper);
    expectSteps(stepper, (2 * paths.length) / 16_384 + (2 * paths.length) / 1024);
    // Znodes created meanwhile cause events; all others are watched.
    expect(stepper.core.inspect.watchCount()).toBe(paths.length - 1 + 2 * paths.length - (paths.length - 1));
    const [event, reply] = repliesTo(stepper, big);
    expect(readWatcherEvent(event!.body)).toMatchObject({ type: EventType.nodeCreated, path: '/w1' });
    expect(reply!.header).toMatchObject({ xid: Xid.setWatches, err: ErrorCode.Ok });
  });

  it('sets no watch of a large frame that cannot be decoded to its end', () => {
    const stepper = serving(() => {});
    ask(stepper, [paths, paths], (writer) => writer.int32(77));
    stepper.finish();
    expect(repliesTo(stepper, big).map(({ header }) => header.err)).toEqual([ErrorCode.MarshallingError]);
    expect(stepper.core.inspect.watchCount()).toBe(0);
  });

  it('sets no watch for a connection that closes in the middle', () => {
    const stepper = serving(() => {});
    ask(stepper, [[], paths, [], [], []]);
    while (stepper.core.inspect.watchCount() === 0) stepper.step();
    expect(stepper.core.isBusy).toBe(true);
    stepper.disconnect(big);
    stepper.attach(big, owner);
    stepper.finish();
    expect(stepper.core.inspect.watchCount()).toBe(0);
  });
});

describe('long writes', () => {
  function multi(ops: readonly MultiOp[], tail: (writer: Writer) => void = () => {}): (writer: Writer) => void {
    return (writer) => {
      writeMultiRequest(writer, { ops });
      tail(writer);
    };
  }

  function creates(count: number): MultiOp[] {
    return Array.from({ length: count }, (_, i) => ({ kind: 'create', path: `/m/n${i}`, data: null, acl: openAcl, flags: 0 }));
  }

  it('validate, apply and answer a multi that fills a frame in steps, without another write in between', () => {
    const stepper = serving((replica) => put(replica, '/m'));
    const ops = creates(15_000);
    stepper.ask(big, 1, OpCode.multi, multi(ops));
    withBystander(stepper);
    expectSteps(stepper, 15_000 / 342 + 15_000 / 683);
    expectLogInOrder(stepper);
    expect(stepper.logged.map(({ txn }) => txn.kind)).toEqual(['multi', 'create']);
    expect(readMultiReply(repliesTo(stepper, big)[0]!.body).results.length).toBe(15_000);
    const { tree } = stepper.replica;
    expect(tree.childCountOf(tree.find('/m'))).toBe(15_000);
    // The digests in the log are those of the present tree.
    expect(stepper.logged.at(-1)!.digest).toMatchObject({ high: tree.digestHigh, low: tree.digestLow });
  });

  it('roll back a large multi in steps when its last part fails', () => {
    const stepper = serving((replica) => put(replica, '/m'));
    const before = stepper.replica.tree.digestLow;
    stepper.ask(big, 1, OpCode.multi, multi([...creates(15_000), { kind: 'delete', path: '/none', version: -1 }]));
    stepper.ask(big, 2, OpCode.create, create('/m/n0'));
    stepper.finish();
    expectSteps(stepper, 15_000 / 342 + 30_000 / 2048);
    const [first, second] = repliesTo(stepper, big);
    expect(readMultiReply(first!.body).results.at(-1)).toEqual({ kind: 'error', err: ErrorCode.NoNode });
    expect(second!.header).toMatchObject({ xid: 2, err: ErrorCode.Ok });
    expect(stepper.logged[0]!.digest).toMatchObject({ low: before });
    expectLogInOrder(stepper);
  });

  it('refuse a large multi as a whole if it cannot be decoded to its end', () => {
    const stepper = serving((replica) => put(replica, '/m'));
    const bytes = new Writer();
    multi(creates(10_000))(bytes);
    stepper.ask(big, 1, OpCode.multi, (writer) => writer.raw(bytes.bytes, 0, bytes.offset - 20));
    stepper.ask(big, 2, OpCode.create, create('/m/n0'));
    stepper.finish();
    expect(repliesTo(stepper, big).map(({ header }) => header.err)).toEqual([ErrorCode.MarshallingError, ErrorCode.Ok]);
  });

  it('continue when the connection closes while its multi is validated', () => {
    const stepper = serving((replica) => put(replica, '/m'));
    stepper.ask(big, 1, OpCode.multi, multi(creates(10_000)));
    stepper.step();
    stepper.disconnect(big);
    stepper.finish();
    expect(stepper.replica.tree.childCountOf(stepper.replica.tree.find('/m'))).toBe(10_000);
    expect(stepper.core.inspect.outstandingRequests()).toBe(0);
  });

  it.each(
    sample(
      [
        { count: 20_000, listed: true },
        { count: 100_000, listed: false },
      ],
      1,
    ),
  )('close a session with $count ephemerals in steps, in one txn', ({ count, listed }) => {
    const stepper = serving((replica) => putMany(replica, '/mine', count, owner));
    stepper.ask(other, 99, OpCode.getChildren, at('/mine', true));
    stepper.finish();
    stepper.reset();
    // One that the tree does not have yet, and one that it has and will lose.
    stepper.ask(big, 1, OpCode.create, create('/mine/new', CreateMode.ephemeral));
    stepper.ask(big, 2, OpCode.delete, (writer) => {
      writer.ustring('/mine/n5');
      writer.int32(-1);
    });
    stepper.ask(big, 3, OpCode.closeSession, () => {});
    stepper.ask(other, 1, OpCode.create, create('/between'));
    stepper.finish();
    expectSteps(stepper, (2 * count) / 683);
    expectLogInOrder(stepper);
    const txns = stepper.logged.map(({ txn }) => txn);
    expect(txns.map(({ kind }) => kind)).toEqual(['create', 'delete', 'closeSession', 'create']);
    const closing = txns[2]!;
    if (closing.kind !== 'closeSession') throw new Error(closing.kind);
    expect(closing.paths2Delete?.length).toBe(listed ? count : undefined);
    const { tree } = stepper.replica;
    expect(tree.childCountOf(tree.find('/mine'))).toBe(0);
    expect(tree.ephemeralCount).toBe(0);
    expect(stepper.logged.at(-1)!.digest).toMatchObject({ high: tree.digestHigh, low: tree.digestLow });
    expect(repliesTo(stepper, big).map(({ header }) => [header.xid, header.err])).toEqual([
      [1, 0],
      [2, 0],
      [3, 0],
    ]);
    expect(repliesTo(stepper, other).map(({ header }) => header.xid)).toEqual([Xid.notification, 1]);
  });

  it('delay sweeps while the session of very many ephemerals is being closed: that txn has its zxid', () => {
    const stepper = serving((replica) => {
      putMany(replica, '/mine', 5000, owner);
      put(replica, '/old', null, sessionIdOf(containerOwner.high, containerOwner.low));
      put(replica, '/old/only');
      replica.tree.remove('/old/only', ++replica.lastZxid);
    });
    // The session is due, and so is the container.
    stepper.pass(60_000);
    stepper.finish();
    expectLogInOrder(stepper);
    expect(stepper.logged.map(({ header }) => header.type)).toContain(OpCode.deleteContainer);
    const { tree } = stepper.replica;
    expect([tree.ephemeralCount, tree.find('/old')]).toEqual([0, 0]);
  });

  it('count the usage of a new quota on a large subtree in steps', () => {
    const many = breadth(33_000, 100_000);
    const stepper = serving((replica) => {
      putMany(replica, '/many', many);
      put(replica, '/zookeeper/quota/many');
      put(replica, '/zookeeper/quota/many/zookeeper_limits', Buffer.from('count=5,bytes=-1'));
    });
    stepper.ask(big, 1, OpCode.create, create('/zookeeper/quota/many/zookeeper_stats'));
    stepper.ask(other, 1, OpCode.create, create('/many/one-more'));
    stepper.finish();
    expectSteps(stepper, many / 16_384);
    expect(stepper.received.map(({ cnxn, header }) => [cnxn, header.err])).toEqual([
      [big, 0],
      [other, 0],
    ]);
    const { tree } = stepper.replica;
    expect(tree.dataOf(tree.find('/zookeeper/quota/many/zookeeper_stats'))!.toString()).toBe(`count=${many + 2},bytes=0`);
  });
});

describe('expiry', () => {
  const first = 0x0100_0000_0001_0000n;

  function crowd(count: number): Stepper {
    return serving((replica) => {
      put(replica, '/crowd');
      for (let i = 0; i < count; i++) {
        const session = first + BigInt(i);
        replica.sessions.open(sessionHigh(session), sessionLow(session), 4000);
        put(replica, `/crowd/n${i}`, null, session);
      }
    });
  }

  it('of ten thousand sessions at once is done in steps', () => {
    const stepper = crowd(10_000);
    stepper.pass(6000);
    stepper.finish();
    expectSteps(stepper, 10_000 / 256);
    expect(stepper.replica.tree.ephemeralCount).toBe(0);
    expect(stepper.core.inspect.sessionCount()).toBe(2);
    expectLogInOrder(stepper);
  });

  it('uses the time up to which all input has been delivered, not the end of a long job', () => {
    const stepper = crowd(1);
    stepper.attach(3, first, 4000);
    stepper.ask(big, 1, OpCode.multi, (writer) => {
      const ops: MultiOp[] = Array.from({ length: 10_000 }, () => ({ kind: 'check', path: '/crowd', version: -1 }));
      writeMultiRequest(writer, { ops });
    });
    expect(stepper.core.isBusy).toBe(true);
    const { elapsedMs } = stepper.now;
    stepper.pass(8000);
    while (stepper.core.isBusy) stepper.core.wake(stepper.now, elapsedMs);
    stepper.core.wake(stepper.now, elapsedMs);
    expect(stepper.closed).toEqual([]);
    // A ping that waited for the busy server.
    stepper.ping(3);
    stepper.pass(3000);
    stepper.finish();
    expect(stepper.closed).not.toContain(3);
    stepper.pass(20_000);
    stepper.finish();
    expect(stepper.closed).toContain(3);
  });
});

describe('pages of children', () => {
  it('D10: list very many children page by page, in steps', () => {
    const count = breadth(60_000, 200_000);
    const countMax = 40_000;
    const stepper = serving((replica) => putMany(replica, '/many', count));
    const { tree } = stepper.replica;
    const all = new Set<string>();
    let afterZxid = -1;
    let afterName: string | null = null;
    let pages = 0;
    for (let isLast = false; !isLast; pages++) {
      stepper.reset();
      const page = { path: '/many', watch: false, afterZxid, afterName, untilZxid: -1, countMax, bytesMax: 0 };
      const opCode = pages % 2 === 0 ? OpCode.getChildrenPage : OpCode.getChildrenDataPage;
      stepper.ask(big, 7, opCode, (writer) => writeChildrenPageRequest(writer, page));
      if (pages === 0) withBystander(stepper);
      else stepper.finish();
      expect(stepper.mostWork).toBeLessThan(workMax);
      expect(stepper.longestBytes).toBeLessThan(512 * 1024);
      const [reply] = repliesTo(stepper, big);
      const { remaining } = reply!.body;
      expect(remaining).toBeLessThanOrEqual(juteMaxBufferDefault);
      const answer = opCode === OpCode.getChildrenPage ? readChildrenPageReply(reply!.body) : readChildrenDataPageReply(reply!.body);
      expect(answer.stat.numChildren).toBe(count);
      for (const child of answer.children) {
        const name = typeof child === 'string' ? child : child.name;
        expectIs(all.has(name), false);
        all.add(name);
        afterName = name;
      }
      afterZxid = answer.lastZxid;
      isLast = answer.isLast;
      // A page of names is as long as requested, one with Stats as long as a packet may be.
      if (!isLast && opCode === OpCode.getChildrenPage) expect(answer.children).toHaveLength(countMax);
      else if (!isLast) expect(remaining).toBeGreaterThan(juteMaxBufferDefault - 500);
    }
    expect(all.size).toBe(count);
    expect(tree.childCountOf(tree.find('/many'))).toBe(count);
  });
});
