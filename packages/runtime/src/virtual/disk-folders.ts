/**
 * The files and names of a virtual disk: what a process sees now, what is durable, and the changes
 * between the two, in their order. A sync makes changes durable; a crash may keep or lose each.
 */
import { FileContent } from './file-content.ts';

export interface UnsyncedWrite {
  readonly position: number;
  /** Empty for an extension. */
  readonly bytes: Buffer;
  readonly size: number;
  /**
   * A sync of this write has failed. From then on the page counts as clean, so no later sync makes
   * it durable (fsyncgate).
   */
  hasSyncFailed: boolean;
}

/** A file, under whatever names it has. */
export class Inode {
  /** The last name of the file, for messages and for choices. */
  path: string;
  visible: FileContent;
  synced: FileContent;
  unsynced: UnsyncedWrite[] = [];
  /** An error that the next sync reports. */
  lateError: string | undefined;

  constructor(path: string, content: FileContent) {
    this.path = path;
    this.visible = content;
    this.synced = content.copy();
  }

  add(write: UnsyncedWrite): void {
    if (write.bytes.length > 0) this.visible.write(write.position, write.bytes, 0, write.bytes.length);
    else this.visible.extend(write.size);
    this.unsynced.push(write);
  }
}

export interface UnsyncedName {
  readonly change: 'create' | 'remove' | 'rename';
  readonly name: string;
  /** Of a renaming. */
  readonly to: string;
  readonly inode: Inode;
  hasSyncFailed: boolean;
}

/** The names of one folder. */
export class Folder {
  visible = new Map<string, Inode>();
  synced = new Map<string, Inode>();
  unsynced: UnsyncedName[] = [];
}

export function applyName(names: Map<string, Inode>, change: UnsyncedName): void {
  switch (change.change) {
    case 'create':
      names.set(change.name, change.inode);
      break;
    case 'remove':
      names.delete(change.name);
      break;
    case 'rename':
      names.delete(change.name);
      names.set(change.to, change.inode);
      break;
    default:
      change.change satisfies never;
  }
}

/** The name that has another meaning after the change. */
export function targetNameOf({ change, name, to }: UnsyncedName): string {
  return change === 'rename' ? to : name;
}
