import { gunzipSync } from 'node:zlib';
import { adler32, ProtocolError, sessionIdOf, snapshotFileHeader, writeFileHeader, Writer } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { breadth, sample } from '../../../../test/breadth.ts';
import { type LoadedSnapshot, SnapshotLoader } from '../../src/snapshot/snapshot-loader.ts';
import { DataTree } from '../../src/tree/data-tree.ts';
import { fixtureBytes, type ListedSnapshot, listedSnapshot } from '../fixtures.ts';
import { digestOf, open, treeOptions } from '../tree/tree-and-model.ts';
import { load, sessionList, snapshotOf } from './snapshots.ts';

const recorded: readonly [name: string, bytes: Buffer, listed: ListedSnapshot][] = [
  ...['disk-3.9.5', 'disk-3.8.0'].flatMap((folder) =>
    ['snapshot.0', 'snapshot.22'].map((file): [string, Buffer, ListedSnapshot] => [
      `${folder}/${file}`,
      fixtureBytes(`${folder}/${file}`),
      listedSnapshot(`${folder}/listing.json`, file),
    ]),
  ),
  [
    'disk-compressed/snapshot.6.gz',
    gunzipSync(fixtureBytes('disk-compressed/snapshot.6.gz')),
    listedSnapshot('disk-compressed/listing.json', 'snapshot.6.gz'),
  ],
];

/** undefined if it is accepted. Not one `expect` for each: there are thousands. */
function placeOfRefusal(bytes: Buffer): number | undefined {
  try {
    load(bytes);
    return undefined;
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return error.offset;
  }
}

/** The content of a loaded snapshot, in the form of the listings. */
function received(loaded: LoadedSnapshot, listed: ListedSnapshot): ListedSnapshot {
  const { tree } = loaded;
  const hex = (value: number | bigint): string => `0x${BigInt.asUintN(64, BigInt(value)).toString(16)}`;
  const nodes = listed.nodes.map(({ path, acl }) => {
    const node = tree.find(path);
    const data = tree.dataOf(node);
    const expectedAcl = acl === -1 ? open : listed.aclCache.find(({ key }) => key === acl)!.acl;
    expect(tree.acls.get(tree.aclOf(node))).toEqual(expectedAcl);
    expect(tree.aclOf(node) === -1).toBe(acl === -1);
    return {
      path: path === '' ? '' : tree.pathOf(node),
      data: data === null ? null : { hex: data.toString('hex') },
      acl,
      stat: {
        czxid: hex(tree.czxidOf(node)),
        mzxid: hex(tree.mzxidOf(node)),
        pzxid: hex(tree.pzxidOf(node)),
        ctime: tree.ctimeOf(node),
        mtime: tree.mtimeOf(node),
        version: tree.versionOf(node),
        cversion: tree.cversionOf(node),
        aversion: tree.aversionOf(node),
        ephemeralOwner: hex(sessionIdOf(tree.ownerHighOf(node), tree.ownerLowOf(node))),
      },
    };
  });
  expect(tree.nodeCount).toBe(listed.nodes.length + 1);
  expect(tree.acls.size).toBe(new Set(listed.nodes.map(({ acl }) => acl).filter((key) => key !== -1)).size);
  const { digest, lastZxid } = loaded;
  return {
    sessions: loaded.sessions.map(({ high, low, timeoutMs }) => ({ id: hex(sessionIdOf(high, low)), timeout: timeoutMs })),
    aclCache: [],
    nodes,
    ...(digest && {
      digest: { zxid: hex(digest.zxid), digestVersion: digest.version, digest: Number(sessionIdOf(digest.high, digest.low)) },
    }),
    ...(lastZxid !== undefined && { lastProcessedZxid: { zxid: hex(lastZxid) } }),
  };
}

function expected(listed: ListedSnapshot): ListedSnapshot {
  const { digest, lastProcessedZxid } = listed;
  return {
    sessions: listed.sessions.map(({ id, timeout }) => ({ id, timeout })),
    aclCache: [],
    nodes: listed.nodes.map(({ path, data, acl, stat }) => ({ path, data: data === null ? null : { hex: data.hex }, acl, stat })),
    ...(digest && digest.zxid !== '0x0' && { digest: { zxid: digest.zxid, digestVersion: digest.digestVersion, digest: digest.digest } }),
    ...(lastProcessedZxid && { lastProcessedZxid: { zxid: lastProcessedZxid.zxid } }),
  };
}

/** A file with its first seal only, corrected after a change. */
function resealed(bytes: Buffer, sealAt: number): Buffer {
  const copy = Buffer.from(bytes.subarray(0, sealAt + 13));
  copy.writeUInt32BE(adler32(copy, 0, sealAt), sealAt + 4);
  return copy;
}

describe('SnapshotLoader', () => {
  it.each(recorded)('loads %s of a Java server as listed', (_, bytes, listed) => {
    const loaded = load(bytes);
    expect(received(loaded, listed)).toEqual(expected(listed));
    expect(loaded.missingAcls).toBeUndefined();
  });

  it.each(recorded.filter(([, , listed]) => listed.digest !== undefined && listed.digest.zxid !== '0x0'))(
    'computes the tree digest with which %s was written',
    (_, bytes) => {
      const { tree, digest } = load(bytes);
      expect(digestOf(tree)).toBe(sessionIdOf(digest!.high, digest!.low));
    },
  );

  it.each(recorded)('loads %s in pieces of any size', (_, bytes, listed) => {
    expect(received(load(bytes, [1]), listed)).toEqual(expected(listed));
    for (let cut = 1; cut < bytes.length; cut += breadth(101, 7)) {
      expect(received(load(bytes, [cut, bytes.length]), listed)).toEqual(expected(listed));
    }
  });

  it.each(sample(recorded, 2))('refuses %s if it is cut off anywhere except after a seal', (_, bytes, listed) => {
    const parts = [listed, ...(listed.digest ? ['digest'] : []), ...(listed.lastProcessedZxid ? ['lastZxid'] : [])].length;
    const lengths = Array.from({ length: bytes.length }, (_unused, length) => length);
    const placed = lengths.map((length) => placeOfRefusal(bytes.subarray(0, length)));
    expect(placed.filter((place) => place === undefined)).toHaveLength(parts - 1);
    expect(lengths.filter((length) => (placed[length] ?? 0) > length)).toEqual([]);
  });

  it('refuses a snapshot with any bit flipped', () => {
    const [, bytes] = recorded[1]!;
    const flipped = Buffer.from(bytes);
    const unnoticed: number[] = [];
    // All bytes at both ends, which occur once. Between them are znodes of different lengths: every
    // fifth byte is in each of their fields for some of them.
    const places = Array.from(bytes, (_, at) => at).filter((at) => at < 300 || at >= bytes.length - 100 || at % breadth(50, 5) === 0);
    for (const at of places) {
      flipped[at]! ^= 1 << (at % 8);
      if (placeOfRefusal(flipped) === undefined) unnoticed.push(at);
      flipped[at]! ^= 1 << (at % 8);
    }
    expect(unnoticed).toEqual([]);
  });

  it('refuses a snapshot that continues after its end', () => {
    const [, bytes] = recorded[1]!;
    expect(() => load(Buffer.concat([bytes, Buffer.alloc(1)]))).toThrow(ProtocolError);
    expect(() => load(Buffer.concat([bytes, Buffer.alloc(5000)]), [100])).toThrow(ProtocolError);
  });

  it('reports what it expected, and at which byte of the file', () => {
    const [, bytes] = recorded[1]!;
    expect(() => load(Buffer.alloc(100))).toThrow('expected a snapshot, which begins with "ZKSN" at byte 0');
    const flipped = Buffer.from(bytes);
    flipped[2405]! ^= 1;
    expect(() => load(flipped, [64])).toThrow(
      /expected the seal 0x[0-9a-f]+, the checksum of all bytes before it, not 0x407e5007 at byte 2491/,
    );
    const orphan = Buffer.from(bytes);
    orphan.write('/aqp/container', bytes.indexOf('/app/container'));
    expect(() => load(orphan)).toThrow(
      `expected a znode after its parent, but found "/aqp/container" at byte ${bytes.indexOf('/app/container') - 4}`,
    );
  });

  it('loads a snapshot without digest or last zxid, with either, and with both', () => {
    const [, bytes, listed] = recorded[1]!;
    const sealed = bytes.length - 54;
    const lastZxid = Buffer.concat([bytes.subarray(0, sealed), bytes.subarray(sealed + 33)]);
    lastZxid.writeUInt32BE(adler32(lastZxid, 0, sealed + 8), sealed + 12);
    const parts = [bytes.subarray(0, sealed), bytes.subarray(0, sealed + 33), lastZxid, bytes].map((part) => load(part));
    expect(parts.map(({ digest, lastZxid: zxid }) => [digest?.zxid, zxid])).toEqual([
      [undefined, undefined],
      [0x22, undefined],
      [undefined, 0x22],
      [0x22, 0x22],
    ]);
    for (const { tree } of parts) expect(tree.nodeCount).toBe(listed.nodes.length + 1);
  });

  it('skips a digest of the versions before 2, which cannot be compared', () => {
    const [, bytes] = recorded[1]!;
    const writer = new Writer();
    writer.raw(bytes, 0, bytes.length - 54);
    writer.int64(0x22);
    writer.int32(1);
    writer.ustring('a91dd1fd9');
    writer.int64Halves(0, adler32(writer.written()));
    writer.ustring('/');
    expect(load(Buffer.from(writer.written())).digest).toEqual({ zxid: 0x22, version: 1, high: 0, low: 0 });
  });

  it('keeps the ephemerals of an unknown session, and lists it as an owner', () => {
    const tree = new DataTree(treeOptions);
    tree.create('/e', null, tree.acls.intern(open), 7, 8, 1, 1, 1, true);
    const { tree: loaded, sessions } = load(snapshotOf(tree, 1, sessionList([[1, 2, 3000]])));
    expect(sessions).toEqual([{ high: 1, low: 2, timeoutMs: 3000 }]);
    expect([...loaded.owners()]).toEqual([[7, 8]]);
    expect(loaded.find('/e')).not.toBe(0);
  });

  describe('E18: a znode whose ACL the snapshot does not contain (ZOOKEEPER-3306, ZOOKEEPER-4846)', () => {
    const tree = new DataTree(treeOptions);
    for (const [i, path] of ['/a', '/b', '/c'].entries()) tree.create(path, null, tree.acls.intern(open), 0, 0, i + 1, i + 1, 1, true);
    const bytes = snapshotOf(tree, 3, undefined, false);
    // The table has two lists, that of /zookeeper/config and that of the znodes; the second is
    // removed.
    const tableAt = 20;
    const second = tableAt + 4 + 8 + 4 + 4 + 4 + 5 + 4 + 6;
    const cut = Buffer.concat([bytes.subarray(0, second), bytes.subarray(second + 8 + 4 + 4 + 4 + 5 + 4 + 6)]);
    cut.writeInt32BE(1, tableAt);
    const lacking = resealed(cut, cut.length - 21 - 13);

    it('grants nothing to any client, unlike an empty list', () => {
      const { tree: loaded, missingAcls } = load(lacking);
      expect(missingAcls).toEqual({ count: 3, path: '/a' });
      expect(loaded.acls.missingCount).toBe(1);
      const id = loaded.aclOf(loaded.find('/b'));
      expect(loaded.acls.isMissing(id)).toBe(true);
      expect(loaded.acls.get(id).map(({ perms }) => perms)).toEqual([0]);
    });

    it('is repaired by a create or setACL of the log', () => {
      const { tree: loaded } = load(lacking);
      loaded.create('/a', null, loaded.acls.intern(open), 0, 0, 1, 1, 1, true);
      loaded.setAcl('/b', loaded.acls.intern(open), 1);
      expect(loaded.acls.missingCount).toBe(1);
      loaded.remove('/c', 9);
      expect(loaded.acls.missingCount).toBe(0);
      expect(loaded.acls.isMissing(loaded.aclOf(loaded.find('/a')))).toBe(false);
    });

    it('stays missing in the next snapshot, and does not become a list that grants nothing', () => {
      const { missingAcls } = load(snapshotOf(load(lacking).tree, 3));
      expect(missingAcls).toEqual({ count: 3, path: '/a' });
    });
  });

  it('counts the owners that would be TTLs if extended types were enabled', () => {
    const tree = new DataTree(treeOptions);
    tree.create('/t', null, tree.acls.intern(open), 0xff000000 | 0, 5000, 1, 1, 1, true);
    tree.create('/t/child', null, tree.acls.intern(open), 0, 0, 1, 2, 1, true);
    const bytes = snapshotOf(tree, 2);
    expect(load(bytes).ttlLikeOwnerCount).toBe(0);
    const off = load(bytes, undefined, { ...treeOptions, extendedTypesEnabled: false });
    expect(off.ttlLikeOwnerCount).toBe(1);
    expect(off.tree.kindOf(off.tree.find('/t'))).toBe('ephemeral');
    expect(off.tree.childCountOf(off.tree.find('/t'))).toBe(1);
  });

  it('refuses an owner that is invalid with extended types enabled', () => {
    const plain = { ...treeOptions, extendedTypesEnabled: false };
    const tree = new DataTree(plain);
    tree.create('/t', null, tree.acls.intern(open), 0xff123400 | 0, 1, 1, 1, 1, true);
    const bytes = snapshotOf(tree, 1);
    expect(load(bytes, undefined, plain).tree.ephemeralCount).toBe(1);
    expect(() => load(bytes)).toThrow(/expected an ephemeralOwner that is valid with extended types enabled, not 0xff12340000000001/);
  });

  it('decodes a path that is not UTF-8 as Java does', () => {
    const tree = new DataTree(treeOptions);
    tree.create('/abc', null, tree.acls.intern(open), 0, 0, 1, 1, 1, true);
    const bytes = snapshotOf(tree, 1, undefined, false);
    bytes[bytes.indexOf('/abc') + 2] = 0xff;
    const { tree: loaded } = load(resealed(bytes, bytes.length - 21 - 13));
    expect(loaded.find('/a\ufffdc')).not.toBe(0);
    expect(loaded.lookup(Buffer.from([0x2f, 0x61, 0xff, 0x63]), 0, 4)).toBe(0);
  });

  it('recounts the usage of quotas (ZOOKEEPER-1448)', () => {
    const { tree } = load(recorded[1]![1]);
    expect(tree.quotas.hasQuotas).toBe(true);
    expect(tree.dataOf(tree.find('/zookeeper/quota/app/zookeeper_stats'))!.toString()).toBe('count=17,bytes=21');
    expect(tree.quotas.check('/app/x', 0, 83)).toBeUndefined();
    expect(tree.quotas.check('/app/x', 0, 184)).toMatchObject({ isHard: true, what: 'count', limit: 200, usage: 201, path: '/app' });
  });
});

describe('a file with false counts or lengths, followed by endless zeros', () => {
  const piece = Buffer.alloc(256 * 1024);
  const gigabyte = 4096;
  const header = (...ints: number[]): Buffer => {
    const writer = new Writer();
    writeFileHeader(writer, snapshotFileHeader);
    for (const int of ints) writer.int32(int);
    return Buffer.from(writer.written());
  };

  it.each([
    ['sessions', header(0x7fffffff), 1],
    ['ACLs', header(0, 0x7fffffff), 1],
    ['entries of an ACL', header(0, 1, 0, 1, 0x7fffffff), 1],
    ['bytes of a scheme', header(0, 1, 0, 1, 1, 31, 0x7fffffff), 1],
    ['bytes of a path', header(0, 0, 0x7fffffff), 1],
    ['bytes of data', header(0, 0, 0, 0x7fffffff), 1],
  ])('is refused before much of it is kept: too many %s', (_what, beginning, piecesMax) => {
    const loader = new SnapshotLoader(treeOptions);
    let pieces = 0;
    expect(() => {
      loader.feed(beginning);
      for (; pieces < gigabyte; pieces++) loader.feed(piece);
    }).toThrow(ProtocolError);
    expect(pieces).toBeLessThanOrEqual(piecesMax);
  });

  it('is refused with the reason: a duplicate session, or an item that no request could have made', () => {
    const twice = new SnapshotLoader(treeOptions);
    expect(() => twice.feed(Buffer.concat([header(2), piece]))).toThrow('a new session, not 0x0 again at byte 32');
    const long = new SnapshotLoader(treeOptions);
    expect(() => long.feed(header(0, 0, 0, 0x7fffffff))).toThrow(
      /expected a znode or ACL of at most 67108864 bytes, not one of at least 2147483\d+/,
    );
    // An operator with larger znodes has a larger jute.maxbuffer.
    const large = new SnapshotLoader(treeOptions, { source: 'file', itemBytesMax: 200 * 1024 * 1024 });
    expect(() => large.feed(header(0, 0, 0, 100 * 1024 * 1024))).not.toThrow();
  });
});
