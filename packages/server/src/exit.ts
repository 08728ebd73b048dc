import { BindError, DiskError, FolderInUse, ListenError, StorageRefused } from '@tskeeper/runtime';
import { ConfigError } from './config/config-error.ts';

/** Exit codes of a server process. A restart helps after 1, perhaps after 3, and never after 2. */
export const exitCodes = {
  /** Stopped by SIGTERM or SIGINT. */
  ended: 0,
  /** A failed assertion or an unexpected error. */
  internalError: 1,
  /**
   * The server cannot start as configured: a mistake in the configuration, a port or folder in use,
   * a folder that it may not use, data that it refuses.
   */
  refused: 2,
  /** The disk failed. */
  diskFailure: 3,
} as const;

const refusals = [ConfigError, ListenError, BindError, FolderInUse, StorageRefused];

/** The message for the operator about an error that ends the process, and the exit code. */
export function exitStatusOf(error: unknown): { readonly code: number; readonly message: string } {
  if (error instanceof DiskError) {
    return { code: exitCodes.diskFailure, message: `the disk failed: ${error.message}. ${remedyOf(error)}` };
  }
  if (refusals.some((kind) => error instanceof kind)) {
    return { code: exitCodes.refused, message: (error as Error).message };
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: exitCodes.internalError, message: `unexpected error, please report it: ${text}` };
}

function remedyOf({ code }: DiskError): string {
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return 'Make room on the disk, then start the server again.';
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return 'Give the user of this process the right to write there.';
    case 'ENOENT':
      return 'Create it, or correct the configuration.';
    case 'EMFILE':
    case 'ENFILE':
      return 'Raise the limit of open files (ulimit -n, LimitNOFILE).';
    case 'ETIMEDOUT':
      return 'The operation did not complete within the longest session time-out. Check the disk; if it is healthy, something else occupies all threads of this process that wait for disks: start the server again.';
    default:
      return 'Check the disk before starting the server again.';
  }
}
