import { ConfigurationConflict } from '@tskeeper/core';
import { BindError, DiskError, FolderInUse, StorageRefused } from '@tskeeper/runtime';
import { ConfigError } from './config/config-error.ts';
import { ListenError } from './net-network.ts';

/** How a server process ends. Supervisors may tell these apart: restarting helps after 1 and perhaps after 3, never after 2. */
export const exitCodes = {
  /** Ended as asked, by SIGTERM or SIGINT. */
  ended: 0,
  /** A broken belief or an error nobody expected. */
  internalError: 1,
  /** The server cannot start as configured: a slip in the configuration, a port or a folder in use, a folder it may not use, data it refuses. */
  refused: 2,
  /** The disk failed. */
  diskFailure: 3,
} as const;

const refusals = [ConfigError, ListenError, BindError, FolderInUse, StorageRefused, ConfigurationConflict];

/** What the operator is told about an error that ends the process, and with which code. */
export function verdictOf(error: unknown): { readonly code: number; readonly message: string } {
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
      return 'It has not come back for as long as a session may live. Check the disk; if it is well, something else has taken all threads of this process that wait for disks, and a new start is the cure.';
    default:
      return 'Check the disk before starting the server again.';
  }
}
