/**
 * Compares docs/reference/tracing.md with the reported fields, in both directions, and its example
 * with the one that the tests run.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { SessionTraceDetail, TracedCall } from '../../src/index.ts';

const root = join(import.meta.dirname, '../../../..');
const page = readFileSync(join(root, 'docs/reference/tracing.md'), 'utf8');

/** The compiler checks that these are all fields and no others. */
const callFields: { readonly [Field in keyof Required<TracedCall>]: true } = {
  op: true,
  path: true,
  chroot: true,
  isCompound: true,
  sessionId: true,
  attempt: true,
  server: true,
  xid: true,
  zxid: true,
  result: true,
  error: true,
};
type FieldsOf<Kind> = Exclude<keyof Extract<SessionTraceDetail, { readonly kind: Kind }>, 'kind'>;
const newsFields: { readonly [Kind in SessionTraceDetail['kind']]: { readonly [Field in FieldsOf<Kind>]: true } } = {
  state: { state: true, reason: true },
  attemptFailed: { reason: true },
  watch: { type: true, path: true, zxid: true },
  reread: { path: true, cause: true, since: true, dropped: true },
};

/** The rows of the table with this first title, cell by cell. */
function rowsBelow(title: string): string[][] {
  const table = page.split(`| ${title} |`)[1]!.split('\n\n')[0]!;
  return [...table.matchAll(/^\| (`.*) \|$/gm)].map(([, row]) => row!.split(' | '));
}

const namesIn = (cell: string): string[] => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name!);

it('the page lists the fields of a call, and no others', () => {
  expect(rowsBelow('field').map(([name]) => namesIn(name!)[0])).toEqual(Object.keys(callFields));
});

it('the page lists the events of a session, with their fields', () => {
  const received = rowsBelow('kind').map(([kind, , fields]) => [namesIn(kind!)[0], namesIn(fields!)]);
  expect(received).toEqual(Object.entries(newsFields).map(([kind, fields]) => [kind, Object.keys(fields)]));
});

it('the example of the page is the program that the tests run', () => {
  const program = readFileSync(join(import.meta.dirname, 'open-telemetry.ts'), 'utf8');
  const [, example] = /^```ts\n([\s\S]*?)^```$/m.exec(page)!;
  expect(example).toBe(program.replace('./open-telemetry-api.ts', '@opentelemetry/api'));
});
