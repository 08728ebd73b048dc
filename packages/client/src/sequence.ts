/**
 * The numbers of sequential znodes, for whoever has to say which of two came first.
 *
 * The counter of a parent is a signed number of 32 bits: behind 2147483647 comes -2147483648, eleven characters long. So names are not in
 * the order of their letters, and numbers not in the order of their size: a lock that goes by either elects its youngest waiter for ever once the
 * counter has run over.
 */
import { sequenceSuffix } from '@tskeeper/protocol';
import { checkValue, type Kind, kinds } from './arguments.ts';
import { nameOf } from './paths.ts';

const sequence: Kind = { ...kinds.version, wanted: `${kinds.version.wanted}, as sequenceOf gives it` };
/** What `protection` puts in front of a name. */
const guidPrefix = /^_c_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-/i;
const numberForm = /^-?\d{9,10}$/;

/**
 * The number at the end of a sequential znode's name, from -2147483648 to 2147483647; undefined if the name is not `prefix` with such a number
 * behind it. `name` may be a path, and the znode may have been created with `protection`. The prefix has to be given, since it may end in a
 * hyphen, and then nothing else tells whose that is: `lock-2000000000` is number 2000000000 of `lock-`, and number -2000000000 of `lock`.
 */
export function sequenceOf(name: string, prefix: string): number | undefined {
  checkValue(name, kinds.string, 'sequenceOf: the name');
  checkValue(prefix, kinds.string, 'sequenceOf: the prefix');
  const last = nameOf(name).replace(guidPrefix, '');
  if (!last.startsWith(prefix)) return undefined;
  const digits = last.slice(prefix.length);
  if (!numberForm.test(digits)) return undefined;
  const number = Number(digits) | 0;
  // Only what a server would have written: all of its zeros, and within 32 bits.
  return sequenceSuffix(number) === digits ? number : undefined;
}

/**
 * Which of two numbers of one parent was given out first: negative for the first, positive for the second, 0 if they are one. Right across the
 * overflow, for as long as fewer than 2^31 creates lie between the two. For `sort`: all of them have to lie that close together.
 */
export function compareSequences(first: number, second: number): number {
  checkValue(first, sequence, 'compareSequences: the first number');
  checkValue(second, sequence, 'compareSequences: the second number');
  return (first - second) | 0;
}
