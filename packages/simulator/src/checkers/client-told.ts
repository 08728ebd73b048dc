/**
 * A client library stands between the wire and its program. What it tells the program is held against what arrived on its connections: the
 * same answers and the same events, in the same order, none twice. Of what arrived last on a connection it may have had no use any more.
 */
import { ErrorCode, errorName, type MultiReply } from '@tskeeper/protocol';
import type { CnxnRecord, Item } from '../record/recording.ts';
import type { Checker } from './checker.ts';

/** What the library asks for by itself, or asks for in another form than its caller. */
const ownAffairs: ReadonlySet<string> = new Set(['ping', 'auth', 'setWatches', 'setWatches2', 'removeWatches', 'closeSession']);
/** What became of a call that no server has answered. */
const unanswered: ReadonlySet<string> = new Set(['notSent', 'unknown']);

export const clientTold: Checker = {
  property: 'P3, P15',
  promise: 'A client tells its program what the servers have told it: each answer and each event, in order, once.',
  check({ told, cnxns }) {
    const faults: string[] = [];
    for (const client of new Set(told.map((each) => each.client))) {
      const own = cnxns.filter((cnxn) => cnxn.client === client).toSorted((a, b) => a.openedMs - b.openedMs);
      const texts = told
        .filter(({ kind, text, client: who }) => who === client && (kind === 'event' || (kind === 'answer' && !unanswered.has(text))))
        .map(({ text }) => text);
      const fault = firstDifference(texts, own);
      if (fault !== undefined) faults.push(`${client} ${fault}`);
    }
    return faults;
  },
};

export function answerText(item: Item): string | undefined {
  if (item.kind !== 'reply' || item.request.name === undefined || ownAffairs.has(item.request.name)) return undefined;
  const { err, body } = item.request.reply!;
  if (err !== ErrorCode.Ok || item.request.name !== 'multi') return nameOf(err);
  // A multi that failed is answered with success and a list of errors; the caller hears of the first that is one.
  const failed = (body as MultiReply).results.find((result) => result.kind === 'error' && result.err !== ErrorCode.Ok);
  return failed?.kind === 'error' ? nameOf(failed.err) : 'Ok';
}

function nameOf(err: number): string {
  return err === ErrorCode.Ok ? 'Ok' : (errorName(err) ?? 'Unknown');
}

function eventText(item: Item): string | undefined {
  // What it had missed comes without a zxid.
  return item.kind === 'event' ? `${item.type} ${item.path} ${item.zxid === -1 ? undefined : item.zxid}` : undefined;
}

function firstDifference(told: readonly string[], cnxns: readonly CnxnRecord[]): string | undefined {
  let next = 0;
  for (const { items } of cnxns) {
    for (const item of items) {
      const text = answerText(item) ?? eventText(item);
      if (text === undefined) continue;
      // From here on this connection was given up.
      if (told[next] !== text) break;
      next++;
    }
  }
  return next < told.length ? `was told ${told[next]} as number ${next}, and nothing of the kind had arrived there` : undefined;
}
