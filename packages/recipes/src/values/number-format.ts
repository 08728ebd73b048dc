/** How a number is stored in the data of a znode, in the formats of several clients. */

/** How to write, read and add numbers. */
export interface NumberFormat<Value extends number | bigint> {
  /** The number of a znode that does not exist, or has no data. */
  readonly zero: Value;
  /** The data. Throws a RangeError for a number that the format cannot hold. */
  readonly encode: (value: Value) => Uint8Array;
  /** The number. Throws a TypeError for data that are not in this format. */
  readonly decode: (data: Uint8Array) => Value;
  /** A whole number in this format. */
  readonly fromNumber: (count: number) => Value;
  /** The sum, whether or not the format can hold it. */
  readonly add: (one: Value, other: Value) => Value;
}

function numberRangeError(value: number | bigint, format: string): RangeError {
  return new RangeError(`${value} does not fit the format ${format}`);
}

function numberFormatError(data: Uint8Array, format: string): TypeError {
  const shown = [...data.subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
  return new TypeError(
    `these ${data.length} bytes are not in the format ${format}: ${shown}${data.length > 16 ? ' ...' : ''}; use the format in which the znode was written`,
  );
}

function dataViewOf(data: Uint8Array, length: number, format: string): DataView {
  if (data.length !== length) throw numberFormatError(data, format);
  return new DataView(data.buffer, data.byteOffset, length);
}

/** 8 bytes, big-endian, as in Curator's DistributedAtomicLong. */
export const bigint64: NumberFormat<bigint> = {
  zero: 0n,
  fromNumber: (count) => BigInt(count),
  encode(value) {
    if (BigInt.asIntN(64, value) !== value) throw numberRangeError(value, 'bigint64');
    const data = new Uint8Array(8);
    new DataView(data.buffer).setBigInt64(0, value);
    return data;
  },
  decode: (data) => dataViewOf(data, 8, 'bigint64').getBigInt64(0),
  add: (one, other) => one + other,
};

/**
 * 4 bytes, big-endian, as in Curator's DistributedAtomicInteger and SharedCount, and in kazoo's
 * Counter with `support_curator`.
 */
export const int32: NumberFormat<number> = {
  zero: 0,
  fromNumber: (count) => count,
  encode(value) {
    if (Math.trunc(value) !== value || value < -(2 ** 31) || value >= 2 ** 31) throw numberRangeError(value, 'int32');
    const data = new Uint8Array(4);
    new DataView(data.buffer).setInt32(0, value);
    return data;
  },
  decode: (data) => dataViewOf(data, 4, 'int32').getInt32(0),
  add: (one, other) => one + other,
};

/**
 * Digits, as in kazoo's Counter: whole numbers that a JavaScript number holds exactly, up to 2^53.
 */
export const textInteger: NumberFormat<number> = {
  zero: 0,
  fromNumber: (count) => count,
  encode(value) {
    if (!Number.isSafeInteger(value)) throw numberRangeError(value, 'textInteger');
    return new TextEncoder().encode(String(value));
  },
  decode(data) {
    const text = new TextDecoder().decode(data);
    const value = Number(text);
    if (!/^\s*[-+]?\d+\s*$/.test(text)) throw numberFormatError(data, 'textInteger');
    if (!Number.isSafeInteger(value)) throw numberRangeError(BigInt(text), 'textInteger');
    return value;
  },
  add: (one, other) => one + other,
};

/** Text, as in kazoo's Counter with a float as its default. */
export const textFloat: NumberFormat<number> = {
  zero: 0,
  fromNumber: (count) => count,
  encode(value) {
    if (!Number.isFinite(value)) throw numberRangeError(value, 'textFloat');
    return new TextEncoder().encode(Number.isInteger(value) && Math.abs(value) < 1e16 ? value.toFixed(1) : String(value));
  },
  decode(data) {
    const text = new TextDecoder().decode(data);
    if (!/^\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?\s*$/i.test(text)) throw numberFormatError(data, 'textFloat');
    return Number(text);
  },
  add: (one, other) => one + other,
};
