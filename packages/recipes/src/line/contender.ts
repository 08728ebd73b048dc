/**
 * Who stands in a line, and in what order: by the number that the server has put behind each name, whoever came and whatever stands ahead of it.
 *
 *     _c_2b7e1516-28ae-d2a6-abf7-158809cf4f3c-lock-0000000007
 *        the guid of protection               kind   number
 *
 * The number is the parent's count of children that have come and gone, a 32-bit one, which runs over from 2147483647 to -2147483648. So it is not
 * compared as a text, nor as it stands, but by the difference: who is less than half of the circle ahead came earlier.
 */

/** One znode in a line. */
export interface Contender {
  readonly path: string;
  /** Name of the znode. */
  readonly name: string;
  /** What stands between guid and number, and says what it contends for: `lock-`, `read-`. */
  readonly kind: string;
  /** The number at the end, -2147483648 .. 2147483647. */
  readonly sequence: number;
}

/** Ten digits, as the server writes them; a sign counts as one of them, but for the lowest. */
const sequenceForm = /^(?:\d{10}|-\d{9}|-[12]\d{9})$/;

/** undefined for what is no number of a sequential znode. */
export function parseSequence(digits: string): number | undefined {
  if (!sequenceForm.test(digits)) return undefined;
  const number = Number(digits);
  return number === (number | 0) ? number : undefined;
}

/** Negative when `one` came earlier, positive when `other` did. */
export function compareSequences(one: number, other: number): number {
  return (one - other) | 0;
}

/** The znodes below `parent` that stand in line with one of these kinds, the first ahead. Others have nothing to do with it. */
export function lineUp(parent: string, names: readonly string[], kinds: readonly string[]): readonly Contender[] {
  const line: Contender[] = [];
  for (const name of names) {
    for (const kind of kinds) {
      const at = name.lastIndexOf(kind);
      const sequence = at === -1 ? undefined : parseSequence(name.slice(at + kind.length));
      if (sequence === undefined) continue;
      line.push({ path: parent === '/' ? `/${name}` : `${parent}/${name}`, name, kind, sequence });
      break;
    }
  }
  return line.sort((one, other) => compareSequences(one.sequence, other.sequence));
}
