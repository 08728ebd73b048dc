/** `tskeeper txnlog dump`: prints transaction logs, one txn per line. */
import { formatZxid, type TxnLogEntry, type SessionId, sessionIdOf, type Zxid } from '@tskeeper/protocol';
import { afterZxid, logConditionOf } from '@tskeeper/runtime/internal';
import { exitCodes } from '../exit-codes.ts';
import { type FoundFile, unknownZxid } from './find-files.ts';
import { endText, readLogFile } from './log-files.ts';
import type { Output } from './output.ts';
import { pathsOf, txnLine, txnView } from './txn-view.ts';
import { count } from './views.ts';

export interface TxnlogDumpOptions {
  readonly from: Zxid | undefined;
  readonly to: Zxid | undefined;
  /** Only txns that name this path or a descendant. */
  readonly path: string | undefined;
  readonly session: SessionId | undefined;
  readonly data: boolean;
  readonly txnBytesMax: number;
}

/** Resolves with `failed` if a log is damaged; prints all readable txns nevertheless. */
export async function dumpTxnlogs(logs: readonly FoundFile[], options: TxnlogDumpOptions, output: Output): Promise<number> {
  let damage = false;
  const logsInRange = inRange(logs, options);
  for (const log of logsInRange) {
    let printed = 0;
    let damaged = 0;
    const head = { file: log.name };
    const print = (txn: TxnLogEntry, offset: number, flaw?: string) => {
      if (!matchesFilter(txn, options)) return;
      printed++;
      if (output.format === 'text') output.line(`${flaw === undefined ? '' : `DAMAGED (${flaw}) `}${txnLine(txn, options.data)}`);
      else output.json({ ...head, offset, ...(flaw !== undefined && { damaged: flaw }), ...txnView(txn, options.data) });
    };
    const printFlaw = (offset: number, flaw: string, zxid?: Zxid) => {
      const view = zxid === undefined ? {} : { zxid: formatZxid(zxid) };
      if (output.format === 'text') output.line(`DAMAGED (${flaw}) at offset ${offset} of ${log.name}`);
      else output.json({ ...head, offset, damaged: flaw, ...view });
    };
    const { end, allZero } = await readLogFile(
      log,
      options.txnBytesMax,
      {
        txn: print,
        unreadable: (zxid, offset, reason) => {
          damaged++;
          printFlaw(offset, reason, zxid);
        },
        damaged: (txn, offset) => {
          damaged++;
          if (txn === undefined) printFlaw(offset, 'checksum');
          else print(txn, offset, 'checksum');
        },
      },
      () => output.flush(),
    );
    await output.flush();
    const broken = damaged > 0 || logConditionOf(end, undefined, log === logs.at(-1), allZero) === 'damaged';
    damage ||= broken;
    const found = damaged > 0 ? `, ${damaged} damaged` : '';
    output.note(
      `${log.path}: ${count(end.count, 'txn')}${found}, ${printed} shown; ends at offset ${end.offset}, ${afterZxid(end)}: ${endText(end)}`,
    );
  }
  return damage ? exitCodes.failed : exitCodes.done;
}

/**
 * A log's name is its first zxid. So skip logs that begin after the range, and logs that end before
 * it because the next log begins before it.
 */
function inRange(logs: readonly FoundFile[], { from, to }: TxnlogDumpOptions): readonly FoundFile[] {
  return logs.filter(({ zxid }, index) => {
    if (zxid === unknownZxid) return true;
    if (to !== undefined && zxid > to) return false;
    const next = logs[index + 1];
    return from === undefined || next === undefined || next.zxid === unknownZxid || next.zxid > from;
  });
}

function matchesFilter({ header, txn }: TxnLogEntry, { from, to, path, session }: TxnlogDumpOptions): boolean {
  if (from !== undefined && header.zxid < from) return false;
  if (to !== undefined && header.zxid > to) return false;
  if (session !== undefined && sessionIdOf(header.clientHigh, header.clientLow) !== session) return false;
  if (path === undefined || path === '/') return true;
  return pathsOf(txn).some((named) => named === path || named.startsWith(`${path}/`));
}
