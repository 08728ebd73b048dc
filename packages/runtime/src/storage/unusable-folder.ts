/**
 * A start that cannot create, open or read a data folder because of the server's user, or because
 * of what is at that path. The disk is healthy: the operator must correct a right, a mount or the
 * configuration, and no restart helps before. The same errors later are failures of the disk.
 */
import { DiskError } from '../disk.ts';
import { StorageRefused } from './storage-refused.ts';

export interface ConfiguredFolders {
  readonly dataDir: string;
  readonly dataLogDir: string;
}

const right = 'give the user of this process the right to read and write there';
const fileInPath = 'a file or a broken link has the name of a folder in this path: rename it';

/** By the system's code. */
const remedies: Readonly<Record<string, string>> = {
  EACCES: right,
  EPERM: right,
  EROFS: 'its file system is mounted read-only: mount it for writing',
  ENOTDIR: fileInPath,
  EEXIST: fileInPath,
};

/** For creating and locking a folder; not for a file in it, which existed a moment ago. */
const remediesOfFolder: typeof remedies = { ...remedies, ENOENT: 'a folder in this path is missing and cannot be created: create it' };

/** The refusal for an error of a start, or the error itself. `phase`: what the start was doing. */
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
