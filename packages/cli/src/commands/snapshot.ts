import type { Command } from 'commander';
import { CommandRefused, exitCodes } from '../exit-codes.ts';
import { filesBeside, filesIn, findFiles, type FoundFile } from '../files/find-files.ts';
import { Output, type OutputFormat } from '../files/output.ts';
import { diffSnapshots } from '../files/snapshot-diff.ts';
import { dumpSnapshot } from '../files/snapshot-dump.ts';
import { verifySnapshots } from '../files/snapshot-verify.ts';
import { type DefineCommand, outputFormatOf, outputOption } from '../program.ts';
import { parseCount, parsePath } from './arguments.ts';
import { exitCodesHelp } from './txnlog.ts';

interface SnapshotDumpFlags {
  readonly output?: OutputFormat;
  readonly path?: string;
  readonly data?: boolean;
}

interface SnapshotVerifyFlags {
  readonly output?: OutputFormat;
  readonly logs?: string;
}

interface SnapshotDiffFlags {
  readonly output?: OutputFormat;
  readonly content?: boolean;
  readonly bytes?: number;
  readonly nodes?: number;
}

/**
 * `tskeeper snapshot dump|verify|diff`: inspects snapshots, plain or compressed, of Apache
 * ZooKeeper and of tskeeper.
 */
export const defineSnapshot: DefineCommand = (program, terminal, finish) => {
  const snapshot: Command = program.command('snapshot').description('inspect snapshots');
  snapshot
    .command('dump')
    .description('print sessions and znodes')
    .argument('<snapshot>', 'a snapshot, or a folder: then the newest snapshot in it')
    .option('--path <path>', 'only this znode and those below it', parsePath)
    .option('--data', 'also print the data of znodes')
    .addOption(outputOption())
    .addHelpText('after', exitCodesHelp([exitCodes.done, 'printed']))
    .action(async (paths: string, options: SnapshotDumpFlags) => {
      const wanted = { path: options.path, data: options.data === true };
      finish(await dumpSnapshot(await newestSnapshot(paths), wanted, new Output(terminal, outputFormatOf(program, options))));
    });
  snapshot
    .command('verify')
    .description('check checksums, and that the tree has the digest recorded in the snapshot')
    .argument('<snapshot...>', 'snapshots, or folders of snapshots: a data folder, or the version-2 in it')
    .option('--logs <folder>', 'folder of the logs, if they are not beside the snapshots; needed where the digest is of a later txn')
    .addOption(outputOption())
    .addHelpText('after', exitCodesHelp([exitCodes.done, 'sound'], [exitCodes.failed, 'damaged']))
    .action(async (paths: readonly string[], options: SnapshotVerifyFlags) => {
      const found: FoundFile[] = [];
      for (const operand of paths) found.push(...(await findFiles(operand, 'snapshot')));
      const logs = (beside: FoundFile) => (options.logs === undefined ? filesBeside(beside.path, 'log') : filesIn(options.logs, 'log'));
      finish(await verifySnapshots(found, logs, new Output(terminal, outputFormatOf(program, options))));
    });
  snapshot
    .command('diff')
    .description('print the differences of the second snapshot from the first')
    .argument('<first>', 'a snapshot, or a folder: then the newest snapshot in it')
    .argument('<second>')
    .option('--content', 'compare only data, ACL and type')
    .option('--bytes <number>', 'print only the subtrees whose data grew or shrank by more than this many bytes', parseCount)
    .option('--nodes <number>', 'print only the subtrees that grew or shrank by more than this many znodes', parseCount)
    .addOption(outputOption())
    .addHelpText('after', exitCodesHelp([exitCodes.done, 'no difference'], [exitCodes.failed, 'differences']))
    .action(async (first: string, second: string, options: SnapshotDiffFlags) => {
      const { bytes, nodes } = options;
      if (options.content === true && (bytes !== undefined || nodes !== undefined)) {
        throw new CommandRefused(
          '--content compares znode by znode, --bytes and --nodes compare sizes: remove --content, or --bytes and --nodes',
        );
      }
      const comparison = { contentOnly: options.content === true, bytes, nodes };
      finish(
        await diffSnapshots(
          await newestSnapshot(first),
          await newestSnapshot(second),
          comparison,
          new Output(terminal, outputFormatOf(program, options)),
        ),
      );
    });
};

async function newestSnapshot(operand: string): Promise<FoundFile> {
  return (await findFiles(operand, 'snapshot')).at(-1)!;
}
