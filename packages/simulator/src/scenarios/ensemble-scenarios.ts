/** Scenarios of ensembles: sessions that move between servers, partitioned leaders, lost disks. */
import { CreateMode, openAcl, type Zxid } from '@tskeeper/protocol';
import { loseAll } from '@tskeeper/runtime';
import type { RawClient } from '../clients/raw-client.ts';
import type { ServerHost } from '../world/server-host.ts';
import { quorumPort } from '../world/peer-ports.ts';
import { type Scenario, Scene } from './scenario.ts';
import { SnapshotTaker } from './snapshot-taker.ts';

const node = (path: string, flags: number = CreateMode.persistent) => ({ path, data: Buffer.from(path), acl: openAcl, flags });
const change = (path: string, data: string) => ({ path, data: Buffer.from(data), version: -1 });

/** The client's next connection goes to that server. */
function turnsTo(client: RawClient, server: ServerHost): void {
  Object.assign(client.options, { server });
}

function lastZxidOf({ process }: ServerHost): Zxid {
  return process!.runtime!.inspect.lastZxid();
}

export const movingSession: Scenario = {
  story: 'a client moves from one follower to another and back, and writes at each',
  run: () =>
    Scene.playEnsemble(20, async (scene) => {
      const [here, there] = scene.followers as [ServerHost, ServerHost];
      const client = await scene.raw({ server: here });
      for (const [turn, server] of [there, here, scene.leader, there].entries()) {
        await scene.ask(client, 'create', node(`/n${turn}`, CreateMode.ephemeral));
        turnsTo(client, server);
        client.reset();
        await scene.comesBack(client);
      }
      await scene.ask(client, 'create', node('/last'));
    }),
};

export const lateWrite: Scenario = {
  story: 'a client leaves a follower with a slow link to the leader and writes at another; a write it sent over the first arrives too late',
  run: () =>
    Scene.playEnsemble(21, async (scene) => {
      const [slow, other] = scene.followers as [ServerHost, ServerHost];
      const client = await scene.raw({ server: slow });
      await scene.ask(client, 'create', node('/a'));
      scene.stage.slowBetween(slow, scene.leader, 400, 3000);
      client.send('setData', change('/a', 'through the first'));
      await scene.world.run(10);
      turnsTo(client, other);
      client.moveOn();
      await scene.comesBack(client);
      await scene.ask(client, 'setData', change('/a', 'through the second'));
      await scene.world.run(1000);
    }),
};

export const slowCommit: Scenario = {
  story: 'a client leaves a follower while its write waits for the disks and sends another at the next one; each gets its own reply',
  run: () =>
    Scene.playEnsemble(22, async (scene) => {
      const [here, there] = scene.followers as [ServerHost, ServerHost];
      const client = await scene.raw({ server: here });
      await scene.ask(client, 'create', node('/a'));
      for (const server of scene.world.servers) server.diskDelayMs = () => 100;
      client.send('setData', change('/a', 'before'));
      await scene.world.run(15);
      turnsTo(client, there);
      client.reset();
      await scene.until('the client is back', () => client.ready);
      await scene.ask(client, 'create', node('/b'));
      for (const server of scene.world.servers) server.diskDelayMs = () => 1;
    }),
};

export const lateEphemeral: Scenario = {
  story:
    'two clients write after closing their sessions, and a third session expires because its requests are delayed on a slow link; writes that arrive after the end of a session are refused, ephemerals above all',
  run: () =>
    Scene.playEnsemble(23, async (scene) => {
      const [slow] = scene.followers;
      const client = await scene.raw({ server: slow, timeoutMs: 400 });
      await scene.ask(client, 'create', node('/a'));
      for (const [at, server] of [scene.leader, scene.followers[1]!].entries()) {
        const hasty = await scene.raw({ server });
        hasty.send('closeSession', undefined);
        hasty.send('create', node(`/f${at}`, CreateMode.ephemeral));
      }
      scene.stage.slowBetween(slow!, scene.leader, 850, 3000);
      client.send('create', node('/e', CreateMode.ephemeral));
      client.send('create', node('/late'));
      await scene.world.run(3000);
    }),
};

export const cutOffLeader: Scenario = {
  story:
    'a leader is partitioned and does not know it yet, and the others elect a new one; a sync at the old leader does not miss what was written there',
  run: () =>
    Scene.playEnsemble(24, async (scene) => {
      const [old, others] = [scene.leader, scene.followers];
      const [reader, writer] = [await scene.raw({ server: old }), await scene.raw({ server: others[0], timeoutMs: 4000 })];
      await scene.ask(writer, 'create', node('/a'));
      scene.cut([old], others);
      for (const server of others) {
        server.kill();
        scene.stage.boot(server);
      }
      await scene.until('the others have a leader', () => others.some(({ role }) => role === 'leader'));
      await scene.comesBack(writer);
      await scene.ask(writer, 'setData', change('/a', 'new'));
      // A write acknowledged at the same moment would not have to be seen.
      await scene.world.run(10);
      reader.send('sync', { path: '/a' });
      reader.send('getData', { path: '/a', watch: false });
      await scene.world.run(3000);
      if (old.role === 'leader') scene.stage.complain('the partitioned leader still leads');
    }),
};

export const silentLeader: Scenario = {
  story: 'a follower receives nothing from its leader, though no connection is closed; it stops serving',
  run: () =>
    Scene.playEnsemble(25, async (scene) => {
      const [deaf] = scene.followers as [ServerHost];
      const client = await scene.raw({ server: deaf });
      await scene.ask(client, 'create', node('/a'));
      scene.cut(
        [deaf],
        scene.world.servers.filter((server) => server !== deaf),
      );
      await scene.world.run(3000);
      if (deaf.role === 'follower') scene.stage.complain('a server that receives nothing still follows');
    }),
};

export const silentFollowers: Scenario = {
  story: 'a leader receives nothing from its followers, though no connection is closed; it stops leading',
  run: () =>
    Scene.playEnsemble(26, async (scene) => {
      const old = scene.leader;
      scene.cut([old], scene.followers);
      await scene.world.run(3000);
      if (old.role === 'leader') scene.stage.complain('a server that receives nothing still leads');
    }),
};

export const diskRefusesEpoch: Scenario = {
  story: 'the disk of a server fails to save the epoch of a new leader: the server ends and does not stay up idle',
  run: () =>
    Scene.playEnsemble(27, async (scene) => {
      const client = await scene.raw({ timeoutMs: 4000 });
      await scene.ask(client, 'create', node('/a'));
      const [victim] = scene.followers as [ServerHost];
      const { process } = victim;
      scene.stage.failDisk(victim, ({ operation, path }) =>
        operation === 'sync' && path.includes('acceptedEpoch') ? { code: 'EIO' } : undefined,
      );
      const old = scene.leader;
      old.kill();
      scene.stage.boot(old);
      await scene.until('the server has ended', () => victim.process !== process);
    }),
};

export const darkEnsemble: Scenario = {
  story:
    'all machines lose power at once, after a write, and again as soon as there is a leader, before any write: no server forgets its epoch',
  run: () =>
    Scene.playEnsemble(28, async (scene) => {
      const client = await scene.raw({ timeoutMs: 4000 });
      for (let round = 0; round < 6; round++) {
        // A write creates a log file, and its folder sync makes every name then in the folder
        // durable.
        if (round % 2 === 0) await scene.ask(client, 'create', node(`/n${round}`));
        for (const server of scene.world.servers) server.losePower(loseAll);
        for (const server of scene.world.servers) scene.stage.boot(server);
        await scene.until('the servers serve again', () => scene.stage.isWhole);
        await scene.comesBack(client);
      }
    }),
};

export const wipedQuorum: Scenario = {
  story:
    'two of three servers lost their disks and know that they may have had data: no server leads before an operator marks one of them as new',
  run: () =>
    Scene.playEnsemble(29, async (scene) => {
      const client = await scene.raw({ timeoutMs: 4000 });
      for (let count = 0; count < 5; count++) await scene.ask(client, 'create', node(`/n${count}`));
      const [kept, lost] = [scene.leader, scene.followers];
      for (const server of scene.world.servers) server.kill();
      for (const server of lost) {
        server.wipe();
        Object.assign(server.options, { dbAutocreate: false });
        scene.stage.boot(server);
      }
      await scene.world.run(3000);
      if (lost.some(({ role }) => role === 'leader' || role === 'follower'))
        scene.stage.complain('servers without data start a new ensemble');
      scene.stage.boot(kept);
      // Not even then: what the two had is unknown. An operator has to mark one of them as new.
      await scene.world.run(2000);
      if (kept.role === 'leader') scene.stage.complain('a server leads with servers that lost their data');
      lost[0]!.kill();
      lost[0]!.disk.plant('/data/initialize', Buffer.alloc(0));
      scene.stage.boot(lost[0]!);
      await scene.comesBack(client);
      await scene.ask(client, 'create', node('/more'));
    }),
};

export const uncommittedTail: Scenario = {
  story:
    'a partitioned leader logs txns that no other server has; the others continue without it, and it truncates those txns durably when it returns',
  run: () =>
    Scene.playEnsemble(30, async (scene) => {
      const [old, others] = [scene.leader, scene.followers];
      const [lonely, client] = [await scene.raw({ server: old }), await scene.raw({ server: others[0], timeoutMs: 4000 })];
      await scene.ask(client, 'create', node('/a'));
      scene.cut([old], others);
      for (let count = 0; count < 5; count++) lonely.send('create', node(`/tail${count}`));
      await scene.until('the others have a leader', () => others.some(({ role }) => role === 'leader'));
      await scene.comesBack(client);
      for (let count = 0; count < 5; count++) await scene.ask(client, 'create', node(`/n${count}`));
      for (const server of others) scene.world.link(old.name, server.name).heal();
      await scene.until('the old leader is back', () => scene.stage.isWhole);
      // It must start from its truncated log on disk.
      old.kill();
      scene.stage.boot(old);
      await scene.until('the old leader is back again', () => scene.stage.isWhole);
      await scene.ask(client, 'create', node('/last'));
    }),
};

/** The last of them makes a snapshot due. */
const tailTxns = 10;

export const snapshotOfTail: Scenario = {
  story:
    'a leader uses up the counter of its epoch at once, just as a snapshot is due, and no follower receives the txns: the snapshot holds txns that no other server has. The leader removes them and restarts without them',
  run: () =>
    Scene.playEnsemble(
      34,
      async (scene) => {
        const [old, others] = [scene.leader, scene.followers];
        const { world, stage } = scene;
        const client = await scene.raw({ server: old, timeoutMs: 4000 });
        await scene.ask(client, 'create', node('/a'));
        const tailEnd = lastZxidOf(old) + tailTxns;
        for (const other of others) stage.slowBetween(old, other, 200, 1000);
        // A turn that is due at once runs after everything that has arrived is processed.
        old.turnMs = () => 50;
        for (let count = 0; count < tailTxns; count++) client.send('create', node(`/tail${count}`));
        await world.run(20);
        for (const other of others) other.kill();
        old.turnMs = () => 0;
        await scene.until('the snapshot exists', () => old.disk.files().includes(`${old.snapshotFolder}/snapshot.${tailEnd.toString(16)}`));
        old.kill();
        for (const other of others) stage.boot(other);
        await scene.until('the others have a leader', () => others.every(({ role }) => role === 'leader' || role === 'follower'));
        stage.boot(old);
        await scene.until('the old leader is back', () => stage.isWhole);
        const wasCut = world.recording.peers.some(
          (event) => event.kind === 'replaced' && event.by === 'trunc' && event.server === old.name,
        );
        if (!wasCut) stage.complain('the old leader received no TRUNC');
        await scene.comesBack(client);
        await scene.ask(client, 'create', node('/n'));
        old.kill();
        stage.boot(old);
        await scene.until('the old leader is back again', () => stage.isWhole);
        await scene.comesBack(client);
        await scene.ask(client, 'create', node('/last'));
      },
      { options: { snapCount: tailTxns }, zab: { counterMax: tailTxns + 2 } },
    ),
};

export const usedUpEpoch: Scenario = {
  story: 'the counter of an epoch is used up: the next epoch begins, and clients only notice a lost connection',
  run: () =>
    Scene.playEnsemble(
      31,
      async (scene) => {
        const client = await scene.raw({ timeoutMs: 4000 });
        const { leader } = scene;
        const reigns = () => scene.world.recording.peers.filter((event) => event.kind === 'serves' && event.role === 'leader').length;
        const before = reigns();
        for (let count = 0; count < 20 && leader.role === 'leader'; count++) {
          client.send('create', node(`/n${count}`));
          await scene.world.run(20);
        }
        await scene.until('another epoch has begun', () => reigns() > before);
        await scene.comesBack(client);
      },
      { zab: { counterMax: 10 } },
    ),
};

export const largeSnapshot: Scenario = {
  story: 'a server that lost its disk receives a snapshot over a slow link, which takes longer than initLimit, and joins',
  run: () =>
    Scene.playEnsemble(
      32,
      async (scene) => {
        const client = await scene.raw({ server: scene.leader });
        const data = Buffer.alloc(100_000, 'x');
        for (let count = 0; count < 12; count++) await scene.ask(client, 'create', { ...node(`/n${count}`), data });
        const [lost] = scene.followers as [ServerHost];
        lost.kill();
        lost.wipe();
        const { wire } = scene.world;
        wire.mannersOf = () => ({ delayMs: 1, windowBytes: 10_000, pieceBytes: 10_000, pieceIntervalMs: 60 });
        scene.stage.boot(lost);
        await scene.until('the server follows', () => lost.role === 'follower');
        wire.mannersOf = () => ({ delayMs: 1 });
      },
      { zab: { forceSnapshotSync: true } },
    ),
};

export const strangersSnapshot: Scenario = {
  story:
    'a server that lost its disk receives a snapshot as fast as alone while an unknown observer receives one at 320 KB/s, and while four others request one and read nothing',
  run: () =>
    Scene.playEnsemble(
      37,
      async (scene) => {
        const { world, stage } = scene;
        const client = await scene.raw({ server: scene.leader });
        const data = Buffer.alloc(100_000, 'x');
        for (let count = 0; count < 40; count++) await scene.ask(client, 'create', { ...node(`/n${count}`), data });
        const narrow = { delayMs: 1, windowBytes: 10_000, pieceBytes: 3200, pieceIntervalMs: 10 };
        world.wire.mannersOf = (from, to) => (from.startsWith('10.6.') || to.startsWith('10.6.') ? narrow : { delayMs: 1 });
        const [lost] = scene.followers as [ServerHost];
        const joinMs = async (): Promise<number> => {
          lost.kill();
          lost.wipe();
          const beganMs = stage.nowMs;
          stage.boot(lost);
          await scene.until('the server follows', () => lost.role === 'follower');
          return stage.nowMs - beganMs;
        };
        const come = async (addresses: readonly string[], isSilent: boolean): Promise<SnapshotTaker[]> => {
          const leader = { address: scene.leader.address!, port: quorumPort };
          const strangers = addresses.map((address, at) => new SnapshotTaker(world, address, leader, 100 + at, isSilent));
          await world.run(500);
          return strangers;
        };
        const alone = await joinMs();
        const [slow] = (await come(['10.6.1.1'], false)) as [SnapshotTaker];
        const besideSlow = await joinMs();
        if (slow.takenBytes < 100_000 || slow.isGone)
          stage.complain(`the unknown observer that reads slowly received only ${slow.takenBytes} bytes`);
        await come(['10.6.2.1', '10.6.2.2', '10.6.2.3', '10.6.2.4'], true);
        const besideSilent = await joinMs();
        if (Math.max(besideSlow, besideSilent) > alone * 1.2 + 20)
          stage.complain(
            `joining takes ${alone} ms alone, ${besideSlow} ms beside a slow observer, and ${besideSilent} ms beside four silent ones`,
          );
      },
      { zab: { forceSnapshotSync: true } },
    ),
};

export const restartUnderLoad: Scenario = {
  story: 'a follower with a slow disk restarts while a write arrives every few milliseconds: it serves again within two seconds',
  run: () =>
    Scene.playEnsemble(36, async (scene) => {
      const { world, stage } = scene;
      const client = await scene.raw({ server: scene.leader });
      const [follower] = scene.followers as [ServerHost];
      let isLoaded = true;
      const write = (count: number): void => {
        if (!isLoaded) return;
        client.send('create', node(`/n${count}`));
        stage.after(1 + (count % 8), 'work', undefined, () => write(count + 1));
      };
      write(0);
      await world.run(100);
      for (const syncMs of [1, 5, 20]) {
        follower.kill();
        follower.diskDelayMs = ({ operation }) => (operation === 'sync' ? syncMs : 0);
        stage.boot(follower);
        if (!(await world.runUntil(() => follower.role === 'follower', 2000)))
          stage.complain(`the follower does not serve with an fsync of ${syncMs} ms`);
      }
      isLoaded = false;
    }),
};

export const lateObserver: Scenario = {
  story:
    'with two of three voters left, an observer joins over a slow link; txns that are committed meanwhile reach it, though no write follows',
  run: () =>
    Scene.playEnsemble(
      33,
      async (scene) => {
        const observer = scene.world.servers.at(-1)!;
        const [follower, away] = scene.followers as [ServerHost, ServerHost];
        const client = await scene.raw({ server: follower });
        observer.kill();
        // Two of three voters are a quorum, with or without observers.
        away.kill();
        await scene.ask(client, 'create', node('/before'));
        scene.world.link(observer.name, scene.leader.name).slow(60);
        const bootedMs = scene.stage.nowMs;
        scene.stage.boot(observer);
        for (let count = 0; count < 80 && observer.role !== 'observer'; count++) {
          await scene.ask(client, 'create', node(`/n${count}`));
          await scene.world.run(35);
        }
        await scene.until('the observer has joined', () => observer.role === 'observer');
        // An observer that lacks a txn would notice, leave its leader, and join again until the
        // writes end.
        const { peers } = scene.world.recording;
        if (peers.some(({ kind, server, atMs }) => kind === 'ended' && server === observer.name && atMs >= bootedMs))
          scene.stage.complain('an observer lacks what was committed while it joined');
      },
      { servers: 4, observers: 1 },
    ),
};
