/**
 * A DataTree and its plain model, changed alike and compared.
 */
import { type Acl, Perms, sessionHigh, sessionIdOf, sessionLow, Writer } from '@tskeeper/protocol';
import * as fc from 'fast-check';
import { expect } from 'vitest';
import { expectIs } from '../../../../test/expect-is.ts';
import { DataTree, type DataTreeOptions } from '../../src/tree/data-tree.ts';
import { containerOwner, Model, ttlMark } from './model.ts';

export const treeOptions: DataTreeOptions = {
  hashSeed: 0x1234567,
  extendedTypesEnabled: true,
  emulate353TtlNodes: false,
  digestEnabled: true,
};

const anyone = { scheme: 'world', id: 'anyone' };
export const open: readonly Acl[] = [{ perms: Perms.all, id: anyone }];

/** The lists for the model's names. */
export const aclsByName: Readonly<Record<string, readonly Acl[]>> = {
  open,
  system: open,
  readOnly: [{ perms: Perms.read, id: anyone }],
  alice: [{ perms: Perms.all, id: { scheme: 'digest', id: 'alice:hash' } }],
  two: [
    { perms: Perms.read, id: anyone },
    { perms: Perms.all, id: { scheme: 'ip', id: '10.0.0.1' } },
  ],
};

const names = ['a', 'b', 'é中', 'n0000000001', '😀', 'x'.repeat(40)];
/** Every top-level path that a change can create. */
export const topPaths: readonly string[] = names.map((name) => `/${name}`);

const path = fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 3 }).map((parts) => `/${parts.join('/')}`);
const data = fc.oneof(
  fc.constant(null),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc.integer({ min: 300, max: 1200 }).map((length) => Buffer.alloc(length, length)),
);
const acl = fc.constantFrom('open', 'alice', 'two');
const owner = fc.constantFrom(0n, 0n, 0n, containerOwner, ttlMark | 5000n, 0x100000cebc40000n, 0x7fffffffffffffffn, 0x80ffffff00000001n);

export type Change =
  | { kind: 'create'; path: string; data: Buffer | null; acl: string; owner: bigint; cversion: number; raise: boolean }
  | { kind: 'remove'; path: string; late: number }
  | { kind: 'setData'; path: string; data: Buffer | null; version: number }
  | { kind: 'setAcl'; path: string; acl: string; version: number };

const create = fc.record({
  kind: fc.constant('create' as const),
  path,
  data,
  acl,
  owner,
  cversion: fc.integer({ min: -1, max: 9 }),
  raise: fc.boolean(),
});
const remove = fc.record({ kind: fc.constant('remove' as const), path, late: fc.integer({ min: 0, max: 3 }) });
const setData = fc.record({ kind: fc.constant('setData' as const), path, data, version: fc.integer() });
const setAcl = fc.record({ kind: fc.constant('setAcl' as const), path, acl, version: fc.integer() });

/**
 * Any change, including those that only a replay could bring: on existing znodes, on deleted ones,
 * with earlier zxids.
 */
export const anyChange: fc.Arbitrary<Change> = fc.oneof(
  { weight: 4, arbitrary: create },
  { weight: 2, arbitrary: remove },
  { weight: 2, arbitrary: setData },
  { weight: 1, arbitrary: setAcl },
);

export class TreeAndModel {
  readonly tree = new DataTree(treeOptions);
  readonly model = new Model();
  zxid = 0x100000000;

  /** Makes the change in both, under a new zxid by default, and expects equal results. */
  change(change: Change, zxid: number = ++this.zxid): void {
    expect(apply(this.tree, change, zxid)).toBe(applyToModel(this.model, change, zxid));
  }
}

function timeOf(zxid: number): number {
  return 1_700_000_000_000 + zxid;
}

export function apply(tree: DataTree, change: Change, zxid: number): number {
  switch (change.kind) {
    case 'create': {
      const { path: at, data: bytes, owner: session, cversion, raise } = change;
      const id = tree.acls.intern(aclsByName[change.acl]!);
      return tree.create(at, bytes, id, sessionHigh(session), sessionLow(session), cversion, zxid, timeOf(zxid), raise);
    }
    case 'remove':
      return tree.remove(change.path, zxid - change.late);
    case 'setData':
      return tree.setData(change.path, change.data, change.version, zxid, timeOf(zxid));
    case 'setAcl':
      return tree.setAcl(change.path, tree.acls.intern(aclsByName[change.acl]!), change.version);
    default:
      return change satisfies never;
  }
}

function applyToModel(model: Model, change: Change, zxid: number): number {
  switch (change.kind) {
    case 'create':
      return model.create(change.path, change.data, change.acl, change.owner, change.cversion, zxid, timeOf(zxid), change.raise);
    case 'remove':
      return model.remove(change.path, zxid - change.late);
    case 'setData':
      return model.setData(change.path, change.data, change.version, zxid, timeOf(zxid));
    case 'setAcl':
      return model.setAcl(change.path, change.acl, change.version);
    default:
      return change satisfies never;
  }
}

export function written(write: (writer: Writer) => void): string {
  const writer = new Writer(8);
  write(writer);
  return writer.written().toString('hex');
}

export function digestOf(tree: DataTree): bigint {
  return sessionIdOf(tree.digestHigh, tree.digestLow);
}

export function childNames(tree: DataTree, parent: string): string[] {
  const bytes = Buffer.from(
    written((writer) => tree.writeChildren(tree.find(parent), writer)),
    'hex',
  );
  const found: string[] = [];
  for (let at = 4; at < bytes.length; at += 4 + bytes.readInt32BE(at)) {
    found.push(bytes.toString('utf8', at + 4, at + 4 + bytes.readInt32BE(at)));
  }
  expectIs(found.length, bytes.readInt32BE(0));
  return found;
}

/** Expects the tree to equal the model, in every respect a caller can see. */
export function expectSame(tree: DataTree, model: Model): void {
  expect(tree.nodeCount).toBe(model.nodes.size + 1);
  expect(digestOf(tree)).toBe(model.digest());
  expect(tree.approximateDataBytes).toBe(model.dataBytes());
  for (const [key, node] of model.nodes) {
    const found = tree.find(key);
    expectIs(found !== 0, true, key);
    const bytes = Buffer.from(`xx${key}yy`);
    expectIs(tree.lookup(bytes, 2, bytes.length - 2), found, key);
    expectIs(tree.pathOf(found), key === '' ? '/' : key);
    const wire = model.dataAndStat(key);
    expectIs(
      written((writer) => tree.writeDataAndStat(found, writer)),
      wire,
      key,
    );
    const apart = written((writer) => {
      tree.writeData(found, writer);
      tree.writeStat(found, writer);
    });
    expectIs(apart, wire, key);
    expectIs(JSON.stringify(tree.acls.get(tree.aclOf(found))), JSON.stringify(aclsByName[node.acl]), key);
    expectIs(BigInt.asUintN(64, sessionIdOf(tree.ownerHighOf(found), tree.ownerLowOf(found))), node.owner, key);
    expectIs(tree.cversionOf(found), node.cversion, key);
    expectIs(BigInt(tree.digestOf(found)), model.digestOf(key), key);
    expectIs(childNames(tree, key).sort().join('/'), model.childrenOf(key).sort().join('/'), key);
  }
  expectSameEphemerals(tree, model.ephemerals());
}

function expectSameEphemerals(tree: DataTree, expected: ReadonlyMap<bigint, string[]>): void {
  const owners = [...tree.owners()].map(([high, low]) => BigInt.asUintN(64, sessionIdOf(high, low)));
  expect(new Set(owners)).toEqual(new Set(expected.keys()));
  let count = 0;
  for (const [session, paths] of expected) {
    const found: string[] = [];
    tree.forEachEphemeral(sessionHigh(session), sessionLow(session), (node) => found.push(tree.pathOf(node)));
    expect(found.sort()).toEqual(paths.sort());
    expect(tree.ephemeralCountOf(sessionHigh(session), sessionLow(session))).toBe(paths.length);
    count += paths.length;
  }
  expect(tree.ephemeralCount).toBe(count);
}
