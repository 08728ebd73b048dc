/** Finds the end of a page that a client has received, so that any client can ask for the next one. */
import type { ChildrenDataPageReply, ChildrenPageReply, ChildrenPageRequest } from '@tskeeper/protocol';
import type { PageEnd } from '../clients/workload.ts';
import type { Recording } from '../record/recording.ts';

/** Among the last requests of the last connections. */
const cnxnsMax = 6;
const requestsMax = 40;

/** The latest, if it was not the last page of its listing. */
export function lastPageOf({ cnxns }: Recording): PageEnd | undefined {
  for (const { requests } of cnxns.slice(-cnxnsMax).toReversed()) {
    for (const { name, record, reply } of requests.slice(-requestsMax).toReversed()) {
      if ((name !== 'getChildrenPage' && name !== 'getChildrenDataPage') || reply?.err !== 0) continue;
      const { children, isLast, lastZxid } = reply.body as ChildrenPageReply | ChildrenDataPageReply;
      const last = children.at(-1);
      if (isLast || last === undefined) continue;
      return { path: (record as ChildrenPageRequest).path, afterZxid: lastZxid, afterName: typeof last === 'string' ? last : last.name };
    }
  }
  return undefined;
}
