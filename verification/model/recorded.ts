/** Reads the recorded conversations of real servers in fixtures/ as messages of the model. */
import { readFileSync } from 'node:fs';
import { Reader } from '@tskeeper/protocol';
import type { ConnectRequest, Operation, ReadStep, WriteStep } from '@tskeeper/simulator';

export interface RecordedFrame {
  readonly dir: 'C>S' | 'S>C';
  readonly step: string;
  /** The whole frame with its length; empty if a side closed the connection. */
  readonly hex: string;
  readonly decoded: Readonly<Record<string, unknown>>;
}

export function recordedCaptures(file: string): { A: RecordedFrame[]; B: RecordedFrame[] } {
  const text = readFileSync(new URL(`../../fixtures/${file}`, import.meta.url), 'utf8');
  return (JSON.parse(text) as { captures: { A: RecordedFrame[]; B: RecordedFrame[] } }).captures;
}

/** A frame's bytes without its length. */
export function frameOf(recorded: RecordedFrame): Buffer {
  return Buffer.from(recorded.hex, 'hex').subarray(4);
}

/**
 * Converts the fixture's notation: hex texts for longs, {hex} for buffers, {perms, id: {scheme,
 * id}} for ACL entries.
 */
function plain(value: unknown): unknown {
  if (typeof value === 'string' && /^0x[0-9a-f]+$/.test(value)) return Number(BigInt.asIntN(64, BigInt(value)));
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value;
  const fields = value as Record<string, unknown>;
  if (typeof fields['hex'] === 'string') return Buffer.from(fields['hex'], 'hex').toString('latin1');
  if (typeof fields['perms'] === 'number') return { perms: fields['perms'], ...(fields['id'] as object) };
  return Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, plain(field)]));
}

const recordKinds: Readonly<Record<number, Operation['kind']>> = {
  1: 'create',
  2: 'delete',
  3: 'exists',
  4: 'getData',
  5: 'setData',
  6: 'getACL',
  7: 'setACL',
  8: 'getChildren',
  9: 'sync',
  11: 'ping',
  12: 'getChildren2',
  14: 'multi',
  15: 'create2',
  16: 'reconfig',
  17: 'checkWatches',
  18: 'removeWatches',
  19: 'createContainer',
  20: 'deleteContainer',
  21: 'createTTL',
  22: 'multiRead',
  100: 'auth',
  101: 'setWatches',
  103: 'getEphemerals',
  104: 'getAllChildrenNumber',
  105: 'setWatches2',
  106: 'addWatch',
  107: 'whoAmI',
  [-11]: 'closeSession',
};

function onlyRecord(decoded: Readonly<Record<string, unknown>>, ...besides: string[]): object {
  const name = Object.keys(decoded).find((key) => key !== 'body' && !besides.includes(key));
  return name === undefined ? {} : (plain(decoded[name]) as object);
}

export function requestOf(recorded: RecordedFrame): { xid: number; operation: Operation } {
  const { xid, type } = recorded.decoded['RequestHeader'] as { xid: number; type: number };
  const kind = recordKinds[type];
  if (kind === undefined) return { xid, operation: { kind: 'unknown', opCode: type } };
  const steps = recorded.decoded['MultiOperations'] as Record<string, unknown>[] | undefined;
  if (steps !== undefined) {
    const decodedSteps = steps.map((step) => ({ kind: step['op'], ...onlyRecord(step, 'op') }) as WriteStep | ReadStep);
    return { xid, operation: { kind, steps: decodedSteps } as Operation };
  }
  const record = onlyRecord(recorded.decoded, 'RequestHeader') as Record<string, unknown>;
  // AuthPacket's own `type` is always 0.
  if (kind === 'auth') delete record['type'];
  return { xid, operation: { kind, ...record } as Operation };
}

export function connectRequestOf(recorded: RecordedFrame): ConnectRequest {
  const r = new Reader(frameOf(recorded));
  const request = { protocolVersion: r.int32(), lastZxidSeen: r.int64(), timeOut: r.int32(), sessionId: r.bigint64() };
  const passwd = r.buffer()?.toString('latin1') ?? null;
  return r.remaining > 0 ? { ...request, passwd, readOnly: r.boolean() } : { ...request, passwd };
}
