/**
 * The members of a queue, and their order: by the number that the server has appended to each name,
 * whatever client created the znode and whatever the name begins with.
 *
 *     _c_2b7e1516-28ae-d2a6-abf7-158809cf4f3c-lock-0000000007
 *        the guid of protection               kind   number
 *
 * The number has 32 bits and overflows, so it is compared neither as text nor as a plain number,
 * but with `compareSequences` of the client.
 */
import { compareSequences, sequenceOf } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';

/** One znode in a queue: a holder or a waiter. */
export interface Contender {
  /** Of the znode. */
  readonly path: string;
  /** The name of the znode. */
  readonly name: string;
  /**
   * The part of the name between guid and number, which says what it contends for: `lock-`,
   * `read-`.
   */
  readonly prefix: string;
  /** The number at the end, as `sequenceOf` gives it. */
  readonly sequence: number;
}

/**
 * The parts that may be between guid and number: one of these, or what the function finds in a
 * name.
 */
export type Prefixes = readonly string[] | ((name: string) => string | undefined);

/**
 * The znodes below `parent` that queue with one of these kinds, in order. Other znodes do not
 * belong to the queue.
 */
export function contendersIn(parent: string, names: readonly string[], prefixes: Prefixes): readonly Contender[] {
  const contenders: Contender[] = [];
  const prefixesOf = typeof prefixes === 'function' ? (name: string) => [prefixes(name)] : () => prefixes;
  for (const name of names) {
    for (const prefix of prefixesOf(name)) {
      if (prefix === undefined) continue;
      const at = name.lastIndexOf(prefix);
      const sequence = at === -1 ? undefined : sequenceOf(name.slice(at), prefix);
      if (sequence === undefined) continue;
      contenders.push({ path: childPath(parent, name), name, prefix, sequence });
      break;
    }
  }
  return contenders.sort((one, other) => compareSequences(one.sequence, other.sequence));
}
