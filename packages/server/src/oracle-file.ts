/**
 * The oracle of an ensemble of two (oraclePath): a file whose first character is 1 lets this server
 * go on without the other one. The writer of the files must allow it to at most one of the two.
 */
import { open } from 'node:fs/promises';
import type { Logger } from '@tskeeper/runtime';

/**
 * Reads the file at each call. A file that cannot be read counts as no, and the log gives the
 * reason once.
 */
export function fileOracle(path: string, logger: Logger): () => Promise<boolean> {
  let complaint: string | undefined;
  return async () => {
    try {
      const file = await open(path, 'r');
      try {
        const { bytesRead, buffer } = await file.read(Buffer.alloc(1), 0, 1, 0);
        complaint = undefined;
        return bytesRead === 1 && buffer.toString('latin1') === '1';
      } finally {
        await file.close();
      }
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? String(error);
      if (code !== complaint) {
        logger.warn(`oraclePath: ${path} cannot be read (${code}), which counts as no. Let this user read the file.`, {
          event: 'oracle.unreadable',
          path,
          reason: code,
        });
      }
      complaint = code;
      return false;
    }
  };
}
