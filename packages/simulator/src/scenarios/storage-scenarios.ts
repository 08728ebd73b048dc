/** Scenarios of disks: what an end at the wrong moment leaves. */
import { CreateMode, openAcl } from '@tskeeper/protocol';
import { loseAll } from '@tskeeper/runtime';
import { installNoteName } from '@tskeeper/runtime/internal';
import type { ServerHost } from '../world/server-host.ts';
import { type Scenario, Scene } from './scenario.ts';

const sequential = { path: '/n-', data: Buffer.from('x'.repeat(200)), acl: openAcl, flags: CreateMode.persistentSequential };

export const powerLossInMidSync: Scenario = {
  story: 'the machine loses power during the fsync of a batch, and part of the last sector survives: acknowledged writes are there',
  run: () =>
    Scene.play(6, async (scene) => {
      const client = await scene.raw();
      for (let count = 0; count < 20; count++) await scene.ask(client, 'create', sequential);
      const { server } = scene.world;
      server.diskDelayMs = () => 50;
      for (let count = 0; count < 20; count++) client.send('create', sequential);
      await scene.world.run(20);
      let kept = 0;
      server.losePower((item) => (item.kind !== 'bytes' ? 1 : kept++ === 2 ? item.length >> 1 : kept < 3 ? item.length : 0));
      server.diskDelayMs = () => 0;
      await server.start();
      await scene.comesBack(client);
      for (let count = 0; count < 5; count++) await scene.ask(client, 'create', sequential);
    }),
};

export const failedSync: Scenario = {
  story: 'an fsync fails: the server sends nothing more and ends, and the next one relies on nothing that the disk may have lost',
  run: () =>
    Scene.play(7, async (scene) => {
      const client = await scene.raw();
      for (let count = 0; count < 5; count++) await scene.ask(client, 'create', sequential);
      const { server } = scene.world;
      scene.stage.failDisk(server, ({ operation, path }) => (operation === 'sync' && path.includes('/log.') ? { code: 'EIO' } : undefined));
      for (let count = 0; count < 5; count++) client.send('create', sequential);
      await scene.until('the server has restarted', () => server.process?.serving === true && server.process.record.startedMs > 1001);
      server.losePower(loseAll);
      await server.start();
      await scene.comesBack(client);
      for (let count = 0; count < 5; count++) await scene.ask(client, 'create', sequential);
    }),
};

export const killedWhilePurging: Scenario = {
  story: 'the process is killed repeatedly while it writes snapshots and purges old files: each start finds everything it needs',
  run: () =>
    Scene.play(
      8,
      async (scene) => {
        const client = await scene.raw({ timeoutMs: 4000 });
        const { server } = scene.world;
        for (let round = 0; round < 8; round++) {
          for (let count = 0; count < 30; count++) client.send('create', sequential);
          await scene.world.run(20 + 7 * round);
          server.kill();
          await server.start();
          await scene.comesBack(client);
        }
      },
      {},
      { snapCount: 10, purgeIntervalMs: 25, txnLogSizeLimitBytes: 2000 },
    ),
};

export const halfInstalledSnapshot: Scenario = {
  story:
    "a follower is killed when its leader's snapshot has its name and the old history still exists: the next start deletes the old history",
  run: () =>
    Scene.playEnsemble(
      35,
      async (scene) => {
        const client = await scene.raw({ server: scene.leader });
        for (let count = 0; count < 15; count++) await scene.ask(client, 'create', sequential);
        const [victim] = scene.followers as [ServerHost];
        const { disk, snapshotFolder, logFolder } = victim;
        victim.kill();
        for (let count = 0; count < 5; count++) await scene.ask(client, 'create', sequential);
        let isHalfWay = false;
        disk.changed = ({ operation, path }) => {
          if (operation !== 'rename' || !path.startsWith(`${snapshotFolder}/new.snapshot.`)) return;
          // Ignore snapshots that the server takes of its own tree.
          if (!disk.files().includes(`${snapshotFolder}/${installNoteName}`)) return;
          disk.changed = undefined;
          isHalfWay = true;
          victim.kill();
        };
        scene.stage.boot(victim);
        await scene.until('the snapshot is half installed', () => isHalfWay);
        // Isolated, so that the server receives nothing before the check.
        scene.cut([victim], [scene.leader, ...scene.followers.filter((other) => other !== victim)]);
        scene.stage.boot(victim);
        await scene.until('the follower is up', () => victim.process?.serving === true);
        const left = disk.files().filter((path) => /\/(?:log|snapshot)\./.test(path));
        if (left.length !== 1 || left.some((path) => path.startsWith(`${logFolder}/log.`))) {
          scene.stage.complain(`${victim.name} kept files that its leader's snapshot replaces: ${left.join(' ')}`);
        }
        scene.stage.heal();
        await scene.until('the follower has joined', () => scene.stage.isWhole);
      },
      { zab: { forceSnapshotSync: true } },
    ),
};

export const promiseInTheCache: Scenario = {
  story:
    'the fsync of the folder for acceptedEpoch fails; the next start reads the new epoch from the page cache, others rely on it, and the power fails: the epoch is still on disk',
  run: () =>
    Scene.playEnsemble(36, async (scene) => {
      const client = await scene.raw({ timeoutMs: 4000 });
      const [victim] = scene.followers as [ServerHost];
      const { disk, snapshotFolder, process } = victim;
      const promised = () => Number(disk.contents(`${snapshotFolder}/acceptedEpoch`).toString());
      const before = promised();
      scene.stage.failDisk(victim, ({ operation }) => (operation === 'syncFolder' && promised() > before ? { code: 'EIO' } : undefined));
      const old = scene.leader;
      old.kill();
      await scene.until('the server has failed', () => process!.record.failure !== '');
      disk.fault = undefined;
      victim.kill();
      scene.stage.boot(victim);
      await scene.until('the server is up', () => victim.process?.serving === true);
      const read = promised();
      if (read === before) scene.stage.complain('no epoch was accepted');
      victim.losePower(loseAll);
      if (promised() < read)
        scene.stage.complain(`${victim.name} read acceptedEpoch ${read} at its start, but has ${promised()} after the power loss`);
      for (const server of [victim, old]) scene.stage.boot(server);
      await scene.comesBack(client);
      await scene.ask(client, 'create', sequential);
    }),
};
