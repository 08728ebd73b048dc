/** Marks of the operations of ClickHouse Keeper: that each was used, with both of its outcomes. */
import {
  ErrorCode,
  type FilteredListWithStatsAndDataReply,
  type ListRecursiveReply,
  type MultiReply,
  type MultiResult,
  OpCode,
} from '@tskeeper/protocol';
import type { Request } from '../record/recording.ts';
import type { Replay } from '../replay/replay-result.ts';
import type { Outcome } from './seed-run.ts';

type Count = (outcome: Outcome, replay: Replay) => number;

function count(isIt: (request: Request) => boolean): Count {
  return ({ recording }) => recording.cnxns.reduce((sum, { requests }) => sum + requests.filter(isIt).length, 0);
}

/** Requests that succeeded, with a txn of this type. */
function withTxn(name: string, type: number): Count {
  return ({ recording }, { txns }) => {
    const zxids = new Set(txns.filter((txn) => txn.type === type).map(({ zxid }) => zxid));
    const isOne = ({ name: own, reply }: Request) => own === name && reply?.err === ErrorCode.Ok && zxids.has(reply.zxid);
    return recording.cnxns.reduce((sum, { requests }) => sum + requests.filter(isOne).length, 0);
  };
}

function resultsOf({ name, reply }: Request): readonly MultiResult[] {
  return name === 'multi' && reply?.err === ErrorCode.Ok ? (reply.body as MultiReply).results : [];
}

function part(kind: MultiResult['kind']): Count {
  return count((request) => resultsOf(request).some((result) => result.kind === kind));
}

export const keeperMarks: Readonly<Record<string, Count>> = {
  'a list with Stats and data': count(({ name, reply }) => {
    if (name !== 'filteredListWithStatsAndData' || reply?.err !== ErrorCode.Ok) return false;
    const { stats, data } = reply.body as FilteredListWithStatsAndDataReply;
    return stats.length > 0 && data.length > 0;
  }),
  'descendants were listed': count(
    ({ name, reply }) => name === 'listRecursive' && reply?.err === ErrorCode.Ok && (reply.body as ListRecursiveReply).children.length > 3,
  ),
  'a Stat was as expected': part('checkStat'),
  'a Stat was not as expected': count(({ name, reply }) => name === 'checkStat' && reply?.err === ErrorCode.BadVersion),
  'a znode did not exist, as a multi required': part('checkNotExists'),
  'createIfNotExists created a znode': withTxn('createIfNotExists', OpCode.create),
  'createIfNotExists found a znode': withTxn('createIfNotExists', OpCode.multi),
  'createIfNotExists in a multi': part('createIfNotExists'),
  'tryRemove removed a znode': withTxn('tryRemove', OpCode.delete),
  'tryRemove removed nothing': withTxn('tryRemove', OpCode.error),
  'tryRemove in a multi': part('tryRemove'),
  'a subtree was removed': withTxn('removeRecursive', OpCode.multi),
  'a subtree was not there to be removed': withTxn('removeRecursive', OpCode.error),
  'a subtree was too large to be removed': count(({ name, reply }) => name === 'removeRecursive' && reply?.err === ErrorCode.NotEmpty),
  'a subtree was removed in a multi': part('removeRecursive'),
};
