/**
 * Numbers of sequential znodes, for programs that must know which of two was created first.
 *
 * In ZooKeeper the counter of a parent is a signed 32-bit number: 2147483647 is followed by
 * -2147483648, which is eleven characters long. So neither the alphabetical nor the numerical order
 * is the order of the creates: after an overflow, a lock that uses either order elects its newest
 * waiter forever. A server with tskeeper.wideSequences continues with 2147483648, and has eleven
 * digits after 9999999999.
 */
import { sequenceSuffix } from '@tskeeper/protocol';
import { checkValue, type ValueType, valueTypes } from './arguments.ts';
import { nameOf } from './paths.ts';

const numberMin = -(2 ** 31);
const sequenceType: ValueType = {
  expected: `a whole number from ${numberMin} to ${Number.MAX_SAFE_INTEGER}, as sequenceOf gives it`,
  isNumber: true,
  accepts: isSequence,
};
/** The prefix that `protection` adds to a name. */
const guidPrefix = /^_c_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-/i;
const numberForm = /^-?\d{9,16}$/;

function isSequence(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= numberMin;
}

/**
 * The number at the end of a sequential znode's name, from -2147483648 to 2^53 - 1; undefined if
 * the name is not `prefix` followed by such a number. `name` may be a path, and the znode may have
 * been created with `protection`. The prefix is required, as it may end in a hyphen:
 * `lock-2000000000` is number 2000000000 of `lock-`, and number -2000000000 of `lock`.
 */
export function sequenceOf(name: string, prefix: string): number | undefined {
  checkValue(name, valueTypes.string, 'sequenceOf: the name');
  checkValue(prefix, valueTypes.string, 'sequenceOf: the prefix');
  const last = nameOf(name).replace(guidPrefix, '');
  if (!last.startsWith(prefix)) return undefined;
  const digits = last.slice(prefix.length);
  if (!numberForm.test(digits)) return undefined;
  const number = Number(digits);
  // Accept only what a server writes: with all leading zeros, and negative only within 32 bits.
  return isSequence(number) && sequenceSuffix(number) === digits ? number : undefined;
}

/**
 * Compares two numbers of one parent by their order of creation: negative if the first is older,
 * positive if the second is older, 0 if they are equal. Correct across an overflow, and where a server
 * begins to have wide numbers, as long as fewer than 2^31 creates lie between them. For `sort`: all numbers must be that close together.
 */
export function compareSequences(first: number, second: number): number {
  checkValue(first, sequenceType, 'compareSequences: the first number');
  checkValue(second, sequenceType, 'compareSequences: the second number');
  return (first - second) | 0;
}
