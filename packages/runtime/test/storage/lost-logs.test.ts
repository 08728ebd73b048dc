/** A log that is gone, with later ones there: between two epochs the zxids do not show it, and the mark that is left does. */
import { makeZxid } from '@tskeeper/protocol';
import { MemoryDisk } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import { filesOf, folder, Member, namesIn, withMember, zxids } from './member.ts';

/** Logs 1, 5 and 9 of epoch 1 with four txns each, and then one of epoch 2; a snapshot at 0 only. */
async function fourLogs(disk = new MemoryDisk()): Promise<MemoryDisk> {
  for (const from of [1, 5, 9]) await withMember(disk, (member) => member.write(zxids(1, from, from + 3)));
  await withMember(disk, (member) => member.write(zxids(2, 1, 2)));
  return disk;
}

const last = `${folder}/log.100000009`;

describe('a log that is gone', () => {
  test('at the end of an epoch is missed, and nothing is changed', async () => {
    const disk = await fourLogs();
    disk.lose(last);
    const before = filesOf(disk);
    await expect(new Member(disk).open()).rejects.toThrow(
      `txns are missing: ${folder}/log.100000009, which held txns up to 0x10000000c, is gone, and ${folder}/log.200000001 goes on with 0x200000001 behind 0x100000008; bring it back, or start from a backup that has it`,
    );
    expect(filesOf(disk)).toEqual(before);
  });

  test('is not missed when a snapshot has its txns', async () => {
    const disk = await fourLogs();
    await withMember(disk, (member) => member.snapshot());
    disk.lose(last);
    const { lastZxid } = await withMember(disk, (_member, recovered) => Promise.resolve(recovered));
    expect(lastZxid).toBe(makeZxid(2, 2));
  });

  test('is not read over, at the first start or at a later one', async () => {
    const disk = await fourLogs();
    await withMember(disk, (member) => member.snapshot());
    disk.lose(last);
    for (let start = 0; start < 2; start++) {
      await withMember(disk, async (member) => {
        await member.write(zxids(2, 3 + start, 3 + start));
        const reading = (await member.storage.readFrom(makeZxid(1, 6)))!;
        expect(await reading.next()).toMatchObject({ kind: 'txns' });
        expect(await reading.next()).toMatchObject({ kind: 'gone' });
      });
    }
  });

  test('is forgotten when the logs before it are purged, or there is nothing before it', async () => {
    const disk = await fourLogs();
    await withMember(disk, (member) => member.snapshot());
    for (const name of ['snapshot.0', 'log.100000001', 'log.100000005', 'log.100000009']) disk.lose(`${folder}/${name}`);
    await withMember(disk, () => Promise.resolve());
    expect(namesIn(disk).filter((name) => name.startsWith('synced.'))).toEqual(['synced.200000001']);
  });

  test('may have been cut off by a server that keeps no marks, and has written since', async () => {
    const disk = await fourLogs();
    disk.lose(last);
    disk.lose(`${folder}/synced.200000001`);
    const { lastZxid } = await withMember(disk, (_member, recovered) => Promise.resolve(recovered));
    expect(lastZxid).toBe(makeZxid(2, 2));
    expect(namesIn(disk)).not.toContain('synced.100000009');
  });

  test.each<[string, (member: Member) => Promise<unknown>]>([
    ['cut', (member) => member.truncate(makeZxid(1, 4))],
    ['replaced', (member) => member.replace(zxids(1, 1, 4))],
  ])('counts no more once the history it belonged to has been %s', async (_what, rewrite) => {
    const disk = await fourLogs();
    await withMember(disk, (member) => member.snapshot());
    disk.lose(last);
    await withMember(disk, async (member) => {
      await rewrite(member);
      await member.write(zxids(3, 1, 2));
    });
    await withMember(disk, (member) => member.write(zxids(4, 1, 2)));
    const { lastZxid } = await withMember(disk, (_member, recovered) => Promise.resolve(recovered));
    expect(lastZxid).toBe(makeZxid(4, 2));
  });
});
