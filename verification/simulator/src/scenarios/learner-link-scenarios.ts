/**
 * Scenarios of the links between a leader and its learners: peers outside the ensemble that use
 * them, and more requests than they can carry.
 */
import { epochOf, openAcl, PacketType } from '@tskeeper/protocol';
import type { ServerHost } from '../world/server-host.ts';
import { type Scenario, ScenarioRun } from './scenario.ts';
import { SidClaimant } from './sid-claimant.ts';

const epochOfLeader = ({ leader }: ScenarioRun): number => epochOf(leader.process!.runtime!.inspect.lastZxid());
const sidOf = (server: ServerHost): number => Number(server.name.split('-').at(-1));

export const sidConflict: Scenario = {
  description:
    'a stranger claims the id of a follower many times, and the follower is not dropped; after a kill of the follower the stranger takes its place, and loses it when the follower returns',
  run: () =>
    ScenarioRun.executeEnsemble(41, async (scenario) => {
      const { world, run } = scenario;
      const [follower] = scenario.followers as [ServerHost];
      const client = await scenario.rawClient({ server: follower });
      await scenario.request(client, 'create', { path: '/a', data: Buffer.alloc(1), acl: openAcl, flags: 0 });
      const claimant = new SidClaimant(world, '10.9.1.1');
      const claims = () => claimant.claimSid(scenario.leader.address!, sidOf(follower), PacketType.FOLLOWERINFO, epochOfLeader(scenario));
      for (let count = 0; count < 50; count++) {
        claims();
        await world.run(30);
        if (follower.role !== 'follower') run.reportViolation("a stranger that claimed a follower's id displaced the follower");
        if (claimant.answeredCount > 0)
          run.reportViolation("the leader answered a stranger that claimed a follower's id while the follower was connected");
      }
      await world.run(1000);

      follower.kill();
      await world.run(10);
      claims();
      await world.run(30);
      if (claimant.answeredCount === 0) run.reportViolation('the leader did not answer a stranger that claimed a free id');
      run.boot(follower);
      // The leader drops a holder that does not answer after three quarters of a tick; a follower
      // that must connect again joins later.
      if (!(await world.runUntil(() => follower.role === 'follower', 400)))
        run.reportViolation('a silent stream with its id kept a follower from joining');
      await scenario.waitForReconnect(client);
    }),
};

export const manyUnknownObservers: Scenario = {
  description: 'thirty strangers join as observers that no configuration lists; the leader admits a few, and writes continue',
  run: () =>
    ScenarioRun.executeEnsemble(42, async (scenario) => {
      const { world, run } = scenario;
      const client = await scenario.rawClient({ server: scenario.leader });
      await scenario.request(client, 'create', { path: '/a', data: Buffer.alloc(1), acl: openAcl, flags: 0 });
      const claimants = new SidClaimant(world, '10.9.1.1');
      const epoch = epochOfLeader(scenario);
      for (let count = 0; count < 30; count++) claimants.claimSid(scenario.leader.address!, 100 + count, PacketType.OBSERVERINFO, epoch);
      await world.run(50);
      claimants.acceptEpoch(epoch);
      await world.run(50);
      if (claimants.openCount > 16) run.reportViolation(`the leader admitted ${claimants.openCount} observers that no configuration lists`);
      if (claimants.openCount === 0) run.reportViolation('the leader admitted none of the observers that no configuration lists');
      for (let count = 0; count < 10; count++)
        await scenario.request(client, 'setData', { path: '/a', data: Buffer.alloc(1000), version: -1 });
    }),
};

export const slowLinkToLeader: Scenario = {
  description:
    'the clients of a follower write more than its link to the leader can carry: it stays with its leader, and all writes are carried out in order',
  run: () =>
    ScenarioRun.execute(
      43,
      async (scenario) => {
        const { world, run } = scenario;
        const [follower] = scenario.followers as [ServerHost];
        const clients = await Promise.all(Array.from({ length: 20 }, () => scenario.rawClient({ server: follower, timeoutMs: 4000 })));
        await scenario.request(clients[0]!, 'create', { path: '/a', data: Buffer.alloc(1), acl: openAcl, flags: 0 });
        world.wire.forEachPipe(follower.address!, scenario.leader.address!, (pipe) => {
          Object.assign(pipe.conditions, { windowBytes: 4000, pieceBytes: 4000, pieceIntervalMs: 20 });
          pipe.conditionsChanged();
        });
        for (const round of [1, 2, 3]) {
          for (const client of clients) client.send('setData', { path: '/a', data: Buffer.alloc(10_000, round), version: -1 });
          await scenario.waitFor('all writes are answered', () => clients.every((client) => client.outstandingCount === 0));
          if (follower.role !== 'follower') run.reportViolation("a follower left its leader because of its own clients' requests");
        }
        const last = await scenario.request(clients[1]!, 'setData', { path: '/a', data: Buffer.alloc(10_000), version: -1 });
        if (last?.reply?.err !== 0) run.reportViolation('a write was refused though no other was pending');
      },
      { inFlightBytesMax: 40_000 },
      {},
      { servers: 3, ensemble: { options: { learnerPort: { outputHighWaterBytes: 2000, queuedBytesMax: 100_000 } } } },
    ),
};
