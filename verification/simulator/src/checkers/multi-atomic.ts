import { ErrorCode, type MultiRequest, type MultiReply, type Stat } from '@tskeeper/protocol';
import type { Request } from '../record/recording.ts';
import { requestText } from '../record/request-text.ts';
import type { Checker } from './checker.ts';

export const multiAtomic: Checker = {
  property: 'P11',
  promise: 'A multi is applied as a whole under one zxid or not at all, and its reply has a result for each operation.',
  check({ cnxns }) {
    const violations: string[] = [];
    for (const { requests } of cnxns) for (const request of requests) if (request.name === 'multi') violations.push(...checkReply(request));
    return violations;
  },
};

function checkReply(request: Request): string[] {
  const { reply } = request;
  if (reply === undefined || reply.err !== ErrorCode.Ok) return [];
  const { results } = reply.body as MultiReply;
  const { ops } = request.record as MultiRequest;
  const violations: string[] = [];
  const failed = results.filter(({ kind }) => kind === 'error').length;
  if (results.length !== ops.length)
    violations.push(`${requestText(request)} has ${ops.length} operations but got ${results.length} results`);
  if (failed > 0 && failed < results.length) violations.push(`${requestText(request)} failed in part`);
  for (const result of results) {
    const { stat } = result as { readonly stat?: Stat };
    if (stat !== undefined && stat.mzxid !== reply.zxid)
      violations.push(`${requestText(request)} at ${reply.zxid} has an operation at ${stat.mzxid}`);
  }
  return violations;
}
