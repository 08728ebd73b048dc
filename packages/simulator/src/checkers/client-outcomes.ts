/**
 * What a client library says has become of a write is held against the wire and the history. Each write has a value that occurs once, so
 * it is known again wherever it turns up.
 */
import { ErrorCode } from '@tskeeper/protocol';
import type { Request } from '../record/recording.ts';
import { writeKey } from '../record/write-key.ts';
import { nameRequest } from '../replay/replay.ts';
import type { Checker } from './checker.ts';
import { answerText } from './client-told.ts';

export const clientOutcomes: Checker = {
  property: 'P13',
  promise:
    'A client sends a write once at most; of one that was not sent it says so, and of no other; and what it says a server said of one was said of that one. Every call is answered before its client is over.',
  check({ told, cnxns, libraryClients }, { txns }) {
    const faults: string[] = [];
    const happened = new Map(txns.filter(({ loggedErr }) => loggedErr === ErrorCode.Ok).map(({ request, zxid }) => [request, zxid]));
    for (const client of libraryClients) {
      const sent = new Map<string, Request[]>();
      for (const { requests } of cnxns.filter((cnxn) => cnxn.client === client)) {
        for (const request of requests) {
          const key = writeKey(request.record);
          if (key !== undefined) sent.set(key, [...(sent.get(key) ?? []), request]);
        }
      }
      for (const [key, requests] of sent) {
        if (requests.length > 1)
          faults.push(`${client} has sent "${key}" ${requests.length} times: ${requests.map(nameRequest).join(', ')}`);
      }
      const answers = new Set<string>();
      for (const { kind, key, text, atMs } of told.filter((each) => each.client === client)) {
        if (kind === 'over' && text !== '0') faults.push(`${client} was over at ${atMs}, and has not answered ${text} calls`);
        if (kind !== 'answer' || key === undefined) continue;
        if (answers.has(key)) faults.push(`${client} was answered twice about "${key}"`);
        answers.add(key);
        const [request] = sent.get(key) ?? [];
        const said = request?.reply === undefined ? undefined : answerText({ ...request.reply, kind: 'reply', xid: request.xid, request });
        if (text === 'notSent') {
          const zxid = request === undefined ? undefined : happened.get(request);
          if (request !== undefined)
            faults.push(`${client} was told that "${key}" was not sent, and it was${zxid === undefined ? '' : `, and became ${zxid}`}`);
        } else if (request === undefined) {
          faults.push(`${client} was told ${text} of "${key}", which was not sent`);
        } else if (text !== 'unknown' && text !== said) {
          faults.push(`${client} was told ${text} of "${key}", of which the server has said ${said ?? 'nothing'}`);
        }
      }
    }
    return faults;
  },
};
