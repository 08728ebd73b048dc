/** From values to the data of a znode, and back. */
import type { Data } from '@tskeeper/client';
import { parsedJson } from '@tskeeper/client/internal';
import { checkCheck, checkCount } from '../given.ts';
import { type Check, checked, type StandardSchema } from './standard-schema.ts';

/** Makes data of what is written, and values of what is read; the two may differ, as when a schema fills in what is missing. Both throw what is wrong. */
export interface Codec<Read, Written = Read> {
  /** Throws what is wrong with the value. */
  encode(value: Written): Data;
  /** Throws what is wrong with the data. */
  decode(data: Uint8Array | null): Read;
}

/** For JSON, which has no mark of byte order. */
const utf8 = new TextDecoder('utf-8', { fatal: true });
/** A mark of byte order is text as well. */
const wholeUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The bytes as they are; an empty array for a znode without data. */
export const bytesCodec: Codec<Uint8Array> = {
  encode: (value) => value,
  decode: (data) => data ?? new Uint8Array(0),
};

/** Text as UTF-8; empty for a znode without data. */
export const textCodec: Codec<string> = {
  encode: (value) => value,
  decode: (data) => wholeUtf8.decode(data ?? undefined),
};

/** JSON, taken for what the program says it is: nothing is validated. */
export function jsonCodec<Value = unknown>(): Codec<Value>;
/** JSON that a schema judges: what is read, and, before it is written, whether it could be read. What it makes of a value is what is read. */
export function jsonCodec<Input, Output>(schema: StandardSchema<Input, Output>): Codec<Output, Input>;
/** JSON that a function judges: it returns the value, or throws what is wrong with it. */
export function jsonCodec<Value>(check: (value: unknown) => Value): Codec<Value>;
export function jsonCodec<Value>(check?: Check<Value>): Codec<Value> {
  checkCount(arguments.length, 1, 'jsonCodec(check)');
  if (check !== undefined) checkCheck(check);
  const decode = (json: string): Value => {
    const value = parsedJson(json);
    return check === undefined ? (value as Value) : checked(check, value);
  };
  return {
    encode: (value) => {
      // What JSON has no word for is left out by it, or fails here.
      const json = JSON.stringify(value) as string | undefined;
      if (json === undefined) throw new TypeError(`JSON has no word for ${typeof value}`);
      if (check !== undefined) decode(json);
      return json;
    },
    decode: (data) => {
      if (data === null || data.length === 0) throw new TypeError('there are no data, and JSON is never empty');
      return decode(utf8.decode(data));
    },
  };
}
