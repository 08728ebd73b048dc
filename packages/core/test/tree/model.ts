/**
 * The plainest tree of znodes, to compare the real one with: a map from paths to objects,
 * everything recomputed on request.
 */
import * as zlib from 'node:zlib';
import { ErrorCode } from '@tskeeper/protocol';

export interface ModelNode {
  data: Buffer | null;
  /** Represents a list; its content is the test's concern. */
  acl: string;
  owner: bigint;
  version: number;
  cversion: number;
  aversion: number;
  czxid: number;
  mzxid: number;
  pzxid: number;
  ctime: number;
  mtime: number;
}

export const containerOwner = 0x8000000000000000n;
export const ttlMark = 0xff00000000000000n;

function fresh(acl: string): ModelNode {
  const zeros = { version: 0, cversion: 0, aversion: 0, czxid: 0, mzxid: 0, pzxid: 0, ctime: 0, mtime: 0 };
  return { data: Buffer.alloc(0), acl, owner: 0n, ...zeros };
}

export class Model {
  readonly nodes = new Map<string, ModelNode>();

  constructor() {
    this.nodes.set('', fresh('system'));
    this.nodes.set('/zookeeper', fresh('system'));
    this.nodes.set('/zookeeper/config', { ...fresh('readOnly'), aversion: -1 });
    this.nodes.set('/zookeeper/quota', fresh('system'));
  }

  copy(): Model {
    const copy = new Model();
    copy.nodes.clear();
    for (const [path, node] of this.nodes) copy.nodes.set(path, { ...node });
    return copy;
  }

  childrenOf(path: string): string[] {
    const prefix = `${path}/`;
    return [...this.nodes.keys()]
      .filter((key) => key.startsWith(prefix) && !key.includes('/', prefix.length))
      .map((key) => key.slice(prefix.length));
  }

  create(
    path: string,
    data: Buffer | null,
    acl: string,
    owner: bigint,
    parentCVersion: number,
    zxid: number,
    time: number,
    raise: boolean,
  ): number {
    const parent = this.nodes.get(parentOf(path));
    if (parent === undefined) return ErrorCode.NoNode;
    const existing = this.nodes.get(path);
    if (existing !== undefined) {
      existing.acl = acl;
      if (raise) this.#raise(parent, parentCVersion, zxid);
      return ErrorCode.NodeExists;
    }
    this.#raise(parent, parentCVersion, zxid);
    const stat = { version: 0, cversion: 0, aversion: 0, czxid: zxid, mzxid: zxid, pzxid: zxid, ctime: time, mtime: time };
    this.nodes.set(path, { data, acl, owner, ...stat });
    return ErrorCode.Ok;
  }

  #raise(parent: ModelNode, parentCVersion: number, zxid: number): void {
    const wanted = parentCVersion === -1 ? int32(BigInt(parent.cversion) + 1n) : parentCVersion;
    if (int32(BigInt(wanted) - BigInt(parent.cversion)) <= 0) return;
    parent.cversion = wanted;
    parent.pzxid = zxid;
  }

  remove(path: string, zxid: number): number {
    const parent = this.nodes.get(parentOf(path));
    if (parent === undefined) return ErrorCode.NoNode;
    parent.pzxid = Math.max(parent.pzxid, zxid);
    if (!this.nodes.has(path)) return ErrorCode.NoNode;
    for (const key of this.nodes.keys()) if (key === path || key.startsWith(`${path}/`)) this.nodes.delete(key);
    return ErrorCode.Ok;
  }

  setData(path: string, data: Buffer | null, version: number, zxid: number, time: number): number {
    const node = this.nodes.get(path);
    if (node === undefined) return ErrorCode.NoNode;
    Object.assign(node, { data, version, mzxid: zxid, mtime: time });
    return ErrorCode.Ok;
  }

  setAcl(path: string, acl: string, version: number): number {
    const node = this.nodes.get(path);
    if (node === undefined) return ErrorCode.NoNode;
    Object.assign(node, { acl, aversion: version });
    return ErrorCode.Ok;
  }

  /** GetDataResponse as hex, by the definition of its fields. */
  dataAndStat(path: string): string {
    const node = this.nodes.get(path)!;
    const children = this.childrenOf(path).length;
    const longs = [node.czxid, node.mzxid, node.ctime, node.mtime].map((value) => bigEndian(value, 8));
    return Buffer.concat([
      bigEndian(node.data === null ? -1 : node.data.length, 4),
      node.data ?? Buffer.alloc(0),
      ...longs,
      bigEndian(node.version, 4),
      bigEndian(node.cversion * 2 - children, 4),
      bigEndian(node.aversion, 4),
      bigEndian(isSession(node.owner) ? node.owner : 0, 8),
      bigEndian(node.data?.length ?? 0, 4),
      bigEndian(children, 4),
      bigEndian(node.pzxid, 8),
    ]).toString('hex');
  }

  digestOf(path: string): bigint {
    if (path.startsWith('/zookeeper/')) return 0n;
    const node = this.nodes.get(path)!;
    const longs = [node.czxid, node.mzxid, node.pzxid, node.ctime, node.mtime].map((value) => bigEndian(value, 8));
    const ints = [node.version, node.cversion, node.aversion].map((value) => bigEndian(value, 4));
    const stat = [...longs, ...ints, bigEndian(node.owner, 8)];
    return BigInt(plainCrc32(Buffer.concat([Buffer.from(path), node.data ?? Buffer.alloc(0), ...stat])));
  }

  digest(): bigint {
    let sum = 0n;
    for (const path of this.nodes.keys()) sum += this.digestOf(path);
    return BigInt.asIntN(64, sum);
  }

  dataBytes(): number {
    let bytes = 1;
    for (const [path, node] of this.nodes) bytes += path.length + (node.data?.length ?? 0);
    return bytes;
  }

  /** By session id, unsigned. */
  ephemerals(): Map<bigint, string[]> {
    const byOwner = new Map<bigint, string[]>();
    for (const [path, node] of this.nodes) {
      if (isSession(node.owner)) byOwner.set(node.owner, [...(byOwner.get(node.owner) ?? []), path]);
    }
    return byOwner;
  }
}

/** With extended types enabled. */
function isSession(owner: bigint): boolean {
  return owner !== 0n && owner !== containerOwner && owner < ttlMark;
}

export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

function int32(value: bigint): number {
  return Number(BigInt.asIntN(32, value));
}

function bigEndian(value: number | bigint, bytes: 4 | 8): Buffer {
  const out = Buffer.alloc(8);
  out.writeBigInt64BE(BigInt.asIntN(64, BigInt(value)));
  return out.subarray(8 - bytes);
}

/** Bit by bit, by the polynomial. Checked against the runtime's if there is one. */
export function plainCrc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  const result = ~crc >>> 0;
  if (typeof zlib.crc32 === 'function' && zlib.crc32(bytes) !== result) throw new Error('the model computes a wrong CRC');
  return result;
}
