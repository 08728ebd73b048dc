/**
 * Measurements and their limits: a row for each attack, restart, kill or cut, printed as a Markdown
 * table at the end.
 */

/** One measurement of one kind of server. */
export interface Figure {
  readonly name: string;
  /** Text for people: `12 ms`. */
  readonly text: string;
  readonly isWithin: boolean;
}

export type Outcome = { readonly figures: readonly Figure[] } | { readonly failure: string };

export interface Row {
  readonly part: string;
  readonly name: string;
  readonly limit: string;
  readonly ours: Outcome | undefined;
  readonly java: Outcome | undefined;
}

/** A figure with an upper limit; `Infinity` for an event that never happened. */
export function atMost(name: string, value: number, limit: number, unit: string): Figure {
  return { name, text: `${name} ${quantity(value, unit)}`, isWithin: value <= limit };
}

/** `1.5 s`, `12 ms`, `never`. */
export function quantity(value: number, unit: string): string {
  if (!Number.isFinite(value)) return 'never';
  return `${value.toFixed(unit === 's' ? 1 : 0)}${unit === '' ? '' : ` ${unit}`}`;
}

/** A figure without a limit. */
export function shown(name: string, text: string): Figure {
  return { name, text: `${name} ${text}`, isWithin: true };
}

export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? 0;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll('|', '/').slice(0, 300);
}

export function textOf(outcome: Outcome | undefined): string {
  if (outcome === undefined) return '';
  if ('failure' in outcome) return `failed: ${oneLine(outcome.failure)}`;
  return outcome.figures.map(({ text, isWithin }) => (isWithin ? text : `**${text}**`)).join(', ');
}

/** `ok`, or the figures of our server that missed their limits. */
export function verdictOf({ ours }: Row): string {
  if (ours === undefined) return 'not run';
  if ('failure' in ours) return 'FAILED';
  const missed = ours.figures.filter(({ isWithin }) => !isWithin);
  return missed.length === 0 ? 'ok' : `MISSED: ${missed.map(({ name }) => name).join(', ')}`;
}

export function isRed(row: Row): boolean {
  return row.ours !== undefined && verdictOf(row) !== 'ok';
}

export function table(rows: readonly Row[]): string {
  const lines = rows.map(
    (row) => `| ${row.part} | ${row.name} | ${textOf(row.ours)} | ${textOf(row.java)} | ${row.limit} | ${verdictOf(row)} |`,
  );
  return ['| part | row | ours | Java 3.9.5 | limit | result |', '| --- | --- | --- | --- | --- | --- |', ...lines].join('\n');
}
