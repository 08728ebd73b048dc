import { dirname } from 'node:path';
import type { SessionId, Zxid } from '@tskeeper/protocol';
import type { Command } from 'commander';
import { exitCodes } from '../exit-codes.ts';
import { filesBeside, filesIn, findFiles, findUnloggedSnapshot, type FoundFile } from '../files/find-files.ts';
import { Output, type OutputFormat } from '../files/output.ts';
import { orphanMarks, txnBytesMaxDefault } from '../files/log-files.ts';
import { dumpTxnlogs } from '../files/txnlog-dump.ts';
import { verifyTxnlogs, verifyUnlogged } from '../files/txnlog-verify.ts';
import { type DefineCommand, outputFormatOf, outputOption } from '../program.ts';
import { parseCount, parsePath, parseSessionId, parseZxid } from './arguments.ts';

interface TxnlogDumpFlags {
  readonly output?: OutputFormat;
  readonly from?: Zxid;
  readonly to?: Zxid;
  readonly path?: string;
  readonly session?: SessionId;
  readonly data?: boolean;
  readonly juteMaxbuffer?: number;
}

interface TxnlogVerifyFlags {
  readonly output?: OutputFormat;
  readonly snapshots?: string;
  readonly digests: boolean;
  readonly juteMaxbuffer?: number;
}

const operandsHelp = 'logs, or folders of logs: a data folder, or the version-2 in it';
const juteMaxbufferOption = ['--jute-maxbuffer <bytes>', 'jute.maxbuffer of the server, if it is not the default', parseCount] as const;

/**
 * `tskeeper txnlog dump|verify`: inspects transaction logs, of Apache ZooKeeper and of tskeeper,
 * and checks that they are complete.
 */
export const defineTxnlog: DefineCommand = (program, terminal, finish) => {
  const txnlog: Command = program.command('txnlog').description('inspect transaction logs');
  txnlog
    .command('dump')
    .description('print txns, one per line')
    .argument('<log...>', operandsHelp)
    .option('--from <zxid>', 'first zxid to print', parseZxid)
    .option('--to <zxid>', 'last zxid to print', parseZxid)
    .option('--path <path>', 'only txns of this znode or its descendants', parsePath)
    .option('--session <id>', 'only txns of this session', parseSessionId)
    .option('--data', 'also print the data of znodes')
    .option(...juteMaxbufferOption)
    .addOption(outputOption())
    .addHelpText(
      'after',
      exitCodesHelp([exitCodes.done, 'all txns could be read'], [exitCodes.failed, 'a log is damaged; every readable txn was printed']),
    )
    .action(async (paths: readonly string[], options: TxnlogDumpFlags) => {
      const output = new Output(terminal, outputFormatOf(program, options));
      const { from, to, path, session } = options;
      const limits = { from, to, path, session, data: options.data === true, txnBytesMax: txnBytesMaxOf(options.juteMaxbuffer) };
      finish(await dumpTxnlogs(await findLogs(paths), limits, output));
    });
  txnlog
    .command('verify')
    .description('check checksums, the order of txns, gaps, the end of each log, and the digests of the tree')
    .argument('<log...>', operandsHelp)
    .option(
      '--snapshots <folder>',
      'folder of the snapshots, if they are not beside the logs; digests are checked by replay from a snapshot',
    )
    .option('--no-digests', 'do not replay the txns to compare digests')
    .option(...juteMaxbufferOption)
    .addOption(outputOption())
    .addHelpText(
      'after',
      exitCodesHelp(
        [exitCodes.done, 'sound'],
        [exitCodes.failed, 'damaged: a server would refuse to start, or has lost txns'],
        [exitCodes.tornTail, 'sound except for a torn tail, which was never acknowledged; the next start removes it'],
      ),
    )
    .action(async (paths: readonly string[], options: TxnlogVerifyFlags) => {
      const output = new Output(terminal, outputFormatOf(program, options));
      const unlogged = paths.length === 1 ? await findUnloggedSnapshot(paths[0]!) : undefined;
      if (unlogged !== undefined) {
        finish(await verifyUnlogged(unlogged, output));
        return;
      }
      const logs = await findLogs(paths);
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

async function findLogs(paths: readonly string[]): Promise<FoundFile[]> {
  const found: FoundFile[] = [];
  for (const operand of paths) found.push(...(await findFiles(operand, 'log')));
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
export function exitCodesHelp(...list: readonly (readonly [code: number, meaning: string])[]): string {
  const all = [...list, [exitCodes.refused, 'an invalid command line, or a file that cannot be read'] as const];
  return `\nExit codes:\n${all.map(([code, meaning]) => `  ${code}  ${meaning}`).join('\n')}`;
}
