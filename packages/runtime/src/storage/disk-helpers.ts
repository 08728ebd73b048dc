/** Small operations over `Disk` that several parts of storage use. */
import type { Disk, DiskFile } from '../disk.ts';

export function syncFile(file: DiskFile): Promise<void> {
  return new Promise((resolve, reject) => {
    file.sync((error) => {
      if (error === undefined) resolve();
      else reject(error);
    });
  });
}

/** Opens a file, runs the work, and closes the file in any case. */
export async function withFile<T>(disk: Disk, path: string, work: (file: DiskFile) => Promise<T>): Promise<T> {
  const file = await disk.open(path, 'existing');
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}

const copyPieceBytes = 1024 * 1024;

/**
 * Writes the bytes [start, end) of one file to the same place in another, or in itself, and makes
 * them durable.
 */
export async function copyFileRange(from: DiskFile, to: DiskFile, start: number, end: number): Promise<void> {
  for (let at = start; at < end; at += copyPieceBytes) to.write(at, await from.read(at, Math.min(copyPieceBytes, end - at)));
  await syncFile(to);
}

/**
 * Replaces a whole small file so that a crash leaves the old one or the new one, never a part: the
 * content is synced before the rename, the folder after it. This order is essential.
 */
export async function replaceFile(disk: Disk, folder: string, name: string, temporaryName: string, bytes: Uint8Array): Promise<void> {
  const temporary = `${folder}/${temporaryName}`;
  const file = await disk.open(temporary, 'replace');
  try {
    file.write(0, bytes);
    await syncFile(file);
  } finally {
    await file.close();
  }
  await disk.rename(temporary, `${folder}/${name}`);
  await disk.syncFolder(folder);
}

/** Sum of the sizes of the files in a folder. */
export async function folderBytes(disk: Disk, folder: string): Promise<number> {
  let bytes = 0;
  for (const name of await disk.list(folder)) {
    try {
      bytes += await withFile(disk, `${folder}/${name}`, (file) => file.size());
    } catch {
      // Purged or renamed since the listing.
    }
  }
  return bytes;
}
