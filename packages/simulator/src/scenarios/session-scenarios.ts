/** Scenarios of sessions: who owns them, and how long they last. */
import { AddWatchMode, creatorAcl, CreateMode, ErrorCode, openAcl, WatcherType } from '@tskeeper/protocol';
import { keepAll } from '@tskeeper/runtime';
import type { Ask } from '../clients/actor.ts';
import { type Scenario, Scene } from './scenario.ts';

const dayMs = 86_400_000;

export const clockSetBack: Scenario = {
  story:
    'sessions end, a snapshot without them is written, the clock is set back, and the server restarts: their ids are not granted again',
  run: () =>
    Scene.play(
      1,
      async (scene) => {
        const stays = await scene.raw();
        for (let round = 0; round < 3; round++) {
          const goes = await scene.raw();
          await scene.ask(goes, 'create', { path: `/e${round}`, data: null, acl: openAcl, flags: CreateMode.ephemeral });
          await scene.ask(goes, 'closeSession', undefined);
          goes.retire();
          scene.stage.actors.pop();
        }
        // Enough for a snapshot with only the first session left.
        for (let count = 0; count < 40; count++) await scene.ask(stays, 'setData', { path: '/', data: Buffer.from([count]), version: -1 });
        const { server } = scene.world;
        server.kill();
        server.setWallClock(server.wallOffsetMs - dayMs);
        await server.start();
        for (let count = 0; count < 3; count++) await scene.raw();
      },
      {},
      { snapCount: 10 },
    ),
};

export const authHeldBack: Scenario = {
  story: 'credentials are parked because too many requests are outstanding, and a request parked after them is validated with them',
  run: () =>
    Scene.play(
      2,
      async (scene) => {
        const [busy, alice] = [await scene.raw(), await scene.raw()];
        scene.world.server.diskDelayMs = () => 20;
        for (let count = 0; count < 5; count++) busy.send('setData', { path: '/', data: Buffer.from([count]), version: -1 });
        alice.send('auth', { type: 0, scheme: 'digest', auth: Buffer.from('alice:secret') });
        const created = await scene.ask(alice, 'create', { path: '/mine', data: null, acl: creatorAcl, flags: CreateMode.persistent });
        if (created?.reply?.err !== ErrorCode.Ok) scene.stage.complain(`the create returned error ${created?.reply?.err}`);
      },
      { requestThrottleLimit: 1 },
    ),
};

export const authLeftBehind: Scenario = {
  story: 'a client disconnects while its credentials and a later write are parked; the write is not carried out without them',
  run: () =>
    Scene.play(
      10,
      async (scene) => {
        const [busy, bob] = [await scene.raw(), await scene.raw({ credentials: 'bob:pw' })];
        await scene.ask(bob, 'whoAmI', undefined);
        scene.world.server.diskDelayMs = () => 20;
        for (let count = 0; count < 5; count++) busy.send('setData', { path: '/', data: Buffer.from([count]), version: -1 });
        await scene.world.run(5);
        bob.send('auth', { type: 0, scheme: 'digest', auth: Buffer.from('alice:secret') });
        bob.send('create', { path: '/ours', data: null, acl: creatorAcl, flags: CreateMode.persistent });
        await scene.world.run(10);
        bob.reset();
        // Away until the parked requests have had their turn: after the session moved they would
        // have no effect in any case.
        bob.sleep(150);
        await scene.comesBack(bob);
      },
      { requestThrottleLimit: 1, requestThrottleDropStale: false },
    ),
};

export const movedSession: Scenario = {
  story:
    'a client resumes its session over a second connection and writes; a request that the server reads later from the first has no effect',
  run: () =>
    Scene.play(3, async (scene) => {
      const client = await scene.raw();
      await scene.ask(client, 'create', { path: '/a', data: null, acl: openAcl, flags: CreateMode.persistent });
      client.wire!.forward.hold();
      const { wire } = client;
      client.send('setData', { path: '/a', data: Buffer.from('over the old connection'), version: -1 });
      client.moveOn();
      await scene.until('the client is back', () => client.ready);
      await scene.ask(client, 'setData', { path: '/a', data: Buffer.from('over the new connection'), version: -1 });
      wire!.forward.release();
      await scene.world.run(100);
    }),
};

export const pausedServer: Scenario = {
  story:
    'a server is paused for longer than the session timeouts; clients that sent something meanwhile keep their sessions and ephemerals',
  run: () =>
    Scene.play(4, async (scene) => {
      const clients = [await scene.raw({ timeoutMs: 1000 }), await scene.real({ timeoutMs: 1000 })];
      for (const [at, client] of clients.entries()) {
        client.ask({ name: 'create', record: { path: `/e${at}`, data: null, acl: openAcl, flags: CreateMode.ephemeral } });
      }
      await scene.world.run(50);
      const { process } = scene.world.server;
      const { clock, recording } = scene.world;
      recording.pauses.push({ server: 'server-1', fromMs: clock.elapsedMs, toMs: clock.elapsedMs + 600 });
      process!.pause(600);
      await scene.world.run(1500);
      if (clients.some(({ lost }) => lost.length > 0)) scene.stage.complain('a client lost its session');
    }),
};

export const closingServer: Scenario = {
  story: 'a server is asked to close as it wakes from a pause; it no longer reads from clients, so it expires no session',
  run: () =>
    Scene.play(
      11,
      async (scene) => {
        const [client, writer] = [await scene.raw({ timeoutMs: 1000 }), await scene.raw({ timeoutMs: 4000 })];
        await scene.ask(client, 'create', { path: '/e', data: null, acl: openAcl, flags: CreateMode.ephemeral });
        const { server, clock, recording } = scene.world;
        // The timeout of another session has passed, and the server is about to see whose.
        const other = await scene.raw({ timeoutMs: 1000 });
        other.retire();
        scene.stage.actors.pop();
        const dueMs = Math.min(...[...server.process!.runtime!.inspect.sessionExpiry()].map(({ dueMs: each }) => each));
        let latest = '';
        scene.world.onEvent = (what) => (latest = what);
        // A snapshot is being written, and the log stays open until it is complete.
        server.diskDelayMs = ({ path }) => (path.includes('snapshot') ? 3000 : 0);
        for (let count = 0; count < 30; count++) writer.send('setData', { path: '/', data: null, version: -1 });
        await scene.until('a timer has fired', () => latest === 'timer' && clock.elapsedMs >= dueMs);
        recording.pauses.push({ server: 'server-1', fromMs: clock.elapsedMs, toMs: clock.elapsedMs + 2000 });
        server.process!.pause(2000);
        await scene.world.run(500);
        client.send('exists', { path: '/e', watch: false });
        await scene.world.run(1000);
        await server.stop();
        server.diskDelayMs = () => 0;
        await server.start();
        await scene.comesBack(client);
        if (client.lost.length > 0) scene.stage.complain('the client lost its session');
      },
      {},
      { snapCount: 10 },
    ),
};

export const watchesOverPowerLoss: Scenario = {
  story:
    'the machine of a server loses power while a client has watches; the client reconnects, receives what it missed, and its watches continue',
  run: () =>
    Scene.play(5, async (scene) => {
      const [watcher, writer] = [await scene.real({ timeoutMs: 4000 }), await scene.raw()];
      await scene.ask(writer, 'create', { path: '/a', data: null, acl: openAcl, flags: CreateMode.persistent });
      for (const path of ['/a', '/b']) watcher.ask({ name: 'exists', record: { path, watch: true } });
      watcher.ask({ name: 'addWatch', record: { path: '/', mode: 1 } });
      await scene.world.run(50);
      const link = scene.world.link(watcher.name, 'server-1');
      link.cut();
      await scene.ask(writer, 'setData', { path: '/a', data: Buffer.from('unseen'), version: -1 });
      await scene.ask(writer, 'create', { path: '/b', data: null, acl: openAcl, flags: CreateMode.persistent });
      scene.world.server.losePower(keepAll);
      await scene.world.server.start();
      link.heal();
      for (const client of [watcher, writer]) await scene.comesBack(client);
      await scene.ask(writer, 'setData', { path: '/b', data: Buffer.from('seen'), version: -1 });
      await scene.until('the watcher has received all three events', () => watcher.toldCount >= 3);
    }),
};

export const passingZnode: Scenario = {
  story:
    'one multi replaces a znode that a watcher may not read with one that it may, and deletes that: the watcher receives the events of the znode it may read',
  run: () =>
    Scene.play(12, async (scene) => {
      const [watcher, owner] = [await scene.raw(), await scene.raw({ credentials: 'alice:secret' })];
      await scene.ask(owner, 'create', { path: '/a', data: null, acl: creatorAcl, flags: CreateMode.persistent });
      await scene.ask(watcher, 'addWatch', { path: '/', mode: AddWatchMode.persistentRecursive });
      const gone = { kind: 'delete', path: '/a', version: -1 } as const;
      await scene.ask(owner, 'multi', {
        ops: [gone, { kind: 'create', path: '/a', data: null, acl: openAcl, flags: CreateMode.persistent }, gone],
      });
      await scene.until(
        'the watcher has received both events',
        () => watcher.cnxn!.record!.items.filter(({ kind }) => kind === 'event').length === 2,
      );
    }),
};

export const watchSetBehindRemoval: Scenario = {
  story: 'a watch is removed and set again at once; the new one survives a reconnect',
  run: () =>
    Scene.play(9, async (scene) => {
      const [watcher, writer] = [await scene.real({ timeoutMs: 4000 }), await scene.raw()];
      const addWatch: Ask = { name: 'addWatch', record: { path: '/a', mode: AddWatchMode.persistent } };
      watcher.ask(addWatch);
      await scene.world.run(50);
      watcher.ask({ name: 'removeWatches', record: { path: '/a', type: WatcherType.any } });
      watcher.ask(addWatch);
      await scene.world.run(50);
      watcher.reset();
      await scene.comesBack(watcher);
      // The watches are restored. A persistent watch receives no event for earlier changes.
      await scene.world.run(50);
      const before = watcher.toldCount;
      await scene.ask(writer, 'create', { path: '/a', data: null, acl: openAcl, flags: CreateMode.persistent });
      await scene.until('the watcher has received the event', () => watcher.toldCount > before);
    }),
};
