/**
 * Who stands in a line, and in what order: by the number that the server has put behind each name, whoever came and whatever stands ahead of it.
 *
 *     _c_2b7e1516-28ae-d2a6-abf7-158809cf4f3c-lock-0000000007
 *        the guid of protection               kind   number
 *
 * The number has 32 bits and runs over, so it is compared neither as a text nor as it stands (`compareSequences` of the client).
 */
import { compareSequences, sequenceOf } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';

/** One znode in a line. */
export interface Contender {
  /** Of the znode. */
  readonly path: string;
  /** Name of the znode. */
  readonly name: string;
  /** What stands between guid and number, and says what it contends for: `lock-`, `read-`. */
  readonly kind: string;
  /** The number at the end, -2147483648 .. 2147483647. */
  readonly sequence: number;
}

/** What may stand between guid and number: one of these, or what a name is found to have. */
export type Kinds = readonly string[] | ((name: string) => string | undefined);

/** The znodes below `parent` that stand in line with one of these kinds, the first ahead. Others have nothing to do with it. */
export function lineUp(parent: string, names: readonly string[], kinds: Kinds): readonly Contender[] {
  const line: Contender[] = [];
  const kindsOf = typeof kinds === 'function' ? (name: string) => [kinds(name)] : () => kinds;
  for (const name of names) {
    for (const kind of kindsOf(name)) {
      if (kind === undefined) continue;
      const at = name.lastIndexOf(kind);
      const sequence = at === -1 ? undefined : sequenceOf(name.slice(at), kind);
      if (sequence === undefined) continue;
      line.push({ path: childPath(parent, name), name, kind, sequence });
      break;
    }
  }
  return line.sort((one, other) => compareSequences(one.sequence, other.sequence));
}
