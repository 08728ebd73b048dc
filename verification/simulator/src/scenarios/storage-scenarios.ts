/** Scenarios of disks: what an end at the wrong moment leaves. */
import { CreateMode, openAcl } from '@tskeeper/protocol';
import { loseAll } from '@tskeeper/runtime';
import { installNoteName } from '@tskeeper/runtime/internal';
import type { ServerHost } from '../world/server-host.ts';
import { type Scenario, ScenarioRun } from './scenario.ts';

const sequential = { path: '/n-', data: Buffer.from('x'.repeat(200)), acl: openAcl, flags: CreateMode.persistentSequential };

export const powerLossInMidSync: Scenario = {
  description: 'the machine loses power during the fsync of a batch, and part of the last sector survives: acknowledged writes are there',
  run: () =>
    ScenarioRun.execute(6, async (scenario) => {
      const client = await scenario.rawClient();
      for (let count = 0; count < 20; count++) await scenario.request(client, 'create', sequential);
      const { server } = scenario.world;
      server.diskDelayMs = () => 50;
      for (let count = 0; count < 20; count++) client.send('create', sequential);
      await scenario.world.run(20);
      let kept = 0;
      server.losePower((item) => (item.kind !== 'bytes' ? 1 : kept++ === 2 ? item.length >> 1 : kept < 3 ? item.length : 0));
      server.diskDelayMs = () => 0;
      await server.start();
      await scenario.waitForReconnect(client);
      for (let count = 0; count < 5; count++) await scenario.request(client, 'create', sequential);
    }),
};

export const failedSync: Scenario = {
  description: 'an fsync fails: the server sends nothing more and ends, and the next one relies on nothing that the disk may have lost',
  run: () =>
    ScenarioRun.execute(7, async (scenario) => {
      const client = await scenario.rawClient();
      for (let count = 0; count < 5; count++) await scenario.request(client, 'create', sequential);
      const { server } = scenario.world;
      scenario.run.disks.fail(server, ({ operation, path }) =>
        operation === 'sync' && path.includes('/log.') ? { code: 'EIO' } : undefined,
      );
      for (let count = 0; count < 5; count++) client.send('create', sequential);
      await scenario.waitFor(
        'the server has restarted',
        () => server.process?.isServing === true && server.process.record.startedMs > 1001,
      );
      server.losePower(loseAll);
      await server.start();
      await scenario.waitForReconnect(client);
      for (let count = 0; count < 5; count++) await scenario.request(client, 'create', sequential);
    }),
};

export const killedWhilePurging: Scenario = {
  description: 'the process is killed repeatedly while it writes snapshots and purges old files: each start finds everything it needs',
  run: () =>
    ScenarioRun.execute(
      8,
      async (scenario) => {
        const client = await scenario.rawClient({ timeoutMs: 4000 });
        const { server } = scenario.world;
        for (let round = 0; round < 8; round++) {
          for (let count = 0; count < 30; count++) client.send('create', sequential);
          await scenario.world.run(20 + 7 * round);
          server.kill();
          await server.start();
          await scenario.waitForReconnect(client);
        }
      },
      {},
      { snapCount: 10, purgeIntervalMs: 25, txnLogSizeLimitBytes: 2000 },
    ),
};

export const halfInstalledSnapshot: Scenario = {
  description:
    "a follower is killed when its leader's snapshot has its name and the old history still exists: the next start deletes the old history",
  run: () =>
    ScenarioRun.executeEnsemble(
      35,
      async (scenario) => {
        const client = await scenario.rawClient({ server: scenario.leader });
        for (let count = 0; count < 15; count++) await scenario.request(client, 'create', sequential);
        const [victim] = scenario.followers as [ServerHost];
        const { disk, snapshotFolder, logFolder } = victim;
        victim.kill();
        for (let count = 0; count < 5; count++) await scenario.request(client, 'create', sequential);
        let isHalfWay = false;
        disk.onChanged = ({ operation, path }) => {
          if (operation !== 'rename' || !path.startsWith(`${snapshotFolder}/new.snapshot.`)) return;
          // Ignore snapshots that the server takes of its own tree.
          if (!disk.files().includes(`${snapshotFolder}/${installNoteName}`)) return;
          disk.onChanged = undefined;
          isHalfWay = true;
          victim.kill();
        };
        scenario.run.boot(victim);
        await scenario.waitFor('the snapshot is half installed', () => isHalfWay);
        // Isolated, so that the server receives nothing before the check.
        scenario.cutLinks([victim], [scenario.leader, ...scenario.followers.filter((other) => other !== victim)]);
        scenario.run.boot(victim);
        await scenario.waitFor('the follower is up', () => victim.process?.isServing === true);
        const left = disk.files().filter((path) => /\/(?:log|snapshot)\./.test(path));
        if (left.length !== 1 || left.some((path) => path.startsWith(`${logFolder}/log.`))) {
          scenario.run.reportViolation(`${victim.name} kept files that its leader's snapshot replaces: ${left.join(' ')}`);
        }
        scenario.run.heal();
        await scenario.waitFor('the follower has joined', () => scenario.run.allServing);
      },
      { zab: { forceSnapshotSync: true } },
    ),
};

export const acceptedEpochInPageCache: Scenario = {
  description:
    'the fsync of the folder for acceptedEpoch fails; the next start reads the new epoch from the page cache, others rely on it, and the power fails: the epoch is still on disk',
  run: () =>
    ScenarioRun.executeEnsemble(36, async (scenario) => {
      const client = await scenario.rawClient({ timeoutMs: 4000 });
      const [victim] = scenario.followers as [ServerHost];
      const { disk, snapshotFolder, process } = victim;
      const promised = () => Number(disk.contents(`${snapshotFolder}/acceptedEpoch`).toString());
      const before = promised();
      scenario.run.disks.fail(victim, ({ operation }) => (operation === 'syncFolder' && promised() > before ? { code: 'EIO' } : undefined));
      const old = scenario.leader;
      old.kill();
      await scenario.waitFor('the server has failed', () => process!.record.failure !== '');
      disk.fault = undefined;
      victim.kill();
      scenario.run.boot(victim);
      await scenario.waitFor('the server is up', () => victim.process?.isServing === true);
      const read = promised();
      if (read === before) scenario.run.reportViolation('no epoch was accepted');
      victim.losePower(loseAll);
      if (promised() < read)
        scenario.run.reportViolation(`${victim.name} read acceptedEpoch ${read} at its start, but has ${promised()} after the power loss`);
      for (const server of [victim, old]) scenario.run.boot(server);
      await scenario.waitForReconnect(client);
      await scenario.request(client, 'create', sequential);
    }),
};
