import type { Command } from 'commander';
import { CommandRefused, exitCodes } from '../exit-codes.ts';
import { filesBeside, filesIn, findFiles, type FoundFile } from '../files/find-files.ts';
import { Output, type OutputFormat } from '../files/output.ts';
import { diffSnapshots } from '../files/snapshot-diff.ts';
import { dumpSnapshot } from '../files/snapshot-dump.ts';
import { verifySnapshots } from '../files/snapshot-verify.ts';
import { type DefineCommand, formatOf, outputOption } from '../program.ts';
import { readCount, readPath } from './arguments.ts';
import { codes } from './txnlog.ts';

interface DumpOptions {
  readonly output?: OutputFormat;
  readonly path?: string;
  readonly data?: boolean;
}

interface VerifyOptions {
  readonly output?: OutputFormat;
  readonly logs?: string;
}

interface DiffOptions {
  readonly output?: OutputFormat;
  readonly content?: boolean;
  readonly bytes?: number;
  readonly nodes?: number;
}

/** `tskeeper snapshot dump|verify|diff`: what is in snapshots, plain or compressed. Servers of both kinds write them. */
export const defineSnapshot: DefineCommand = (program, terminal, finish) => {
  const snapshot: Command = program.command('snapshot').description('look into snapshots');
  snapshot
    .command('dump')
    .description('print sessions and znodes')
    .argument('<snapshot>', 'a snapshot; of a folder, the newest in it')
    .option('--path <path>', 'only this znode and those below it', readPath)
    .option('--data', 'print the data of znodes as well')
    .addOption(outputOption())
    .addHelpText('after', codes([exitCodes.done, 'printed']))
    .action(async (named: string, options: DumpOptions) => {
      const wanted = { path: options.path, data: options.data === true };
      finish(await dumpSnapshot(await newestOf(named), wanted, new Output(terminal, formatOf(program, options))));
    });
  snapshot
    .command('verify')
    .description('check checksums, and whether the tree has the digest that the snapshot says')
    .argument('<snapshot...>', 'snapshots, or folders with snapshots: a data folder, or the version-2 in it')
    .option('--logs <folder>', 'where the logs are, if not beside the snapshots; a digest may be that of a later txn')
    .addOption(outputOption())
    .addHelpText('after', codes([exitCodes.done, 'sound'], [exitCodes.failed, 'damaged']))
    .action(async (named: readonly string[], options: VerifyOptions) => {
      const found: FoundFile[] = [];
      for (const operand of named) found.push(...(await findFiles(operand, 'snapshot')));
      const logs = (beside: FoundFile) => (options.logs === undefined ? filesBeside(beside.path, 'log') : filesIn(options.logs, 'log'));
      finish(await verifySnapshots(found, logs, new Output(terminal, formatOf(program, options))));
    });
  snapshot
    .command('diff')
    .description('print what the second has otherwise than the first')
    .argument('<first>', 'a snapshot; of a folder, the newest in it')
    .argument('<second>')
    .option('--content', 'compare data, ACL and kind alone')
    .option('--bytes <number>', 'print instead which subtrees have grown or shrunk by more bytes of data than this', readCount)
    .option('--nodes <number>', 'print instead which subtrees have grown or shrunk by more znodes than this', readCount)
    .addOption(outputOption())
    .addHelpText('after', codes([exitCodes.done, 'no difference'], [exitCodes.failed, 'differences']))
    .action(async (first: string, second: string, options: DiffOptions) => {
      const { bytes, nodes } = options;
      if (options.content === true && (bytes !== undefined || nodes !== undefined)) {
        throw new CommandRefused('--content compares znode by znode, --bytes and --nodes compare sizes: leave one of them out');
      }
      const comparison = { contentOnly: options.content === true, bytes, nodes };
      finish(
        await diffSnapshots(await newestOf(first), await newestOf(second), comparison, new Output(terminal, formatOf(program, options))),
      );
    });
};

async function newestOf(operand: string): Promise<FoundFile> {
  return (await findFiles(operand, 'snapshot')).at(-1)!;
}
