/** Scenarios of ensembles: sessions that move between servers, partitioned leaders, lost disks. */
import { CreateMode, openAcl, type Zxid } from '@tskeeper/protocol';
import { loseAll } from '@tskeeper/runtime';
import type { RawClient } from '../clients/raw-client.ts';
import type { ServerHost } from '../world/server-host.ts';
import { quorumPort } from '../world/peer-ports.ts';
import { type Scenario, ScenarioRun } from './scenario.ts';
import { SnapshotReceiver } from './snapshot-receiver.ts';

const node = (path: string, flags: number = CreateMode.persistent) => ({ path, data: Buffer.from(path), acl: openAcl, flags });
const change = (path: string, data: string) => ({ path, data: Buffer.from(data), version: -1 });

/** The client's next connection goes to that server. */
function pinTo(client: RawClient, server: ServerHost): void {
  Object.assign(client.options, { server });
}

function lastZxidOf({ process }: ServerHost): Zxid {
  return process!.runtime!.inspect.lastZxid();
}

export const movingSession: Scenario = {
  description: 'a client moves from one follower to another and back, and writes at each',
  run: () =>
    ScenarioRun.executeEnsemble(20, async (scenario) => {
      const [here, there] = scenario.followers as [ServerHost, ServerHost];
      const client = await scenario.rawClient({ server: here });
      for (const [turn, server] of [there, here, scenario.leader, there].entries()) {
        await scenario.request(client, 'create', node(`/n${turn}`, CreateMode.ephemeral));
        pinTo(client, server);
        client.reset();
        await scenario.waitForReconnect(client);
      }
      await scenario.request(client, 'create', node('/last'));
    }),
};

export const writeOvertakenByMove: Scenario = {
  description:
    'a client leaves a follower with a slow link to the leader and writes at another; a write it sent over the first arrives too late',
  run: () =>
    ScenarioRun.executeEnsemble(21, async (scenario) => {
      const [slow, other] = scenario.followers as [ServerHost, ServerHost];
      const client = await scenario.rawClient({ server: slow });
      await scenario.request(client, 'create', node('/a'));
      scenario.run.slowLink(slow, scenario.leader, 400, 3000);
      client.send('setData', change('/a', 'through the first'));
      await scenario.world.run(10);
      pinTo(client, other);
      client.redial();
      await scenario.waitForReconnect(client);
      await scenario.request(client, 'setData', change('/a', 'through the second'));
      await scenario.world.run(1000);
    }),
};

export const moveDuringCommit: Scenario = {
  description: 'a client leaves a follower while its write waits for the disks and sends another at the next one; each gets its own reply',
  run: () =>
    ScenarioRun.executeEnsemble(22, async (scenario) => {
      const [here, there] = scenario.followers as [ServerHost, ServerHost];
      const client = await scenario.rawClient({ server: here });
      await scenario.request(client, 'create', node('/a'));
      for (const server of scenario.world.servers) server.diskDelayMs = () => 100;
      client.send('setData', change('/a', 'before'));
      await scenario.world.run(15);
      pinTo(client, there);
      client.reset();
      await scenario.waitFor('the client is back', () => client.ready);
      await scenario.request(client, 'create', node('/b'));
      for (const server of scenario.world.servers) server.diskDelayMs = () => 1;
    }),
};

export const lateEphemeral: Scenario = {
  description:
    'two clients write after closing their sessions, and a third session expires because its requests are delayed on a slow link; writes that arrive after the end of a session are refused, ephemerals above all',
  run: () =>
    ScenarioRun.executeEnsemble(23, async (scenario) => {
      const [slow] = scenario.followers;
      const client = await scenario.rawClient({ server: slow, timeoutMs: 400 });
      await scenario.request(client, 'create', node('/a'));
      for (const [at, server] of [scenario.leader, scenario.followers[1]!].entries()) {
        const hasty = await scenario.rawClient({ server });
        hasty.send('closeSession', undefined);
        hasty.send('create', node(`/f${at}`, CreateMode.ephemeral));
      }
      scenario.run.slowLink(slow!, scenario.leader, 850, 3000);
      client.send('create', node('/e', CreateMode.ephemeral));
      client.send('create', node('/late'));
      await scenario.world.run(3000);
    }),
};

export const partitionedLeader: Scenario = {
  description:
    'a leader is partitioned and does not know it yet, and the others elect a new one; a sync at the old leader does not miss what was written there',
  run: () =>
    ScenarioRun.executeEnsemble(24, async (scenario) => {
      const [old, others] = [scenario.leader, scenario.followers];
      const [reader, writer] = [
        await scenario.rawClient({ server: old }),
        await scenario.rawClient({ server: others[0], timeoutMs: 4000 }),
      ];
      await scenario.request(writer, 'create', node('/a'));
      scenario.cutLinks([old], others);
      for (const server of others) {
        server.kill();
        scenario.run.boot(server);
      }
      await scenario.waitFor('the others have a leader', () => others.some(({ role }) => role === 'leader'));
      await scenario.waitForReconnect(writer);
      await scenario.request(writer, 'setData', change('/a', 'new'));
      // A write acknowledged at the same moment would not have to be seen.
      await scenario.world.run(10);
      reader.send('sync', { path: '/a' });
      reader.send('getData', { path: '/a', watch: false });
      await scenario.world.run(3000);
      if (old.role === 'leader') scenario.run.reportViolation('the partitioned leader still leads');
    }),
};

export const silentLeader: Scenario = {
  description: 'a follower receives nothing from its leader, though no connection is closed; it stops serving',
  run: () =>
    ScenarioRun.executeEnsemble(25, async (scenario) => {
      const [deaf] = scenario.followers as [ServerHost];
      const client = await scenario.rawClient({ server: deaf });
      await scenario.request(client, 'create', node('/a'));
      scenario.cutLinks(
        [deaf],
        scenario.world.servers.filter((server) => server !== deaf),
      );
      await scenario.world.run(3000);
      if (deaf.role === 'follower') scenario.run.reportViolation('a server that receives nothing still follows');
    }),
};

export const silentFollowers: Scenario = {
  description: 'a leader receives nothing from its followers, though no connection is closed; it stops leading',
  run: () =>
    ScenarioRun.executeEnsemble(26, async (scenario) => {
      const old = scenario.leader;
      scenario.cutLinks([old], scenario.followers);
      await scenario.world.run(3000);
      if (old.role === 'leader') scenario.run.reportViolation('a server that receives nothing still leads');
    }),
};

export const diskRefusesEpoch: Scenario = {
  description: 'the disk of a server fails to save the epoch of a new leader: the server ends and does not stay up idle',
  run: () =>
    ScenarioRun.executeEnsemble(27, async (scenario) => {
      const client = await scenario.rawClient({ timeoutMs: 4000 });
      await scenario.request(client, 'create', node('/a'));
      const [victim] = scenario.followers as [ServerHost];
      const { process } = victim;
      scenario.run.disks.fail(victim, ({ operation, path }) =>
        operation === 'sync' && path.includes('acceptedEpoch') ? { code: 'EIO' } : undefined,
      );
      const old = scenario.leader;
      old.kill();
      scenario.run.boot(old);
      await scenario.waitFor('the server has ended', () => victim.process !== process);
    }),
};

export const powerLossEverywhere: Scenario = {
  description:
    'all machines lose power at once, after a write, and again as soon as there is a leader, before any write: no server forgets its epoch',
  run: () =>
    ScenarioRun.executeEnsemble(28, async (scenario) => {
      const client = await scenario.rawClient({ timeoutMs: 4000 });
      for (let round = 0; round < 6; round++) {
        // A write creates a log file, and its folder sync makes every name then in the folder
        // durable.
        if (round % 2 === 0) await scenario.request(client, 'create', node(`/n${round}`));
        for (const server of scenario.world.servers) server.losePower(loseAll);
        for (const server of scenario.world.servers) scenario.run.boot(server);
        await scenario.waitFor('the servers serve again', () => scenario.run.allServing);
        await scenario.waitForReconnect(client);
      }
    }),
};

export const wipedQuorum: Scenario = {
  description:
    'two of three servers lost their disks and know that they may have had data: no server leads before an operator marks one of them as new',
  run: () =>
    ScenarioRun.executeEnsemble(29, async (scenario) => {
      const client = await scenario.rawClient({ timeoutMs: 4000 });
      for (let count = 0; count < 5; count++) await scenario.request(client, 'create', node(`/n${count}`));
      const [kept, lost] = [scenario.leader, scenario.followers];
      for (const server of scenario.world.servers) server.kill();
      for (const server of lost) {
        server.wipe();
        Object.assign(server.options, { dbAutocreate: false });
        scenario.run.boot(server);
      }
      await scenario.world.run(3000);
      if (lost.some(({ role }) => role === 'leader' || role === 'follower'))
        scenario.run.reportViolation('servers without data start a new ensemble');
      scenario.run.boot(kept);
      // Not even then: what the two had is unknown. An operator has to mark one of them as new.
      await scenario.world.run(2000);
      if (kept.role === 'leader') scenario.run.reportViolation('a server leads with servers that lost their data');
      lost[0]!.kill();
      lost[0]!.disk.putFile('/data/initialize', Buffer.alloc(0));
      scenario.run.boot(lost[0]!);
      await scenario.waitForReconnect(client);
      await scenario.request(client, 'create', node('/more'));
    }),
};

export const uncommittedTail: Scenario = {
  description:
    'a partitioned leader logs txns that no other server has; the others continue without it, and it truncates those txns durably when it returns',
  run: () =>
    ScenarioRun.executeEnsemble(30, async (scenario) => {
      const [old, others] = [scenario.leader, scenario.followers];
      const [lonely, client] = [
        await scenario.rawClient({ server: old }),
        await scenario.rawClient({ server: others[0], timeoutMs: 4000 }),
      ];
      await scenario.request(client, 'create', node('/a'));
      scenario.cutLinks([old], others);
      for (let count = 0; count < 5; count++) lonely.send('create', node(`/tail${count}`));
      await scenario.waitFor('the others have a leader', () => others.some(({ role }) => role === 'leader'));
      await scenario.waitForReconnect(client);
      for (let count = 0; count < 5; count++) await scenario.request(client, 'create', node(`/n${count}`));
      for (const server of others) scenario.world.link(old.name, server.name).heal();
      await scenario.waitFor('the old leader is back', () => scenario.run.allServing);
      // It must start from its truncated log on disk.
      old.kill();
      scenario.run.boot(old);
      await scenario.waitFor('the old leader is back again', () => scenario.run.allServing);
      await scenario.request(client, 'create', node('/last'));
    }),
};

/** The last of them makes a snapshot due. */
const tailTxns = 10;

export const snapshotOfTail: Scenario = {
  description:
    'a leader uses up the counter of its epoch at once, just as a snapshot is due, and no follower receives the txns: the snapshot holds txns that no other server has. The leader removes them and restarts without them',
  run: () =>
    ScenarioRun.executeEnsemble(
      34,
      async (scenario) => {
        const [old, others] = [scenario.leader, scenario.followers];
        const { world, run } = scenario;
        const client = await scenario.rawClient({ server: old, timeoutMs: 4000 });
        await scenario.request(client, 'create', node('/a'));
        const tailEnd = lastZxidOf(old) + tailTxns;
        for (const other of others) run.slowLink(old, other, 200, 1000);
        // A turn that is due at once runs after everything that has arrived is processed.
        old.turnMs = () => 50;
        for (let count = 0; count < tailTxns; count++) client.send('create', node(`/tail${count}`));
        await world.run(20);
        for (const other of others) other.kill();
        old.turnMs = () => 0;
        await scenario.waitFor('the snapshot exists', () =>
          old.disk.files().includes(`${old.snapshotFolder}/snapshot.${tailEnd.toString(16)}`),
        );
        old.kill();
        for (const other of others) run.boot(other);
        await scenario.waitFor('the others have a leader', () => others.every(({ role }) => role === 'leader' || role === 'follower'));
        run.boot(old);
        await scenario.waitFor('the old leader is back', () => run.allServing);
        const wasCut = world.recording.peerEvents.some(
          (event) => event.kind === 'replaced' && event.by === 'trunc' && event.server === old.name,
        );
        if (!wasCut) run.reportViolation('the old leader received no TRUNC');
        await scenario.waitForReconnect(client);
        await scenario.request(client, 'create', node('/n'));
        old.kill();
        run.boot(old);
        await scenario.waitFor('the old leader is back again', () => run.allServing);
        await scenario.waitForReconnect(client);
        await scenario.request(client, 'create', node('/last'));
      },
      { options: { snapCount: tailTxns }, zab: { counterMax: tailTxns + 2 } },
    ),
};

export const zxidCounterExhausted: Scenario = {
  description: 'the counter of an epoch is used up: the next epoch begins, and clients only notice a lost connection',
  run: () =>
    ScenarioRun.executeEnsemble(
      31,
      async (scenario) => {
        const client = await scenario.rawClient({ timeoutMs: 4000 });
        const { leader } = scenario;
        const leaderEpochs = () =>
          scenario.world.recording.peerEvents.filter((event) => event.kind === 'serves' && event.role === 'leader').length;
        const before = leaderEpochs();
        for (let count = 0; count < 20 && leader.role === 'leader'; count++) {
          client.send('create', node(`/n${count}`));
          await scenario.world.run(20);
        }
        await scenario.waitFor('another epoch has begun', () => leaderEpochs() > before);
        await scenario.waitForReconnect(client);
      },
      { zab: { counterMax: 10 } },
    ),
};

export const largeSnapshot: Scenario = {
  description: 'a server that lost its disk receives a snapshot over a slow link, which takes longer than initLimit, and joins',
  run: () =>
    ScenarioRun.executeEnsemble(
      32,
      async (scenario) => {
        const client = await scenario.rawClient({ server: scenario.leader });
        const data = Buffer.alloc(100_000, 'x');
        for (let count = 0; count < 12; count++) await scenario.request(client, 'create', { ...node(`/n${count}`), data });
        const [lost] = scenario.followers as [ServerHost];
        lost.kill();
        lost.wipe();
        const { wire } = scenario.world;
        wire.conditionsOf = () => ({ delayMs: 1, windowBytes: 10_000, pieceBytes: 10_000, pieceIntervalMs: 60 });
        scenario.run.boot(lost);
        await scenario.waitFor('the server follows', () => lost.role === 'follower');
        wire.conditionsOf = () => ({ delayMs: 1 });
      },
      { zab: { forceSnapshotSync: true } },
    ),
};

export const snapshotsForUnknownObservers: Scenario = {
  description:
    'a server that lost its disk receives a snapshot as fast as alone while an unknown observer receives one at 320 KB/s, and while four others request one and read nothing',
  run: () =>
    ScenarioRun.executeEnsemble(
      37,
      async (scenario) => {
        const { world, run } = scenario;
        const client = await scenario.rawClient({ server: scenario.leader });
        const data = Buffer.alloc(100_000, 'x');
        for (let count = 0; count < 40; count++) await scenario.request(client, 'create', { ...node(`/n${count}`), data });
        const narrow = { delayMs: 1, windowBytes: 10_000, pieceBytes: 3200, pieceIntervalMs: 10 };
        world.wire.conditionsOf = (from, to) => (from.startsWith('10.6.') || to.startsWith('10.6.') ? narrow : { delayMs: 1 });
        const [lost] = scenario.followers as [ServerHost];
        const joinMs = async (): Promise<number> => {
          lost.kill();
          lost.wipe();
          const beganMs = run.nowMs;
          run.boot(lost);
          await scenario.waitFor('the server follows', () => lost.role === 'follower');
          return run.nowMs - beganMs;
        };
        const come = async (addresses: readonly string[], isSilent: boolean): Promise<SnapshotReceiver[]> => {
          const leader = { address: scenario.leader.address!, port: quorumPort };
          const receivers = addresses.map((address, at) => new SnapshotReceiver(world, address, leader, 100 + at, isSilent));
          await world.run(500);
          return receivers;
        };
        const alone = await joinMs();
        const [slow] = (await come(['10.6.1.1'], false)) as [SnapshotReceiver];
        const besideSlow = await joinMs();
        if (slow.receivedBytes < 100_000 || slow.isGone)
          run.reportViolation(`the unknown observer that reads slowly received only ${slow.receivedBytes} bytes`);
        await come(['10.6.2.1', '10.6.2.2', '10.6.2.3', '10.6.2.4'], true);
        const besideSilent = await joinMs();
        if (Math.max(besideSlow, besideSilent) > alone * 1.2 + 20)
          run.reportViolation(
            `joining takes ${alone} ms alone, ${besideSlow} ms beside a slow observer, and ${besideSilent} ms beside four silent ones`,
          );
      },
      { zab: { forceSnapshotSync: true } },
    ),
};

export const restartUnderLoad: Scenario = {
  description: 'a follower with a slow disk restarts while a write arrives every few milliseconds: it serves again within two seconds',
  run: () =>
    ScenarioRun.executeEnsemble(36, async (scenario) => {
      const { world, run } = scenario;
      const client = await scenario.rawClient({ server: scenario.leader });
      const [follower] = scenario.followers as [ServerHost];
      let isLoaded = true;
      const write = (count: number): void => {
        if (!isLoaded) return;
        client.send('create', node(`/n${count}`));
        run.schedule(1 + (count % 8), 'work', undefined, () => write(count + 1));
      };
      write(0);
      await world.run(100);
      for (const syncMs of [1, 5, 20]) {
        follower.kill();
        follower.diskDelayMs = ({ operation }) => (operation === 'sync' ? syncMs : 0);
        run.boot(follower);
        if (!(await world.runUntil(() => follower.role === 'follower', 2000)))
          run.reportViolation(`the follower does not serve with an fsync of ${syncMs} ms`);
      }
      isLoaded = false;
    }),
};

export const lateObserver: Scenario = {
  description:
    'with two of three voters left, an observer joins over a slow link; txns that are committed meanwhile reach it, though no write follows',
  run: () =>
    ScenarioRun.executeEnsemble(
      33,
      async (scenario) => {
        const observer = scenario.world.servers.at(-1)!;
        const [follower, away] = scenario.followers as [ServerHost, ServerHost];
        const client = await scenario.rawClient({ server: follower });
        observer.kill();
        // Two of three voters are a quorum, with or without observers.
        away.kill();
        await scenario.request(client, 'create', node('/before'));
        scenario.world.link(observer.name, scenario.leader.name).slow(60);
        const bootedMs = scenario.run.nowMs;
        scenario.run.boot(observer);
        for (let count = 0; count < 80 && observer.role !== 'observer'; count++) {
          await scenario.request(client, 'create', node(`/n${count}`));
          await scenario.world.run(35);
        }
        await scenario.waitFor('the observer has joined', () => observer.role === 'observer');
        // An observer that lacks a txn would notice, leave its leader, and join again until the
        // writes end.
        const { peerEvents } = scenario.world.recording;
        if (peerEvents.some(({ kind, server, atMs }) => kind === 'roleEnded' && server === observer.name && atMs >= bootedMs))
          scenario.run.reportViolation('an observer lacks what was committed while it joined');
      },
      { servers: 4, observers: 1 },
    ),
};
