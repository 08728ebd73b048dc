import { mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DiskError } from '@tskeeper/runtime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FsDisk } from '../src/fs-disk.ts';

let folder: string;
const disk = new FsDisk();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tskeeper-disk-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function synced(file: { sync(done: (error: DiskError | undefined) => void): void }): Promise<DiskError | undefined> {
  return new Promise((resolve) => file.sync(resolve));
}

/** The files in a folder that this process has open. */
function openBelow(path: string): string[] {
  return readdirSync('/proc/self/fd')
    .map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        // The descriptor that listed the others.
        return '';
      }
    })
    .filter((target) => target.startsWith(path));
}

describe('FsDisk', () => {
  it('writes at any position, syncs, and reads back the content', async () => {
    const file = await disk.open(join(folder, 'a'), 'create');
    file.write(0, Buffer.from('hello world'));
    file.write(6, Buffer.from('WORLD'));
    expect(await synced(file)).toBeUndefined();
    expect(await file.size()).toBe(11);
    expect((await file.read(0, 100)).toString()).toBe('hello WORLD');
    expect((await file.read(6, 2)).toString()).toBe('WO');
    expect(await file.read(11, 5)).toHaveLength(0);
    expect(await file.read(99, 5)).toHaveLength(0);
    await file.close();
  });

  it('limits the allocation of a read to the size of the file', async () => {
    const file = await disk.open(join(folder, 'a'), 'create');
    file.write(0, Buffer.from('abc'));
    expect(await file.read(0, 2 ** 40)).toHaveLength(3);
    await file.close();
  });

  it('opens an existing file, creates a missing one, or empties it', async () => {
    const path = join(folder, 'a');
    await expect(disk.open(path, 'existing')).rejects.toMatchObject({ name: 'DiskError', code: 'ENOENT', operation: 'open', path });
    const made = await disk.open(path, 'create');
    made.write(0, Buffer.from('abc'));
    await made.close();
    const kept = await disk.open(path, 'create');
    expect(await kept.size()).toBe(3);
    await kept.close();
    const emptied = await disk.open(path, 'replace');
    expect(await emptied.size()).toBe(0);
    await emptied.close();
  });

  it('extends a file with zeros that take no space on the disk, and never cuts it', async () => {
    const file = await disk.open(join(folder, 'a'), 'create');
    file.write(0, Buffer.from('abc'));
    file.extend(8 << 20);
    file.extend(10);
    expect(await file.size()).toBe(8 << 20);
    expect((await file.read(0, 5)).equals(Buffer.from('abc\0\0'))).toBe(true);
    expect((await file.read((8 << 20) - 2, 5)).equals(Buffer.alloc(2))).toBe(true);
    expect(statSync(file.path).blocks * 512).toBeLessThan(1 << 20);
    await file.truncate(2);
    expect(readFileSync(file.path, 'utf8')).toBe('ab');
    await file.close();
  });

  it('creates folders with their parents, lists, renames over files and removes', async () => {
    const deep = join(folder, 'x/y/z');
    expect(await disk.list(deep)).toEqual([]);
    expect([await disk.ensureFolder(deep), await disk.ensureFolder(deep)]).toEqual([true, false]);
    writeFileSync(join(deep, 'a'), 'new');
    writeFileSync(join(deep, 'b'), 'old');
    await disk.rename(join(deep, 'a'), join(deep, 'b'));
    await disk.syncFolder(deep);
    expect(await disk.list(deep)).toEqual(['b']);
    expect(readFileSync(join(deep, 'b'), 'utf8')).toBe('new');
    expect([await disk.exists(join(deep, 'b')), await disk.exists(join(deep, 'a')), await disk.exists(join(deep, 'b/c'))]).toEqual([
      true,
      false,
      false,
    ]);
    await disk.remove(join(deep, 'b'));
    expect(await disk.list(deep)).toEqual([]);
    await expect(disk.remove(join(deep, 'b'))).rejects.toThrow(`remove ${join(deep, 'b')}: ENOENT`);
  });

  it('reports a failure with its operation, path and code', async () => {
    const path = join(folder, 'a');
    writeFileSync(path, '');
    await expect(disk.ensureFolder(join(path, 'b'))).rejects.toMatchObject({ operation: 'make folder', code: 'ENOTDIR' });
    await expect(disk.rename(join(folder, 'none'), path)).rejects.toMatchObject({ operation: 'rename', code: 'ENOENT' });
    await expect(disk.syncFolder(join(folder, 'none'))).rejects.toMatchObject({ operation: 'sync folder', code: 'ENOENT' });
  });

  it('refuses to create a folder in place of a broken link', async () => {
    const link = join(folder, 'link');
    symlinkSync(join(folder, 'gone/data'), link);
    await expect(disk.ensureFolder(link)).rejects.toMatchObject({ operation: 'make folder', code: 'EEXIST' });
    await expect(disk.ensureFolder(join(link, 'version-2'))).rejects.toMatchObject({ operation: 'make folder', code: 'EEXIST' });
  });

  // /proc refuses to create folders, with ENOENT, as if a parent were missing.
  it.runIf(process.platform === 'linux')('fails when the system refuses to create a folder in an existing one', async () => {
    await expect(disk.ensureFolder('/proc/tskeeper/version-2')).rejects.toMatchObject({ operation: 'make folder', code: 'ENOENT' });
  });

  // /dev/full can be opened and refuses every write with ENOSPC.
  it.runIf(process.platform === 'linux')('throws the error of a failed write, after which no sync succeeds', async () => {
    const file = await disk.open('/dev/full', 'existing');
    expect(() => file.write(0, Buffer.from('abc'))).toThrow('write /dev/full: ENOSPC');
    const error = await synced(file);
    expect(error).toBeInstanceOf(DiskError);
    expect(error).toMatchObject({ code: 'ENOSPC', operation: 'write' });
    expect(() => file.write(0, Buffer.from('abc'))).toThrow('write /dev/full: ENOSPC');
    await file.close();
  });

  it('reports an error for a sync on a closed file', async () => {
    const file = await disk.open(join(folder, 'a'), 'create');
    await file.close();
    expect(await synced(file)).toMatchObject({ operation: 'sync', code: 'EBADF' });
  });

  it('leaves no file open', async () => {
    for (let index = 0; index < 20; index++) {
      await disk.syncFolder(folder);
      const file = await disk.open(join(folder, 'a'), 'create');
      await file.close();
    }
    expect(openBelow(folder)).toEqual([]);
    expect(readdirSync(folder)).toEqual(['a']);
  });
});
