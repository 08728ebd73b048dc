import { crc32 } from 'node:zlib';
import { type DiskError, type DiskFile, keepAll, loseAll, VirtualDisk, type Unsynced } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';

function sync(file: DiskFile): Promise<DiskError | undefined> {
  return new Promise((resolve) => {
    file.sync(resolve);
  });
}

async function newFile(disk: VirtualDisk, path = '/d/f'): Promise<DiskFile> {
  await disk.ensureFolder('/d');
  const file = await disk.open(path, 'create');
  await disk.syncFolder('/d');
  return file;
}

const text = (disk: VirtualDisk, path = '/d/f') => disk.contents(path).toString('latin1');

describe('a crash', () => {
  test('keeps synced bytes and loses unsynced ones', async () => {
    const disk = new VirtualDisk();
    const file = await newFile(disk);
    file.write(0, Buffer.from('kept'));
    expect(await sync(file)).toBeUndefined();
    file.write(4, Buffer.from(' lost'));
    expect(text(disk)).toBe('kept lost');
    disk.crash(loseAll);
    expect(text(disk)).toBe('kept');
  });

  test('may lose a write made after a sync was requested', async () => {
    const disk = new VirtualDisk();
    const file = await newFile(disk);
    file.write(0, Buffer.from('a'));
    const synced = sync(file);
    file.write(1, Buffer.from('b'));
    await synced;
    disk.crash(loseAll);
    expect(text(disk)).toBe('a');
  });

  test('tears a write at the edges of sectors, or within one', async () => {
    const disk = new VirtualDisk();
    const file = await newFile(disk);
    file.write(500, Buffer.alloc(600, 'x'));
    const image = disk.capture();
    expect(image.unsynced.map((item: Unsynced) => (item.kind === 'bytes' ? [item.position, item.length] : item.kind))).toEqual([
      [500, 12],
      [512, 512],
      [1024, 76],
    ]);
    const torn = new VirtualDisk(image, (_item, index) => [0, 100, 0][index]!);
    expect(torn.contents('/d/f').length).toBe(612);
    expect(
      torn
        .contents('/d/f')
        .subarray(0, 512)
        .every((byte) => byte === 0),
    ).toBe(true);
    expect(
      torn
        .contents('/d/f')
        .subarray(512)
        .every((byte) => byte === 0x78),
    ).toBe(true);
  });

  test('keeps a name only when its folder was synced, whatever was done to the file', async () => {
    const disk = new VirtualDisk();
    await disk.ensureFolder('/d');
    const file = await disk.open('/d/f', 'create');
    file.write(0, Buffer.from('x'));
    await sync(file);
    disk.crash(loseAll);
    expect(disk.files()).toEqual([]);
  });

  test.each([
    ['lost', loseAll, ['/d/f']],
    ['kept', keepAll, ['/d/g']],
  ] as const)('may leave a rename before the sync of the folder %s', async (_what, choice, files) => {
    const disk = new VirtualDisk();
    await newFile(disk);
    await disk.rename('/d/f', '/d/g');
    disk.crash(choice);
    expect(disk.files()).toEqual(files);
  });

  test('may lose a change that neither of two concurrent syncs of a folder was requested for', async () => {
    const disk = new VirtualDisk();
    await disk.ensureFolder('/d');
    const completions: (() => void)[] = [];
    disk.schedule = (call, complete) => (call.operation === 'syncFolder' ? completions.push(complete) : complete());
    await disk.open('/d/a', 'create');
    void disk.syncFolder('/d');
    await disk.open('/d/b', 'create');
    void disk.syncFolder('/d');
    await disk.open('/d/c', 'create');
    const survivors = () => new VirtualDisk(disk.capture(), loseAll).files();
    completions[0]!();
    expect(survivors()).toEqual(['/d/a']);
    completions[1]!();
    expect(survivors()).toEqual(['/d/a', '/d/b']);
  });

  test('may lose the changes of a failed sync of a folder, whatever another one has made durable meanwhile', async () => {
    const disk = new VirtualDisk();
    await disk.ensureFolder('/d');
    const completions: (() => void)[] = [];
    disk.schedule = (call, complete) => (call.operation === 'syncFolder' ? completions.push(complete) : complete());
    await disk.open('/d/a', 'create');
    void disk.syncFolder('/d');
    disk.fault = () => ({ code: 'EIO' });
    const failed = disk.syncFolder('/d');
    disk.fault = undefined;
    await disk.open('/d/b', 'create');
    completions[0]!();
    completions[1]!();
    await expect(failed).rejects.toThrow('EIO');
    void disk.syncFolder('/d');
    completions[2]!();
    expect(new VirtualDisk(disk.capture(), loseAll).files()).toEqual(['/d/a', '/d/b']);
  });

  test('restores a removed file when the folder was not synced', async () => {
    const disk = new VirtualDisk();
    const file = await newFile(disk);
    file.write(0, Buffer.from('x'));
    await sync(file);
    await disk.remove('/d/f');
    expect(disk.files()).toEqual([]);
    disk.crash(loseAll);
    expect(text(disk)).toBe('x');
  });

  test('never restores a file that was lost, however recent its name', async () => {
    const disk = new VirtualDisk();
    const file = await newFile(disk, '/d/new.f');
    file.write(0, Buffer.from('gone'));
    expect(await sync(file)).toBeUndefined();
    await disk.rename('/d/new.f', '/d/f');
    await newFile(disk, '/d/other');
    // These two are not durable yet.
    await disk.remove('/d/other');
    await disk.open('/d/young', 'create');
    await disk.rename('/d/f', '/d/g');
    disk.eraseFile('/d/g');
    disk.eraseFile('/d/young');
    for (const choice of [loseAll, keepAll]) {
      const after = new VirtualDisk(disk.capture(), choice);
      expect(after.files()).toEqual(choice === loseAll ? ['/d/other'] : []);
    }
  });

  test('keeps a planted file, although an earlier file of its name was not durable yet', async () => {
    const disk = new VirtualDisk();
    await disk.ensureFolder('/d');
    const young = await disk.open('/d/f', 'create');
    young.write(0, Buffer.from('young'));
    disk.putFile('/d/f', Buffer.from('planted'));
    for (const choice of [loseAll, keepAll]) expect(new VirtualDisk(disk.capture(), choice).contents('/d/f').toString()).toBe('planted');
  });

  test('does not restore an earlier file with the name of a lost one', async () => {
    const disk = new VirtualDisk();
    await newFile(disk, '/d/f');
    await disk.open('/d/f.tmp', 'create');
    await disk.rename('/d/f.tmp', '/d/f');
    disk.eraseFile('/d/f');
    for (const choice of [loseAll, keepAll]) expect(new VirtualDisk(disk.capture(), choice).files()).toEqual([]);
    expect(new VirtualDisk(disk.capture(), (_item, index) => index & 1).files()).toEqual([]);
  });

  test('never undoes a truncation', async () => {
    const disk = new VirtualDisk();
    const file = await newFile(disk);
    file.write(0, Buffer.from('abcdef'));
    await file.truncate(2);
    disk.crash(loseAll);
    expect(text(disk)).toBe('ab');
    // And bytes that were cut do not return as the file grows again.
    const again = await disk.open('/d/f', 'existing');
    again.extend(4);
    expect(text(disk)).toBe('ab\0\0');
  });

  test('a kill keeps everything, and unsynced writes stay unsynced', async () => {
    const disk = new VirtualDisk();
    const file = await newFile(disk);
    file.write(0, Buffer.from('x'));
    disk.kill();
    expect(text(disk)).toBe('x');
    file.write(0, Buffer.from('y'));
    expect(text(disk)).toBe('x');
    disk.crash(loseAll);
    expect(text(disk)).toBe('');
  });

  test('a process that has ended gets no more answers, even to calls that it makes afterwards', async () => {
    const disk = new VirtualDisk();
    await newFile(disk);
    const process = disk.attach();
    const before = process.exists('/d/f');
    disk.kill();
    const after = process.remove('/d/f');
    let answers = 0;
    void before.then(() => answers++);
    void after.then(() => answers++);
    expect(await disk.exists('/d/f')).toBe(true);
    expect(answers).toBe(0);
  });
});

describe('faults', () => {
  test('a name whose sync has failed does not return over a later one that is durable', async () => {
    const disk = new VirtualDisk();
    await newFile(disk);
    const rename = async (content: string) => {
      const file = await disk.open('/d/new', 'replace');
      file.write(0, Buffer.from(content));
      await sync(file);
      await disk.rename('/d/new', '/d/f');
    };
    await rename('first');
    disk.fault = () => ({ code: 'EIO' });
    await disk.syncFolder('/d').catch(() => undefined);
    disk.fault = undefined;
    await rename('second');
    await disk.syncFolder('/d');
    for (const choice of [keepAll, loseAll]) expect(text(new VirtualDisk(disk.capture(), choice))).toBe('second');
  });

  test('pages of a failed sync are not made durable by a later sync', async () => {
    const disk = new VirtualDisk();
    const file = await newFile(disk);
    file.write(0, Buffer.from('x'));
    disk.fault = ({ operation }) => (operation === 'sync' ? { code: 'EIO' } : undefined);
    expect(await sync(file)).toMatchObject({ code: 'EIO', operation: 'sync', path: '/d/f' });
    disk.fault = undefined;
    expect(await sync(file)).toBeUndefined();
    expect(text(disk)).toBe('x');
    disk.crash(loseAll);
    expect(text(disk)).toBe('');
  });

  test('a full disk writes a part of the bytes', async () => {
    const disk = new VirtualDisk();
    const file = await newFile(disk);
    disk.fault = ({ operation }) => (operation === 'write' ? { code: 'ENOSPC', written: 2 } : undefined);
    expect(() => file.write(0, Buffer.from('abc'))).toThrow('write /d/f: ENOSPC');
    expect(text(disk)).toBe('ab');
  });

  test('a late error is reported by the next sync', async () => {
    const disk = new VirtualDisk();
    const file = await newFile(disk);
    disk.fault = ({ operation }) => (operation === 'write' ? { code: 'EIO', late: true } : undefined);
    file.write(0, Buffer.from('abc'));
    expect(await sync(file)).toMatchObject({ code: 'EIO' });
  });

  test('calls are counted, so that the n-th can fail', async () => {
    const disk = new VirtualDisk();
    disk.fault = ({ index }) => (index === 2 ? { code: 'EIO' } : undefined);
    await disk.ensureFolder('/d');
    await disk.list('/d');
    await expect(disk.list('/d')).rejects.toThrow('list /d: EIO');
    expect(disk.calls).toBe(3);
  });

  test('completions happen in the order that `deliver` chooses', async () => {
    const disk = new VirtualDisk();
    const waiting: (() => void)[] = [];
    disk.schedule = (_call, complete) => {
      waiting.push(complete);
    };
    const order: string[] = [];
    const first = disk.list('/a').then(() => order.push('first'));
    const second = disk.list('/b').then(() => order.push('second'));
    waiting[1]!();
    await second;
    waiting[0]!();
    await first;
    expect(order).toEqual(['second', 'first']);
  });
});

describe('copies', () => {
  test('an image is not changed by later calls, nor by the disks made from it', async () => {
    const disk = new VirtualDisk();
    const file = await newFile(disk);
    file.write(0, Buffer.from('one'));
    await sync(file);
    const image = disk.capture();
    file.write(0, Buffer.from('two'));
    await sync(file);
    const first = new VirtualDisk(image);
    (await first.open('/d/f', 'existing')).write(0, Buffer.from('ONE'));
    expect([text(disk), text(first), text(new VirtualDisk(image))]).toEqual(['two', 'ONE', 'one']);
  });

  test('fingerprints differ when a byte, a size or a name does', async () => {
    const hash = (bytes: Uint8Array) => crc32(bytes);
    const prints = new Set<string>();
    for (const [name, content] of [
      ['/d/f', 'a'],
      ['/d/f', 'b'],
      ['/d/g', 'a'],
      ['/d/f', 'a\0'],
    ] as const) {
      const disk = new VirtualDisk();
      disk.putFile(name, Buffer.from(content));
      prints.add(disk.fingerprint(hash));
      prints.add(disk.fingerprint(hash));
    }
    expect(prints.size).toBe(4);
  });
});

test('a folder is locked once, until its release or the end of its owner', async () => {
  const disk = new VirtualDisk();
  const lock = await disk.lock('/d');
  await expect(disk.lock('/d')).rejects.toThrow('/d is in use by another process');
  await lock.release();
  await disk.lock('/d');
  disk.kill();
  await disk.lock('/d');
});
