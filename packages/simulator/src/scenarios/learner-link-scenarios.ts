/**
 * Scenarios of the links between a leader and its learners: peers outside the ensemble that use
 * them, and more requests than they can carry.
 */
import { epochOf, openAcl, PacketType } from '@tskeeper/protocol';
import type { ServerHost } from '../world/server-host.ts';
import { type Scenario, Scene } from './scenario.ts';
import { Stranger } from './stranger.ts';

const epochOfLeader = ({ leader }: Scene): number => epochOf(leader.process!.runtime!.inspect.lastZxid());
const sidOf = (server: ServerHost): number => Number(server.name.split('-').at(-1));

export const claimedFollower: Scenario = {
  story:
    'a stranger claims the id of a follower many times, and the follower is not dropped; after a kill of the follower the stranger takes its place, and loses it when the follower returns',
  run: () =>
    Scene.playEnsemble(41, async (scene) => {
      const { world, stage } = scene;
      const [follower] = scene.followers as [ServerHost];
      const client = await scene.raw({ server: follower });
      await scene.ask(client, 'create', { path: '/a', data: Buffer.alloc(1), acl: openAcl, flags: 0 });
      const stranger = new Stranger(world, '10.9.1.1');
      const claims = () => stranger.claims(scene.leader.address!, sidOf(follower), PacketType.FOLLOWERINFO, epochOfLeader(scene));
      for (let count = 0; count < 50; count++) {
        claims();
        await world.run(30);
        if (follower.role !== 'follower') stage.complain("a stranger that claimed a follower's id displaced the follower");
        if (stranger.answered > 0)
          stage.complain("the leader answered a stranger that claimed a follower's id while the follower was connected");
      }
      await world.run(1000);

      follower.kill();
      await world.run(10);
      claims();
      await world.run(30);
      if (stranger.answered === 0) stage.complain('the leader did not answer a stranger that claimed a free id');
      stage.boot(follower);
      // The leader drops a holder that does not answer after three quarters of a tick; a follower
      // that must connect again joins later.
      if (!(await world.runUntil(() => follower.role === 'follower', 400)))
        stage.complain('a silent stream with its id kept a follower from joining');
      await scene.comesBack(client);
    }),
};

export const crowdOfObservers: Scenario = {
  story: 'thirty strangers join as observers that no configuration lists; the leader admits a few, and writes continue',
  run: () =>
    Scene.playEnsemble(42, async (scene) => {
      const { world, stage } = scene;
      const client = await scene.raw({ server: scene.leader });
      await scene.ask(client, 'create', { path: '/a', data: Buffer.alloc(1), acl: openAcl, flags: 0 });
      const stranger = new Stranger(world, '10.9.1.1');
      const epoch = epochOfLeader(scene);
      for (let count = 0; count < 30; count++) stranger.claims(scene.leader.address!, 100 + count, PacketType.OBSERVERINFO, epoch);
      await world.run(50);
      stranger.acceptsEpoch(epoch);
      await world.run(50);
      if (stranger.connections > 16) stage.complain(`the leader admitted ${stranger.connections} observers that no configuration lists`);
      if (stranger.connections === 0) stage.complain('the leader admitted none of the observers that no configuration lists');
      for (let count = 0; count < 10; count++) await scene.ask(client, 'setData', { path: '/a', data: Buffer.alloc(1000), version: -1 });
    }),
};

export const slowWayToLeader: Scenario = {
  story:
    'the clients of a follower write more than its link to the leader can carry: it stays with its leader, and all writes are carried out in order',
  run: () =>
    Scene.play(
      43,
      async (scene) => {
        const { world, stage } = scene;
        const [follower] = scene.followers as [ServerHost];
        const clients = await Promise.all(Array.from({ length: 20 }, () => scene.raw({ server: follower, timeoutMs: 4000 })));
        await scene.ask(clients[0]!, 'create', { path: '/a', data: Buffer.alloc(1), acl: openAcl, flags: 0 });
        world.wire.forEachPipe(follower.address!, scene.leader.address!, (pipe) => {
          Object.assign(pipe.manners, { windowBytes: 4000, pieceBytes: 4000, pieceIntervalMs: 20 });
          pipe.changed();
        });
        for (const round of [1, 2, 3]) {
          for (const client of clients) client.send('setData', { path: '/a', data: Buffer.alloc(10_000, round), version: -1 });
          await scene.until('all writes are answered', () => clients.every((client) => client.outstandingCount === 0));
          if (follower.role !== 'follower') stage.complain("a follower left its leader because of its own clients' requests");
        }
        const last = await scene.ask(clients[1]!, 'setData', { path: '/a', data: Buffer.alloc(10_000), version: -1 });
        if (last?.reply?.err !== 0) stage.complain('a write was refused though no other was pending');
      },
      { inFlightBytesMax: 40_000 },
      {},
      { servers: 3, ensemble: { options: { learnerPort: { fullBytes: 2000, behindBytesMax: 100_000 } } } },
    ),
};
