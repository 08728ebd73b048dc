/**
 * Data as text and as JSON. ZooKeeper stores only bytes, and programs agree on their meaning; data
 * of another format cause an error.
 */
import { ErrorCode } from '@tskeeper/protocol';
import { parseJson } from './json-text.ts';
import { RequestFailure } from './keeper-error.ts';
import type { Operation } from './operations/operation.ts';
import type { Stat } from './stat.ts';

/** A znode's data as text. */
export interface GetTextResult {
  /** null if the znode has no data (`getData` returns null); empty if it has zero bytes. */
  readonly text: string | null;
  /** The znode's Stat at the same moment as the data. */
  readonly stat: Stat;
}

/** A znode's data as JSON. */
export interface GetJsonResult<Value = unknown> {
  /** undefined if the znode has no data: null, or zero bytes. */
  readonly value: Value | undefined;
  /** The znode's Stat at the same moment as the data. */
  readonly stat: Stat;
}

/**
 * The data of a znode do not have the format that the call expects: UTF-8 (`getText`) or JSON
 * (`getJson`).
 */
export class DataFormatError extends SyntaxError {
  override readonly name = 'DataFormatError';
  /** The method that was called: `getJson`. */
  readonly op: string;
  /** The path that the caller passed, without the chroot. */
  readonly path: string;
  readonly #data: Uint8Array;

  /** Created by `getText` and `getJson`. */
  constructor(op: string, path: string, failure: { readonly data: Uint8Array; readonly problem: string }) {
    const { data, problem } = failure;
    super(`${op} ${path}: the ${data.length} bytes of data are ${problem}; read them with getData`);
    this.op = op;
    this.path = path;
    this.#data = data;
  }

  /**
   * The data that were read. `console.log`, and a log that writes all properties of an error, do
   * not show them, as they may be secret.
   */
  get data(): Uint8Array {
    return this.#data;
  }
}

/**
 * A read whose data have another format. It becomes a DataFormatError where the stack shows the
 * caller.
 */
export class DataFormatFailure extends RequestFailure {
  readonly data: Uint8Array;
  /** `not JSON at position 7`: contains nothing of the data. */
  readonly problem: string;

  constructor(data: Uint8Array, problem: string) {
    super(ErrorCode.MarshallingError, 'refused', problem);
    this.data = data;
    this.problem = problem;
  }
}

/**
 * Strict: bytes that are not text must not be read as other text, and perhaps written back. A byte
 * order mark is part of the text.
 */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Throws a DataFormatFailure. */
export function textOf(data: Uint8Array | null): string | null {
  if (data === null) return null;
  try {
    return utf8.decode(data);
  } catch {
    throw new DataFormatFailure(data, 'not UTF-8');
  }
}

/** Throws a DataFormatFailure. */
export function jsonOf(data: Uint8Array | null): unknown {
  if (data === null || data.length === 0) return undefined;
  const text = textOf(data)!;
  try {
    return parseJson(text);
  } catch (error) {
    throw new DataFormatFailure(data, (error as Error).message);
  }
}

/** Why a value cannot be written as JSON; undefined if it can. */
export function jsonError(op: string, value: unknown): TypeError | undefined {
  const fault = (why: string, cause?: unknown) => new TypeError(`${op}: the value cannot be written as JSON: ${why}`, { cause });
  try {
    return JSON.stringify(value) === undefined ? fault(`JSON has no ${typeof value}`) : undefined;
  } catch (error) {
    return fault(error instanceof Error ? error.message.split('\n')[0]! : String(error), error);
  }
}

/** An operation with its result in another form. */
export function mapResult<From, To>(operation: Operation<From>, map: (result: From) => To): Operation<To> {
  return {
    opCode: operation.opCode,
    watches: operation.watches,
    write: (writer) => operation.write(writer),
    read: (reader) => map(operation.read(reader)),
  };
}
