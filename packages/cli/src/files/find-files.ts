/**
 * Finds files from operands of the command line: a file is itself, a folder stands for the logs or
 * snapshots in it, and a data folder (as named by `dataDir`) for those in its `version-2`.
 */
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { numberedFiles, type NumberedFile } from '@tskeeper/runtime';
import { CommandRefused } from '../exit-codes.ts';

export interface FoundFile extends NumberedFile {
  readonly path: string;
}

/** Folder of both kinds of files, below the configured folder. */
const versionFolder = 'version-2';

/** A file without a zxid in its name, such as a renamed copy. */
export const unknownZxid = -1;

/**
 * The logs (`prefix` log) or snapshots (`prefix` snapshot) of an operand, oldest first; at least
 * one.
 */
export async function findFiles(operand: string, prefix: 'log' | 'snapshot'): Promise<FoundFile[]> {
  if (!(await isFolder(operand))) {
    const name = basename(operand);
    return [{ name, path: operand, zxid: numberedFiles([name], prefix)[0]?.zxid ?? unknownZxid }];
  }
  for (const folder of [operand, join(operand, versionFolder)]) {
    const found = await filesIn(folder, prefix);
    if (found.length > 0) return found;
  }
  throw new CommandRefused(`there is no ${prefix}.<zxid> in ${operand}, nor in a folder ${versionFolder} below it`);
}

/**
 * The newest snapshot of a data folder without a log, the state of a server that has logged
 * nothing; undefined for every other operand. Rejects if the mark of a log shows that there was
 * one.
 */
export async function findUnloggedSnapshot(operand: string): Promise<FoundFile | undefined> {
  if (!(await isFolder(operand))) return undefined;
  for (const folder of [operand, join(operand, versionFolder)]) {
    const [logs, marks, snapshots] = [await filesIn(folder, 'log'), await filesIn(folder, 'synced'), await filesIn(folder, 'snapshot')];
    if (logs.length > 0) return undefined;
    if (marks.length > 0) {
      throw new CommandRefused(
        `there is no log.<zxid> in ${folder}, but ${marks.at(-1)!.name} there is the mark of one: the log has been removed`,
      );
    }
    if (snapshots.length > 0) return snapshots.at(-1);
  }
  return undefined;
}

/** The files of one folder, oldest first; none if the folder does not exist. */
export async function filesIn(folder: string, prefix: 'log' | 'snapshot' | 'synced'): Promise<FoundFile[]> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    if (errnoCodeOf(error) === 'ENOENT' || errnoCodeOf(error) === 'ENOTDIR') return [];
    throw toCommandRefused(error, folder);
  }
  return numberedFiles(names, prefix).map(({ name, zxid }) => ({ name, zxid, path: join(folder, name) }));
}

/** Files of the given kind in the folder of a file. */
export async function filesBeside(path: string, prefix: 'log' | 'snapshot'): Promise<FoundFile[]> {
  return await filesIn(dirname(path), prefix);
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    throw toCommandRefused(error, path);
  }
}

function toCommandRefused(error: unknown, path: string): unknown {
  const code = errnoCodeOf(error);
  return code === undefined
    ? error
    : new CommandRefused(`cannot read ${path}: ${code === 'ENOENT' ? 'there is no such file or folder' : code}`);
}

function errnoCodeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}
