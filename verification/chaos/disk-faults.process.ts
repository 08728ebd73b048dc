/** The injected disk faults affect a process as the episodes assume. */
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { buildDiskFaults, FaultyDisk } from '@tskeeper/harness';

let folder: string;
let disk: FaultyDisk;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'tskeeper-'));
  disk = new FaultyDisk(path.join(folder, 'faults'), await buildDiskFaults());
});

afterEach(async () => {
  disk.close();
  await rm(folder, { recursive: true, force: true });
});

/** Two writes of a hundred bytes and a sync, with their results. */
function written(): string {
  const file = JSON.stringify(path.join(folder, 'file'));
  const script = `
    const fs = require('node:fs');
    const fd = fs.openSync(${file}, 'w+');
    const said = [];
    for (const at of [0, 100]) {
      try { said.push(fs.writeSync(fd, Buffer.alloc(100), 0, 100, at)); } catch (error) { said.push(error.code); }
    }
    fs.fdatasync(fd, (error) => console.log([...said, error === null ? 'synced' : error.code].join(' ')));`;
  const { stdout } = spawnSync(process.execPath, ['-e', script], { env: { ...process.env, ...disk.environment }, encoding: 'utf8' });
  return stdout.trim();
}

it('a disk without faults accepts all writes and syncs', () => {
  expect(written()).toBe('100 100 synced');
  expect(disk.affectedCalls).toBe(0);
});

it('a disk that fills up accepts the bytes that fit, and fails later writes with ENOSPC', () => {
  disk.set('full', 150);
  expect(written()).toBe('100 50 synced');
  expect(written()).toBe('ENOSPC ENOSPC synced');
  expect(disk.affectedCalls).toBeGreaterThanOrEqual(2);
});

it('a disk with a fault fails either syncs or writes with EIO', () => {
  disk.set('syncFails');
  expect(written()).toBe('100 100 EIO');
  disk.set('writeFails');
  expect(written()).toBe('EIO EIO synced');
  disk.set('none');
  expect(written()).toBe('100 100 synced');
});

it('a disk with slow syncs takes the requested time for each sync', () => {
  disk.set('slowSyncs', 300);
  const begunMs = performance.now();
  expect(written()).toBe('100 100 synced');
  expect(performance.now() - begunMs).toBeGreaterThanOrEqual(300);
});
