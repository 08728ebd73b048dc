/** The remedies for a damaged folder, which depend on the role of the server. */
import { DiskError, VirtualDisk, StorageRefused } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { EnsembleRuntimeRig } from '../ensemble-runtime-rig.ts';
import { folder, EnsembleStorageRig, withEnsembleStorage, zxids } from './ensemble-storage-rig.ts';
import { dataOf, Server } from './support.ts';

const refetch =
  'move /data/version-2 aside, keep /data/myid, and start this server again: it fetches everything from its leader, provided that a quorum of the other servers runs with its data intact';

const logs = (disk: VirtualDisk) => disk.files().filter((path) => path.includes('/log.'));
const snapshots = (disk: VirtualDisk) => disk.files().filter((path) => path.includes('/snapshot.'));

/** Damage, and the remedy for a standalone server. */
const damages: [string, (disk: VirtualDisk) => void, RegExp][] = [
  [
    'a rotten txn before the mark',
    (disk) => disk.flipBit(logs(disk)[0]!, 60 * 8),
    /; restore the file from a backup, or, if .* truncate -s \d+ /,
  ],
  [
    'a rotten txn in a log without a mark',
    (disk) => {
      for (const path of disk.files().filter((name) => name.includes('/synced.'))) disk.eraseFile(path);
      disk.flipBit(logs(disk)[0]!, 60 * 8);
    },
    /; restore the file from a backup, or, if .* delete all later logs with their synced files, and the file itself$/,
  ],
  ['a log missing between others', (disk) => disk.eraseFile(logs(disk)[1]!), /; bring the missing log (or snapshot )?back/],
  [
    'the newest log missing, and its mark left',
    (disk) => disk.eraseFile(logs(disk).at(-1)!),
    /; bring log\.[0-9a-f]+ back, .* delete synced\.[0-9a-f]+ /,
  ],
  [
    'snapshots that cannot be loaded',
    (disk) => {
      for (const path of snapshots(disk)) disk.flipBit(path, 8 * 8);
    },
    /; restore one from a backup, together with the logs that follow it$/,
  ],
  [
    'logs without a snapshot',
    (disk) => {
      for (const path of snapshots(disk)) disk.eraseFile(path);
    },
    /; bring the snapshots back, or, if there never were any, start once with snapshot\.trust\.empty=true$/,
  ],
];

describe.each(damages)('a folder with %s', (_what, damage, alone) => {
  it('makes a server of an ensemble refuse to start, with the advice to fetch its data anew, and never to cut a log', async () => {
    const disk = new VirtualDisk();
    for (let life = 0; life < 3; life++) await withEnsembleStorage(disk, (rig) => rig.write(zxids(1, 1 + 3 * life, 3 + 3 * life)));
    damage(disk);
    const error = await new EnsembleStorageRig(disk).open().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StorageRefused);
    expect((error as Error).message).toMatch(new RegExp(`(; |; or else )${refetch}$`));
    expect((error as Error).message).not.toMatch(/truncate|cut|backup/);
  });

  it('makes a standalone server refuse to start, with remedies from its own files and a backup', async () => {
    const disk = new VirtualDisk();
    for (let life = 0; life < 3; life++) {
      const server = new Server(disk);
      await server.open();
      for (let n = 0; n < 3; n++) await server.write(dataOf(3 * life + n, 60));
      await server.storage.close();
    }
    damage(disk);
    const error = await new Server(disk).open().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StorageRefused);
    expect((error as Error).message).toMatch(alone);
    expect((error as Error).message).not.toContain('leader');
  });
});

describe('the only voter of an ensemble', () => {
  it.each([
    ['alone', 1, 0],
    ['with observers', 2, 1],
  ])('%s is never advised to move its data aside, because no other server needs to have it', async (_title, servers, observers) => {
    const rig = await EnsembleRuntimeRig.start({ servers, observers });
    const { leader } = rig;
    await rig.openSession(leader);
    await rig.close(leader);
    leader.disk.flipBit(logs(leader.disk).at(-1)!, 60 * 8);
    const refused = rig.boot(leader).catch((error: unknown) => error);
    await rig.rig.run(200);
    const error = await refused;
    expect(error).toBeInstanceOf(StorageRefused);
    expect((error as Error).message).toMatch(/; restore the file from a backup, or, if .* truncate -s \d+ /);
    expect((error as Error).message).not.toContain('leader');
  });

  it('has observers that refuse to start with damaged data, with the advice to fetch it anew', async () => {
    const rig = await EnsembleRuntimeRig.start({ servers: 2, observers: 1 });
    const [observer] = rig.learners;
    await rig.openSession(rig.leader);
    await rig.rig.run(1000);
    await rig.close(observer!);
    observer!.disk.flipBit(logs(observer!.disk).at(-1)!, 60 * 8);
    const refused = rig.boot(observer!).catch((error: unknown) => error);
    await rig.rig.run(200);
    expect(await refused).toMatchObject({ message: expect.stringMatching(new RegExp(`; ${refetch}$`)) as string });
  });

  const epochs = (disk: VirtualDisk, name: string, text: string) => disk.putFile(`${folder}/${name}`, Buffer.from(text));
  it.each<[string, (disk: VirtualDisk) => void]>([
    ['acceptedEpoch holds no number', (disk) => epochs(disk, 'acceptedEpoch', 'x')],
    ['currentEpoch holds no number', (disk) => epochs(disk, 'currentEpoch', '')],
    ['acceptedEpoch is missing', (disk) => disk.eraseFile(`${folder}/acceptedEpoch`)],
    [
      'currentEpoch is missing',
      (disk) => {
        disk.eraseFile(`${folder}/currentEpoch`);
        epochs(disk, 'acceptedEpoch', '9');
      },
    ],
    ['acceptedEpoch is less than currentEpoch', (disk) => epochs(disk, 'currentEpoch', '9')],
    [
      'the last txn is of a later epoch than both',
      (disk) => {
        epochs(disk, 'acceptedEpoch', '0');
        epochs(disk, 'currentEpoch', '0');
      },
    ],
  ])('keeps its data and leads again after both epoch files were deleted as advised, when %s', async (_title, damage) => {
    const rig = await EnsembleRuntimeRig.start({ servers: 1 });
    const [voter] = rig.nodes;
    const { disk } = voter!;
    await rig.openSession(voter!);
    const zxid = voter!.runtime!.inspect.lastZxid();
    await rig.close(voter!);
    damage(disk);
    const refused = rig.boot(voter!).catch((error: unknown) => error);
    await rig.rig.run(200);
    expect(await refused).toMatchObject({
      name: 'StorageRefused',
      message: expect.stringMatching(
        /; delete \/data\/version-2\/acceptedEpoch and \/data\/version-2\/currentEpoch, and start this server again: /,
      ) as string,
    });

    for (const name of ['acceptedEpoch', 'currentEpoch']) if (await disk.exists(`${folder}/${name}`)) disk.eraseFile(`${folder}/${name}`);
    await Promise.all([rig.boot(voter!), rig.rig.run(50)]);
    await rig.until(() => rig.isWhole, 5000);
    expect(voter!.runtime!.inspect.lastZxid()).toBeGreaterThan(zxid);
    expect([...voter!.runtime!.inspect.sessions()]).toHaveLength(1);
  });
});

describe("a leader's snapshot that the disk has spoiled while writing it", () => {
  /**
   * A follower without data, whose disk spoils the first `count` snapshots before they are read
   * back.
   */
  async function joining(
    count: number,
  ): Promise<{ rig: EnsembleRuntimeRig; follower: EnsembleRuntimeRig['nodes'][number]; spoiled: () => number }> {
    const rig = await EnsembleRuntimeRig.start();
    const [follower] = rig.learners;
    await rig.openSession(rig.leader);
    await rig.close(follower!);
    const { disk } = follower!;
    for (const path of disk.files().filter((name) => name.startsWith('/data/version-2/'))) disk.eraseFile(path);
    let spoiled = 0;
    const { schedule } = disk;
    disk.schedule = (call, complete) => {
      const isReadBack = call.operation === 'open' && /\/new\.snapshot\.[0-9a-f]*[1-9a-f]/.test(call.path);
      // Opened twice: to be written, and to be read back.
      if (isReadBack && spoiled < count && disk.files().includes(call.path) && disk.contents(call.path).length > 0) {
        spoiled++;
        disk.flipBit(call.path, 8 * 30);
      }
      schedule(call, complete);
    };
    await Promise.all([rig.boot(follower!), rig.rig.run(50)]);
    return { rig, follower: follower!, spoiled: () => spoiled };
  }

  it('is written again, and the follower joins', async () => {
    const { rig, follower, spoiled } = await joining(2);
    await rig.until(() => rig.isWhole, 20_000);
    expect(spoiled()).toBe(2);
    expect(follower.failure).toBeUndefined();
    expect(follower.logged.filter(({ event }) => event === 'snapshot.spoiled')).toHaveLength(2);
    expect(follower.runtime!.inspect.lastZxid()).toBe(rig.leader.runtime!.inspect.lastZxid());
  });

  it('ends the server with a failed disk when every attempt is spoiled', async () => {
    const { rig, follower } = await joining(Infinity);
    await rig.until(() => follower.failure !== undefined, 20_000);
    expect(follower.failure).toBeInstanceOf(DiskError);
    expect((follower.failure as Error).message).toMatch(/^read back \/data\/version-2\/new\.snapshot\.[0-9a-f]+: EIO$/);
  });
});

describe('the advice', () => {
  it('names both folders where logs have one of their own', async () => {
    const disk = new VirtualDisk();
    const options = { dataLogDir: '/logs' };
    const rig = new EnsembleStorageRig(disk, options);
    await rig.open();
    await rig.write(zxids(1, 1, 3));
    await rig.storage.close();
    disk.flipBit(logs(disk)[0]!, 60 * 8);
    await expect(new EnsembleStorageRig(disk, options).open()).rejects.toThrow(
      'move /data/version-2 and /logs/version-2 aside, keep /data/myid',
    );
  });

  it('is the same for damaged epoch files', async () => {
    const disk = new VirtualDisk();
    await withEnsembleStorage(disk, (rig) => rig.write(zxids(1, 1, 3)));
    disk.putFile(`${folder}/currentEpoch`, Buffer.from('x'));
    await expect(new EnsembleStorageRig(disk).open()).rejects.toThrow(
      /move \/data\/version-2, and version-2 of dataLogDir if that is set, aside, keep \/data\/myid, and start this server again/,
    );
  });

  it('lets a follower that refused to start with damaged data fetch everything after its version-2 was moved aside', async () => {
    const rig = await EnsembleRuntimeRig.start();
    const [follower] = rig.learners;
    const { disk } = follower!;
    const zxid = rig.leader.runtime!.inspect.lastZxid();
    await rig.openSession(rig.leader);
    await rig.until(() => follower!.runtime!.inspect.lastZxid() > zxid, 5000);
    await rig.close(follower!);
    disk.flipBit(logs(disk).at(-1)!, 60 * 8);
    const refused = rig.boot(follower!).catch((error: unknown) => error);
    await rig.rig.run(200);
    expect(await refused).toMatchObject({ name: 'StorageRefused', message: expect.stringMatching(new RegExp(`; ${refetch}$`)) as string });

    for (const path of disk.files().filter((name) => name.startsWith('/data/version-2/'))) disk.eraseFile(path);
    await Promise.all([rig.boot(follower!), rig.rig.run(50)]);
    await rig.until(() => rig.isWhole, 20_000);
    expect(follower!.runtime!.inspect.lastZxid()).toBe(rig.leader.runtime!.inspect.lastZxid());
    expect([...follower!.runtime!.inspect.sessions()]).toHaveLength(1);
  });
});
