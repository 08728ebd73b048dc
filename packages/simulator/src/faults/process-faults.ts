/** Faults of a server's process and of the machine it runs on. */
import type { Millis } from '@tskeeper/protocol';
import type { Stage } from '../story/stage.ts';
import type { ServerHost } from '../world/server-host.ts';
import type { Fault } from './fault.ts';
import { survival } from './survival.ts';

export const kill: Fault = {
  id: 'F1',
  what: 'the process ends without warning',
  strike(stage, random) {
    const server = stage.anyServer();
    if (server.process === undefined) return;
    server.kill();
    stage.superviseAfter(server, random.below(6400) / 64);
  },
};

export const power: Fault = {
  id: 'F3',
  what: 'the machine loses power, at times while its clients write; any part of what was not synced survives, in any order, torn anywhere',
  strike(stage, random) {
    const server = stage.anyServer();
    const { process } = server;
    if (process === undefined) return;
    const isWriting = random.below(4) > 0;
    if (isWriting) everyoneWrites(stage, 'power');
    stage.after(isWriting ? random.below(640) / 64 : 0, 'power', undefined, () => {
      if (stage.isHealed || server.process !== process) return;
      server.losePower(survival(random));
      stage.superviseAfter(server, random.below(12_800) / 64);
    });
  },
};

function everyoneWrites(stage: Stage, what: string): void {
  for (const actor of stage.actors) {
    const data = Buffer.from(`${what} ${stage.nowMs} ${actor.name}`);
    if (actor.ready) actor.ask({ name: 'setData', record: { path: '/', data, version: -1 } });
  }
}

export const stop: Fault = {
  id: 'F23',
  what: 'an operator stops the server and starts it again',
  strike(stage, random) {
    stopAndStart(stage, stage.anyServer(), random.below(3200) / 64);
  },
};

function stopAndStart(stage: Stage, server: ServerHost, downMs: Millis): void {
  const { process } = server;
  if (process?.runtime === undefined) return;
  void process.close().then(() =>
    stage.after(5, 'stopped', process, () => {
      server.kill();
      stage.superviseAfter(server, downMs);
    }),
  );
}

export const pause: Fault = {
  id: 'F14',
  what: 'the process is paused (SIGSTOP) and then continues',
  strike(stage, random) {
    // A paused leader affects every server, so prefer it.
    const server = (random.below(2) === 0 ? stage.leader : undefined) ?? stage.anyServer();
    const ms = random.below(2) === 0 ? 300 + random.below(1200) : 1 + random.below(100);
    stand(stage, server, ms);
  },
};

/**
 * In multiples of syncLimit: the others have dropped the server, elected another leader and
 * written.
 */
const beyondSyncLimits = 3;

export const longPause: Fault = {
  id: 'F14, F21',
  what: 'a server is paused for up to three times syncLimit while others write; as it wakes, a client reads what they changed',
  ofEnsembles: true,
  strike(stage, random) {
    const serving = stage.world.servers.filter(({ role }) => role === 'leader' || role === 'follower' || role === 'observer');
    const server = (random.below(2) === 0 ? stage.leader : undefined) ?? serving[random.below(serving.length)];
    if (server === undefined) return;
    const { syncLimitTicks = 0, tickMs } = stage.world.recording.limits;
    const syncLimitMs = syncLimitTicks * tickMs;
    const { process } = server;
    if (process === undefined) return;
    const ms = syncLimitMs + random.below((beyondSyncLimits - 1) * syncLimitMs);
    const reader = stage.addReader(server);
    // The reader must be connected first.
    stage.after(120, 'long pause', undefined, () => {
      if (stage.isHealed || server.process !== process || !stand(stage, server, ms)) {
        reader.leave();
        return;
      }
      for (const at of [ms / 2, (ms * 3) / 4]) stage.after(at, 'others write', undefined, () => everyoneWrites(stage, 'standstill'));
      // Just before the server wakes, so that the read is waiting then, and just after.
      for (const at of [ms - 3, ms + 1]) stage.after(at, 'a question', undefined, () => reader.ask());
      stage.after(ms + 300, 'reader leaves', undefined, () => reader.leave());
    });
  },
};

function stand(stage: Stage, { name, process }: ServerHost, ms: Millis): boolean {
  if (process === undefined || process.pausedUntilMs > stage.nowMs) return false;
  const { limits, pauses } = stage.world.recording;
  pauses.push({ server: name, fromMs: stage.nowMs, toMs: stage.nowMs + ms });
  process.pause(ms);
  stage.note(ms > 400 ? 'long pause' : 'short pause');
  if (limits.syncLimitTicks !== undefined && ms > limits.syncLimitTicks * limits.tickMs) stage.note('pause beyond syncLimit');
  return true;
}

export const killLeader: Fault = {
  id: 'F1',
  what: 'the process of the leader ends without warning',
  ofEnsembles: true,
  strike(stage, random) {
    const { leader } = stage;
    if (leader === undefined) return;
    leader.kill();
    stage.superviseAfter(leader, random.below(3) === 0 ? random.below(3000) : random.below(100));
  },
};

export const newLeader: Fault = {
  id: 'F1, F14, F21',
  what: 'the leader ends, and the next one, after its election and before it serves, ends too or is paused for up to three times syncLimit',
  ofEnsembles: true,
  strike(stage, random) {
    const { leader } = stage;
    leader?.kill();
    if (leader !== undefined) stage.superviseAfter(leader, random.below(600));
    asItBeginsToLead(stage, stage.world.servers, random.below(15), (server) => {
      stage.note('a new leader was struck');
      if (random.below(2) === 0) {
        const { syncLimitTicks = 0, tickMs } = stage.world.recording.limits;
        stand(stage, server, syncLimitTicks * tickMs * (1 + random.below(128) / 64));
        return;
      }
      server.kill();
      stage.superviseAfter(server, random.below(1500));
    });
  },
};

const lookMs: Millis = 3;
const looksMax = 500;

/**
 * Strikes `afterMs` after one of these servers was elected, if it still runs, whatever stage it
 * leads in.
 */
function asItBeginsToLead(
  stage: Stage,
  servers: readonly ServerHost[],
  afterMs: Millis,
  strike: (server: ServerHost) => void,
  looks = looksMax,
): void {
  if (stage.isHealed || looks === 0) return;
  const server = servers.find(({ process }) => {
    const place = process?.runtime?.inspect.ensemble();
    return place?.state === 'leading' && place.phase !== 'broadcast';
  });
  if (server === undefined) {
    stage.after(lookMs, 'a look for a new leader', undefined, () => asItBeginsToLead(stage, servers, afterMs, strike, looks - 1));
    return;
  }
  const { process } = server;
  stage.after(afterMs, 'new leader', undefined, () => {
    if (!stage.isHealed && server.process === process) strike(server);
  });
}

export const lonelyLeader: Fault = {
  id: 'F1, F21',
  what: 'the leader is alone with its clients, and a moment later its process ends: the end of its log is nowhere else and must be truncated',
  ofEnsembles: true,
  strike(stage, random) {
    const { leader } = stage;
    if (leader === undefined) return;
    const others = stage.world.servers.filter((server) => server !== leader);
    const ms = 20 + random.below(150);
    // The process ends before the cut heals, so packets that the cut holds back never arrive.
    stage.cutBetween([leader], others, ms + 5, 'one way');
    everyoneWrites(stage, 'lonely');
    const { process } = leader;
    const isQuiet = random.below(4) > 0;
    stage.after(ms, 'lonely end', undefined, () => {
      if (stage.isHealed || leader.process !== process) return;
      leader.kill();
      if (random.below(4) === 0) {
        // It returns before the others have another leader, is elected with everything it has, and
        // synchronises the others to that. Then it is away for long.
        stage.superviseAfter(leader, random.below(10));
        asItBeginsToLead(stage, [leader], random.below(40), () => {
          leader.kill();
          stage.superviseAfter(leader, 600 + random.below(1500));
        });
        return;
      }
      // It returns after the others have begun another epoch. If that epoch has a txn, it receives
      // a snapshot and nothing is truncated.
      if (isQuiet) stage.cutBetween(stage.actors, others, 200 + random.below(600));
      stage.superviseAfter(leader, 20 + random.below(200));
    });
  },
};

export const absence: Fault = {
  id: 'F1, F20',
  what: 'a server that is not the leader is down for long while the others continue',
  ofEnsembles: true,
  strike(stage, random) {
    const others = stage.world.servers.filter(({ role, process }) => role !== 'leader' && process !== undefined);
    const server = others[random.below(others.length)];
    if (server === undefined) return;
    server.kill();
    stage.superviseAfter(server, 200 + random.below(1500));
  },
};

export const killAll: Fault = {
  id: 'F2',
  what: 'all processes end at once and restart in any order, some much later',
  ofEnsembles: true,
  strike(stage, random) {
    for (const server of stage.world.servers) {
      server.kill();
      stage.superviseAfter(server, random.below(3) === 0 ? random.below(4000) : random.below(150));
    }
  },
};

export const powerAll: Fault = {
  id: 'F3',
  what: 'all machines lose power at once and return in any order, some much later',
  ofEnsembles: true,
  strike(stage, random) {
    for (const server of stage.world.servers) {
      server.losePower(survival(random));
      stage.superviseAfter(server, random.below(3) === 0 ? random.below(4000) : random.below(150));
    }
  },
};

export const rollingRestart: Fault = {
  id: 'F23',
  what: 'an operator restarts the servers one after the other',
  ofEnsembles: true,
  strike(stage, random) {
    let ms = 0;
    for (const server of stage.world.servers) {
      stage.after(ms, 'rolling restart', undefined, () => {
        if (!stage.isHealed) stopAndStart(stage, server, random.below(100));
      });
      ms += 100 + random.below(600);
    }
  },
};
