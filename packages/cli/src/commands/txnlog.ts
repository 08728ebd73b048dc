import { dirname } from 'node:path';
import type { SessionId, Zxid } from '@tskeeper/protocol';
import type { Command } from 'commander';
import { exitCodes } from '../exit-codes.ts';
import { filesBeside, filesIn, findFiles, findUnloggedSnapshot, type FoundFile } from '../files/find-files.ts';
import { Output, type OutputFormat } from '../files/output.ts';
import { orphanMarks, txnBytesMaxDefault } from '../files/log-files.ts';
import { dumpTxnlogs } from '../files/txnlog-dump.ts';
import { verifyTxnlogs, verifyUnlogged } from '../files/txnlog-verify.ts';
import { type DefineCommand, formatOf, outputOption } from '../program.ts';
import { readCount, readPath, readSession, readZxid } from './arguments.ts';

interface DumpOptions {
  readonly output?: OutputFormat;
  readonly from?: Zxid;
  readonly to?: Zxid;
  readonly path?: string;
  readonly session?: SessionId;
  readonly data?: boolean;
  readonly juteMaxbuffer?: number;
}

interface VerifyOptions {
  readonly output?: OutputFormat;
  readonly snapshots?: string;
  readonly digests: boolean;
  readonly juteMaxbuffer?: number;
}

const operands = 'logs, or folders of logs: a data folder, or the version-2 in it';
const maxbuffer = ['--jute-maxbuffer <bytes>', 'jute.maxbuffer of the server, if it is not the default', readCount] as const;

/**
 * `tskeeper txnlog dump|verify`: inspects transaction logs, of Apache ZooKeeper and of tskeeper,
 * and checks that they are complete.
 */
export const defineTxnlog: DefineCommand = (program, terminal, finish) => {
  const txnlog: Command = program.command('txnlog').description('inspect transaction logs');
  txnlog
    .command('dump')
    .description('print txns, one per line')
    .argument('<log...>', operands)
    .option('--from <zxid>', 'first zxid to print', readZxid)
    .option('--to <zxid>', 'last zxid to print', readZxid)
    .option('--path <path>', 'only txns of this znode or its descendants', readPath)
    .option('--session <id>', 'only txns of this session', readSession)
    .option('--data', 'also print the data of znodes')
    .option(...maxbuffer)
    .addOption(outputOption())
    .addHelpText(
      'after',
      codes([exitCodes.done, 'all txns could be read'], [exitCodes.failed, 'a log is damaged; every readable txn was printed']),
    )
    .action(async (named: readonly string[], options: DumpOptions) => {
      const output = new Output(terminal, formatOf(program, options));
      const { from, to, path, session } = options;
      const limits = { from, to, path, session, data: options.data === true, txnBytesMax: txnBytesMaxOf(options.juteMaxbuffer) };
      finish(await dumpTxnlogs(await findLogs(named), limits, output));
    });
  txnlog
    .command('verify')
    .description('check checksums, the order of txns, gaps, the end of each log, and the digests of the tree')
    .argument('<log...>', operands)
    .option(
      '--snapshots <folder>',
      'folder of the snapshots, if they are not beside the logs; digests are checked by replay from a snapshot',
    )
    .option('--no-digests', 'do not replay the txns to compare digests')
    .option(...maxbuffer)
    .addOption(outputOption())
    .addHelpText(
      'after',
      codes(
        [exitCodes.done, 'sound'],
        [exitCodes.failed, 'damaged: a server would refuse to start, or has lost txns'],
        [exitCodes.tornTail, 'sound except for a torn tail, which was never acknowledged; the next start removes it'],
      ),
    )
    .action(async (named: readonly string[], options: VerifyOptions) => {
      const output = new Output(terminal, formatOf(program, options));
      const unlogged = named.length === 1 ? await findUnloggedSnapshot(named[0]!) : undefined;
      if (unlogged !== undefined) {
        finish(await verifyUnlogged(unlogged, output));
        return;
      }
      const logs = await findLogs(named);
      const oldest = (await filesBeside(logs[0]!.path, 'log')).at(0);
      const newest = (await filesBeside(logs.at(-1)!.path, 'log')).at(-1);
      const snapshots = await filesIn(options.snapshots ?? dirname(logs[0]!.path), 'snapshot');
      const verification = {
        snapshots: options.digests ? snapshots : undefined,
        snapshotZxid: snapshots.at(-1)?.zxid ?? 0,
        orphanMarks: await orphanMarks(dirname(logs.at(-1)!.path)),
        firstIsOldest: oldest === undefined || oldest.zxid >= logs[0]!.zxid,
        lastIsNewest: newest === undefined || newest.zxid <= logs.at(-1)!.zxid,
        txnBytesMax: txnBytesMaxOf(options.juteMaxbuffer),
      };
      finish(await verifyTxnlogs(logs, verification, output));
    });
};

async function findLogs(named: readonly string[]): Promise<FoundFile[]> {
  const found: FoundFile[] = [];
  for (const operand of named) found.push(...(await findFiles(operand, 'log')));
  return found.toSorted((a, b) => a.zxid - b.zxid);
}

/**
 * A txn may be as long as a frame plus the extra (zookeeper.jute.maxbuffer.extrasize), whose
 * default is that of jute.maxbuffer.
 */
function txnBytesMaxOf(juteMaxbuffer: number | undefined): number {
  return juteMaxbuffer === undefined ? txnBytesMaxDefault : 2 * juteMaxbuffer;
}

/** The list of exit codes at the end of a command's help. */
export function codes(...list: readonly (readonly [code: number, meaning: string])[]): string {
  const all = [...list, [exitCodes.refused, 'an invalid command line, or a file that cannot be read'] as const];
  return `\nExit codes:\n${all.map(([code, meaning]) => `  ${code}  ${meaning}`).join('\n')}`;
}
