/**
 * A start that cannot make, open or read a data folder because of who runs the server, or because of what the path leads to. The disk is well:
 * the operator corrects a right, a mount or the configuration, and no restart helps before. The same errors later are failures of the disk.
 */
import { DiskError } from '../disk.ts';
import { StorageRefused } from './storage-refused.ts';

export interface ConfiguredFolders {
  readonly dataDir: string;
  readonly dataLogDir: string;
}

const right = 'give the user of this process the right to read and write there';
const fileInPath = 'a file, or a link that leads nowhere, has the name of a folder in this path: rename it';

/** By the system's code. */
const remedies: Readonly<Record<string, string>> = {
  EACCES: right,
  EPERM: right,
  EROFS: 'its file system is mounted read-only: mount it for writing',
  ENOTDIR: fileInPath,
  EEXIST: fileInPath,
};

/** While a folder is made and claimed, and never for a file in it, which was there a moment ago. */
const remediesOfFolder: typeof remedies = { ...remedies, ENOENT: 'a folder in this path is missing and cannot be made: make it' };

/** The refusal that an error of a start amounts to, or the error itself. `phase`: what the start was doing. */
export function asRefusal(error: unknown, phase: 'claiming' | 'reading', { dataDir, dataLogDir }: ConfiguredFolders): unknown {
  if (!(error instanceof DiskError)) return error;
  const remedy = (phase === 'claiming' ? remediesOfFolder : remedies)[error.code];
  if (remedy === undefined) return error;
  const [key, folder] =
    dataLogDir !== dataDir && error.path.startsWith(`${dataLogDir}/`) ? ['dataLogDir', dataLogDir] : ['dataDir', dataDir];
  return new StorageRefused(`the server cannot use ${key}, ${folder} (${error.message}); ${remedy}, or set ${key} to another folder`, {
    cause: error,
  });
}
