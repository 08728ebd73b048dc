/**
 * A disk in memory that can lose power, tear writes and fail.
 *
 * It keeps apart what a process sees (the page cache) and what would survive a power loss. A write
 * is visible at once; it is durable only when a `sync` requested after it has completed, and a name
 * only when `syncFolder` has. Until then it is "unsynced", in pieces of one sector, and a crash may
 * keep any of them: all, none, some, or the first bytes of one. That is harsher than a real disk,
 * where later writes to a page include earlier ones, so what holds here holds there.
 *
 * Everything is deterministic: completions go to `deliver`, which the simulator replaces to choose
 * their order.
 */
import { DiskError, FolderInUse, type Disk, type DiskFile, type FolderLock } from '../disk.ts';

/** The unit that a disk writes completely, or promises to; a torn piece is shorter. */
export const sectorBytes = 512;

export type DiskOperation =
  | 'list'
  | 'ensureFolder'
  | 'exists'
  | 'open'
  | 'remove'
  | 'rename'
  | 'syncFolder'
  | 'lock'
  | 'size'
  | 'read'
  | 'write'
  | 'extend'
  | 'sync'
  | 'truncate'
  | 'close';

export interface DiskCall {
  /** Counts every call on this disk from 0, so that a test can fail the n-th call. */
  readonly index: number;
  readonly operation: DiskOperation;
  readonly path: string;
  /** Of a sync: the number of bytes written since the last one. */
  readonly bytes?: number;
}

export interface DiskFault {
  /** `EIO`, `ENOSPC` ... */
  readonly code: string;
  /** Of a failing write: how many of its bytes reached the file nevertheless. Default: 0. */
  readonly written?: number;
  /**
   * Of a failing write or extend: the next sync reports the error, as from an adapter with a
   * thread; it is not thrown.
   */
  readonly late?: boolean;
}

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

const nothing = Buffer.alloc(0);

/**
 * Bytes of a file: a stored prefix, and zeros up to `size`. Copies share the prefix until one of
 * them changes.
 */
class Content {
  size: number;
  #stored: Buffer;
  #used: number;
  #shared: boolean;

  constructor(stored: Buffer = nothing, used = 0, size = 0, shared = true) {
    this.#stored = stored;
    this.#used = used;
    this.size = size;
    this.#shared = shared;
  }

  copy(): Content {
    this.#shared = true;
    return new Content(this.#stored, this.#used, this.size);
  }

  #makeOwn(capacity: number): void {
    if (!this.#shared && capacity <= this.#stored.length) return;
    const grown = Buffer.alloc(Math.max(capacity, capacity > this.#stored.length ? this.#stored.length * 2 : this.#stored.length));
    this.#stored.copy(grown, 0, 0, this.#used);
    this.#stored = grown;
    this.#shared = false;
  }

  write(position: number, bytes: Uint8Array, start: number, end: number): void {
    const to = position + end - start;
    this.#makeOwn(Math.max(to, this.#used));
    // Bytes between the old end of the prefix and the new write may still hold data from before a
    // truncation.
    if (position > this.#used) this.#stored.fill(0, this.#used, position);
    this.#stored.set(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end), position);
    this.#used = Math.max(this.#used, to);
    this.size = Math.max(this.size, to);
  }

  extend(size: number): void {
    this.size = Math.max(this.size, size);
  }

  truncate(size: number): void {
    this.size = size;
    this.#used = Math.min(this.#used, size);
  }

  read(position: number, length: number): Buffer {
    const count = Math.max(0, Math.min(length, this.size - position));
    const bytes = Buffer.alloc(count);
    if (position < this.#used) this.#stored.copy(bytes, 0, position, Math.min(this.#used, position + count));
    return bytes;
  }

  /**
   * Of the stored prefix without its trailing zeros. Unchanged copies share the result as they
   * share the bytes.
   */
  hash(hash: (bytes: Uint8Array) => number): number {
    const known = this.#shared ? knownHashes.get(this.#stored) : undefined;
    if (known !== undefined && known.used === this.#used && known.hash === hash) return known.value;
    let end = this.#used;
    while (end > 0 && this.#stored[end - 1] === 0) end--;
    const value = hash(this.#stored.subarray(0, end));
    if (this.#shared) knownHashes.set(this.#stored, { used: this.#used, hash, value });
    return value;
  }
}

const knownHashes = new WeakMap<Buffer, { used: number; hash: (bytes: Uint8Array) => number; value: number }>();

interface UnsyncedWrite {
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

class Inode {
  /** The last name of the file, for messages and for choices. */
  path: string;
  visible: Content;
  synced: Content;
  unsynced: UnsyncedWrite[] = [];
  /** An error that the next sync reports. */
  lateError: string | undefined;

  constructor(path: string, content: Content) {
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

interface UnsyncedName {
  readonly change: 'create' | 'remove' | 'rename';
  readonly name: string;
  /** Of a renaming. */
  readonly to: string;
  readonly inode: Inode;
  hasSyncFailed: boolean;
}

class Folder {
  visible = new Map<string, Inode>();
  synced = new Map<string, Inode>();
  unsynced: UnsyncedName[] = [];
}

function applyName(names: Map<string, Inode>, change: UnsyncedName): void {
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
function targetNameOf({ change, name, to }: UnsyncedName): string {
  return change === 'rename' ? to : name;
}

interface ImageFile {
  readonly synced: Content;
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
  survivors(choice: CrashChoice): Map<string, Map<string, Content>> {
    let index = 0;
    const contents = new Map<Inode, Content>();
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
    const folders = new Map<string, Map<string, Content>>();
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

function folderOf(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash <= 0 ? '/' : path.slice(0, slash);
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

export class VirtualDisk implements Disk {
  readonly canSyncFolders = true;
  /** Called before each call on the disk; a returned fault makes that call fail. */
  fault: ((call: DiskCall) => DiskFault | undefined) | undefined;
  /** Receives each completion and calls it later, or never. */
  schedule: (call: DiskCall, complete: () => void) => void = (_call, complete) => {
    void Promise.resolve().then(complete);
  };
  /**
   * Called whenever what a crash could leave has changed: at these points a crash is worth trying.
   */
  onChanged: ((call: DiskCall) => void) | undefined;
  /** Number of calls so far. */
  calls = 0;
  #folders = new Map<string, Folder>();
  #locks = new Set<string>();
  /**
   * Incremented at each crash or kill; completions and files of an earlier generation belong to a
   * process that has ended.
   */
  #generation = 0;

  constructor(image?: DiskImage, choice: CrashChoice = keepAll) {
    if (image !== undefined) this.#load(image.survivors(choice));
  }

  #load(folders: Map<string, Map<string, Content>>): void {
    this.#folders = new Map();
    for (const [path, files] of folders) {
      const folder = new Folder();
      for (const [name, content] of files) {
        const inode = new Inode(`${path}/${name}`, content);
        folder.visible.set(name, inode);
        folder.synced.set(name, inode);
      }
      this.#folders.set(path, folder);
    }
  }

  // Crashes and kills.

  capture(): DiskImage {
    return new DiskImage(this.#folders);
  }

  /**
   * Power loss: of what was not synced, `choice` decides what survives. The process that used this
   * disk has ended.
   */
  crash(choice: CrashChoice): void {
    this.restore(this.capture(), choice);
  }

  /**
   * Replaces the content by what a power loss at another moment, or of another disk, has left. The
   * process that used this disk has ended.
   */
  restore(image: DiskImage, choice: CrashChoice = keepAll): void {
    this.kill();
    this.#load(image.survivors(choice));
  }

  /** The process ends without warning; the page cache stays, and so do unsynced writes. */
  kill(): void {
    this.#generation++;
    this.#locks.clear();
  }

  /**
   * The disk as one process sees it; dead from the next crash or kill on. Code of a process that
   * has ended may still make a call: through this object its calls stay unanswered, whereas on the
   * disk itself they would count as calls of the next process.
   */
  attach(): Disk {
    const generation = this.#generation;
    const ifAlive = <T>(call: () => Promise<T>): Promise<T> => (generation === this.#generation ? call() : new Promise<T>(() => undefined));
    return {
      canSyncFolders: this.canSyncFolders,
      list: (folder) => ifAlive(() => this.list(folder)),
      ensureFolder: (folder) => ifAlive(() => this.ensureFolder(folder)),
      exists: (path) => ifAlive(() => this.exists(path)),
      open: (path, mode) => ifAlive(() => this.open(path, mode)),
      remove: (path) => ifAlive(() => this.remove(path)),
      rename: (from, to) => ifAlive(() => this.rename(from, to)),
      syncFolder: (folder) => ifAlive(() => this.syncFolder(folder)),
      lock: (folder) => ifAlive(() => this.lock(folder)),
    };
  }

  // Damage and inspection, as by an operator or a failing medium: immediate and durable.

  /** Paths of all files, sorted. */
  files(): string[] {
    const paths: string[] = [];
    for (const [path, folder] of this.#folders) for (const name of folder.visible.keys()) paths.push(`${path}/${name}`);
    return paths.toSorted();
  }

  /** The content that a process would read. */
  contents(path: string): Buffer {
    const inode = this.#inode(path);
    if (inode === undefined) throw new DiskError('ENOENT', 'read', path);
    return inode.visible.read(0, inode.visible.size);
  }

  /** Stores a durable file in place of an existing one, which no crash restores. */
  putFile(path: string, bytes: Uint8Array): void {
    this.eraseFile(path);
    const content = new Content();
    if (bytes.length > 0) content.write(0, bytes, 0, bytes.length);
    const folder = this.#makeFolder(folderOf(path));
    const inode = new Inode(path, content);
    folder.visible.set(nameOf(path), inode);
    folder.synced.set(nameOf(path), inode);
  }

  /**
   * Removes a file as if it had never existed. No crash restores it: neither under its name before
   * a rename that is not durable, nor by a change of names that is not durable yet. The same holds
   * for earlier files of that name.
   */
  eraseFile(path: string): void {
    const folder = this.#folders.get(folderOf(path));
    if (folder === undefined) return;
    const name = nameOf(path);
    const lost = new Set<Inode>();
    for (const names of [folder.visible, folder.synced]) if (names.has(name)) lost.add(names.get(name)!);
    for (const { change, name: from, to, inode } of folder.unsynced) {
      if ((change === 'rename' && to === name) || (change === 'create' && from === name)) lost.add(inode);
    }
    // A file that is now visible under another name is another file.
    for (const [other, inode] of folder.visible) if (other !== name) lost.delete(inode);
    for (const names of [folder.visible, folder.synced]) {
      names.delete(name);
      for (const [known, inode] of names) if (lost.has(inode)) names.delete(known);
    }
    folder.unsynced = folder.unsynced.filter(({ inode }) => !lost.has(inode));
  }

  /** Inverts one bit; bit 0 of a byte is its lowest. */
  flipBit(path: string, bit: number): void {
    const bytes = this.contents(path);
    bytes[bit >>> 3]! ^= 1 << (bit & 7);
    this.putFile(path, bytes);
  }

  zero(path: string, start: number, end: number): void {
    const bytes = this.contents(path);
    bytes.fill(0, start, end);
    this.putFile(path, bytes);
  }

  /** A line that differs when the names or the contents differ. */
  fingerprint(hash: (bytes: Uint8Array) => number): string {
    const parts: string[] = [];
    for (const [path, folder] of this.#folders) {
      for (const [name, inode] of folder.visible) parts.push(`${path}/${name} ${inode.visible.size} ${inode.visible.hash(hash)}`);
    }
    return parts.toSorted().join('\n');
  }

  // The Disk interface.

  list(folder: string): Promise<string[]> {
    return this.#promise('list', folder, () => Array.from(this.#folders.get(folder)?.visible.keys() ?? []));
  }

  ensureFolder(folder: string): Promise<boolean> {
    return this.#promise('ensureFolder', folder, () => {
      if (this.#folders.has(folder)) return false;
      this.#makeFolder(folder);
      return true;
    });
  }

  exists(path: string): Promise<boolean> {
    return this.#promise('exists', path, () => this.#folders.has(path) || this.#inode(path) !== undefined);
  }

  open(path: string, mode: 'existing' | 'create' | 'replace'): Promise<DiskFile> {
    return this.#promise('open', path, (call) => {
      const folder = this.#folders.get(folderOf(path));
      if (folder === undefined) throw new DiskError('ENOENT', 'open', path);
      let inode = folder.visible.get(nameOf(path));
      if (inode === undefined) {
        if (mode === 'existing') throw new DiskError('ENOENT', 'open', path);
        inode = new Inode(path, new Content());
        this.#rename(folder, { change: 'create', name: nameOf(path), to: '', inode, hasSyncFailed: false }, call);
      } else if (mode === 'replace') {
        this.#truncate(inode, 0, call);
      }
      return this.#file(path, inode);
    });
  }

  remove(path: string): Promise<void> {
    return this.#promise('remove', path, (call) => {
      const folder = this.#folders.get(folderOf(path));
      const inode = folder?.visible.get(nameOf(path));
      if (folder === undefined || inode === undefined) throw new DiskError('ENOENT', 'remove', path);
      this.#rename(folder, { change: 'remove', name: nameOf(path), to: '', inode, hasSyncFailed: false }, call);
    });
  }

  rename(from: string, to: string): Promise<void> {
    return this.#promise('rename', from, (call) => {
      const folder = this.#folders.get(folderOf(from));
      const inode = folder?.visible.get(nameOf(from));
      if (folder === undefined || inode === undefined) throw new DiskError('ENOENT', 'rename', from);
      if (folderOf(to) !== folderOf(from)) throw new DiskError('EXDEV', 'rename', from);
      inode.path = to;
      this.#rename(folder, { change: 'rename', name: nameOf(from), to: nameOf(to), inode, hasSyncFailed: false }, call);
    });
  }

  syncFolder(path: string): Promise<void> {
    const folder = this.#folders.get(path);
    const covered = folder?.unsynced.slice() ?? [];
    return this.#promise(
      'syncFolder',
      path,
      (call) => {
        if (folder === undefined) throw new DiskError('ENOENT', 'syncFolder', path);
        // As with files: several syncs may be in progress, and changes that another one has made
        // durable, or that were lost, are not in the list any more.
        const still = new Set(folder.unsynced);
        const durable = covered.filter((change) => still.has(change) && !change.hasSyncFailed);
        for (const change of durable) applyName(folder.synced, change);
        const gained = new Set(durable);
        folder.unsynced = folder.unsynced.filter((change, at) => {
          // If a name has durably got another meaning since, the old one cannot return.
          const isOutdated = () =>
            folder.unsynced.slice(at + 1).some((later) => gained.has(later) && targetNameOf(later) === targetNameOf(change));
          return !gained.has(change) && !(change.hasSyncFailed && isOutdated());
        });
        this.onChanged?.(call);
      },
      () => {
        for (const change of covered) change.hasSyncFailed = true;
      },
    );
  }

  lock(folder: string): Promise<FolderLock> {
    return this.#promise('lock', folder, () => {
      if (this.#locks.has(folder)) throw new FolderInUse(`${folder} is in use by another process`);
      this.#locks.add(folder);
      const generation = this.#generation;
      return {
        release: () => {
          if (generation === this.#generation) this.#locks.delete(folder);
          return Promise.resolve();
        },
      };
    });
  }

  // Internals.

  #inode(path: string): Inode | undefined {
    return this.#folders.get(folderOf(path))?.visible.get(nameOf(path));
  }

  #makeFolder(path: string): Folder {
    let folder = this.#folders.get(path);
    if (folder === undefined) {
      folder = new Folder();
      this.#folders.set(path, folder);
      if (folderOf(path) !== path && path.includes('/')) this.#makeFolder(folderOf(path));
    }
    return folder;
  }

  #rename(folder: Folder, change: UnsyncedName, call: DiskCall): void {
    applyName(folder.visible, change);
    folder.unsynced.push(change);
    this.onChanged?.(call);
  }

  /**
   * Truncation is durable by the interface. Earlier unsynced writes cannot return: file systems
   * order a truncation after them.
   */
  #truncate(inode: Inode, size: number, call: DiskCall): void {
    inode.visible.truncate(size);
    inode.synced = inode.visible.copy();
    inode.unsynced = [];
    this.onChanged?.(call);
  }

  #call(operation: DiskOperation, path: string): DiskCall {
    return { index: this.calls++, operation, path };
  }

  #promise<T>(operation: DiskOperation, path: string, work: (call: DiskCall) => T, onFault?: () => void): Promise<T> {
    const call = this.#call(operation, path);
    const fault = this.fault?.(call);
    const generation = this.#generation;
    return new Promise((resolve, reject) => {
      this.schedule(call, () => {
        // The process has ended: its promises stay pending for ever, unlike its memory.
        if (generation !== this.#generation) return;
        if (fault !== undefined) {
          onFault?.();
          reject(new DiskError(fault.code, operation, path));
          return;
        }
        try {
          resolve(work(call));
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  #file(path: string, inode: Inode): DiskFile {
    const generation = this.#generation;
    const gone = () => generation !== this.#generation;
    const change = (operation: 'write' | 'extend', position: number, bytes: Uint8Array, size: number) => {
      if (gone()) return;
      const call = this.#call(operation, path);
      const fault = this.fault?.(call);
      const count = fault === undefined ? bytes.length : Math.min(bytes.length, fault.written ?? 0);
      if (fault === undefined || count > 0) {
        // A copy: the caller may reuse its buffer after the next sync, and a crash may read this
        // much later.
        inode.add({ position, bytes: Buffer.from(bytes.subarray(0, count)), size, hasSyncFailed: false });
        this.onChanged?.(call);
      }
      if (fault === undefined) return;
      if (fault.late !== true) throw new DiskError(fault.code, operation, path);
      inode.lateError ??= fault.code;
    };
    return {
      path,
      size: () => this.#promise('size', path, () => inode.visible.size),
      read: (position, length) => this.#promise('read', path, () => inode.visible.read(position, length)),
      write: (position, bytes) => {
        if (bytes.length > 0) change('write', position, bytes, position + bytes.length);
      },
      extend: (size) => {
        if (size > inode.visible.size) change('extend', 0, nothing, size);
      },
      sync: (done) => {
        if (gone()) return;
        const bytes = inode.unsynced.reduce((sum, write) => sum + write.bytes.length, 0);
        const call = { ...this.#call('sync', path), bytes };
        const code = this.fault?.(call)?.code ?? inode.lateError;
        inode.lateError = undefined;
        const covered = inode.unsynced.slice();
        this.schedule(call, () => {
          if (gone()) return;
          if (code !== undefined) {
            for (const write of covered) write.hasSyncFailed = true;
            done(new DiskError(code, 'sync', path));
            return;
          }
          // Several syncs may be in progress, and a truncation may have happened meanwhile: only
          // what is still in the list counts.
          const still = new Set(inode.unsynced);
          const durable = covered.filter((write) => still.has(write) && !write.hasSyncFailed);
          for (const write of durable) {
            if (write.bytes.length > 0) inode.synced.write(write.position, write.bytes, 0, write.bytes.length);
            else inode.synced.extend(write.size);
          }
          const gained = new Set(durable);
          inode.unsynced = inode.unsynced.filter((write) => !gained.has(write));
          this.onChanged?.(call);
          done(undefined);
        });
      },
      truncate: (size) =>
        this.#promise('truncate', path, (call) => {
          this.#truncate(inode, size, call);
        }),
      close: () => this.#promise('close', path, () => undefined),
    };
  }
}
