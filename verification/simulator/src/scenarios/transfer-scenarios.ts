/** Scenarios of a leader that gives the lead to another server. */
import { CreateMode, ErrorCode, openAcl } from '@tskeeper/protocol';
import type { RawClient } from '../clients/raw-client.ts';
import { pauseServer } from '../faults/process-faults.ts';
import { type Scenario, ScenarioRun } from './scenario.ts';

/** Less than an election takes, and more than disks and links of this world. */
const gapMsMax = 200;

function create(client: RawClient, path: string) {
  return client.send('create', { path, data: Buffer.from(path), acl: openAcl, flags: CreateMode.persistent });
}

function elections({ world }: ScenarioRun): number {
  return world.servers.reduce((sum, { logEvents }) => sum + logEvents.filter(({ event }) => event === 'leader.elected').length, 0);
}

export const leadTransferred: Scenario = {
  description: 'the lead passes four times, while clients write, to the follower with the slower disk: at once, and without an election',
  run: () =>
    ScenarioRun.executeEnsemble(81, async (scenario) => {
      const { run, world } = scenario;
      const client = await scenario.rawClient({ timeoutMs: 6000 });
      for (let round = 0; round < 4; round++) {
        await scenario.waitFor('every server serves', () => run.allServing && client.ready);
        const { leader } = scenario;
        const target = scenario.followers[round % 2]!;
        const before = elections(scenario);
        run.disks.slowUntil(target, run.nowMs + 40);
        for (let number = 0; number < 5; number++) create(client, `/transfer-${round}-${number}`);
        // The leader and the other follower have these writes, and the target has not.
        await world.run(4);
        const beganMs = run.nowMs;
        leader
          .process!.runtime!.transferLeadership(world.servers.indexOf(target) + 1)
          .catch((error: Error) => run.reportViolation(error.message));
        await scenario.waitFor('another server leads', () => run.leader === target);
        await scenario.waitFor('every server serves', () => run.allServing);
        if (run.nowMs - beganMs > gapMsMax + 300) run.reportViolation(`the transfer took ${run.nowMs - beganMs} ms`);
        if (elections(scenario) > before) run.reportViolation('the transfer needed an election');
      }
    }),
};

export const transferGivenUp: Scenario = {
  description: 'the server that is to lead stands still: the leader goes on, and performs what clients have asked for meanwhile, in order',
  run: () =>
    ScenarioRun.executeEnsemble(82, async (scenario) => {
      const { run, world } = scenario;
      const { leader } = scenario;
      const [target, other] = scenario.followers;
      const client = await scenario.rawClient({ timeoutMs: 6000 });
      const { tickMs, syncLimitTicks = 0 } = world.recording.limits;
      pauseServer(run, target!, tickMs * syncLimitTicks);
      const first = create(client, '/first');
      await scenario.waitFor('a quorum has a write that the target has not', () => first?.reply !== undefined);
      let outcome = '';
      leader.process!.runtime!.transferLeadership(world.servers.indexOf(target!) + 1).catch((error: Error) => {
        outcome = error.message;
      });
      // Each needs the one before it.
      const held = ['/a', '/a/b', '/a/b/c'].map((path) => create(client, path));
      const late = scenario.rawClient({ timeoutMs: 6000 });
      await world.run((tickMs * syncLimitTicks) / 4);
      if (held.some((request) => request?.reply !== undefined)) run.reportViolation('a write was answered during the transfer');
      await scenario.waitFor('the leader goes on', () => outcome !== '');
      if (!/has not taken the lead in time/.test(outcome)) run.reportViolation(`the transfer ended differently: ${outcome}`);
      await scenario.waitFor('the writes are answered', () => held.every((request) => request?.reply !== undefined));
      if (held.some((request) => request!.reply!.err !== ErrorCode.Ok)) run.reportViolation('a write that waited failed');
      await late;
      if (run.leader !== leader || other!.role !== 'follower') run.reportViolation('another server leads');
    }),
};
