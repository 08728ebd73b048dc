/**
 * What a power loss may leave of the unsynced writes of a disk at one moment. With up to eight of
 * them every subset is tried; with more, every prefix, every suffix, each one alone, each one
 * missing, and some random subsets. Then some are torn.
 */
import { type DiskImage, keepAll } from './disk-image.ts';
import type { SeededRandom } from './seeded-random.ts';

/** Up to this many unsynced items every subset is tried; above it, a selection. */
const exhaustiveItems = 8;

/** Different ways to survive; each lists how much is kept of each item of `image.unsynced`. */
export function* crashChoices(image: DiskImage, random: SeededRandom): Generator<readonly number[]> {
  const { unsynced } = image;
  const count = unsynced.length;
  const whole = unsynced.map((item, index) => keepAll(item, index));
  const none = unsynced.map(() => 0);
  if (count <= exhaustiveItems) {
    for (let subset = 0; subset < 1 << count; subset++) yield whole.map((kept, index) => (subset & (1 << index) ? kept : 0));
  } else {
    for (let length = 0; length <= count; length++) yield whole.map((kept, index) => (index < length ? kept : 0));
    for (let length = 1; length < count; length++) yield whole.map((kept, index) => (index < length ? 0 : kept));
    for (let single = 0; single < count; single++) {
      yield whole.with(single, 0);
      yield none.with(single, whole[single]!);
    }
    for (let i = 0; i < 24; i++) {
      const bits = random.uint32();
      yield whole.map((kept, index) => (bits & (1 << (index % 32)) ? kept : 0));
    }
  }
  // Several are torn at once: what one file says of another must hold when both are torn.
  for (let i = 0; i < count; i++)
    yield whole.map((kept) => [0, kept, random.below(kept + 1), Math.min(kept, random.below(50))][random.below(4)]!);
  for (const [index, item] of unsynced.entries()) {
    if (item.kind !== 'bytes') continue;
    const { length } = item;
    for (const kept of new Set([1, 13, length >> 1, length - 1, 1 + random.below(length)])) {
      if (kept >= length) continue;
      yield whole.with(index, kept);
      yield none.with(index, kept);
      yield whole.map((all, other) => (other < index ? all : other === index ? kept : 0));
    }
  }
}
