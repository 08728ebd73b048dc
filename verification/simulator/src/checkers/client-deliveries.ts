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

function firstDifference(delivered: readonly string[], cnxns: readonly CnxnRecord[]): string | undefined {
  let next = 0;
  for (const { items } of cnxns) {
    let hasPages = false;
    for (const item of items) {
      hasPages ||= isRequestOf(item, 'getChildrenDataPage');
      const text = answerText(item) ?? eventText(item);
      if (text === undefined) continue;
      if (delivered[next] === text) next++;
      // The library reads data that a page has no room for, and otherwise gave this connection up here.
      else if (!hasPages || !isRequestOf(item, 'getData')) break;
    }
  }
  return next < delivered.length ? `passed on ${delivered[next]} as item ${next}, which had not arrived there` : undefined;
}
