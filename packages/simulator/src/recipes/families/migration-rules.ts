/**
 * What must be true of changes that are made once each (changes):
 *
 * - each is made once, behind the one before it, in the txn that makes its record;
 * - nobody makes one that nobody is told of, but where it broke off; and nobody is told of one that it has not made;
 * - who is told that all is made has seen it made; and who is told that it is too old has seen more than it knows.
 */
import type { SessionId } from '@tskeeper/protocol';
import type { History } from '../history.ts';

/** One call of `Migrations.migrate`. */
export interface Run {
  readonly process: string;
  readonly session: SessionId;
  /** How many its program knows. */
  readonly known: number;
  /** Names of those that it is told it has made. */
  made: readonly string[];
  /** `open`: it was given up, or its process has ended. */
  result: 'open' | 'up to date' | 'too old';
  /** What its client had seen when it was over. */
  seenZxid: bigint | undefined;
}

export function judgeMigrations(
  runs: readonly Run[],
  { folder, storePath }: { readonly folder: string; readonly storePath: string },
  history: History,
): string[] {
  const findings: string[] = [];
  const writes = history.writes.filter(({ path, data }) => path === storePath && data !== '');
  const records = history.below(`${folder}/applied`);
  writes.forEach(({ data, zxid, session }, at) => {
    if (data !== `change-${at + 1}`) findings.push(`changes: ${data} was made at ${zxid}, as number ${at + 1}`);
    const record = records.find(({ czxid }) => czxid === zxid);
    if (record === undefined || Number(record.path.slice(-10)) !== at + 1)
      findings.push(`changes: ${data} was made at ${zxid}, and ${record?.path ?? 'nothing'} recorded`);
    const told = runs.filter(({ made }) => made.includes(data));
    const isOpen = runs.some((run) => run.session === session && run.result === 'open');
    if (told.length > 1 || told.some((run) => run.session !== session) || (told.length === 0 && !isOpen))
      findings.push(`changes: ${data} was made by ${session}, and told to ${told.map(({ process }) => process).join(' and ') || 'nobody'}`);
  });
  const madeBy = (zxid: bigint) => writes.filter((write) => write.zxid <= zxid).length;
  for (const { process, known, made, result, seenZxid } of runs) {
    const unwritten = made.filter((name) => !writes.some(({ data }) => data === name));
    if (unwritten.length > 0) findings.push(`changes: ${process} was told that it has made ${unwritten.join(', ')}, which nobody has`);
    const count = seenZxid === undefined ? 0 : madeBy(seenZxid);
    if ((result === 'up to date' && count < known) || (result === 'too old' && count <= known))
      findings.push(`changes: ${process} knew ${known}, had seen ${count}, and was told that it is ${result}`);
  }
  return findings;
}
