/**
 * Bytes recorded from Apache ZooKeeper, and their recorded meaning (fixtures/README.md).
 */
import { readFileSync } from 'node:fs';
import { type Codec, OpCode, operationOf, operations, type OperationName, type Reader, Writer } from '../src/index.ts';

const folder = new URL('../../../fixtures/', import.meta.url);

export function fixtureBytes(name: string): Buffer {
  return readFileSync(new URL(name, folder));
}

export function fixtureJson(name: string): unknown {
  return JSON.parse(fixtureBytes(name).toString('utf8'));
}

/**
 * A frame as on the wire, including its length; `hex` is empty where the server closed the
 * connection.
 */
export interface CapturedFrame {
  readonly dir: 'C>S' | 'S>C';
  readonly step: string;
  readonly hex: string;
  readonly decoded: Record<string, unknown>;
}

export const captureNames = ['client-3.9.5.json', 'client-3.8.0.json'] as const;

export function captures(name: (typeof captureNames)[number]): CapturedFrame[] {
  const { captures: parts } = fixtureJson(name) as { captures: Record<string, CapturedFrame[]> };
  return Object.values(parts)
    .flat()
    .filter((frame) => frame.hex !== '');
}

export interface SaslFrame {
  readonly dir: 'C>S' | 'S>C';
  readonly hex: string;
  readonly what: string;
  readonly token?: string | null;
}

export function saslFrames(): SaslFrame[][] {
  const parts = fixtureJson('sasl-digest-md5.json') as Record<string, string | SaslFrame[]>;
  return Object.values(parts).filter((part) => typeof part !== 'string');
}

/** A frame's body, without the length before it. */
export function bodyOf(hex: string): Buffer {
  return Buffer.from(hex, 'hex').subarray(4);
}

/** The whole frame written by `write`, as hex. */
export function frameHex(write: (writer: Writer) => void): string {
  const writer = new Writer();
  const start = writer.beginFrame();
  write(writer);
  writer.endFrame(start);
  return writer.written().toString('hex');
}

export function written(write: (writer: Writer) => void): Buffer {
  const writer = new Writer();
  write(writer);
  return Buffer.from(writer.written());
}

const nameOfType = new Map<number, string>(Object.entries(OpCode).map(([name, code]) => [code, name]));

/**
 * One form for the content of a fixture and for decoded values: numbers of every kind as decimal
 * text, signed as on the wire; bytes as hex; missing fields left out.
 */
export function plain(value: unknown): unknown {
  if (typeof value === 'number' || typeof value === 'bigint') return `${BigInt.asIntN(64, BigInt(value))}`;
  if (typeof value === 'string') return /^0x[0-9a-f]+$/.test(value) ? `${BigInt.asIntN(64, BigInt(value))}` : `"${value}"`;
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString('hex')}`;
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value;
  if ('hex' in value) return `bytes ${value.hex as string}`;
  const entries = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(entries.map(([key, field]) => [key, plain(field)]));
}

/** `{ kind, ...record }` for an operation or a result in a recorded multi, as in our unions. */
function flatMember(member: Record<string, unknown>): Record<string, unknown> {
  const { op, header, ...records } = member as { op?: string; header?: { type: number } };
  const kind = op ?? nameOfType.get(header!.type)!;
  return { kind, ...Object.assign({}, ...Object.values(records)) };
}

/** A fixture's record after a header, in the shape of our own type. */
export function recordOf(decoded: Record<string, unknown>): unknown {
  const record = Object.entries(decoded).find(([key]) => key !== 'RequestHeader' && key !== 'ReplyHeader');
  if (record === undefined || record[1] === null) return undefined;
  const [name, value] = record as [string, Record<string, unknown>[]];
  if (name === 'MultiOperations') return { ops: value.map(flatMember) };
  if (name === 'MultiResponse') {
    return { results: value.filter((member) => !(member['header'] as { done: boolean }).done).map(flatMember) };
  }
  return value;
}

/** Every request and reply record by name, for tests that treat all alike. */
export function allCodecs(): [name: string, codec: Codec<unknown>][] {
  return Object.keys(operations).flatMap((name): [string, Codec<unknown>][] => {
    const operation = operationOf(operations[name as OperationName].opCode)!;
    return [
      [`${name} request`, operation.request],
      [`${name} reply`, operation.reply],
    ];
  });
}

/** A generator of numbers that are the same for the same seed. */
export function seeded(seed: number): (below: number) => number {
  let state = seed | 0;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** How far `read` got, or the error it threw. */
export function outcomeOf(read: (reader: Reader) => unknown, reader: Reader): unknown {
  try {
    read(reader);
    return reader.offset;
  } catch (error) {
    return error;
  }
}
