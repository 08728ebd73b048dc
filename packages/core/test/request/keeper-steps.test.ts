/** The long ones among the operations of ClickHouse Keeper: none makes a step long, or a txn too long to be read back. */
import {
  ErrorCode,
  OpCode,
  openAcl,
  readFilteredListWithStatsAndDataReply,
  readListRecursiveReply,
  readMultiReply,
  sessionHigh,
  sessionLow,
  type Writer,
  writeFilteredListWithStatsAndDataRequest,
  writeMultiRequest,
  writeRecursiveRequest,
} from '@tskeeper/protocol';
import { afterAll, describe, expect, it } from 'vitest';
import { type Received, Stepper } from '../support/stepper.ts';
import { countWork } from '../support/work.ts';

afterAll(countWork());

const session = 0x0100_0000_0000_0001n;
const cnxn = 1;

/** `branches` znodes below /many, each with `leaves` of its own. */
function serving(branches: number, leaves: number, juteMaxBuffer?: number): Stepper {
  const stepper = new Stepper(
    (replica) => {
      const { tree, sessions } = replica;
      sessions.open(sessionHigh(session), sessionLow(session), 10_000);
      const put = (path: string): void => {
        const acl = tree.acls.intern(openAcl);
        expect(tree.create(path, Buffer.from('data'), acl, 0, 0, -1, ++replica.lastZxid, 1, true)).toBe(ErrorCode.Ok);
      };
      put('/many');
      for (let branch = 0; branch < branches; branch++) {
        put(`/many/b${branch}`);
        for (let leaf = 0; leaf < leaves; leaf++) put(`/many/b${branch}/n${leaf}`);
      }
    },
    { keeperExtensions: true, ...(juteMaxBuffer !== undefined && { juteMaxBuffer, juteMaxBufferExtra: 0 }) },
  );
  stepper.attach(cnxn, session);
  stepper.reset();
  return stepper;
}

const removal =
  (path: string, limit = 0xffffffff) =>
  (writer: Writer): void =>
    writeRecursiveRequest(writer, { path, limit });

function repliesOf(stepper: Stepper): readonly Received[] {
  stepper.finish();
  return stepper.received;
}

const workMax = 160_000;

describe('removeRecursive', () => {
  it('A20: deletes many znodes in steps, in one txn, and leaves the tree of its digest', () => {
    const stepper = serving(100, 99);
    stepper.ask(cnxn, 1, OpCode.removeRecursive, removal('/many'));
    const [reply] = repliesOf(stepper);
    expect(reply!.header).toMatchObject({ xid: 1, err: ErrorCode.Ok });
    expect(reply!.body.remaining).toBe(0);
    const [{ txn, digest } = { txn: undefined, digest: undefined }] = stepper.logged;
    if (txn?.kind !== 'multi') throw new Error('not a multi');
    expect(txn.txns).toHaveLength(10_001);
    expect(txn.txns.at(-1)).toMatchObject({ type: OpCode.delete, txn: { kind: 'delete', path: '/many' } });
    const { tree } = stepper.replica;
    expect(tree.find('/many')).toBe(0);
    expect(digest).toMatchObject({ high: tree.digestHigh, low: tree.digestLow });
    expect(stepper.calls).toBeGreaterThan(10_001 / 1024 + 10_001 / 342);
    expect(stepper.mostWork).toBeLessThan(workMax);
  });

  it('A20: removes nothing if the deletes do not fit into a txn, alone or in a multi', () => {
    // A delete has 12 bytes and its path.
    const stepper = serving(10, 9, 2000);
    const ops = Array.from({ length: 10 }, (_, branch) => ({ kind: 'removeRecursive' as const, path: `/many/b${branch}`, limit: 100 }));
    stepper.ask(cnxn, 1, OpCode.removeRecursive, removal('/many'));
    stepper.ask(cnxn, 2, OpCode.multi, (writer) => writeMultiRequest(writer, { ops }));
    stepper.ask(cnxn, 3, OpCode.removeRecursive, removal('/many/b1'));
    const [first, second, third] = repliesOf(stepper);
    expect(first!.header.err).toBe(ErrorCode.NotEmpty);
    expect(readMultiReply(second!.body).results.filter(({ kind }) => kind === 'error')).toContainEqual({
      kind: 'error',
      err: ErrorCode.NotEmpty,
    });
    expect(third!.header.err).toBe(ErrorCode.Ok);
    const { tree } = stepper.replica;
    expect(tree.childCountOf(tree.find('/many'))).toBe(9);
  });

  it('A20: a multi that fails after a removal changes nothing', () => {
    const stepper = serving(20, 100);
    const before = stepper.replica.tree.digestLow;
    const ops = [
      { kind: 'removeRecursive', path: '/many/b1', limit: 200 },
      { kind: 'removeRecursive', path: '/many/b2', limit: 3 },
      { kind: 'delete', path: '/many/b3', version: -1 },
    ] as const;
    stepper.ask(cnxn, 1, OpCode.multi, (writer) => writeMultiRequest(writer, { ops }));
    const [reply] = repliesOf(stepper);
    expect(readMultiReply(reply!.body).results).toEqual([
      { kind: 'error', err: ErrorCode.Ok },
      { kind: 'error', err: ErrorCode.NotEmpty },
      { kind: 'error', err: ErrorCode.RuntimeInconsistency },
    ]);
    expect(stepper.replica.tree.digestLow).toBe(before);
    const [{ txn } = { txn: undefined }] = stepper.logged;
    expect(txn?.kind === 'multi' && txn.txns.map(({ type }) => type)).toEqual([OpCode.delete, OpCode.error, OpCode.error]);
  });
});

describe('lists of ClickHouse Keeper', () => {
  const stepper = serving(100, 300);

  it('A20: descendants are listed in steps, level by level, and end at the limit', () => {
    stepper.reset();
    stepper.ask(cnxn, 1, OpCode.listRecursive, removal('/many'));
    stepper.ask(cnxn, 2, OpCode.listRecursive, removal('/many', 101));
    stepper.ask(cnxn, 3, OpCode.listRecursive, removal('/many', 0));
    const [all, some, none] = repliesOf(stepper).map(({ body }) => readListRecursiveReply(body).children);
    expect(all).toHaveLength(100 * 301);
    expect(all!.slice(0, 100).every((path) => /^\/many\/b\d+$/.test(path))).toBe(true);
    expect(some).toEqual(all!.slice(0, 101));
    expect(none).toEqual([]);
    expect(stepper.calls).toBeGreaterThan(30);
    expect(stepper.mostWork).toBeLessThan(workMax);
  });

  it('A20: children with Stats and data are listed in the same order', () => {
    stepper.reset();
    const list = { path: '/many/b7', watch: true, filter: 0, withStat: true, withData: true };
    stepper.ask(cnxn, 4, OpCode.filteredListWithStatsAndData, (writer) => writeFilteredListWithStatsAndDataRequest(writer, list));
    const [reply] = repliesOf(stepper);
    const { children, stat, stats, data } = readFilteredListWithStatsAndDataReply(reply!.body);
    expect([children.length, stats.length, data.length]).toEqual([300, 300, 300]);
    expect(stat.numChildren).toBe(300);
    const { tree } = stepper.replica;
    expect(stats.map(({ czxid }) => czxid)).toEqual(children.map((name) => tree.czxidOf(tree.find(`/many/b7/${name}`))));
    expect(data.every((each) => each!.toString() === 'data')).toBe(true);
    expect(stepper.core.inspect.watchCount()).toBe(1);
  });
});
