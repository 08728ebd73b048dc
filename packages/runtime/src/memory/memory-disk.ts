/**
 * A disk in memory that can lose power, tear writes and fail.
 *
 * What a process sees (the page cache) and what would survive a power loss are kept apart. A write is visible at once; it is durable
 * only when a `sync` that was asked for after it has completed, and a name only when `syncFolder` has. Until then it is "unsynced",
 * in pieces of one sector, and a crash may keep any of them: all, none, some, or the first bytes of one. That is harsher than a real
 * disk, where later writes to a page carry earlier ones along, and so what holds here holds there.
 *
 * Everything is deterministic: completions are handed to `deliver`, which the simulator replaces to choose their order.
 */
import { DiskError, FolderInUse, type Disk, type DiskFile, type FolderLock } from '../disk.ts';

/** What a disk writes whole, or so it promises; a torn piece is shorter still. */
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
  /** Counts every call on this disk, from 0, so that "the n-th call fails" can be said. */
  readonly index: number;
  readonly operation: DiskOperation;
  readonly path: string;
  /** Of a sync: so many bytes have been written since the last one. */
  readonly bytes?: number;
}

export interface DiskFault {
  /** `EIO`, `ENOSPC` ... */
  readonly code: string;
  /** Of a failing write: how many of its bytes reached the file nevertheless. 0 when not given. */
  readonly written?: number;
  /** Of a failing write or extend: the error is not thrown but comes back from the next sync, as from an adapter with a thread. */
  readonly late?: boolean;
}

/** Something a crash may keep or lose. */
export type Unsynced =
  | { readonly kind: 'bytes'; readonly path: string; readonly position: number; readonly length: number }
  /** The file has grown without bytes of its own. */
  | { readonly kind: 'size'; readonly path: string; readonly size: number }
  /** A creation, a removal or a renaming. */
  | { readonly kind: 'name'; readonly path: string; readonly change: 'create' | 'remove' | 'rename' };

/**
 * How much of each unsynced item a crash keeps: for `bytes` their number, from 0 to `length`; else 0 or 1. Called once per item, in the
 * order of `DiskImage.unsynced`.
 */
export type CrashChoice = (item: Unsynced, index: number) => number;

export const loseAll: CrashChoice = () => 0;
export const keepAll: CrashChoice = (item) => (item.kind === 'bytes' ? item.length : 1);

const nothing = Buffer.alloc(0);

/** Bytes of a file: a stored prefix, and zeros up to `size`. The prefix is shared between copies until one of them changes. */
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

  #own(capacity: number): void {
    if (!this.#shared && capacity <= this.#stored.length) return;
    const grown = Buffer.alloc(Math.max(capacity, capacity > this.#stored.length ? this.#stored.length * 2 : this.#stored.length));
    this.#stored.copy(grown, 0, 0, this.#used);
    this.#stored = grown;
    this.#shared = false;
  }

  write(position: number, bytes: Uint8Array, start: number, end: number): void {
    const to = position + end - start;
    this.#own(Math.max(to, this.#used));
    // Bytes between the old end of the prefix and the new write may hold what was there before a truncation.
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

  /** Of the stored prefix without the zeros it may end with. Unchanged copies share the result as they share the bytes. */
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
  /** A sync over this write has failed. The page counts as clean from then on, so no later sync makes it durable (fsyncgate). */
  doubtful: boolean;
}

class Inode {
  /** The name it was last seen under, for messages and for choices. */
  path: string;
  visible: Content;
  synced: Content;
  unsynced: UnsyncedWrite[] = [];
  /** An error that waits for the next sync. */
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
  doubtful: boolean;
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

/** The name that has another meaning behind the change. */
function givenBy({ change, name, to }: UnsyncedName): string {
  return change === 'rename' ? to : name;
}

interface ImageFile {
  readonly synced: Content;
  readonly writes: readonly UnsyncedWrite[];
  readonly path: string;
}

/** A disk at one moment, with all that a crash at that moment could leave behind. */
export class DiskImage {
  /** In the order they happened, file by file, then folder by folder. */
  readonly unsynced: readonly Unsynced[];
  readonly #files: ReadonlyMap<Inode, ImageFile>;
  readonly #folders: ReadonlyMap<string, { readonly synced: ReadonlyMap<string, Inode>; readonly changes: readonly UnsyncedName[] }>;

  /** Made by `MemoryDisk.capture`. */
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

  /** What is on the disk after a crash; everything that is there is durable. */
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

export class MemoryDisk implements Disk {
  readonly syncsFolders = true;
  /** Asked before each call; what it returns makes the call fail. */
  fault: ((call: DiskCall) => DiskFault | undefined) | undefined;
  /** Takes each completion and calls it later, or never. */
  deliver: (call: DiskCall, complete: () => void) => void = (_call, complete) => {
    void Promise.resolve().then(complete);
  };
  /** Called whenever what a crash could leave behind has changed: the points worth crashing at. */
  changed: ((call: DiskCall) => void) | undefined;
  /** Calls so far. */
  calls = 0;
  #folders = new Map<string, Folder>();
  #locks = new Set<string>();
  /** Grows at each crash or kill; completions and files of an earlier generation belong to a process that is gone. */
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

  // Life and death.

  capture(): DiskImage {
    return new DiskImage(this.#folders);
  }

  /** Power loss: what was not synced survives as `choice` says. The process that used this disk is gone. */
  crash(choice: CrashChoice): void {
    this.restore(this.capture(), choice);
  }

  /** The disk becomes what a power loss at another moment, or of another disk, has left. The process that used this one is gone. */
  restore(image: DiskImage, choice: CrashChoice = keepAll): void {
    this.kill();
    this.#load(image.survivors(choice));
  }

  /** The process ends without warning; the page cache stays, and so does what is unsynced. */
  kill(): void {
    this.#generation++;
    this.#locks.clear();
  }

  /**
   * The disk as one process sees it: dead from the next crash or kill on. Code of a process that is gone may still be about to make a
   * call; through this its calls stay unanswered, where on the disk itself they would count as those of the next process.
   */
  attach(): Disk {
    const generation = this.#generation;
    const answer = <T>(call: () => Promise<T>): Promise<T> => (generation === this.#generation ? call() : new Promise<T>(() => undefined));
    return {
      syncsFolders: this.syncsFolders,
      list: (folder) => answer(() => this.list(folder)),
      ensureFolder: (folder) => answer(() => this.ensureFolder(folder)),
      exists: (path) => answer(() => this.exists(path)),
      open: (path, mode) => answer(() => this.open(path, mode)),
      remove: (path) => answer(() => this.remove(path)),
      rename: (from, to) => answer(() => this.rename(from, to)),
      syncFolder: (folder) => answer(() => this.syncFolder(folder)),
      lock: (folder) => answer(() => this.lock(folder)),
    };
  }

  // Damage and inspection, as an operator or a failing medium would do it: at once, and durable.

  /** Paths of all files, sorted. */
  files(): string[] {
    const paths: string[] = [];
    for (const [path, folder] of this.#folders) for (const name of folder.visible.keys()) paths.push(`${path}/${name}`);
    return paths.toSorted();
  }

  /** What a process would read. */
  contents(path: string): Buffer {
    const inode = this.#inode(path);
    if (inode === undefined) throw new DiskError('ENOENT', 'read', path);
    return inode.visible.read(0, inode.visible.size);
  }

  /** Puts a file there, durable, in place of what was, of which no crash brings anything back. */
  plant(path: string, bytes: Uint8Array): void {
    this.lose(path);
    const content = new Content();
    if (bytes.length > 0) content.write(0, bytes, 0, bytes.length);
    const folder = this.#makeFolder(folderOf(path));
    const inode = new Inode(path, content);
    folder.visible.set(nameOf(path), inode);
    folder.synced.set(nameOf(path), inode);
  }

  /**
   * Takes a file away as if it had never been. No crash brings it back: neither under the name it had before a renaming that is not durable,
   * nor by a change of names that is still on its way to the disk. That holds for what its own name stood for before as well.
   */
  lose(path: string): void {
    const folder = this.#folders.get(folderOf(path));
    if (folder === undefined) return;
    const name = nameOf(path);
    const lost = new Set<Inode>();
    for (const names of [folder.visible, folder.synced]) if (names.has(name)) lost.add(names.get(name)!);
    for (const { change, name: from, to, inode } of folder.unsynced) {
      if ((change === 'rename' && to === name) || (change === 'create' && from === name)) lost.add(inode);
    }
    // What goes by another name now is another file.
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
    this.plant(path, bytes);
  }

  zero(path: string, start: number, end: number): void {
    const bytes = this.contents(path);
    bytes.fill(0, start, end);
    this.plant(path, bytes);
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
        this.#rename(folder, { change: 'create', name: nameOf(path), to: '', inode, doubtful: false }, call);
      } else if (mode === 'replace') {
        this.#cut(inode, 0, call);
      }
      return this.#file(path, inode);
    });
  }

  remove(path: string): Promise<void> {
    return this.#promise('remove', path, (call) => {
      const folder = this.#folders.get(folderOf(path));
      const inode = folder?.visible.get(nameOf(path));
      if (folder === undefined || inode === undefined) throw new DiskError('ENOENT', 'remove', path);
      this.#rename(folder, { change: 'remove', name: nameOf(path), to: '', inode, doubtful: false }, call);
    });
  }

  rename(from: string, to: string): Promise<void> {
    return this.#promise('rename', from, (call) => {
      const folder = this.#folders.get(folderOf(from));
      const inode = folder?.visible.get(nameOf(from));
      if (folder === undefined || inode === undefined) throw new DiskError('ENOENT', 'rename', from);
      if (folderOf(to) !== folderOf(from)) throw new DiskError('EXDEV', 'rename', from);
      inode.path = to;
      this.#rename(folder, { change: 'rename', name: nameOf(from), to: nameOf(to), inode, doubtful: false }, call);
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
        // As with files: several syncs may be under way, and what another has made durable, or what was lost, is not there any more.
        const still = new Set(folder.unsynced);
        const durable = covered.filter((change) => still.has(change) && !change.doubtful);
        for (const change of durable) applyName(folder.synced, change);
        const gained = new Set(durable);
        folder.unsynced = folder.unsynced.filter((change, at) => {
          // Of a name that has got another meaning since, durably, the old one does not come back.
          const isOutdated = () => folder.unsynced.slice(at + 1).some((later) => gained.has(later) && givenBy(later) === givenBy(change));
          return !gained.has(change) && !(change.doubtful && isOutdated());
        });
        this.changed?.(call);
      },
      () => {
        for (const change of covered) change.doubtful = true;
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

  // Inside.

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
    this.changed?.(call);
  }

  /** The interface says that cutting is durable. Earlier unsynced writes cannot come back: file systems order a cut behind them. */
  #cut(inode: Inode, size: number, call: DiskCall): void {
    inode.visible.truncate(size);
    inode.synced = inode.visible.copy();
    inode.unsynced = [];
    this.changed?.(call);
  }

  #call(operation: DiskOperation, path: string): DiskCall {
    return { index: this.calls++, operation, path };
  }

  #promise<T>(operation: DiskOperation, path: string, work: (call: DiskCall) => T, onFault?: () => void): Promise<T> {
    const call = this.#call(operation, path);
    const fault = this.fault?.(call);
    const generation = this.#generation;
    return new Promise((resolve, reject) => {
      this.deliver(call, () => {
        // The process is gone: its promises stay open for ever, as its memory does not.
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
        // A copy: the caller may use its buffer again after the next sync, and a crash may look at ours much later.
        inode.add({ position, bytes: Buffer.from(bytes.subarray(0, count)), size, doubtful: false });
        this.changed?.(call);
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
        this.deliver(call, () => {
          if (gone()) return;
          if (code !== undefined) {
            for (const write of covered) write.doubtful = true;
            done(new DiskError(code, 'sync', path));
            return;
          }
          // Several syncs may be under way, and a cut may have come between: only what is still there counts.
          const still = new Set(inode.unsynced);
          const durable = covered.filter((write) => still.has(write) && !write.doubtful);
          for (const write of durable) {
            if (write.bytes.length > 0) inode.synced.write(write.position, write.bytes, 0, write.bytes.length);
            else inode.synced.extend(write.size);
          }
          const gained = new Set(durable);
          inode.unsynced = inode.unsynced.filter((write) => !gained.has(write));
          this.changed?.(call);
          done(undefined);
        });
      },
      truncate: (size) =>
        this.#promise('truncate', path, (call) => {
          this.#cut(inode, size, call);
        }),
      close: () => this.#promise('close', path, () => undefined),
    };
  }
}
