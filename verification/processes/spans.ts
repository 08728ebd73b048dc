/** When programs held something, as they print it, in nanoseconds of the machine's clock. */
import type { Program } from './program.ts';

export interface Span {
  readonly who: string;
  /** The first word: `writes`, for example. */
  readonly what: string;
  readonly begin: bigint;
  readonly end: bigint;
}

/**
 * `anna writes 17`, `anna ends 23` -> from 17 to 23. A span without an end lasts until `killed`.
 */
export function spansOf(programs: readonly Pick<Program, 'lines'>[], killed: bigint): Span[] {
  return programs.flatMap(({ lines }) =>
    lines.flatMap((line, index) => {
      const [who, what, begin] = line.split(' ');
      if (what === 'ends') return [];
      const end = lines[index + 1]?.split(' ')[2];
      return [{ who: who!, what: what!, begin: BigInt(begin!), end: end === undefined ? killed : BigInt(end) }];
    }),
  );
}

/** Spans that overlap with one for which `isAlone` holds. */
export function breaches(spans: readonly Span[], isAlone: (span: Span) => boolean): string[] {
  return spans
    .filter(isAlone)
    .flatMap((one) => spans.filter((other) => other !== one && other.begin < one.end && one.begin < other.end))
    .map(({ who, begin }) => `${who} at ${begin}`);
}

/** The highest number of overlapping spans. */
export function mostTogether(spans: readonly Span[]): number {
  return Math.max(...spans.map(({ begin }) => spans.filter((other) => other.begin <= begin && begin < other.end).length));
}

/** When each of the programs printed this. */
export function timesOf(programs: readonly Pick<Program, 'lines'>[], what: string): bigint[] {
  return programs.flatMap(({ lines }) =>
    lines.map((line) => line.split(' ')).flatMap((words) => (words[1] === what ? [BigInt(words[2]!)] : [])),
  );
}

export const earliest = (times: readonly bigint[]): bigint => times.reduce((one, other) => (one < other ? one : other));
export const latest = (times: readonly bigint[]): bigint => times.reduce((one, other) => (one > other ? one : other));
