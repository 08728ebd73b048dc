/**
 * Compares what a client library passes to its program with what arrived on its connections: the
 * same replies and events, in the same order, none twice. The library may drop the last items of a
 * connection.
 */
import { ErrorCode, errorName, featuresPath, type MultiReply } from '@tskeeper/protocol';
import type { CnxnRecord, Item } from '../record/recording.ts';
import type { Checker } from './checker.ts';

/** Requests that the library sends by itself, or several for one call. */
const internalOperations: ReadonlySet<string> = new Set([
  'ping',
  'auth',
  'sasl',
  'setWatches',
  'setWatches2',
  'removeWatches',
  'closeSession',
  'getChildrenPage',
  'getChildrenDataPage',
]);
/** Read by the library itself; the work of clients leaves them out. */
const internalPaths: ReadonlySet<string> = new Set([featuresPath, '/zookeeper/config']);
/** Outcomes of a call that no server answered. */
const unanswered: ReadonlySet<string> = new Set(['notSent', 'unknown']);

export const clientDeliveries: Checker = {
  property: 'P3, P15',
  promise: 'A client library passes each reply and each event from the servers to its program once and in order.',
  check({ clientDeliveries: deliveries, ...recording }) {
    const cnxns = [...recording.cnxns, ...recording.readOnlyCnxns];
    const violations: string[] = [];
    for (const client of new Set(deliveries.map((each) => each.client))) {
      const own = cnxns.filter((cnxn) => cnxn.client === client).toSorted((a, b) => a.openedMs - b.openedMs);
      const texts = deliveries
        .filter(({ kind, text, client: who }) => who === client && (kind === 'event' || (kind === 'reply' && !unanswered.has(text))))
        .map(({ text }) => text);
      const fault = firstDifference(texts, own);
      if (fault !== undefined) violations.push(`${client} ${fault}`);
    }
    return violations;
  },
};

export function answerText(item: Item): string | undefined {
  if (item.kind !== 'reply' || item.request.name === undefined || internalOperations.has(item.request.name)) return undefined;
  if (internalPaths.has((item.request.record as { readonly path?: string } | undefined)?.path ?? '')) return undefined;
  const { err, body } = item.request.reply!;
  if (err !== ErrorCode.Ok || item.request.name !== 'multi') return nameOf(err);
  // A failed multi has error Ok and a list of results; the caller gets the first error among them.
  const failed = (body as MultiReply).results.find((result) => result.kind === 'error' && result.err !== ErrorCode.Ok);
  return failed?.kind === 'error' ? nameOf(failed.err) : 'Ok';
}

function isRequestOf(item: Item, name: string): boolean {
  return item.kind === 'reply' && item.request.name === name;
}

function nameOf(err: number): string {
  return err === ErrorCode.Ok ? 'Ok' : (errorName(err) ?? 'Unknown');
}

function eventText(item: Item): string | undefined {
  // The events that the server sends for changes a client missed carry no zxid.
  return item.kind === 'event' ? `${item.type} ${item.path} ${item.zxid === -1 ? undefined : item.zxid}` : undefined;
}

/**
 * How many of the delivered items the connections explain, at most. A reply that the library itself
 * has asked for may look like one that a call waits for, so there may be several ways.
 */
function firstDifference(delivered: readonly string[], cnxns: readonly CnxnRecord[]): string | undefined {
  let counts: ReadonlySet<number> = new Set([0]);
  for (const { items } of cnxns) counts = countsAfter(items, delivered, counts);
  const most = Math.max(...counts);
  return most < delivered.length ? `passed on ${delivered[most]} as item ${most}, which had not arrived there` : undefined;
}

/** The numbers of items that may have been delivered by the end of a connection. */
function countsAfter(items: readonly Item[], delivered: readonly string[], before: ReadonlySet<number>): ReadonlySet<number> {
  /** Where the connection was given up. */
  const ended = new Set<number>();
  let going: ReadonlySet<number> = before;
  let hasPages = false;
  for (const item of items) {
    hasPages ||= isRequestOf(item, 'getChildrenDataPage');
    const text = answerText(item) ?? eventText(item);
    if (text === undefined) continue;
    // The library reads data that a page has no room for.
    const mayBeOwn = hasPages && isRequestOf(item, 'getData');
    const next = new Set<number>();
    for (const count of going) {
      if (delivered[count] === text) next.add(count + 1);
      if (mayBeOwn) next.add(count);
      else if (delivered[count] !== text) ended.add(count);
    }
    going = next;
  }
  return new Set([...going, ...ended]);
}
