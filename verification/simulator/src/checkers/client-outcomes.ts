/**
 * Compares the outcome of a write as the client library reports it with the wire and the history.
 * Each write has a unique value, which identifies it everywhere.
 */
import { ErrorCode } from '@tskeeper/protocol';
import type { Request } from '../record/recording.ts';
import { writeKey } from '../record/write-key.ts';
import { requestText } from '../record/request-text.ts';
import type { Checker } from './checker.ts';
import { answerText } from './client-deliveries.ts';

export const clientOutcomes: Checker = {
  property: 'P13',
  promise:
    'A client sends a write at most once, reports notSent exactly for the writes that it did not send, and reports for each write the result that the server returned for that write. It settles every call before it closes.',
  check({ clientDeliveries, libraryClients, ...recording }, { txns }) {
    const cnxns = [...recording.cnxns, ...recording.readOnlyCnxns];
    const violations: string[] = [];
    const committedZxids = new Map(txns.filter(({ loggedErr }) => loggedErr === ErrorCode.Ok).map(({ request, zxid }) => [request, zxid]));
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
          violations.push(`${client} sent "${key}" ${requests.length} times: ${requests.map(requestText).join(', ')}`);
      }
      const answers = new Set<string>();
      for (const { kind, key, text, atMs } of clientDeliveries.filter((each) => each.client === client)) {
        if (kind === 'closed' && text !== '0') violations.push(`${client} closed at ${atMs} with ${text} unsettled calls`);
        if (kind !== 'reply' || key === undefined) continue;
        if (answers.has(key)) violations.push(`${client} reported two results for "${key}"`);
        answers.add(key);
        const [request] = sent.get(key) ?? [];
        const replyOnWire =
          request?.reply === undefined ? undefined : answerText({ ...request.reply, kind: 'reply', xid: request.xid, request });
        if (text === 'notSent') {
          const zxid = request === undefined ? undefined : committedZxids.get(request);
          if (request !== undefined)
            violations.push(
              `${client} reported notSent for "${key}", which was sent${zxid === undefined ? '' : ` and applied as ${zxid}`}`,
            );
        } else if (request === undefined) {
          violations.push(`${client} reported ${text} for "${key}", which was not sent`);
        } else if (text !== 'unknown' && text !== replyOnWire) {
          violations.push(`${client} reported ${text} for "${key}"; the server replied ${replyOnWire ?? 'nothing'}`);
        }
      }
    }
    return violations;
  },
};
