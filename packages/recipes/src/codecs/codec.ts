/** Between values and the data of a znode. */
import type { Data } from '@tskeeper/client';
import { parseJson } from '@tskeeper/client/internal';
import { checkValidator, checkArgumentCount } from '../validation.ts';
import { type Validator, validate, type StandardSchema } from './standard-schema.ts';

/**
 * Encodes what is written, and decodes what is read; the two types may differ, for example when a
 * schema adds defaults. Both throw for invalid values.
 */
export interface Codec<Read, Written = Read> {
  /** Throws for an invalid value. */
  encode(value: Written): Data;
  /** Throws for invalid data. */
  decode(data: Uint8Array | null): Read;
}

/** For JSON, which has no byte order mark. */
const utf8 = new TextDecoder('utf-8', { fatal: true });
/** A byte order mark is kept, as text. */
const utf8WithByteOrderMark = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The bytes as they are; an empty array for a znode without data. */
export const bytesCodec: Codec<Uint8Array> = {
  encode: (value) => value,
  decode: (data) => data ?? new Uint8Array(0),
};

/** Text as UTF-8; empty for a znode without data. */
export const textCodec: Codec<string> = {
  encode: (value) => value,
  decode: (data) => utf8WithByteOrderMark.decode(data ?? undefined),
};

/** JSON without validation: the program states the type. */
export function jsonCodec<Value = unknown>(): Codec<Value>;
/**
 * JSON that a schema validates: when it is read, and, before it is written, whether it could be
 * read. The result of the schema is the value that is read.
 */
export function jsonCodec<Input, Output>(schema: StandardSchema<Input, Output>): Codec<Output, Input>;
/** JSON that a function validates: it returns the value, or throws. */
export function jsonCodec<Value>(validator: (value: unknown) => Value): Codec<Value>;
export function jsonCodec<Value>(validator?: Validator<Value>): Codec<Value> {
  checkArgumentCount(arguments.length, 1, 'jsonCodec(check)');
  if (validator !== undefined) checkValidator(validator);
  const decode = (json: string): Value => {
    const value = parseJson(json);
    return validator === undefined ? (value as Value) : validate(validator, value);
  };
  return {
    encode: (value) => {
      // JSON omits a value that it cannot represent, or this fails.
      const json = JSON.stringify(value) as string | undefined;
      if (json === undefined) throw new TypeError(`JSON cannot represent a value of type ${typeof value}`);
      if (validator !== undefined) decode(json);
      return json;
    },
    decode: (data) => {
      if (data === null || data.length === 0) throw new TypeError('the znode has no data, and JSON is never empty');
      return decode(utf8.decode(data));
    },
  };
}
