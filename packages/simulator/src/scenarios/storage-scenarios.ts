/** Disks: what an end at the wrong moment leaves behind. */
import { CreateMode, openAcl } from '@tskeeper/protocol';
import { loseAll } from '@tskeeper/runtime';
import { type Scenario, Scene } from './scenario.ts';

const sequential = { path: '/n-', data: Buffer.from('x'.repeat(200)), acl: openAcl, flags: CreateMode.persistentSequential };

export const powerLossInMidSync: Scenario = {
  story: 'the machine goes dark while a batch is being synced, and the last sector survives in part: what was acknowledged is there',
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
  story: 'a sync fails: the server says nothing more and ends, and the next one builds on nothing that the disk may have lost',
  run: () =>
    Scene.play(7, async (scene) => {
      const client = await scene.raw();
      for (let count = 0; count < 5; count++) await scene.ask(client, 'create', sequential);
      const { server } = scene.world;
      server.disk.fault = ({ operation, path }) => (operation === 'sync' && path.includes('/log.') ? { code: 'EIO' } : undefined);
      scene.stage.excuse(server);
      for (let count = 0; count < 5; count++) client.send('create', sequential);
      await scene.until('it has ended and is back', () => server.process?.serving === true && server.process.record.startedMs > 1001);
      server.losePower(loseAll);
      await server.start();
      await scene.comesBack(client);
      for (let count = 0; count < 5; count++) await scene.ask(client, 'create', sequential);
    }),
};

export const killedWhilePurging: Scenario = {
  story: 'the process is killed again and again while it writes snapshots and purges old files: each start finds all it needs',
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
