/** Expectations of checks. A mismatch names the subject, the expected value and the actual one. */
import { isDeepStrictEqual } from 'node:util';
import { KeeperError, type KeeperErrorCode } from '@tskeeper/client';

/** The server is wrong. */
export class Mismatch extends Error {
  override readonly name = 'Mismatch';
  readonly what: string;
  readonly expected: string;
  readonly actual: string;

  constructor(what: string, expected: string, actual: string) {
    super(`${what}: expected ${expected}; got ${actual}`);
    this.what = what;
    this.expected = expected;
    this.actual = actual;
  }
}

const describedBytesMax = 40;

/** A value as text for people. */
export function describe(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (typeof value === 'bigint') return `0x${value.toString(16)}`;
  if (value instanceof Uint8Array) {
    const hex = Buffer.from(value.subarray(0, describedBytesMax)).toString('hex');
    return `${value.length} bytes${value.length === 0 ? '' : ` ${hex}${value.length > describedBytesMax ? '...' : ''}`}`;
  }
  if (Array.isArray(value)) return `[${value.map(describe).join(', ')}]`;
  if (typeof value === 'object' && value !== null)
    return `{ ${Object.entries(value)
      .map(([key, each]) => `${key}: ${describe(each)}`)
      .join(', ')} }`;
  return JSON.stringify(value);
}

export function expectEqual<T>(what: string, actual: T, expected: NoInfer<T>): void {
  if (!isDeepStrictEqual(actual, expected)) throw new Mismatch(what, describe(expected), describe(actual));
}

/** Requires a condition; `expected` says it in words. */
export function expectThat(what: string, condition: boolean, expected: string, actual: unknown): asserts condition {
  if (!condition) throw new Mismatch(what, expected, describe(actual));
}

/** Requires that the server rejects a call with one of these codes. */
export async function expectError(what: string, call: Promise<unknown>, ...codes: readonly KeeperErrorCode[]): Promise<KeeperError> {
  const expected = codes.join(' or ');
  let result: unknown;
  try {
    result = await call;
  } catch (error) {
    if (!KeeperError.is(error)) throw error;
    if (codes.includes(error.code)) return error;
    throw new Mismatch(what, expected, `${error.code} (${error.message})`);
  }
  throw new Mismatch(what, expected, `success${result === undefined ? '' : `, with ${describe(result)}`}`);
}

const utf8 = new TextDecoder();

/** Data as text; null for null data, which differ from empty data. */
export function textOf(data: Uint8Array | null): string | null {
  return data === null ? null : utf8.decode(data);
}
