/**
 * A virtual disk at one moment, and what a power loss at that moment may leave of it. Each sector
 * that was written and not synced survives or not, each name as well, independent of the others.
 */
import { applyName, type Folder, type Inode, type UnsyncedName, type UnsyncedWrite } from './disk-folders.ts';
import type { FileContent } from './file-content.ts';

/** The unit that a disk writes completely, or promises to; a torn piece is shorter. */
export const sectorBytes = 512;

/** An item that a crash may keep or lose. */
export type Unsynced =
  | { readonly kind: 'bytes'; readonly path: string; readonly position: number; readonly length: number }
  /** The file has grown without bytes of its own. */
  | { readonly kind: 'size'; readonly path: string; readonly size: number }
  /** A creation, a removal or a renaming. */
  | { readonly kind: 'name'; readonly path: string; readonly change: 'create' | 'remove' | 'rename' };

/**
 * How much of each unsynced item a crash keeps: for `bytes` their number, from 0 to `length`;
 * otherwise 0 or 1. Called once per item, in the order of `DiskImage.unsynced`.
 */
export type CrashChoice = (item: Unsynced, index: number) => number;

export const loseAll: CrashChoice = () => 0;
export const keepAll: CrashChoice = (item) => (item.kind === 'bytes' ? item.length : 1);

interface ImageFile {
  readonly synced: FileContent;
  readonly writes: readonly UnsyncedWrite[];
  readonly path: string;
}

/** A disk at one moment, with everything that a crash at that moment could leave. */
export class DiskImage {
  /** In the order of the writes, file by file, then folder by folder. */
  readonly unsynced: readonly Unsynced[];
  readonly #files: ReadonlyMap<Inode, ImageFile>;
  readonly #folders: ReadonlyMap<string, { readonly synced: ReadonlyMap<string, Inode>; readonly changes: readonly UnsyncedName[] }>;

  /** Made by `VirtualDisk.capture`. */
  constructor(folders: ReadonlyMap<string, Folder>) {
    const files = new Map<Inode, ImageFile>();
    const copied = new Map<string, { synced: Map<string, Inode>; changes: UnsyncedName[] }>();
    const unsynced: Unsynced[] = [];
    const note = (inode: Inode) => {
      if (!files.has(inode)) files.set(inode, { synced: inode.synced.copy(), writes: inode.unsynced.slice(), path: inode.path });
    };
    for (const [path, folder] of folders) {
      copied.set(path, { synced: new Map(folder.synced), changes: folder.unsynced.slice() });
      for (const inode of folder.synced.values()) note(inode);
      for (const change of folder.unsynced) note(change.inode);
    }
    for (const file of files.values()) {
      for (const write of file.writes) {
        if (write.bytes.length === 0) unsynced.push({ kind: 'size', path: file.path, size: write.size });
        forEachSector(write, (position, length) => unsynced.push({ kind: 'bytes', path: file.path, position, length }));
      }
    }
    for (const [path, folder] of copied) {
      for (const change of folder.changes) unsynced.push({ kind: 'name', path: `${path}/${change.name}`, change: change.change });
    }
    this.unsynced = unsynced;
    this.#files = files;
    this.#folders = copied;
  }

  /** The content of the disk after a crash; all of it is durable. */
  survivors(choice: CrashChoice): Map<string, Map<string, FileContent>> {
    let index = 0;
    const contents = new Map<Inode, FileContent>();
    for (const [inode, file] of this.#files) {
      const content = file.synced.copy();
      for (const write of file.writes) {
        if (write.bytes.length === 0 && choice(this.unsynced[index]!, index++) > 0) content.extend(write.size);
        forEachSector(write, (position, length) => {
          const kept = Math.min(length, choice(this.unsynced[index]!, index++));
          const start = position - write.position;
          if (kept > 0) content.write(position, write.bytes, start, start + kept);
        });
      }
      contents.set(inode, content);
    }
    const folders = new Map<string, Map<string, FileContent>>();
    for (const [path, folder] of this.#folders) {
      const names = new Map(folder.synced);
      for (const change of folder.changes) if (choice(this.unsynced[index]!, index++) > 0) applyName(names, change);
      folders.set(path, new Map(Array.from(names, ([name, inode]) => [name, contents.get(inode)!])));
    }
    return folders;
  }
}

function forEachSector(write: UnsyncedWrite, visit: (position: number, length: number) => void): void {
  const end = write.position + write.bytes.length;
  let at = write.position;
  while (at < end) {
    const next = Math.min(end, (Math.floor(at / sectorBytes) + 1) * sectorBytes);
    visit(at, next - at);
    at = next;
  }
}
