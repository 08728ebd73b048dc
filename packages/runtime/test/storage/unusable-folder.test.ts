/**
 * A data folder that cannot be used as configured is refused at the start; a disk that fails is
 * not.
 */
import { DiskError, type DiskOperation, VirtualDisk, StorageRefused, type StorageOptions } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import { EnsembleStorageRig, zxids } from './ensemble-storage-rig.ts';
import { dataOf, Server } from './support.ts';

const right = 'give the user of this process the right to read and write there';

/** A start on a disk that fails with `code` for an operation on matching paths. */
async function start(code: string, operation: DiskOperation, path: RegExp, options: Partial<StorageOptions> = {}): Promise<unknown> {
  const disk = new VirtualDisk();
  const before = new Server(disk, { dataLogDir: options.dataLogDir ?? '/data' });
  await before.open();
  await before.write(dataOf(1, 60));
  await before.storage.close();
  disk.fault = (call) => (call.operation === operation && path.test(call.path) ? { code } : undefined);
  return await new Server(disk, options).open().catch((reason: unknown) => reason);
}

describe('a folder that cannot be created or opened is refused with the key that names it', () => {
  test.each<[string, DiskOperation, string]>([
    ['EACCES', 'ensureFolder', right],
    ['EPERM', 'ensureFolder', right],
    ['EROFS', 'ensureFolder', 'its file system is mounted read-only: mount it for writing'],
    ['ENOENT', 'ensureFolder', 'a folder in this path is missing and cannot be created: create it'],
    ['ENOTDIR', 'ensureFolder', 'a file or a broken link has the name of a folder in this path: rename it'],
    ['EEXIST', 'ensureFolder', 'a file or a broken link has the name of a folder in this path: rename it'],
    ['EACCES', 'lock', right],
    ['EROFS', 'lock', 'its file system is mounted read-only: mount it for writing'],
  ])('after %s from %s', async (code, operation, remedy) => {
    const inData = await start(code, operation, /^\/data\//);
    expect(inData).toBeInstanceOf(StorageRefused);
    expect((inData as Error).message).toBe(
      `the server cannot use dataDir, /data (${operation} /data/version-2: ${code}); ${remedy}, or set dataDir to another folder`,
    );
    const inLogs = await start(code, operation, /^\/logs\//, { dataLogDir: '/logs' });
    expect(inLogs).toBeInstanceOf(StorageRefused);
    expect((inLogs as Error).message).toBe(
      `the server cannot use dataLogDir, /logs (${operation} /logs/version-2: ${code}); ${remedy}, or set dataLogDir to another folder`,
    );
  });

  test('when this user may not read files in it', async () => {
    const refused = await start('EACCES', 'open', /\/log\./);
    expect(refused).toBeInstanceOf(StorageRefused);
    expect((refused as Error).message).toBe(
      `the server cannot use dataDir, /data (open /data/version-2/log.1: EACCES); ${right}, or set dataDir to another folder`,
    );
  });

  test('when this user may not read the epoch files of a server of an ensemble', async () => {
    const disk = new VirtualDisk();
    const rig = new EnsembleStorageRig(disk);
    await rig.open();
    await rig.write(zxids(1, 1, 1));
    await rig.storage.close();
    disk.fault = ({ operation, path }) => (operation === 'open' && path.includes('Epoch') ? { code: 'EACCES' } : undefined);
    await expect(new EnsembleStorageRig(disk).open()).rejects.toThrow(
      /^the server cannot use dataDir, \/data \(open .*Epoch: EACCES\); give the user/,
    );
    disk.fault = undefined;
    await new EnsembleStorageRig(disk).open();
  });
});

describe('a failure of the disk is reported as DiskError', () => {
  test.each<[string, DiskOperation, RegExp]>([
    ['EIO', 'ensureFolder', /^\/data\//],
    ['ENOSPC', 'ensureFolder', /^\/data\//],
    ['EIO', 'open', /\/log\./],
    ['ENOENT', 'open', /\/log\./],
  ])('at the start, after %s from %s', async (code, operation, path) => {
    expect(await start(code, operation, path)).toBeInstanceOf(DiskError);
  });

  test('after the start, whatever the error code', async () => {
    const disk = new VirtualDisk();
    const server = new Server(disk);
    await server.open();
    disk.fault = ({ operation }) => (operation === 'write' ? { code: 'EROFS' } : undefined);
    await server.write(dataOf(1, 60)).catch(() => undefined);
    expect(server.failure).toBeInstanceOf(DiskError);
  });
});
