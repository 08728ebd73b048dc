/** Those that are compared take turns, and no one is always first. */
export function turnsOf(all, round) {
  return all.map((_, index) => all[(index + round) % all.length]);
}
