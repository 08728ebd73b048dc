/**
 * Scenarios of expiry: a live client keeps its session while the server does not read, and a dead
 * session ends while the server is busy.
 */
import { CreateMode, type Millis, openAcl } from '@tskeeper/protocol';
import type { RawClient } from '../clients/raw-client.ts';
import { type Scenario, ScenarioRun } from './scenario.ts';

const timeoutMs = 1000;
/** By the property: a tick, and a second. */
const lateMaxMs = 200 + 1000;

function ephemeral(path: string) {
  return { path, data: null, acl: openAcl, flags: CreateMode.ephemeral };
}

/** The client stops without closing its connection, as if its machine lost power. */
function crashMachine(scenario: ScenarioRun, client: RawClient): void {
  client.abandon();
  client.goOffline(Number.MAX_SAFE_INTEGER);
  scenario.run.actors.splice(scenario.run.actors.indexOf(client), 1);
}

export const pausedLeader: Scenario = {
  description:
    'a leader is paused for less than syncLimit and longer than the session timeouts; clients of its followers keep their sessions',
  run: () =>
    ScenarioRun.executeEnsemble(90, async (scenario) => {
      const { world, run, leader } = scenario;
      const clients: RawClient[] = [];
      for (const server of world.servers) clients.push(await scenario.rawClient({ server, timeoutMs: 500 }));
      for (const [at, client] of clients.entries()) await scenario.request(client, 'create', ephemeral(`/e${at}`));
      const pauseLeader = async (ms: Millis) => {
        const { elapsedMs } = world.clock;
        world.recording.pauses.push({ server: leader.name, fromMs: elapsedMs, toMs: elapsedMs + ms });
        leader.process!.pause(ms);
        await world.run(ms + 1000);
      };
      for (const ms of [600, 850]) {
        await world.run(700);
        await pauseLeader(ms);
      }
      // Replies to a PING are in transit when the leader pauses. They report what was before, and some
      // of these clients, which send something less often than the leader sends a PING, only later.
      for (const server of scenario.followers) {
        for (let count = 0; count < 4; count++) clients.push(await scenario.rawClient({ server, timeoutMs: 700 }));
      }
      for (const server of scenario.followers) run.slowLink(leader, server, 60, 60_000);
      for (let sinceMs = 0; sinceMs < world.recording.limits.tickMs; sinceMs += 40) {
        await world.run(700 + sinceMs);
        await pauseLeader(880);
      }
      if (clients.some(({ lostSessions }) => lostSessions.length > 0)) run.reportViolation('a client lost its session');
    }),
};

export const busyServer: Scenario = {
  description:
    'clients send more long multis than a server can validate; a dead session ends in time, and one whose pings wait stays alive',
  run: () =>
    ScenarioRun.execute(
      91,
      async (scenario) => {
        const { world, run } = scenario;
        const busy = [await scenario.rawClient({ timeoutMs: 4000 }), await scenario.rawClient({ timeoutMs: 4000 })];
        const [honest, dead] = [await scenario.rawClient({ timeoutMs }), await scenario.rawClient({ timeoutMs })];
        await scenario.request(honest, 'create', ephemeral('/honest'));
        await scenario.request(dead, 'create', ephemeral('/dead'));
        world.server.turnMs = () => 2;
        let isOver = false;
        const multi = (parts: number) => ({
          ops: Array.from({ length: parts }, () => ({ kind: 'check' as const, path: '/', version: -1 })),
        });
        const work = () => {
          if (isOver) return;
          for (const each of busy) if (each.ready && each.outstandingCount < 4) each.send('multi', multi(1500));
          run.schedule(5, 'busy', undefined, work);
        };
        work();
        await world.run(100);
        crashMachine(scenario, dead);
        const silentMs = world.clock.elapsedMs;
        const { inspect } = world.server.process!.runtime!;
        await scenario.waitFor('the ephemeral of the dead session is gone', () => inspect.ephemeralCount() === 1);
        const livedMs = world.clock.elapsedMs - silentMs;
        if (livedMs > timeoutMs + lateMaxMs) run.reportViolation(`the dead session ended ${livedMs} ms after its client's last request`);
        // One that takes longer than the session timeout.
        world.server.turnMs = () => 200;
        busy[0]!.send('multi', multi(8000));
        isOver = true;
        await world.run(6000);
        world.server.turnMs = () => 0;
        if (honest.lostSessions.length > 0) run.reportViolation('the honest client lost its session');
      },
      { stepUnits: 500 },
    ),
};
