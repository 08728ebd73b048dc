/** Ensembles: sessions that move between servers, leaders that are cut off, disks that are lost. */
import { CreateMode, openAcl, type Zxid } from '@tskeeper/protocol';
import { loseAll } from '@tskeeper/runtime';
import type { RawClient } from '../clients/raw-client.ts';
import type { ServerHost } from '../world/server-host.ts';
import { quorumPort } from '../world/peer-ports.ts';
import { type Scenario, Scene } from './scenario.ts';
import { SnapshotTaker } from './snapshot-taker.ts';

const node = (path: string, flags: number = CreateMode.persistent) => ({ path, data: Buffer.from(path), acl: openAcl, flags });
const change = (path: string, data: string) => ({ path, data: Buffer.from(data), version: -1 });

/** From its next connection on it speaks to that server. */
function turnsTo(client: RawClient, server: ServerHost): void {
  Object.assign(client.options, { server });
}

function lastZxidOf({ process }: ServerHost): Zxid {
  return process!.runtime!.inspect.lastZxid();
}

export const movingSession: Scenario = {
  story: 'a client goes from one follower to another and back, and writes at each',
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
  story:
    'a client leaves a follower whose way to the leader is slow, and writes at another; what it had sent over the first comes too late',
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
  story:
    'a client leaves a follower while its write waits for the disks; at the next one it asks for another, and each gets its own answer',
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
      await scene.until('it is back', () => client.ready);
      await scene.ask(client, 'create', node('/b'));
      for (const server of scene.world.servers) server.diskDelayMs = () => 1;
    }),
};

export const lateEphemeral: Scenario = {
  story:
    'two sessions are closed by their clients, which write on, another ends because nobody hears of it over a slow way; what was on that way is not made behind its end, an ephemeral least of all',
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
    'a leader is cut off and does not know it yet; the others have another one, and what is written there no sync at the old one passes over',
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
      // What is acknowledged at the same moment would not have to be seen.
      await scene.world.run(10);
      reader.send('sync', { path: '/a' });
      reader.send('getData', { path: '/a', watch: false });
      await scene.world.run(3000);
      if (old.role === 'leader') scene.stage.complain('the leader that was cut off still leads');
    }),
};

export const silentLeader: Scenario = {
  story: 'a follower hears nothing from its leader any more, though no connection has closed; it serves nobody then',
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
      if (deaf.role === 'follower') scene.stage.complain('a server that hears nothing still follows');
    }),
};

export const silentFollowers: Scenario = {
  story: 'a leader hears nothing from its followers any more, though no connection has closed; it leads no more then',
  run: () =>
    Scene.playEnsemble(26, async (scene) => {
      const old = scene.leader;
      scene.cut([old], scene.followers);
      await scene.world.run(3000);
      if (old.role === 'leader') scene.stage.complain('a server that hears nothing still leads');
    }),
};

export const diskRefusesEpoch: Scenario = {
  story:
    'the disk of a server refuses the epoch of a new leader: the server ends, and does not stay behind as one that is there and does nothing',
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
      await scene.until('it has ended', () => victim.process !== process);
    }),
};

export const darkEnsemble: Scenario = {
  story:
    'all machines go dark at once, behind a write and again as soon as there is a leader, before any: nobody has forgotten which epoch it was',
  run: () =>
    Scene.playEnsemble(28, async (scene) => {
      const client = await scene.raw({ timeoutMs: 4000 });
      for (let round = 0; round < 6; round++) {
        // A write makes a new log, and whatever has a name in the folder by then is there for good.
        if (round % 2 === 0) await scene.ask(client, 'create', node(`/n${round}`));
        for (const server of scene.world.servers) server.losePower(loseAll);
        for (const server of scene.world.servers) scene.stage.boot(server);
        await scene.until('they serve again', () => scene.stage.isWhole);
        await scene.comesBack(client);
      }
    }),
};

export const wipedQuorum: Scenario = {
  story:
    'two of three servers have lost their disks, and know that they may have had something: they begin nothing before an operator has spoken',
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
      if (lost.some(({ role }) => role === 'leader' || role === 'follower')) scene.stage.complain('servers without anything begin anew');
      scene.stage.boot(kept);
      // Not even then, since nobody knows what the two may have known. An operator has to say that one of them is new.
      await scene.world.run(2000);
      if (kept.role === 'leader') scene.stage.complain('a server leads with those that have lost everything');
      lost[0]!.kill();
      lost[0]!.disk.plant('/data/initialize', Buffer.alloc(0));
      scene.stage.boot(lost[0]!);
      await scene.comesBack(client);
      await scene.ask(client, 'create', node('/more'));
    }),
};

export const uncommittedTail: Scenario = {
  story: 'a leader that is cut off logs what nobody else has; the others go on without it, and it gives that up for good when it is back',
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
      await scene.until('it is back', () => scene.stage.isWhole);
      // What it starts from is what its disk has, and no longer what it was told.
      old.kill();
      scene.stage.boot(old);
      await scene.until('it is back again', () => scene.stage.isWhole);
      await scene.ask(client, 'create', node('/last'));
    }),
};

/** So many that one of them makes a snapshot due. */
const tailTxns = 10;

export const snapshotOfTail: Scenario = {
  story:
    'a leader uses up the counter of its epoch in one go, just as a snapshot is due, and none of its followers hears of it: the snapshot holds what nobody else has. It cuts that off, and starts again without it',
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
        // A turn that is due at once comes when all that has arrived is done.
        old.turnMs = () => 50;
        for (let count = 0; count < tailTxns; count++) client.send('create', node(`/tail${count}`));
        await world.run(20);
        for (const other of others) other.kill();
        old.turnMs = () => 0;
        await scene.until('the snapshot is there', () =>
          old.disk.files().includes(`${old.snapshotFolder}/snapshot.${tailEnd.toString(16)}`),
        );
        old.kill();
        for (const other of others) stage.boot(other);
        await scene.until('the others have a leader', () => others.every(({ role }) => role === 'leader' || role === 'follower'));
        stage.boot(old);
        await scene.until('it is back', () => stage.isWhole);
        const wasCut = world.recording.peers.some(
          (event) => event.kind === 'replaced' && event.by === 'trunc' && event.server === old.name,
        );
        if (!wasCut) stage.complain('it was not told to cut its log');
        await scene.comesBack(client);
        await scene.ask(client, 'create', node('/n'));
        old.kill();
        stage.boot(old);
        await scene.until('it is back again', () => stage.isWhole);
        await scene.comesBack(client);
        await scene.ask(client, 'create', node('/last'));
      },
      { options: { snapCount: tailTxns }, zab: { counterMax: tailTxns + 2 } },
    ),
};

export const usedUpEpoch: Scenario = {
  story: 'the counter of an epoch is used up: the next epoch begins, and clients notice no more than a lost connection',
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
  story: 'a server that has lost its disk is sent a snapshot that takes longer than initLimit, over a narrow way, and is back in the end',
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
        await scene.until('it follows', () => lost.role === 'follower');
        wire.mannersOf = () => ({ delayMs: 1 });
      },
      { zab: { forceSnapshotSync: true } },
    ),
};

export const strangersSnapshot: Scenario = {
  story:
    'a server that has lost its disk is sent a snapshot as fast as alone while a stranger takes one at 320 KB/s, and while four take one and read nothing',
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
          await scene.until('it follows', () => lost.role === 'follower');
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
          stage.complain(`a stranger that takes its snapshot has been sent ${slow.takenBytes} bytes`);
        await come(['10.6.2.1', '10.6.2.2', '10.6.2.3', '10.6.2.4'], true);
        const besideSilent = await joinMs();
        if (Math.max(besideSlow, besideSilent) > alone * 1.2 + 20)
          stage.complain(
            `it takes ${alone} ms alone, ${besideSlow} ms beside one that is slow, and ${besideSilent} ms beside four that are silent`,
          );
      },
      { zab: { forceSnapshotSync: true } },
    ),
};

export const restartUnderLoad: Scenario = {
  story: 'a follower with a slow disk is restarted while a write comes every few milliseconds: it serves again within two seconds',
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
          stage.complain(`it does not serve, with a sync of ${syncMs} ms`);
      }
      isLoaded = false;
    }),
};

export const lateObserver: Scenario = {
  story: 'with two of three voters left an observer joins over a slow way; what is committed meanwhile reaches it, though nothing follows',
  run: () =>
    Scene.playEnsemble(
      33,
      async (scene) => {
        const observer = scene.world.servers.at(-1)!;
        const [follower, away] = scene.followers as [ServerHost, ServerHost];
        const client = await scene.raw({ server: follower });
        observer.kill();
        // Two of three voters are a quorum, whoever observes.
        away.kill();
        await scene.ask(client, 'create', node('/before'));
        scene.world.link(observer.name, scene.leader.name).slow(60);
        const bootedMs = scene.stage.nowMs;
        scene.stage.boot(observer);
        for (let count = 0; count < 80 && observer.role !== 'observer'; count++) {
          await scene.ask(client, 'create', node(`/n${count}`));
          await scene.world.run(35);
        }
        await scene.until('it observes', () => observer.role === 'observer');
        // It would notice a txn that it lacks, leave its leader, and join anew until the writes end.
        const { peers } = scene.world.recording;
        if (peers.some(({ kind, server, atMs }) => kind === 'ended' && server === observer.name && atMs >= bootedMs))
          scene.stage.complain('an observer lacks what was committed while it joined');
      },
      { servers: 4, observers: 1 },
    ),
};
