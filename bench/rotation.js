/** The compared kinds take turns, and none is always first. */
export function rotated(all, round) {
  return all.map((_, index) => all[(index + round) % all.length]);
}
