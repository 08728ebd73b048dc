/** Scenarios of observers that learn from followers. */
import { CreateMode, type Millis, openAcl } from '@tskeeper/protocol';
import { observerMasterPort } from '../world/peer-ports.ts';
import type { ServerHost } from '../world/server-host.ts';
import { type Ensemble, type Scenario, ScenarioRun } from './scenario.ts';

/** Three voters and an observer. Silence for syncLimit is far longer than an election. */
const withObserver: Ensemble = { servers: 4, ensemble: { observers: 1, options: { observerMasterPort }, zab: { syncLimitTicks: 20 } } };

const observerOf = ({ world }: ScenarioRun): ServerHost => world.servers.at(-1)!;

function node(path: string) {
  return { path, data: Buffer.alloc(1), acl: openAcl, flags: CreateMode.persistent };
}

/** The followers: the one from which the observer learns, and the other. */
async function followersOf(scenario: ScenarioRun): Promise<readonly [ServerHost, ServerHost]> {
  const { run } = scenario;
  await scenario.waitFor('the observer learns from a follower', () => run.masterOf(observerOf(scenario))?.role === 'follower');
  const master = run.masterOf(observerOf(scenario))!;
  return [master, scenario.followers.find((server) => server !== master)!];
}

/** An election with its first vote count, two connections, and the synchronisation. */
const nextLeaderMs: Millis = 1500;

export const leaderOfMasterEnds: Scenario = {
  description:
    'the leader ends: its followers disconnect their observers, which serve under the next leader long before they would notice silence',
  run: () =>
    ScenarioRun.execute(
      51,
      async (scenario) => {
        const { run } = scenario;
        const observer = observerOf(scenario);
        const client = await scenario.rawClient({ server: observer });
        await scenario.request(client, 'create', node('/before'));
        await followersOf(scenario);
        const { leader } = scenario;
        leader.kill();
        const killedMs = run.nowMs;
        const { peerEvents } = scenario.world.recording;
        const servesAgain = () =>
          peerEvents.some(({ kind, server, atMs }) => kind === 'serves' && server === observer.name && atMs > killedMs);
        await scenario.waitFor('the observer serves again', servesAgain);
        if (run.nowMs - killedMs > nextLeaderMs)
          run.reportViolation(`the observer served again ${run.nowMs - killedMs} ms after its leader had ended`);
        run.boot(leader);
        await scenario.waitForReconnect(client);
      },
      {},
      {},
      withObserver,
    ),
};

/** How long commits take to the other follower: longer than the observer needs to come to it. */
const lateMs: Millis = 900;
/** From the commit on: a DIFF over links of a few milliseconds. */
const synchronisedMs: Millis = 100;

export const observerAhead: Scenario = {
  description:
    'an observer comes to a follower that does not know the last commit yet, and keeps it; as soon as the follower knows it, the observer serves, though no write follows',
  run: () =>
    ScenarioRun.execute(
      52,
      async (scenario) => {
        const { run, world } = scenario;
        const observer = observerOf(scenario);
        const client = await scenario.rawClient({ server: scenario.leader });
        const [master, other] = await followersOf(scenario);
        run.slowLink(scenario.leader, other, lateMs, 60_000);
        const request = await scenario.request(client, 'create', node('/ahead'));
        const { zxid } = request!.reply!;
        await scenario.waitFor('the observer has the write', () => observer.lastZxid >= zxid);
        // A quorum is left.
        master.kill();
        const leftMs = run.nowMs;
        await scenario.waitFor('the observer learns from the other follower', () => run.masterOf(observer) === other);
        if (other.lastZxid >= zxid) throw new Error('the other follower knows the commit already');
        await scenario.waitFor('the other follower knows the commit', () => other.lastZxid >= zxid);
        const knownMs = run.nowMs;
        await scenario.waitFor('the observer serves', () => observer.role === 'observer');
        if (run.nowMs - knownMs > synchronisedMs)
          run.reportViolation(`the observer served ${run.nowMs - knownMs} ms after the commit was known`);
        if (world.recording.peerEvents.some(({ kind, server, atMs }) => kind === 'replaced' && server === observer.name && atMs > leftMs))
          run.reportViolation('the observer gave up a committed txn');
        run.boot(master);
      },
      {},
      {},
      withObserver,
    ),
};

export const slowReportsOfObserver: Scenario = {
  description: "what an observer reports of its clients' sessions reaches its follower later than the sessions would expire; they are kept",
  run: () =>
    ScenarioRun.execute(
      53,
      async (scenario) => {
        const { run, world } = scenario;
        const observer = observerOf(scenario);
        const client = await scenario.rawClient({ server: observer, timeoutMs: 600 });
        const [master] = await followersOf(scenario);
        await scenario.request(client, 'create', { ...node('/e'), flags: CreateMode.ephemeral });
        // For this long nothing arrives, and later everything late.
        run.slowLink(master, observer, 1500, 60_000);
        await world.run(6000);
        if (scenario.leader.process!.runtime!.inspect.ephemeralCount() !== 1)
          run.reportViolation('a client of an observer lost its session');
      },
      {},
      {},
      withObserver,
    ),
};
