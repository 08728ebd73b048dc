/** The tree digest, version 2, computed from scratch. */
import { crc32 } from 'node:zlib';
import type { ModelTree, Owner } from './model-tree.ts';

/** How times and session ids of the model translate to those that the server's digest contains. */
interface DigestMapping {
  wallMsOf(modelMs: number): number;
  sessionOf(session: bigint): bigint;
}

/** The sum of a CRC-32 of each znode's path, data and stat. */
export function treeDigest(tree: ModelTree, mapping: DigestMapping): bigint {
  let sum = 0n;
  for (const [path, znode] of tree.entries()) {
    if (path === '/' || path.startsWith('/zookeeper/')) continue;
    const stat = Buffer.alloc(60);
    [znode.czxid, znode.mzxid, znode.pzxid, mapping.wallMsOf(znode.ctime), mapping.wallMsOf(znode.mtime)].forEach((value, index) =>
      stat.writeBigInt64BE(BigInt(value), index * 8),
    );
    [znode.version, znode.creates, znode.aversion].forEach((value, index) => stat.writeInt32BE(value | 0, 40 + index * 4));
    stat.writeBigInt64BE(storedOwner(znode.owner, mapping), 52);
    sum += BigInt(crc32(Buffer.concat([Buffer.from(path, 'utf8'), Buffer.from(znode.data ?? '', 'latin1'), stat])));
  }
  return BigInt.asIntN(64, sum);
}

/**
 * ephemeralOwner as in snapshots: TTL znodes have 0xff in the top byte and the ttl in the low 40
 * bits.
 */
function storedOwner(owner: Owner, mapping: DigestMapping): bigint {
  switch (owner.kind) {
    case 'persistent':
      return 0n;
    case 'container':
      return BigInt.asIntN(64, 1n << 63n);
    case 'ttl':
      return BigInt.asIntN(64, (0xffn << 56n) | BigInt(owner.ttl));
    case 'ephemeral':
      return mapping.sessionOf(owner.session);
    default:
      owner satisfies never;
      throw new Error('unknown owner');
  }
}
