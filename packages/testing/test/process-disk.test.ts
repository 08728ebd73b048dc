/** A disk outlives the process that writes to it. */
import { VirtualDisk } from '@tskeeper/runtime';
import { expect, it } from 'vitest';
import { ActivityTracker } from '../src/activity-tracker.ts';
import { ProcessDisk } from '../src/process-disk.ts';

const isPending = async (promise: Promise<unknown>): Promise<boolean> => {
  const pending = {};
  for (let turn = 0; turn < 5; turn++) await new Promise<void>((resolve) => void setImmediate(resolve));
  return (await Promise.race([promise, Promise.resolve(pending)])) === pending;
};

it('a process that has ended gets no reply from its disk, and the bytes it wrote stay', async () => {
  const memory = new VirtualDisk();
  const disk = new ProcessDisk(memory, new ActivityTracker());
  await disk.ensureFolder('/data');
  const file = await disk.open('/data/file', 'create');
  file.write(0, Buffer.from('written'));
  let isSynced = false;
  file.sync(() => (isSynced = true));
  const renaming = disk.rename('/data/file', '/data/other');
  await disk.kill();
  file.write(0, Buffer.from('too late'));
  expect(await isPending(renaming)).toBe(true);
  expect(await isPending(disk.list('/data'))).toBe(true);
  expect(await isPending(file.size())).toBe(true);
  expect(isSynced).toBe(false);
  // The call was pending.
  expect(memory.contents('/data/other').toString()).toBe('written');
});

it('the locks and files of a process that has ended are released', async () => {
  const memory = new VirtualDisk();
  const first = new ProcessDisk(memory, new ActivityTracker());
  await first.ensureFolder('/data');
  await first.lock('/data');
  const second = new ProcessDisk(memory, new ActivityTracker());
  await expect(second.lock('/data')).rejects.toThrow('in use');
  const opening = first.open('/data/file', 'create');
  await first.kill();
  const lock = await second.lock('/data');
  await lock.release();
  await (await second.lock('/data')).release();
  expect(await isPending(opening)).toBe(true);
});

it('a process receives the errors of its disk', async () => {
  const memory = new VirtualDisk();
  const disk = new ProcessDisk(memory, new ActivityTracker());
  await expect(disk.remove('/data/none')).rejects.toMatchObject({ code: 'ENOENT' });
  await disk.ensureFolder('/data');
  const file = await disk.open('/data/file', 'create');
  memory.fault = ({ operation }) => (operation === 'sync' ? { code: 'EIO' } : undefined);
  await expect(new Promise((resolve) => file.sync(resolve))).resolves.toMatchObject({ code: 'EIO' });
});
