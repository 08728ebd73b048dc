/**
 * Rules for migrations (changes):
 *
 * - each change is made once, after the one before it, in the txn that creates its record;
 * - every change is reported to the process that made it, unless its call was interrupted, and to
 *   no other;
 * - a process with the result "up to date" has seen all changes made, and one with "too old" has
 *   seen more than it knows.
 */
import type { SessionId } from '@tskeeper/protocol';
import type { ZnodeHistory } from '../znode-history.ts';

/** One call of `Migrations.migrate`. */
export interface MigrateCall {
  readonly process: string;
  readonly session: SessionId;
  /** The number of changes that its program knows. */
  readonly known: number;
  /** Names of the changes that it has made, as its call returned them. */
  made: readonly string[];
  /** `open`: the call failed, or its process has ended. */
  result: 'open' | 'up to date' | 'too old';
  /** What its client had seen when the call ended. */
  seenZxid: bigint | undefined;
}

export function checkMigrations(
  runs: readonly MigrateCall[],
  { folder, storePath }: { readonly folder: string; readonly storePath: string },
  history: ZnodeHistory,
): string[] {
  const findings: string[] = [];
  const writes = history.writes.filter(({ path, data }) => path === storePath && data !== '');
  const records = history.childrenOf(`${folder}/applied`);
  writes.forEach(({ data, zxid, session }, at) => {
    if (data !== `change-${at + 1}`) findings.push(`changes: ${data} was made at ${zxid}, as number ${at + 1}`);
    const record = records.find(({ czxid }) => czxid === zxid);
    if (record === undefined || Number(record.path.slice(-10)) !== at + 1)
      findings.push(`changes: ${data} was made at ${zxid}, but ${record?.path ?? 'nothing'} was recorded`);
    const received = runs.filter(({ made }) => made.includes(data));
    const isOpen = runs.some((run) => run.session === session && run.result === 'open');
    if (received.length > 1 || received.some((run) => run.session !== session) || (received.length === 0 && !isOpen))
      findings.push(
        `changes: ${data} was made by ${session}, but reported to ${received.map(({ process }) => process).join(' and ') || 'no process'}`,
      );
  });
  const madeBy = (zxid: bigint) => writes.filter((write) => write.zxid <= zxid).length;
  for (const { process, known, made, result, seenZxid } of runs) {
    const unwritten = made.filter((name) => !writes.some(({ data }) => data === name));
    if (unwritten.length > 0) findings.push(`changes: the call of ${process} returned ${unwritten.join(', ')}, which no process has made`);
    const count = seenZxid === undefined ? 0 : madeBy(seenZxid);
    if ((result === 'up to date' && count < known) || (result === 'too old' && count <= known))
      findings.push(`changes: ${process} knew ${known} and had seen ${count}, but the result was ${result}`);
  }
  return findings;
}
