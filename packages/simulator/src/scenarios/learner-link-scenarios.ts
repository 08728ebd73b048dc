/** The links between a leader and its learners: strangers that speak over them, and requests that are more than they take. */
import { epochOf, openAcl, PacketType } from '@tskeeper/protocol';
import type { ServerHost } from '../world/server-host.ts';
import { type Scenario, Scene } from './scenario.ts';
import { Stranger } from './stranger.ts';

const epochOfLeader = ({ leader }: Scene): number => epochOf(leader.process!.runtime!.inspect.lastZxid());
const sidOf = (server: ServerHost): number => Number(server.name.split('-').at(-1));

export const claimedFollower: Scenario = {
  story:
    'a stranger gives the id of a follower again and again, which is not cut off; the follower loses its power, the stranger has its place, and gives it up when the follower is back',
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
        if (follower.role !== 'follower') stage.complain('a stranger has cut off the follower whose id it gave');
        if (stranger.answered > 0) stage.complain('a stranger was taken for the follower whose id it gave, while that was there');
      }
      await world.run(1000);

      follower.kill();
      await world.run(10);
      claims();
      await world.run(30);
      if (stranger.answered === 0) stage.complain('nobody has the id that was given, and it was not taken');
      stage.boot(follower);
      // The leader lets a holder that does not answer go after half a tick and half of that; a follower that must connect anew comes later.
      if (!(await world.runUntil(() => follower.role === 'follower', 400)))
        stage.complain('a follower did not come in for a stream with its id, over which nothing was said');
      await scene.comesBack(client);
    }),
};

export const crowdOfObservers: Scenario = {
  story: 'thirty strangers say to be observers that no configuration has; a few are let in, and writes go on',
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
      if (stranger.connections > 16) stage.complain(`${stranger.connections} observers are let in that no configuration has`);
      if (stranger.connections === 0) stage.complain('no observer is let in that no configuration has');
      for (let count = 0; count < 10; count++) await scene.ask(client, 'setData', { path: '/a', data: Buffer.alloc(1000), version: -1 });
    }),
};

export const slowWayToLeader: Scenario = {
  story: 'the clients of a follower write more than its way to the leader takes: it stays with its leader, and all is carried out in order',
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
          if (follower.role !== 'follower') stage.complain('a follower has left its leader for what its own clients asked');
        }
        const last = await scene.ask(clients[1]!, 'setData', { path: '/a', data: Buffer.alloc(10_000), version: -1 });
        if (last?.reply?.err !== 0) stage.complain('a write is refused, though nothing waits any more');
      },
      { inFlightBytesMax: 40_000 },
      {},
      { servers: 3, ensemble: { options: { learnerPort: { fullBytes: 2000, behindBytesMax: 100_000 } } } },
    ),
};
