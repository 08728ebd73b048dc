/** Scenarios of sessions: who owns them, and how long they last. */
import { AddWatchMode, creatorAcl, CreateMode, ErrorCode, openAcl, WatcherType } from '@tskeeper/protocol';
import { keepAll } from '@tskeeper/runtime';
import type { ClientRequest } from '../clients/actor.ts';
import { type Scenario, ScenarioRun } from './scenario.ts';

const dayMs = 86_400_000;

export const clockSetBack: Scenario = {
  description:
    'sessions end, a snapshot without them is written, the clock is set back, and the server restarts: their ids are not granted again',
  run: () =>
    ScenarioRun.execute(
      1,
      async (scenario) => {
        const stays = await scenario.rawClient();
        for (let round = 0; round < 3; round++) {
          const goes = await scenario.rawClient();
          await scenario.request(goes, 'create', { path: `/e${round}`, data: null, acl: openAcl, flags: CreateMode.ephemeral });
          await scenario.request(goes, 'closeSession', undefined);
          goes.abandon();
          scenario.run.actors.pop();
        }
        // Enough for a snapshot with only the first session left.
        for (let count = 0; count < 40; count++)
          await scenario.request(stays, 'setData', { path: '/', data: Buffer.from([count]), version: -1 });
        const { server } = scenario.world;
        server.kill();
        server.setWallClock(server.wallOffsetMs - dayMs);
        await server.start();
        for (let count = 0; count < 3; count++) await scenario.rawClient();
      },
      {},
      { snapCount: 10 },
    ),
};

export const authThrottled: Scenario = {
  description: 'credentials are parked because too many requests are outstanding, and a request parked after them is validated with them',
  run: () =>
    ScenarioRun.execute(
      2,
      async (scenario) => {
        const [busy, alice] = [await scenario.rawClient(), await scenario.rawClient()];
        scenario.world.server.diskDelayMs = () => 20;
        for (let count = 0; count < 5; count++) busy.send('setData', { path: '/', data: Buffer.from([count]), version: -1 });
        alice.send('auth', { type: 0, scheme: 'digest', auth: Buffer.from('alice:secret') });
        const created = await scenario.request(alice, 'create', {
          path: '/mine',
          data: null,
          acl: creatorAcl,
          flags: CreateMode.persistent,
        });
        if (created?.reply?.err !== ErrorCode.Ok) scenario.run.reportViolation(`the create returned error ${created?.reply?.err}`);
      },
      { requestThrottleLimit: 1 },
    ),
};

export const authOfClosedCnxn: Scenario = {
  description: 'a client disconnects while its credentials and a later write are parked; the write is not carried out without them',
  run: () =>
    ScenarioRun.execute(
      10,
      async (scenario) => {
        const [busy, bob] = [await scenario.rawClient(), await scenario.rawClient({ credentials: 'bob:pw' })];
        await scenario.request(bob, 'whoAmI', undefined);
        scenario.world.server.diskDelayMs = () => 20;
        for (let count = 0; count < 5; count++) busy.send('setData', { path: '/', data: Buffer.from([count]), version: -1 });
        await scenario.world.run(5);
        bob.send('auth', { type: 0, scheme: 'digest', auth: Buffer.from('alice:secret') });
        bob.send('create', { path: '/ours', data: null, acl: creatorAcl, flags: CreateMode.persistent });
        await scenario.world.run(10);
        bob.reset();
        // Away until the parked requests have had their turn: after the session moved they would
        // have no effect in any case.
        bob.goOffline(150);
        await scenario.waitForReconnect(bob);
      },
      { requestThrottleLimit: 1, requestThrottleDropStale: false },
    ),
};

export const movedSession: Scenario = {
  description:
    'a client resumes its session over a second connection and writes; a request that the server reads later from the first has no effect',
  run: () =>
    ScenarioRun.execute(3, async (scenario) => {
      const client = await scenario.rawClient();
      await scenario.request(client, 'create', { path: '/a', data: null, acl: openAcl, flags: CreateMode.persistent });
      client.wire!.forward.cut();
      const { wire } = client;
      client.send('setData', { path: '/a', data: Buffer.from('over the old connection'), version: -1 });
      client.redial();
      await scenario.waitFor('the client is back', () => client.ready);
      await scenario.request(client, 'setData', { path: '/a', data: Buffer.from('over the new connection'), version: -1 });
      wire!.forward.heal();
      await scenario.world.run(100);
    }),
};

export const pausedServer: Scenario = {
  description:
    'a server is paused for longer than the session timeouts; clients that sent something meanwhile keep their sessions and ephemerals',
  run: () =>
    ScenarioRun.execute(4, async (scenario) => {
      const clients = [await scenario.rawClient({ timeoutMs: 1000 }), await scenario.libraryClient({ timeoutMs: 1000 })];
      for (const [at, client] of clients.entries()) {
        client.submit({ name: 'create', record: { path: `/e${at}`, data: null, acl: openAcl, flags: CreateMode.ephemeral } });
      }
      await scenario.world.run(50);
      const { process } = scenario.world.server;
      const { clock, recording } = scenario.world;
      recording.pauses.push({ server: 'server-1', fromMs: clock.elapsedMs, toMs: clock.elapsedMs + 600 });
      process!.pause(600);
      await scenario.world.run(1500);
      if (clients.some(({ lostSessions }) => lostSessions.length > 0)) scenario.run.reportViolation('a client lost its session');
    }),
};

export const closingServer: Scenario = {
  description: 'a server is asked to close as it wakes from a pause; it no longer reads from clients, so it expires no session',
  run: () =>
    ScenarioRun.execute(
      11,
      async (scenario) => {
        const [client, writer] = [await scenario.rawClient({ timeoutMs: 1000 }), await scenario.rawClient({ timeoutMs: 4000 })];
        await scenario.request(client, 'create', { path: '/e', data: null, acl: openAcl, flags: CreateMode.ephemeral });
        const { server, clock, recording } = scenario.world;
        // The timeout of another session has passed, and the server is about to see whose.
        const other = await scenario.rawClient({ timeoutMs: 1000 });
        other.abandon();
        scenario.run.actors.pop();
        const dueMs = Math.min(...[...server.process!.runtime!.inspect.sessionExpiry()].map(({ dueMs: each }) => each));
        let latest = '';
        scenario.world.onEvent = (what) => (latest = what);
        // A snapshot is being written, and the log stays open until it is complete.
        server.diskDelayMs = ({ path }) => (path.includes('snapshot') ? 3000 : 0);
        for (let count = 0; count < 30; count++) writer.send('setData', { path: '/', data: null, version: -1 });
        await scenario.waitFor('a timer has fired', () => latest === 'timer' && clock.elapsedMs >= dueMs);
        recording.pauses.push({ server: 'server-1', fromMs: clock.elapsedMs, toMs: clock.elapsedMs + 2000 });
        server.process!.pause(2000);
        await scenario.world.run(500);
        client.send('exists', { path: '/e', watch: false });
        await scenario.world.run(1000);
        await server.stop();
        server.diskDelayMs = () => 0;
        await server.start();
        await scenario.waitForReconnect(client);
        if (client.lostSessions.length > 0) scenario.run.reportViolation('the client lost its session');
      },
      {},
      { snapCount: 10 },
    ),
};

export const watchesOverPowerLoss: Scenario = {
  description:
    'the machine of a server loses power while a client has watches; the client reconnects, receives what it missed, and its watches continue',
  run: () =>
    ScenarioRun.execute(5, async (scenario) => {
      const [watcher, writer] = [await scenario.libraryClient({ timeoutMs: 4000 }), await scenario.rawClient()];
      await scenario.request(writer, 'create', { path: '/a', data: null, acl: openAcl, flags: CreateMode.persistent });
      for (const path of ['/a', '/b']) watcher.submit({ name: 'exists', record: { path, watch: true } });
      watcher.submit({ name: 'addWatch', record: { path: '/', mode: 1 } });
      await scenario.world.run(50);
      const link = scenario.world.link(watcher.name, 'server-1');
      link.cut();
      await scenario.request(writer, 'setData', { path: '/a', data: Buffer.from('unseen'), version: -1 });
      await scenario.request(writer, 'create', { path: '/b', data: null, acl: openAcl, flags: CreateMode.persistent });
      scenario.world.server.losePower(keepAll);
      await scenario.world.server.start();
      link.heal();
      for (const client of [watcher, writer]) await scenario.waitForReconnect(client);
      await scenario.request(writer, 'setData', { path: '/b', data: Buffer.from('seen'), version: -1 });
      await scenario.waitFor('the watcher has received all three events', () => watcher.deliveredEventCount >= 3);
    }),
};

export const znodeReplacedInMulti: Scenario = {
  description:
    'one multi replaces a znode that a watcher may not read with one that it may, and deletes that: the watcher receives the events of the znode it may read',
  run: () =>
    ScenarioRun.execute(12, async (scenario) => {
      const [watcher, owner] = [await scenario.rawClient(), await scenario.rawClient({ credentials: 'alice:secret' })];
      await scenario.request(owner, 'create', { path: '/a', data: null, acl: creatorAcl, flags: CreateMode.persistent });
      await scenario.request(watcher, 'addWatch', { path: '/', mode: AddWatchMode.persistentRecursive });
      const gone = { kind: 'delete', path: '/a', version: -1 } as const;
      await scenario.request(owner, 'multi', {
        ops: [gone, { kind: 'create', path: '/a', data: null, acl: openAcl, flags: CreateMode.persistent }, gone],
      });
      await scenario.waitFor(
        'the watcher has received both events',
        () => watcher.cnxn!.record!.items.filter(({ kind }) => kind === 'event').length === 2,
      );
    }),
};

export const watchSetAfterRemoval: Scenario = {
  description: 'a watch is removed and set again at once; the new one survives a reconnect',
  run: () =>
    ScenarioRun.execute(9, async (scenario) => {
      const [watcher, writer] = [await scenario.libraryClient({ timeoutMs: 4000 }), await scenario.rawClient()];
      const addWatch: ClientRequest = { name: 'addWatch', record: { path: '/a', mode: AddWatchMode.persistent } };
      watcher.submit(addWatch);
      await scenario.world.run(50);
      watcher.submit({ name: 'removeWatches', record: { path: '/a', type: WatcherType.any } });
      watcher.submit(addWatch);
      await scenario.world.run(50);
      watcher.reset();
      await scenario.waitForReconnect(watcher);
      // The watches are restored. A persistent watch receives no event for earlier changes.
      await scenario.world.run(50);
      const before = watcher.deliveredEventCount;
      await scenario.request(writer, 'create', { path: '/a', data: null, acl: openAcl, flags: CreateMode.persistent });
      await scenario.waitFor('the watcher has received the event', () => watcher.deliveredEventCount > before);
    }),
};
