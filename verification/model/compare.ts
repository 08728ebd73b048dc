/**
 * Compares what a connection received with what the model expects. Orders that the protocol leaves
 * open are sorted first: names of children, ephemeral znodes and identities, ACL entries made from
 * `auth`, and the events of a session's ephemeral znodes.
 */
import { isDeepStrictEqual } from 'node:util';
import type { ModelOutput } from '@tskeeper/simulator';
import type { Body, Message } from '@tskeeper/simulator';

const byText =
  <T>(text: (value: T) => string) =>
  (a: T, b: T): number =>
    text(a) < text(b) ? -1 : text(a) > text(b) ? 1 : 0;

function sorted(body: Body): Body {
  return {
    ...body,
    ...(body.children && { children: [...body.children].sort() }),
    ...(body.contents && { contents: [...body.contents].sort(byText(({ name }) => name)) }),
    ...(body.ephemerals && { ephemerals: [...body.ephemerals].sort() }),
    ...(body.acl && { acl: [...body.acl].sort(byText((entry) => JSON.stringify(entry))) }),
    ...(body.clientInfo && { clientInfo: [...body.clientInfo].sort(byText((info) => JSON.stringify(info))) }),
    ...(body.results && { results: body.results.map((result) => (result.body ? { ...result, body: sorted(result.body) } : result)) }),
  };
}

function normal(message: Message): Message {
  return message.kind === 'reply' && message.body !== null ? { ...message, body: sorted(message.body) } : message;
}

/** A message as one line, for people and for sorting. */
export function show(message: Message | undefined): string {
  if (message === undefined) return 'nothing';
  return JSON.stringify(message, (_, value: unknown) =>
    typeof value === 'bigint' ? `0x${BigInt.asUintN(64, value).toString(16)}` : value,
  );
}

/** Describes the difference; undefined if both are the same. */
export function difference(expected: readonly Pick<ModelOutput, 'message' | 'anyOrder'>[], actual: readonly Message[]): string | undefined {
  const wanted: Message[] = [];
  const got = actual.map(normal);
  for (let at = 0; at < expected.length;) {
    let end = at + 1;
    if (expected[at]!.anyOrder === true) while (expected[end]?.anyOrder === true) end++;
    const run = expected.slice(at, end).map(({ message }) => normal(message));
    if (end - at > 1) {
      run.sort(byText(show));
      got.splice(at, end - at, ...got.slice(at, end).sort(byText(show)));
    }
    wanted.push(...run);
    at = end;
  }
  for (let at = 0; at < Math.max(wanted.length, got.length); at++) {
    if (!isDeepStrictEqual(wanted[at], got[at])) return `message ${at}\n  expected ${show(wanted[at])}\n  received ${show(got[at])}`;
  }
  return undefined;
}
